//! Feed-forward blocks.

use kernels::gemm::{Input, Precision, Segment};
use model::config::FeedForward;
use model::tensor::LayerTensor;

use super::Builder;
use super::block::{BlockInput, Gathered};
use crate::plan::pitch;

impl Builder<'_> {
    /// The feed-forward block of `layer`: from `input` to h, on top of what h holds if `add`.
    pub(super) fn feed_forward(&mut self, layer: usize, input: BlockInput, add: bool) {
        match self.config.layers[layer].feed_forward {
            FeedForward::Dense => self.dense(input, add),
            FeedForward::Moe => self.moe(layer, input, add),
        }
    }

    fn dense(&mut self, input: BlockInput, add: bool) {
        let width = self.config.dense_width / self.plan.sizes.ranks;
        let inner = self.memory.at(self.memory.places.dense);
        let gated = Segment::gated(
            self.hidden_input(),
            self.layer_matrix(LayerTensor::MlpGate),
            self.layer_matrix(LayerTensor::MlpUp),
            Self::output(inner, width, Precision::Bf16),
        );
        self.start_block(input, &[gated], None);
        let x = Input { address: inner, pitch: pitch(width, 2), depth: width as u32 };
        self.end_block("block output", x, self.layer_matrix(LayerTensor::MlpDown), add);
    }

    fn moe(&mut self, layer: usize, input: BlockInput, add: bool) {
        let (memory, places, ranks) = (self.memory, &self.memory.places, self.plan.sizes.ranks);
        let moe = &self.config.moe;
        let shared_width = moe.shared_width / ranks;
        let [logits, part, latent, shared] =
            [places.router_logits, places.latent_part, places.latent, places.shared].map(|place| memory.at(place));
        let outputs = [
            Segment::gated(
                self.hidden_input(),
                self.layer_matrix(LayerTensor::SharedGate),
                self.layer_matrix(LayerTensor::SharedUp),
                Self::output(shared, shared_width, Precision::Bf16),
            ),
            Segment::plain(self.layer_matrix(LayerTensor::Router), Self::output(logits, moe.experts, Precision::F32)),
        ];
        let gathered = Gathered {
            width: moe.latent_size / ranks,
            matrix: self.layer_matrix(LayerTensor::LatentDown),
            part,
            whole: latent,
        };
        self.start_block(input, &outputs, Some(gathered));
        let sum = self.experts(layer, logits, latent);
        let shared = Input { address: shared, pitch: pitch(shared_width, 2), depth: shared_width as u32 };
        self.end_moe(sum, shared, add);
    }
}
