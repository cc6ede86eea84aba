//! The forward pass on the CPU, in FP32 on the stored weights: what GPU kernels are measured against.
//!
//! Written for reading, for small models, and for tests only. Activations are [`Matrix`]es of one row per token. Every
//! block can be run on its own with a given input.

mod feed_forward;
mod kda;
mod math;
mod mla;
mod weights;

pub use feed_forward::Routing;
pub use kda::KdaState;
pub use math::{Matrix, relative_l2};
pub use mla::MlaState;
pub use weights::decode_mxfp4;

use self::math::{multiply, rms_norm, softmax};
use self::weights::Weights;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::config::{Attention, Config, FeedForward};
use crate::tensor::{LayerTensor as T, ModelTensor, TensorId};

/// A model with its weights widened to FP32.
#[derive(Debug)]
pub struct Reference {
    config: Config,
    weights: Weights,
}

/// What a layer's attention remembers.
#[derive(Clone, Debug)]
pub enum LayerState {
    /// Of a KDA layer.
    Kda(KdaState),
    /// Of an MLA layer.
    Mla(MlaState),
}

/// What all layers remember of the tokens so far.
#[derive(Clone, Debug)]
pub struct State(pub Vec<LayerState>);

/// One of the residual mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Before the attention of a layer.
    Attention(usize),
    /// Before the feed-forward block of a layer.
    FeedForward(usize),
    /// Before the final norm.
    Output,
}

impl Reference {
    /// Reads and widens all weights: four bytes a parameter of memory.
    pub fn load(checkpoint: &Checkpoint) -> Result<Self, CheckpointError> {
        Ok(Self { config: checkpoint.config().clone(), weights: Weights::load(checkpoint)? })
    }

    /// The model's config.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The state before the first token.
    pub fn initial_state(&self) -> State {
        let layer = |layer: &crate::config::Layer| match layer.attention {
            Attention::Kda => LayerState::Kda(KdaState::new(&self.config.kda)),
            Attention::Mla => LayerState::Mla(MlaState::new(&self.config.mla)),
        };
        State(self.config.layers.iter().map(layer).collect())
    }

    /// Runs tokens behind those `state` has seen; gives the logits behind each of them.
    ///
    /// # Panics
    /// If a token is outside the vocabulary.
    pub fn forward(&self, tokens: &[u32], state: &mut State) -> Matrix {
        self.forward_traced(tokens, state, |_, _| {})
    }

    /// As [`Self::forward`], and shows every block's input and output under the names of the golden trace.
    ///
    /// # Panics
    /// If a token is outside the vocabulary.
    pub fn forward_traced(&self, tokens: &[u32], state: &mut State, mut see: impl FnMut(&str, &Matrix)) -> Matrix {
        let mut h = self.embed(tokens);
        let mut blocks: Vec<Matrix> = Vec::new();
        for (layer, state) in state.0.iter_mut().enumerate() {
            let mut x = h.clone();
            if !blocks.is_empty() {
                x = self.mix(Mix::Attention(layer), &blocks, &h);
                see(&format!("mix.layers.{layer}.self_attention_res"), &x);
            }
            let restarts = self.config.restarts_residual(layer);
            if restarts {
                blocks.push(h.clone());
            }
            let x = self.norm(&x, TensorId::Layer(layer as u16, T::InputLayernorm));
            see(&format!("layers.{layer}.self_attn.in"), &x);
            let attention = self.attention(layer, &x, state);
            see(&format!("layers.{layer}.self_attn.out"), &attention);
            h = if restarts { attention } else { h.plus(&attention) };

            let y = self.mix(Mix::FeedForward(layer), &blocks, &h);
            see(&format!("mix.layers.{layer}.mlp_res"), &y);
            let y = self.norm(&y, TensorId::Layer(layer as u16, T::PostAttentionLayernorm));
            let block = match self.config.layers[layer].feed_forward {
                FeedForward::Dense => "mlp",
                FeedForward::Moe => "block_sparse_moe",
            };
            see(&format!("layers.{layer}.{block}.in"), &y);
            let m = self.feed_forward(layer, &y);
            see(&format!("layers.{layer}.{block}.out"), &m);
            h = h.plus(&m);
        }
        let x = self.mix(Mix::Output, &blocks, &h);
        see("mix.output_attn_res", &x);
        self.head(&x)
    }

    /// Rows of the embedding.
    ///
    /// # Panics
    /// If a token is outside the vocabulary.
    pub fn embed(&self, tokens: &[u32]) -> Matrix {
        let table = self.weights.of(TensorId::Model(ModelTensor::EmbedTokens));
        let hidden = self.config.hidden_size;
        let row = |token: &u32| &table[*token as usize * hidden..(*token as usize + 1) * hidden];
        Matrix::from_rows(hidden, tokens.iter().map(row))
    }

    /// The final norm and the head.
    pub fn head(&self, x: &Matrix) -> Matrix {
        let x = self.norm(x, TensorId::Model(ModelTensor::Norm));
        multiply(&x, self.weights.of(TensorId::Model(ModelTensor::LmHead)))
    }

    /// The token mixer of a layer, on its normed input. `state` must be of the layer's kind.
    ///
    /// # Panics
    /// If it is not.
    pub fn attention(&self, layer: usize, x: &Matrix, state: &mut LayerState) -> Matrix {
        match state {
            LayerState::Kda(state) => self.kda(layer, x, state),
            LayerState::Mla(state) => self.mla(layer, x, state),
        }
    }

    /// The feed-forward block of a layer, on its normed input.
    pub fn feed_forward(&self, layer: usize, x: &Matrix) -> Matrix {
        match self.config.layers[layer].feed_forward {
            FeedForward::Dense => self.dense(layer, x),
            FeedForward::Moe => self.moe(layer, x, &self.route(layer, x)),
        }
    }

    /// An attention-residual mix of the saved blocks and the running sum.
    pub fn mix(&self, mix: Mix, blocks: &[Matrix], h: &Matrix) -> Matrix {
        let (norm, projection) = match mix {
            Mix::Attention(layer) => self.layer_pair(layer, T::SelfAttentionResNorm, T::SelfAttentionResProj),
            Mix::FeedForward(layer) => self.layer_pair(layer, T::MlpResNorm, T::MlpResProj),
            Mix::Output => (
                self.weights.of(TensorId::Model(ModelTensor::OutputAttnResNorm)),
                self.weights.of(TensorId::Model(ModelTensor::OutputAttnResProj)),
            ),
        };
        let query: Vec<f32> = norm.iter().zip(projection).map(|(n, p)| n * p).collect();
        let mut mixed = Matrix::zeros(h.rows(), h.columns());
        for token in 0..h.rows() {
            let sources: Vec<&[f32]> = blocks.iter().chain([h]).map(|source| source.row(token)).collect();
            let mut weights: Vec<f32> = sources.iter().map(|v| self.mix_score(v, &query)).collect();
            softmax(&mut weights);
            for (weight, source) in weights.iter().zip(sources) {
                mixed.row_mut(token).iter_mut().zip(source).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        mixed
    }

    fn mix_score(&self, value: &[f32], query: &[f32]) -> f32 {
        let ones = vec![1.0; value.len()];
        let mut key = value.to_vec();
        rms_norm(&mut key, &ones, self.config.rms_norm_eps);
        math::dot(&key, query)
    }

    fn layer_pair(&self, layer: usize, norm: T, projection: T) -> (&[f32], &[f32]) {
        (self.layer(layer, norm), self.layer(layer, projection))
    }

    fn layer(&self, layer: usize, tensor: T) -> &[f32] {
        self.weights.of(TensorId::Layer(layer as u16, tensor))
    }

    fn norm(&self, x: &Matrix, weight: TensorId) -> Matrix {
        x.normed(self.weights.of(weight), self.config.rms_norm_eps)
    }

    fn project(&self, layer: usize, x: &Matrix, tensor: T) -> Matrix {
        multiply(x, self.layer(layer, tensor))
    }
}
