//! Random weights, made where they are needed: once for the GPUs, once more for the host's own computation.

use driver::address::GpuVa;
use model::config::{Config, MXFP4_GROUP};
use model::layout::{Layout, Region, Share};
use model::tensor::{Dtype, ExpertPart, ExpertTensor, LayerTensor, TensorId};

use super::math::Weight;
use crate::engine::{EngineError, Rank};
use crate::fixture::Content;

/// Correction that keeps the router from an expert whose weights are not there: scores are below 1.
const NEVER: f32 = -16.0;

/// Added to the bias of KDA's decay, so that a token keeps some nine tenths of the state. Around zero it would keep a
/// twelfth: outputs would be products of one random query and key, which cancel, and errors in them would say nothing.
const DECAY_BIAS: f32 = -4.0;

/// A weight of a rank: a tensor, or a half of kv_b, which is taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Tensor(TensorId),
    KvKey(u16),
    KvValue(u16),
}

/// All weights of a model, as a function of a seed.
pub(super) struct Weights<'a> {
    pub(super) config: &'a Config,
    pub(super) layout: &'a Layout,
    pub(super) seed: u64,
    /// Experts that have weights and are chosen from: the first so many.
    pub(super) resident: usize,
}

impl Weights<'_> {
    /// Every weight but those of experts that are not resident.
    fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let inventory = self.layout.inventory();
        let outside = inventory.outside_layers().map(Place::Tensor);
        let layers = (0..self.config.layers.len()).flat_map(move |layer| inventory.layer(layer));
        outside.chain(layers.flat_map(move |id| match id {
            TensorId::Layer(layer, LayerTensor::KvBProj) => vec![Place::KvKey(layer), Place::KvValue(layer)],
            TensorId::Expert(expert) if usize::from(expert.expert) >= self.resident => vec![],
            id => vec![Place::Tensor(id)],
        }))
    }

    fn region(&self, place: Place) -> Region {
        let region = match place {
            Place::Tensor(id) => self.layout.region(id),
            Place::KvKey(layer) => self.layout.kv_b(layer.into()).map(|kv_b| kv_b.key),
            Place::KvValue(layer) => self.layout.kv_b(layer.into()).map(|kv_b| kv_b.value),
        };
        region.expect("places are made from the layout's own inventory")
    }

    /// The bytes of a rank's part of a weight, rows packed. Tensors that ranks share are the same on all.
    fn bytes(&self, place: Place, rank: usize) -> Vec<u8> {
        let region = self.region(place);
        let (id, part) = match place {
            Place::Tensor(id) => (id, ""),
            Place::KvKey(layer) => (TensorId::Layer(layer, LayerTensor::KvBProj), ".key"),
            Place::KvValue(layer) => (TensorId::Layer(layer, LayerTensor::KvBProj), ".value"),
        };
        let spec = self.layout.inventory().spec(id).expect("places are made from the layout's own inventory");
        let shared = matches!(self.layout.share(id, rank), Some(Share::Replicated));
        let seed = self.seed.wrapping_add(if shared { 0 } else { rank as u64 });
        let content = Content::new(self.config, &format!("{id}{part}"), spec.dtype, spec.shape.dims(), seed);
        let mut bytes = vec![0; region.weight_bytes() as usize];
        content.fill(0, &mut bytes);
        match id {
            TensorId::Layer(_, LayerTensor::RouterBias) => {
                bytes[self.resident * 4..].as_chunks_mut().0.fill(NEVER.to_le_bytes());
            }
            TensorId::Layer(_, LayerTensor::DtBias) => {
                let values = bytes.as_chunks_mut().0.iter_mut();
                values.for_each(|value| *value = (f32::from_le_bytes(*value) + DECAY_BIAS).to_le_bytes());
            }
            _ => {}
        }
        bytes
    }

    /// Writes all weights of a rank to its GPU.
    pub(super) fn upload(&self, rank: &mut Rank) -> Result<(), EngineError> {
        for place in self.places() {
            let region = self.region(place);
            let mut bytes = self.bytes(place, rank.memory.rank as usize);
            if region.pitch != region.row_bytes {
                let (row, pitch) = (region.row_bytes as usize, region.pitch as usize);
                let mut padded = vec![0; region.bytes() as usize];
                padded.chunks_mut(pitch).zip(bytes.chunks(row)).for_each(|(to, from)| to[..row].copy_from_slice(from));
                bytes = padded;
            }
            let at = GpuVa::new(rank.memory.weights.get() + region.offset);
            rank.transfers.write(at, &bytes)?;
        }
        Ok(())
    }

    /// A rank's part of a weight, to compute with.
    pub(super) fn weight(&self, place: Place, rank: usize) -> Weight {
        let columns = |bytes: u64| (self.region(place).row_bytes / bytes) as usize;
        let dtype = match place {
            Place::Tensor(id) => self.layout.inventory().spec(id).map(|spec| spec.dtype),
            Place::KvKey(_) | Place::KvValue(_) => Some(Dtype::BF16),
        };
        let bytes = self.bytes(place, rank);
        match dtype {
            Some(Dtype::F32) => Weight::f32(columns(4), bytes),
            _ => Weight::bf16(columns(2), bytes),
        }
    }

    /// A rank's part of a matrix of an expert. `packed` names it.
    pub(super) fn expert(&self, packed: ExpertTensor, rank: usize) -> Weight {
        let part = |part| Place::Tensor(TensorId::Expert(ExpertTensor { part, ..packed }));
        let columns = self.region(part(ExpertPart::Packed)).row_bytes as usize * 2;
        debug_assert_eq!(columns % MXFP4_GROUP, 0);
        Weight::mxfp4(columns, self.bytes(part(ExpertPart::Packed), rank), self.bytes(part(ExpertPart::Scale), rank))
    }
}
