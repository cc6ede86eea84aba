//! Every tensor a config implies, in one fixed order.

use super::{ExpertTensor, LayerTensor as T, ModelTensor, TensorId, TensorSpec};
use crate::config::{Attention, Config, FeedForward, Layer};

/// Tensors outside the layers, in order.
const MODEL: [ModelTensor; 5] = [
    ModelTensor::EmbedTokens,
    ModelTensor::OutputAttnResNorm,
    ModelTensor::OutputAttnResProj,
    ModelTensor::Norm,
    ModelTensor::LmHead,
];

// The order inside a layer is also the order in GPU memory. Matrices that read the same vector stand together, so that
// one kernel can walk them as a single taller matrix.
const EVERY_LAYER: [T; 6] = [
    T::SelfAttentionResNorm,
    T::SelfAttentionResProj,
    T::InputLayernorm,
    T::MlpResNorm,
    T::MlpResProj,
    T::PostAttentionLayernorm,
];
const KDA: [T; 14] = [
    T::QProj,
    T::KProj,
    T::VProj,
    T::GProj,
    T::FAProj,
    T::BProj,
    T::FBProj,
    T::DtBias,
    T::ALog,
    T::QConv,
    T::KConv,
    T::VConv,
    T::ONorm,
    T::OProj,
];
const MLA: [T; 8] = [T::QAProj, T::KvAProj, T::GProj, T::QALayernorm, T::QBProj, T::KvALayernorm, T::KvBProj, T::OProj];
const DENSE: [T; 3] = [T::MlpGate, T::MlpUp, T::MlpDown];
const MOE: [T; 8] =
    [T::Router, T::LatentDown, T::SharedGate, T::SharedUp, T::RouterBias, T::LatentNorm, T::LatentUp, T::SharedDown];

/// Tensors of one expert: three matrices, nibbles and scales.
const PER_EXPERT: usize = 6;

/// All tensors of one model, numbered `0..len()`: first those outside the layers, then layer by layer the plain ones,
/// then the experts in numeric order.
#[derive(Clone, Debug)]
pub struct Inventory {
    config: Config,
    /// Number of the first tensor of each layer, then the total.
    first: Vec<usize>,
}

impl Inventory {
    /// The tensors of a model with this config.
    pub fn new(config: &Config) -> Self {
        let mut first = vec![MODEL.len()];
        for layer in &config.layers {
            first.push(first[first.len() - 1] + plain(*layer).count() + experts(config, *layer) * PER_EXPERT);
        }
        Self { config: config.clone(), first }
    }

    /// The config it was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.first[self.first.len() - 1]
    }

    /// Never: a model has an embedding.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Number of a tensor, if this model has it.
    pub fn index(&self, id: TensorId) -> Option<usize> {
        match id {
            TensorId::Model(tensor) => MODEL.iter().position(|t| *t == tensor),
            TensorId::Layer(layer, tensor) => {
                let position = plain(*self.config.layers.get(usize::from(layer))?).position(|t| t == tensor)?;
                Some(self.first[usize::from(layer)] + position)
            }
            TensorId::Expert(ExpertTensor { layer, expert, matrix, part }) => {
                let kind = *self.config.layers.get(usize::from(layer))?;
                let inside = usize::from(expert) * PER_EXPERT + matrix as usize * 2 + part as usize;
                (usize::from(expert) < experts(&self.config, kind))
                    .then(|| self.first[usize::from(layer)] + plain(kind).count() + inside)
            }
        }
    }

    /// Element type and shape of a tensor, if this model has it.
    pub fn spec(&self, id: TensorId) -> Option<TensorSpec> {
        self.index(id)?;
        Some(match id {
            TensorId::Model(tensor) => TensorSpec::of_model(&self.config, tensor),
            TensorId::Layer(layer, tensor) => {
                let width = self.mixer_width(self.config.layers[usize::from(layer)].attention);
                TensorSpec::of_layer(&self.config, tensor, width)
            }
            TensorId::Expert(tensor) => TensorSpec::of_expert(&self.config, tensor),
        })
    }

    /// Width of what the token mixer of a layer hands to its output projection.
    fn mixer_width(&self, attention: Attention) -> u64 {
        match attention {
            Attention::Kda => (self.config.kda.heads * self.config.kda.head_dim) as u64,
            Attention::Mla => (self.config.mla.heads * self.config.mla.v_dim) as u64,
        }
    }

    /// Every tensor, in order of its number.
    pub fn iter(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.outside_layers().chain((0..self.config.layers.len()).flat_map(|layer| self.layer(layer)))
    }

    /// The tensors that belong to no layer.
    pub fn outside_layers(&self) -> impl Iterator<Item = TensorId> + use<> {
        MODEL.into_iter().map(TensorId::Model)
    }

    /// The tensors of layer `index` (zero-based).
    ///
    /// # Panics
    /// If the model has no such layer.
    pub fn layer(&self, index: usize) -> impl Iterator<Item = TensorId> + use<> {
        let kind = self.config.layers[index];
        let layer = index as u16; // a verified config has at most 512 layers
        let experts = experts(&self.config, kind) as u16; // and at most 4,096 experts
        let plain = plain(kind).map(move |tensor| TensorId::Layer(layer, tensor));
        plain.chain((0..experts).flat_map(move |e| ExpertTensor::of_expert(layer, e).map(TensorId::Expert)))
    }
}

fn plain(layer: Layer) -> impl Iterator<Item = T> {
    let attention: &[T] = match layer.attention {
        Attention::Kda => &KDA,
        Attention::Mla => &MLA,
    };
    let feed_forward: &[T] = match layer.feed_forward {
        FeedForward::Dense => &DENSE,
        FeedForward::Moe => &MOE,
    };
    EVERY_LAYER.iter().chain(attention).chain(feed_forward).copied()
}

fn experts(config: &Config, layer: Layer) -> usize {
    match layer.feed_forward {
        FeedForward::Dense => 0,
        FeedForward::Moe => config.moe.experts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes of the published text half (k3-architecture facts: the sum pins every dtype).
    #[test]
    fn the_official_inventory_adds_up_to_the_published_bytes() {
        let inventory = Inventory::new(&Config::official());
        assert_eq!(inventory.len(), 497_052);
        let bytes: u64 = inventory.iter().map(|id| inventory.spec(id).unwrap().bytes()).sum();
        assert_eq!(bytes, 1_559_965_606_912);
    }

    #[test]
    fn layer_shards_have_the_published_number_of_tensors() {
        let inventory = Inventory::new(&Config::official());
        assert_eq!(inventory.layer(1).count(), 5404);
        assert_eq!(inventory.layer(3).count(), 5398);
        let kda = |id: &TensorId| matches!(id, TensorId::Layer(_, t) if KDA.contains(t));
        let bytes: u64 = inventory.layer(1).filter(kda).map(|id| inventory.spec(id).unwrap().bytes()).sum();
        assert_eq!(bytes, 887_800_832);
    }

    #[test]
    fn numbers_follow_the_order_and_names_parse_back() {
        let inventory = Inventory::new(&Config::official());
        for (number, id) in inventory.iter().enumerate() {
            assert_eq!(inventory.index(id), Some(number));
            if number % 101 == 0 {
                assert_eq!(id.to_string().parse(), Ok(id));
            }
        }
    }

    #[test]
    fn tensors_of_other_kinds_of_layer_are_not_part_of_the_model() {
        let inventory = Inventory::new(&Config::official());
        let missing = [
            TensorId::Layer(3, T::QProj),
            TensorId::Layer(0, T::KvBProj),
            TensorId::Layer(0, T::Router),
            TensorId::Layer(93, T::InputLayernorm),
        ];
        for id in missing.into_iter().chain(ExpertTensor::of_expert(0, 0).map(TensorId::Expert)) {
            assert_eq!(inventory.index(id), None, "{id}");
        }
        assert!(ExpertTensor::of_expert(1, 896).all(|t| inventory.spec(TensorId::Expert(t)).is_none()));
    }
}
