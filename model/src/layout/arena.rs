//! The weight arena of a rank.

use std::collections::HashMap;

use super::share::{ROW_ALIGN, Split, split};
use super::{Indivisible, LayoutError, Share};
use crate::config::{Config, FeedForward, MXFP4_GROUP};
use crate::tensor::{ExpertMatrix, ExpertPart, ExpertTensor, Inventory, LayerTensor, TensorId, TensorSpec};

/// Every tensor, and every tensor of an expert, starts at a multiple of this many bytes of the arena.
pub const TENSOR_ALIGN: u64 = 256;

/// A matrix in the arena, the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte in the arena.
    pub offset: u64,
    /// Rows this rank has.
    pub rows: u64,
    /// Bytes of a row this rank has.
    pub row_bytes: u64,
    /// From one row to the next: `row_bytes`, rounded up to [`ROW_ALIGN`] in inner-axis shards.
    pub pitch: u64,
}

impl Region {
    /// Bytes from the first to behind the last row, padding of rows included.
    pub fn bytes(&self) -> u64 {
        self.rows * self.pitch
    }

    /// Bytes of weights, without padding.
    pub fn weight_bytes(&self) -> u64 {
        self.rows * self.row_bytes
    }

    /// First byte behind it.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes()
    }
}

/// kv_b, taken apart: the absorbed form of attention multiplies by the key half before and by the value half after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvB {
    /// `[heads][nope_dim][kv_rank]`.
    pub key: Region,
    /// `[heads][v_dim][kv_rank]`.
    pub value: Region,
}

/// The routed experts of one layer: six matrices an expert, each at a fixed place inside the expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpertTable {
    /// First byte of expert 0 in the arena.
    pub offset: u64,
    /// From one expert to the next.
    pub stride: u64,
    /// Experts.
    pub count: u64,
    /// By matrix and part, with offsets from the start of the expert.
    inside: [[Region; 2]; 3],
}

impl ExpertTable {
    /// One tensor of an expert, its offset counted from the start of that expert.
    pub fn inside(&self, matrix: ExpertMatrix, part: ExpertPart) -> Region {
        self.inside[matrix as usize][part as usize]
    }

    /// One tensor of expert `expert` in the arena.
    pub fn region(&self, expert: u16, matrix: ExpertMatrix, part: ExpertPart) -> Region {
        let inside = self.inside(matrix, part);
        Region { offset: self.offset + u64::from(expert) * self.stride + inside.offset, ..inside }
    }
}

/// The place of every weight for one model and one number of ranks.
#[derive(Clone, Debug)]
pub struct Layout {
    inventory: Inventory,
    ranks: usize,
    /// Offsets of all tensors but those of experts; of kv_b, that of its key half.
    offsets: HashMap<TensorId, u64>,
    /// By layer.
    experts: Vec<Option<ExpertTable>>,
    arena_bytes: u64,
}

impl Layout {
    /// Lays a model out over 1, 2, 4 or 8 ranks.
    pub fn new(config: &Config, ranks: usize) -> Result<Self, LayoutError> {
        if !matches!(ranks, 1 | 2 | 4 | 8) {
            return Err(LayoutError::CountRanks(ranks));
        }
        let indivisible = indivisible_sizes(config, ranks);
        if !indivisible.is_empty() {
            return Err(LayoutError::Divide { ranks, indivisible });
        }
        let inventory = Inventory::new(config);
        let mut layout = Self { inventory, ranks, offsets: HashMap::new(), experts: Vec::new(), arena_bytes: 0 };
        layout.place(layout.inventory.outside_layers());
        for (index, layer) in config.layers.iter().enumerate() {
            let plain = layout.inventory.layer(index).take_while(|id| !matches!(id, TensorId::Expert(_)));
            layout.place(plain);
            let experts = (layer.feed_forward == FeedForward::Moe).then(|| layout.place_experts(index as u16));
            layout.experts.push(experts);
        }
        Ok(layout)
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The tensors that are laid out.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Size of the arena of each rank, in bytes: a multiple of [`TENSOR_ALIGN`].
    pub fn arena_bytes(&self) -> u64 {
        self.arena_bytes
    }

    /// The part of a tensor that a rank keeps; `None` if the model has no such tensor or the layout no such rank.
    pub fn share(&self, id: TensorId, rank: usize) -> Option<Share> {
        let spec = self.inventory.spec(id).filter(|_| rank < self.ranks)?;
        let part = |size: u64| {
            let part = size / self.ranks as u64;
            part * rank as u64..part * (rank as u64 + 1)
        };
        Some(match split(id) {
            Split::Replicate => Share::Replicated,
            Split::Rows => Share::Rows(part(self.divided_rows(id, &spec))),
            Split::Columns => Share::Columns(part(spec.columns())),
        })
    }

    /// Where a tensor is; `None` if the model has no such tensor, and for kv_b, which is in two places ([`Self::kv_b`]).
    pub fn region(&self, id: TensorId) -> Option<Region> {
        match id {
            TensorId::Expert(ExpertTensor { layer, expert, matrix, part }) => {
                let table = self.experts(usize::from(layer))?;
                (u64::from(expert) < table.count).then(|| table.region(expert, matrix, part))
            }
            TensorId::Layer(_, LayerTensor::KvBProj) => None,
            _ => Some(Region { offset: *self.offsets.get(&id)?, ..self.shape(id, &self.inventory.spec(id)?) }),
        }
    }

    /// The two halves of kv_b of an MLA layer.
    pub fn kv_b(&self, layer: usize) -> Option<KvB> {
        let id = TensorId::Layer(u16::try_from(layer).ok()?, LayerTensor::KvBProj);
        let (offset, spec) = (*self.offsets.get(&id)?, self.inventory.spec(id)?);
        Some(self.kv_b_at(offset, &spec))
    }

    /// The routed experts of a layer, if it has any.
    pub fn experts(&self, layer: usize) -> Option<&ExpertTable> {
        self.experts.get(layer)?.as_ref()
    }

    fn place(&mut self, ids: impl Iterator<Item = TensorId>) {
        for id in ids {
            let Some(spec) = self.inventory.spec(id) else { continue };
            let offset = self.arena_bytes;
            let end = match id {
                TensorId::Layer(_, LayerTensor::KvBProj) => self.kv_b_at(offset, &spec).value.end(),
                _ => offset + self.shape(id, &spec).bytes(),
            };
            self.offsets.insert(id, offset);
            self.arena_bytes = end.next_multiple_of(TENSOR_ALIGN);
        }
    }

    fn place_experts(&mut self, layer: u16) -> ExpertTable {
        let nowhere = Region { offset: 0, rows: 0, row_bytes: 0, pitch: 0 };
        let mut inside = [[nowhere; 2]; 3];
        let mut stride: u64 = 0;
        for tensor in ExpertTensor::of_expert(layer, 0) {
            let id = TensorId::Expert(tensor);
            let Some(spec) = self.inventory.spec(id) else { continue };
            let region = Region { offset: stride, ..self.shape(id, &spec) };
            inside[tensor.matrix as usize][tensor.part as usize] = region;
            stride = region.end().next_multiple_of(TENSOR_ALIGN);
        }
        let count = self.inventory.config().moe.experts as u64;
        let offset = self.arena_bytes;
        self.arena_bytes += count * stride;
        ExpertTable { offset, stride, count, inside }
    }

    /// Rows of a tensor that are divided between the ranks.
    pub(super) fn divided_rows(&self, id: TensorId, spec: &TensorSpec) -> u64 {
        match id {
            TensorId::Layer(_, LayerTensor::ALog) => self.inventory.config().kda.heads as u64,
            _ => spec.rows(),
        }
    }

    /// A rank's part of a tensor, at offset 0.
    fn shape(&self, id: TensorId, spec: &TensorSpec) -> Region {
        let ranks = self.ranks as u64;
        let (rows, row_bytes) = (spec.rows(), spec.row_bytes());
        match split(id) {
            Split::Replicate => Region { offset: 0, rows, row_bytes, pitch: row_bytes },
            Split::Rows => Region { offset: 0, rows: self.divided_rows(id, spec) / ranks, row_bytes, pitch: row_bytes },
            Split::Columns => {
                let row_bytes = row_bytes / ranks;
                Region { offset: 0, rows, row_bytes, pitch: row_bytes.next_multiple_of(ROW_ALIGN) }
            }
        }
    }

    fn kv_b_at(&self, offset: u64, spec: &TensorSpec) -> KvB {
        let mla = &self.inventory.config().mla;
        let heads = (mla.heads / self.ranks) as u64;
        let row_bytes = spec.row_bytes();
        let half = |offset, dim: usize| Region { offset, rows: heads * dim as u64, row_bytes, pitch: row_bytes };
        let key = half(offset, mla.nope_dim);
        KvB { key, value: half(key.end().next_multiple_of(TENSOR_ALIGN), mla.v_dim) }
    }
}

fn indivisible_sizes(config: &Config, ranks: usize) -> Vec<Indivisible> {
    let sizes = [
        ("vocabulary entries", config.vocab_size, ranks),
        ("KDA heads", config.kda.heads, ranks),
        ("MLA heads", config.mla.heads, ranks),
        ("dense MLP channels", config.dense_width, ranks),
        ("shared expert channels", config.moe.shared_width, ranks),
        ("latent values", config.moe.latent_size, ranks),
        ("routed expert channels (in MXFP4 groups)", config.moe.expert_width, ranks * MXFP4_GROUP),
    ];
    let wrong = sizes.into_iter().filter(|(_, size, by)| !size.is_multiple_of(*by));
    wrong.map(|(what, size, by)| Indivisible { what, size, by }).collect()
}
