//! From the bytes of a shard to the arenas.

use super::share::{Split, split};
use super::{Layout, Region, WeightCopy};
use crate::tensor::{LayerTensor, TensorId};

/// Where the parts of all ranks of one region come from.
#[derive(Clone, Copy)]
struct Source {
    region: Region,
    /// First byte of rank 0's part in the stored tensor.
    start: u64,
    /// From there to the part of the next rank.
    rank_stride: u64,
    /// From one run of bytes to the next in the stored tensor.
    pitch: u64,
    /// Rows of the region that lie together in the stored tensor.
    rows_per_run: u64,
}

impl Source {
    fn copy(&self, rank: usize, tensor_begin: u64) -> WeightCopy {
        let Region { offset, rows, row_bytes, pitch } = self.region;
        WeightCopy {
            rank,
            source: tensor_begin + self.start + rank as u64 * self.rank_stride,
            source_pitch: self.pitch,
            destination: offset,
            destination_pitch: pitch * self.rows_per_run,
            rows: rows / self.rows_per_run,
            row_bytes: row_bytes * self.rows_per_run,
        }
        .joined()
    }
}

impl Layout {
    /// The copies that bring a tensor, whose first byte is byte `begin` of its shard, to the ranks: all of rank 0 first.
    /// None if the model has no such tensor.
    ///
    /// A loader walks each shard once: for the tensors of a read, in the order of the file, it issues
    /// [`WeightCopy::within`] the bytes that were read.
    pub fn copies(&self, id: TensorId, begin: u64) -> impl Iterator<Item = WeightCopy> + use<> {
        let sources = self.sources(id).unwrap_or_default();
        (0..self.ranks()).flat_map(move |rank| {
            let copy = move |source: Source| source.copy(rank, begin);
            sources.into_iter().flatten().map(copy)
        })
    }

    fn sources(&self, id: TensorId) -> Option<[Option<Source>; 2]> {
        let ranks = self.ranks() as u64;
        let spec = self.inventory().spec(id)?;
        let row_bytes = spec.row_bytes();
        if let TensorId::Layer(layer, LayerTensor::KvBProj) = id {
            let mla = &self.inventory().config().mla;
            let (nope, v) = (mla.nope_dim as u64, mla.v_dim as u64);
            let head_bytes = (nope + v) * row_bytes;
            let half = |region, start, rows_per_run| {
                let rank_stride = mla.heads as u64 / ranks * head_bytes;
                Some(Source { region, start, rank_stride, pitch: head_bytes, rows_per_run })
            };
            let kv_b = self.kv_b(usize::from(layer))?;
            return Some([half(kv_b.key, 0, nope), half(kv_b.value, nope * row_bytes, v)]);
        }
        let rank_stride = match split(id) {
            Split::Replicate => 0,
            Split::Rows => self.divided_rows(id, &spec) / ranks * row_bytes,
            Split::Columns => row_bytes / ranks,
        };
        let region = self.region(id)?;
        Some([Some(Source { region, start: 0, rank_stride, pitch: row_bytes, rows_per_run: 1 }), None])
    }
}
