//! One block computed in FP32 by the host, rank by rank, as the GPUs split it: what the kernels' results are held against.

use std::collections::BTreeMap;

use model::config::{Attention, FeedForward};
use model::tensor::{LayerTensor, ModelTensor, TensorId};

use super::context::Context;
use super::math::{Matrix, dot, rms_norm, softmax};
use super::weights::{Place, Weights};

/// The layer that is computed: the model's only one.
const LAYER: usize = 0;

/// What rank 0 is to hold in a buffer, by the buffer's name in the memory plan.
pub(super) type Stages = BTreeMap<&'static str, Matrix>;

/// The buffer that the block's output is in.
pub(super) const OUTPUT: &str = "residual stream";

/// A block behind a context that was made up.
pub(super) struct Reference<'a> {
    pub(super) weights: &'a Weights<'a>,
    /// The attention block, or else the feed-forward block.
    pub(super) is_attention: bool,
    /// All ranks have the weights of rank 0.
    pub(super) is_echo: bool,
    /// What it finds in caches and states.
    pub(super) context: Context,
}

/// What the block gives.
pub(super) struct Computed {
    /// Buffers of rank 0 on the way.
    pub(super) stages: Stages,
    /// Scores of all experts by token, if there are any, correction apart.
    pub(super) scores: Option<Matrix>,
}

impl Reference<'_> {
    /// Runs the block on `tokens`, whose experts are those `chosen` by the GPU.
    pub(super) fn run(&self, tokens: &[u32], chosen: &[Vec<u32>]) -> Computed {
        let mut computed = Computed { stages: Stages::new(), scores: None };
        let embedded = self.embed(tokens);
        let output = if self.is_attention {
            // The first layer restarts the residual sum, and mixes nothing before.
            let x = embedded.normed(&self.shared(LayerTensor::InputLayernorm), self.eps());
            match self.weights.config.layers[LAYER].attention {
                Attention::Kda => self.kda(&x, &mut computed),
                Attention::Mla => self.mla(&x, &mut computed),
            }
        } else {
            let y = self.mix(&embedded).normed(&self.shared(LayerTensor::PostAttentionLayernorm), self.eps());
            let mut sum = match self.weights.config.layers[LAYER].feed_forward {
                FeedForward::Dense => self.dense(&y, &mut computed),
                FeedForward::Moe => self.moe(&y, chosen, &mut computed),
            };
            sum.add(&embedded);
            sum
        };
        computed.stages.insert(OUTPUT, output);
        computed
    }

    pub(super) fn eps(&self) -> f32 {
        self.weights.config.rms_norm_eps
    }

    pub(super) fn ranks(&self) -> usize {
        self.weights.layout.ranks()
    }

    /// The ranks whose weights differ.
    pub(super) fn distinct_ranks(&self) -> usize {
        if self.is_echo { 1 } else { self.ranks() }
    }

    /// The sum over ranks of what each contributes.
    pub(super) fn sum(&self, mut share: impl FnMut(usize) -> Matrix) -> Matrix {
        let mut sum = share(0);
        (1..self.distinct_ranks()).for_each(|rank| sum.add(&share(rank)));
        sum.scaled((self.ranks() / self.distinct_ranks()) as f32)
    }

    /// The columns of all ranks, side by side.
    pub(super) fn gather(&self, part: impl Fn(usize) -> Matrix) -> Matrix {
        let parts: Vec<Matrix> = (0..self.distinct_ranks()).map(part).collect();
        let part_of = |rank: usize| &parts[rank % parts.len()];
        let rows = (0..parts[0].rows()).flat_map(|row| (0..self.ranks()).map(move |rank| (row, rank)));
        let values = rows.flat_map(|(row, rank)| part_of(rank).row(row)).copied().collect();
        Matrix::new(parts[0].columns() * self.ranks(), values)
    }

    /// A rank's part of a weight of the layer times `x`.
    pub(super) fn project(&self, x: &Matrix, tensor: LayerTensor, rank: usize) -> Matrix {
        self.weights.weight(Self::place(tensor), rank).project(x)
    }

    /// All values of a rank's part of a weight of the layer.
    pub(super) fn values(&self, tensor: LayerTensor, rank: usize) -> Vec<f32> {
        self.weights.weight(Self::place(tensor), rank).values()
    }

    /// A weight that all ranks have.
    pub(super) fn shared(&self, tensor: LayerTensor) -> Vec<f32> {
        self.values(tensor, 0)
    }

    fn place(tensor: LayerTensor) -> Place {
        Place::Tensor(TensorId::Layer(LAYER as u16, tensor))
    }

    fn embed(&self, tokens: &[u32]) -> Matrix {
        let config = self.weights.config;
        let rows = config.vocab_size / self.ranks();
        let place = Place::Tensor(TensorId::Model(ModelTensor::EmbedTokens));
        let parts: Vec<_> = (0..self.distinct_ranks()).map(|rank| self.weights.weight(place, rank)).collect();
        let mut row = Vec::new();
        let mut values = Vec::with_capacity(tokens.len() * config.hidden_size);
        for token in tokens.iter().map(|token| *token as usize) {
            parts[token / rows % parts.len()].row(token % rows, &mut row);
            values.extend_from_slice(&row);
        }
        Matrix::new(config.hidden_size, values)
    }

    /// The attention-residual mix of one saved block, which is zero as no attention block saved it, and the running sum.
    fn mix(&self, h: &Matrix) -> Matrix {
        let (norm, projection) = (self.shared(LayerTensor::MlpResNorm), self.shared(LayerTensor::MlpResProj));
        let query: Vec<f32> = norm.iter().zip(&projection).map(|(norm, projection)| norm * projection).collect();
        let ones = vec![1.0; query.len()];
        let mut mixed = h.clone();
        for token in 0..h.rows() {
            let mut key = h.row(token).to_vec();
            rms_norm(&mut key, &ones, self.eps());
            let mut weights = [0.0, dot(&key, &query)];
            softmax(&mut weights);
            mixed.row_mut(token).iter_mut().for_each(|value| *value *= weights[1]);
        }
        mixed
    }
}
