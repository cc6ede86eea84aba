//! A checkpoint folder whose index, headers and config agree.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{
    CheckpointError, Disagreement, Disagreements, Header, INDEX_FILE, INDEX_LIMIT, Index, TensorName, parse_header,
    parse_index, read_header,
};
use crate::config::{Attention, Config};
use crate::tensor::{Dtype, Inventory, LayerTensor, TensorId};

/// A text tensor inside its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardTensor {
    /// Which tensor.
    pub id: TensorId,
    /// Its first byte, from the start of the file.
    pub begin: u64,
}

/// One shard with the text tensors it holds.
#[derive(Clone, Debug)]
pub struct Shard {
    /// The file.
    pub path: PathBuf,
    /// Size of the file in bytes.
    pub file_len: u64,
    /// When it was last written to, as its header was read.
    pub modified: Option<SystemTime>,
    /// Where tensor data starts.
    pub data_start: u64,
    /// The text tensors in the order of their data; vision tensors are left out.
    pub tensors: Vec<ShardTensor>,
}

/// What is known of the vision half, which a text run skips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisionHalf {
    /// Number of its tensors.
    pub tensors: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// A verified checkpoint: every tensor the config implies is in exactly one shard, with the right type and shape, where
/// the index says, and nothing else is there but the vision half.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    inventory: Inventory,
    shards: Vec<Shard>,
    vision: VisionHalf,
    /// Shard and first byte of each tensor, by its number in the inventory.
    locations: Vec<Location>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Location {
    shard: u16,
    begin: u64,
}

/// Place of a tensor that no header has shown yet.
const UNSEEN: u64 = u64::MAX;

impl Checkpoint {
    /// Reads index and headers of a folder and checks them against each other and against the config, and that the
    /// unused entries of every `A_log` are zero. No other tensor data is read.
    pub fn open(folder: &Path, config: &Config) -> Result<Self, CheckpointError> {
        let (mut check, names) = read_index(folder, config)?;
        let missing: Vec<String> = names.iter().filter(|name| is_missing(&folder.join(name))).cloned().collect();
        if !missing.is_empty() {
            return Err(CheckpointError::FindShards { folder: folder.to_owned(), names: missing });
        }
        let mut shards = Vec::with_capacity(names.len());
        for (number, name) in names.iter().enumerate() {
            let path = folder.join(name);
            let fail = |source| CheckpointError::OpenShard { path: path.clone(), source };
            let (file, file_len) = crate::file::open(&path).map_err(fail)?;
            let modified = file.metadata().map_err(fail)?.modified().ok();
            let refuse = |source| CheckpointError::ReadHeader { path: path.clone(), source };
            let bytes = read_header(&file, file_len).map_err(refuse)?;
            let header = parse_header(&bytes, file_len).map_err(refuse)?;
            let tensors = check.shard(number as u16, name, &header); // parse_index allows 65,536 shards
            shards.push(Shard { path, file_len, modified, data_start: header.data_start, tensors });
        }
        let vision = check.vision_half();
        let (inventory, locations) = check.finish(&names)?;
        let checkpoint = Self { inventory, shards, vision, locations };
        checkpoint.check_a_log()?;
        Ok(checkpoint)
    }

    /// The config the checkpoint was checked against.
    pub fn config(&self) -> &Config {
        self.inventory.config()
    }

    /// Every text tensor.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The shards, in the order of the index.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The tensors that are not text.
    pub fn vision(&self) -> VisionHalf {
        self.vision
    }

    /// The bytes of one tensor; `None` if the model has no such tensor.
    pub fn read(&self, id: TensorId) -> Option<Result<Vec<u8>, CheckpointError>> {
        let Location { shard, begin } = self.locations[self.inventory.index(id)?];
        let path = &self.shards[usize::from(shard)].path;
        let read = || {
            let (file, _) = crate::file::open(path)?;
            let size = self.inventory.spec(id).map_or(0, |spec| spec.bytes());
            let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
            file.read_exact_at(&mut bytes, begin)?;
            Ok(bytes)
        };
        Some(read().map_err(|source| CheckpointError::ReadTensor { tensor: id, path: path.clone(), source }))
    }

    /// `A_log` holds one value per head and zeros behind. Values there mean that the file uses it per channel, which
    /// would type-check (both axes may be 128 long) and give fluent nonsense.
    fn check_a_log(&self) -> Result<(), CheckpointError> {
        let heads = self.config().kda.heads;
        for (layer, kind) in self.config().layers.iter().enumerate() {
            let tensor = TensorId::Layer(layer as u16, LayerTensor::ALog);
            let Some(bytes) = (kind.attention == Attention::Kda).then(|| self.read(tensor)).flatten() else { continue };
            let bytes = bytes?;
            let (values, _) = bytes.as_chunks::<4>();
            for (entry, value) in values.iter().enumerate().skip(heads) {
                let value = f32::from_le_bytes(*value);
                if value != 0.0 {
                    return Err(CheckpointError::CheckALog { tensor, entry, value, heads });
                }
            }
        }
        Ok(())
    }
}

/// Parses the index and keeps of it what the cross-check needs; its 60 MB of names are dropped before the headers come.
fn read_index(folder: &Path, config: &Config) -> Result<(CrossCheck, Vec<String>), CheckpointError> {
    let path = folder.join(INDEX_FILE);
    let bytes = crate::file::read(&path, INDEX_LIMIT)
        .map_err(|source| CheckpointError::ReadIndex { path: path.clone(), source })?;
    let index = parse_index(&bytes).map_err(|source| CheckpointError::ParseIndex { path, source })?;
    let names = index.shards.iter().map(|name| name.to_string()).collect();
    Ok((CrossCheck::new(config, &index), names))
}

fn is_missing(path: &Path) -> bool {
    path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Compares index, headers and config tensor by tensor.
struct CrossCheck {
    inventory: Inventory,
    total_size: u64,
    /// By number in the inventory: where the index places the tensor, and where a header showed it.
    locations: Vec<Option<Location>>,
    /// Vision tensors of the index, with their shard and whether a header showed them.
    vision: HashMap<String, (u16, bool)>,
    vision_bytes: u64,
    found_size: u64,
    disagreements: Disagreements,
}

impl CrossCheck {
    fn new(config: &Config, index: &Index<'_>) -> Self {
        let inventory = Inventory::new(config);
        let mut locations = vec![None; inventory.len()];
        let mut vision = HashMap::new();
        let mut disagreements = Disagreements::default();
        for (name, shard) in &index.tensors {
            match TensorName::classify(name) {
                TensorName::Vision => _ = vision.insert(name.to_string(), (*shard, false)),
                TensorName::Text(id) if let Some(number) = inventory.index(id) => {
                    locations[number] = Some(Location { shard: *shard, begin: UNSEEN });
                }
                _ => disagreements.add(Disagreement::Unknown { name: name.to_string(), file: INDEX_FILE.to_owned() }),
            }
        }
        for (id, location) in inventory.iter().zip(&locations) {
            if location.is_none() {
                disagreements.add(Disagreement::MissingFromIndex(id));
            }
        }
        let total_size = index.total_size;
        Self { inventory, total_size, locations, vision, vision_bytes: 0, found_size: 0, disagreements }
    }

    /// Takes in one shard's header; gives back its text tensors.
    fn shard(&mut self, shard: u16, file: &str, header: &Header<'_>) -> Vec<ShardTensor> {
        let mut tensors = Vec::with_capacity(header.tensors.len());
        for tensor in &header.tensors {
            // Sparse files may claim anything: a saturated sum disagrees with the index like any other wrong one.
            self.found_size = self.found_size.saturating_add(tensor.end - tensor.begin);
            let placed_here = match TensorName::classify(&tensor.name) {
                TensorName::Vision => match self.vision.get_mut(tensor.name.as_ref()) {
                    Some((home, seen)) if *home == shard => {
                        self.vision_bytes = self.vision_bytes.saturating_add(tensor.end - tensor.begin);
                        !std::mem::replace(seen, true)
                    }
                    _ => false,
                },
                TensorName::Text(id) if let Some(number) = self.inventory.index(id) => {
                    tensors.push(ShardTensor { id, begin: tensor.begin });
                    self.check_spec(id, tensor.dtype, &tensor.shape);
                    match &mut self.locations[number] {
                        Some(location) if location.shard == shard => {
                            location.begin = tensor.begin;
                            true
                        }
                        _ => false,
                    }
                }
                _ => {
                    let (name, file) = (tensor.name.to_string(), file.to_owned());
                    self.disagreements.add(Disagreement::Unknown { name, file });
                    continue;
                }
            };
            if !placed_here {
                let (name, shard) = (tensor.name.to_string(), file.to_owned());
                self.disagreements.add(Disagreement::MisplacedInShard { name, shard });
            }
        }
        tensors
    }

    fn vision_half(&self) -> VisionHalf {
        VisionHalf { tensors: self.vision.len(), bytes: self.vision_bytes }
    }

    fn check_spec(&mut self, tensor: TensorId, found_dtype: Dtype, found_shape: &[u64]) {
        let Some(spec) = self.inventory.spec(tensor) else { return };
        if spec.dtype != found_dtype || spec.shape.dims() != found_shape {
            self.disagreements.add(Disagreement::WrongSpec {
                tensor,
                dtype: spec.dtype,
                shape: spec.shape.dims().to_vec(),
                found_dtype,
                found_shape: found_shape.to_vec(),
            });
        }
    }

    fn finish(mut self, shards: &[String]) -> Result<(Inventory, Vec<Location>), CheckpointError> {
        let missing = |name: String, shard: u16| Disagreement::MissingFromShard {
            name,
            shard: shards[usize::from(shard)].clone(),
        };
        for (id, location) in self.inventory.iter().zip(&self.locations) {
            if let Some(Location { shard, begin: UNSEEN }) = location {
                self.disagreements.add(missing(id.to_string(), *shard));
            }
        }
        for (name, (shard, seen)) in &self.vision {
            if !seen {
                self.disagreements.add(missing(name.clone(), *shard));
            }
        }
        if self.found_size != self.total_size {
            let (stated, found) = (self.total_size, self.found_size);
            self.disagreements.add(Disagreement::WrongTotal { stated, found });
        }
        if self.disagreements.count > 0 {
            return Err(CheckpointError::MatchTensors(self.disagreements));
        }
        // Without a disagreement every tensor has its place.
        Ok((self.inventory, self.locations.into_iter().flatten().collect()))
    }
}
