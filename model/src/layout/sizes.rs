//! What the arena is made of, in bytes.

use std::collections::BTreeMap;

use super::{Layout, Region};
use crate::config::Attention;
use crate::tensor::{LayerTensor as T, ModelTensor, TensorId};

/// Kinds of weights, as a plan lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WeightGroup {
    /// Embedding and head.
    Vocabulary,
    /// RMSNorms and the attention-residual vectors around the blocks.
    Residual,
    /// KDA layers.
    Kda,
    /// MLA layers.
    Mla,
    /// Dense MLPs.
    Dense,
    /// Router, latent projections and latent norm.
    Latent,
    /// Fused shared experts.
    Shared,
    /// Routed experts.
    Routed,
}

/// Bytes of one rank's arena. `weights + row_padding + alignment` is the arena's size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArenaSizes {
    /// Bytes of weights.
    pub weights: u64,
    /// The same, by kind.
    pub groups: BTreeMap<WeightGroup, u64>,
    /// Bytes that pad rows of inner-axis shards to the pitch.
    pub row_padding: u64,
    /// Bytes between tensors.
    pub alignment: u64,
}

impl Layout {
    /// Adds up what a rank's arena holds.
    pub fn sizes(&self) -> ArenaSizes {
        let mut sizes = ArenaSizes::default();
        let mut add = |group, region: Region| {
            sizes.weights += region.weight_bytes();
            sizes.row_padding += region.bytes() - region.weight_bytes();
            *sizes.groups.entry(group).or_default() += region.weight_bytes();
        };
        for id in self.inventory().iter() {
            if let Some(region) = self.region(id) {
                add(self.group(id), region);
            } else if let TensorId::Layer(layer, _) = id
                && let Some(kv_b) = self.kv_b(usize::from(layer))
            {
                add(WeightGroup::Mla, kv_b.key);
                add(WeightGroup::Mla, kv_b.value);
            }
        }
        sizes.alignment = self.arena_bytes() - sizes.weights - sizes.row_padding;
        sizes
    }

    fn group(&self, id: TensorId) -> WeightGroup {
        match id {
            TensorId::Model(ModelTensor::EmbedTokens | ModelTensor::LmHead) => WeightGroup::Vocabulary,
            TensorId::Model(_) => WeightGroup::Residual,
            TensorId::Expert(_) => WeightGroup::Routed,
            TensorId::Layer(layer, tensor) => match tensor {
                T::SelfAttentionResNorm | T::SelfAttentionResProj | T::InputLayernorm => WeightGroup::Residual,
                T::MlpResNorm | T::MlpResProj | T::PostAttentionLayernorm => WeightGroup::Residual,
                T::MlpGate | T::MlpUp | T::MlpDown => WeightGroup::Dense,
                T::Router | T::RouterBias | T::LatentDown | T::LatentNorm | T::LatentUp => WeightGroup::Latent,
                T::SharedGate | T::SharedUp | T::SharedDown => WeightGroup::Shared,
                _ => match self.inventory().config().layers[usize::from(layer)].attention {
                    Attention::Kda => WeightGroup::Kda,
                    Attention::Mla => WeightGroup::Mla,
                },
            },
        }
    }
}
