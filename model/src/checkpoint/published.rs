//! The shard layout the checkpoint is published in, made from a config alone: for tests and for sparse stand-ins of
//! files that take 1.56 TB.
//!
//! Layer N is shard N+1; the tensors outside the layers follow in one shard, then the projector and the vision tower.
//! Inside a shard tensors are sorted by falling element size, then by name: experts come in lexicographic order (0, 1,
//! 10, 100, ...), the six tensors of one together.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::json;

use super::INDEX_FILE;
use crate::config::Config;
use crate::tensor::{Dtype, Inventory};

/// Whether the vision half is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vision {
    /// Two more shards, as published.
    Published,
    /// Text only.
    Absent,
}

/// One shard as it is published, without the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedShard {
    /// File name.
    pub file_name: String,
    /// First bytes of the file: length and JSON, padded with spaces to a multiple of 8.
    pub header: Vec<u8>,
    /// Bytes of tensor data behind the header.
    pub data_len: u64,
    /// Tensor names in the order of the data.
    pub names: Vec<String>,
}

struct Tensor {
    name: String,
    dtype: Dtype,
    shape: Vec<u64>,
}

impl Tensor {
    fn bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.dtype.bits() / 8
    }
}

/// The shards of a model with this config, one after the other.
pub fn published_shards(config: &Config, vision: Vision) -> impl Iterator<Item = PublishedShard> {
    let inventory = Inventory::new(config);
    let layers = config.layers.len();
    let count = layers + if vision == Vision::Published { 3 } else { 1 };
    (0..count).map(move |number| {
        let tensors = if number < layers {
            text_tensors(&inventory, inventory.layer(number))
        } else if number == layers {
            text_tensors(&inventory, inventory.outside_layers())
        } else if number == layers + 1 {
            projector(&inventory)
        } else {
            vision_tower()
        };
        shard(format!("model-{:05}-of-{count:06}.safetensors", number + 1), tensors)
    })
}

fn shard(file_name: String, mut tensors: Vec<Tensor>) -> PublishedShard {
    tensors.sort_by(|a, b| b.dtype.bits().cmp(&a.dtype.bits()).then_with(|| a.name.cmp(&b.name)));
    let mut json = br#"{"__metadata__":{"format":"pt"}"#.to_vec();
    let mut begin = 0;
    for tensor in &tensors {
        let end = begin + tensor.bytes();
        let (dtype, shape) = (tensor.dtype.name(), &tensor.shape);
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]});
        json.extend(format!(",\"{}\":{entry}", tensor.name).bytes());
        begin = end;
    }
    json.push(b'}');
    json.resize(json.len().next_multiple_of(8), b' ');
    let header = [&(json.len() as u64).to_le_bytes()[..], &json].concat();
    PublishedShard { file_name, header, data_len: begin, names: tensors.into_iter().map(|t| t.name).collect() }
}

fn text_tensors(inventory: &Inventory, ids: impl Iterator<Item = crate::tensor::TensorId>) -> Vec<Tensor> {
    let known = ids.filter_map(|id| Some((id, inventory.spec(id)?)));
    known
        .map(|(id, spec)| Tensor { name: id.to_string(), dtype: spec.dtype, shape: spec.shape.dims().to_vec() })
        .collect()
}

// Sizes of the vision half (MoonViT-3D of Kimi K3, all BF16, no biases): width 1024, MLP 4096, 12 heads of 128, 27
// blocks, patches of 14 x 14, 64 x 64 positions, 2 x 2 patches merged into one token. With them the bytes add up to the
// published 894,717,952.
const VIT_WIDTH: u64 = 1024;
const VIT_MLP: u64 = 4096;
const VIT_HEADS_WIDTH: u64 = 12 * 128;
const VIT_BLOCKS: usize = 27;

fn bf16(name: impl Into<String>, shape: &[u64]) -> Tensor {
    Tensor { name: name.into(), dtype: Dtype::BF16, shape: shape.to_vec() }
}

fn projector(inventory: &Inventory) -> Vec<Tensor> {
    let (merged, hidden) = (4 * VIT_WIDTH, inventory.config().hidden_size as u64);
    vec![
        bf16("mm_projector.post_norm.weight", &[hidden]),
        bf16("mm_projector.proj.0.weight", &[merged, merged]),
        bf16("mm_projector.proj.2.weight", &[hidden, merged]),
    ]
}

fn vision_tower() -> Vec<Tensor> {
    let mut tensors = vec![
        bf16("vision_tower.encoder.final_layernorm.weight", &[VIT_WIDTH]),
        bf16("vision_tower.patch_embed.pos_emb.weight", &[64, 64, VIT_WIDTH]),
        bf16("vision_tower.patch_embed.proj.weight", &[VIT_WIDTH, 3, 14, 14]),
    ];
    for block in 0..VIT_BLOCKS {
        let block_tensors: [(&str, &[u64]); 6] = [
            ("norm0", &[VIT_WIDTH]),
            ("norm1", &[VIT_WIDTH]),
            ("wqkv", &[3 * VIT_HEADS_WIDTH, VIT_WIDTH]),
            ("wo", &[VIT_WIDTH, VIT_HEADS_WIDTH]),
            ("mlp.fc0", &[VIT_MLP, VIT_WIDTH]),
            ("mlp.fc1", &[VIT_WIDTH, VIT_MLP]),
        ];
        tensors.extend(
            block_tensors
                .map(|(name, shape)| bf16(format!("vision_tower.encoder.blocks.{block}.{name}.weight"), shape)),
        );
    }
    tensors
}

/// Writes the index of the published layout.
pub fn write_index(config: &Config, vision: Vision, mut out: impl Write) -> io::Result<()> {
    let total: u64 = published_shards(config, vision).map(|shard| shard.data_len).sum();
    write!(out, "{{\n  \"metadata\": {{\n    \"total_size\": {total}\n  }},\n  \"weight_map\": {{")?;
    let mut separator = "";
    for shard in published_shards(config, vision) {
        for name in &shard.names {
            write!(out, "{separator}\n    \"{name}\": \"{}\"", shard.file_name)?;
            separator = ",";
        }
    }
    out.write_all(b"\n  }\n}\n")?;
    out.flush()
}

/// Writes a stand-in checkpoint into an existing folder: real index and headers, all data zero and sparse, so that the
/// official model takes 130 MB of disk. Files that exist are not touched but reported as an error.
pub fn write_sparse(folder: &Path, config: &Config, vision: Vision) -> io::Result<()> {
    let create = |name: &str| OpenOptions::new().write(true).create_new(true).open(folder.join(name));
    for shard in published_shards(config, vision) {
        let file = create(&shard.file_name)?;
        file.write_all_at(&shard.header, 0)?;
        file.set_len(shard.header.len() as u64 + shard.data_len)?;
    }
    write_index(config, vision, BufWriter::new(create(INDEX_FILE)?))
}
