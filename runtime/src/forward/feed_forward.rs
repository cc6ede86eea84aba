//! Feed-forward blocks: from x to this rank's share of the output in `partial`.

use kernels::GpuVa;
use kernels::collective::AllGather;
use kernels::gemm::{Input, Precision, Segment};
use kernels::mix_norm::MixNorm;
use kernels::moe::{MoeDown, MoeGroup, MoeRoute, MoeUp, RouterTopk, max_tiles};
use model::config::FeedForward;
use model::tensor::{ExpertMatrix, ExpertPart, LayerTensor};

use super::{AllReduceShape, Builder};
use crate::plan::pitch;

/// Runs of at most this many tokens choose and group their experts in one launch.
const ROUTE_AT_ONCE: u32 = 16;

impl Builder<'_> {
    pub(super) fn feed_forward(&mut self, layer: usize) {
        match self.config.layers[layer].feed_forward {
            FeedForward::Dense => self.dense(),
            FeedForward::Moe => self.moe(layer),
        }
    }

    fn dense(&mut self) {
        let width = self.config.dense_width / self.plan.sizes.ranks;
        let inner = self.memory.at(self.memory.places.dense);
        let x = self.hidden_input();
        let gated = Segment::gated(
            x,
            self.layer_matrix(LayerTensor::MlpGate),
            self.layer_matrix(LayerTensor::MlpUp),
            Self::output(inner, width, Precision::Bf16),
        );
        self.project(x, &[gated]);
        let share = Self::output(self.memory.partial(), self.config.hidden_size, Precision::F32);
        let down = Segment::plain(self.layer_matrix(LayerTensor::MlpDown), share);
        self.project(Input { address: inner, pitch: pitch(width, 2), depth: width as u32 }, &[down]);
    }

    fn moe(&mut self, layer: usize) {
        let (memory, places, ranks) = (self.memory, &self.memory.places, self.plan.sizes.ranks);
        let moe = &self.config.moe;
        let (latent, part) = (moe.latent_size, moe.latent_size / ranks);
        let shared_width = moe.shared_width / ranks;
        let [logits, latent_part, z, shared] =
            [places.router_logits, places.latent_part, places.latent, places.shared].map(|place| memory.at(place));
        let x = self.hidden_input();
        let outputs = [
            Segment::plain(self.layer_matrix(LayerTensor::Router), Self::output(logits, moe.experts, Precision::F32)),
            Segment::plain(self.layer_matrix(LayerTensor::LatentDown), Self::output(latent_part, part, Precision::F32)),
            Segment::gated(
                x,
                self.layer_matrix(LayerTensor::SharedGate),
                self.layer_matrix(LayerTensor::SharedUp),
                Self::output(shared, shared_width, Precision::Bf16),
            ),
        ];
        self.project(x, &outputs);
        self.gather_latent(latent_part, part, z);
        self.route(logits);
        self.experts(layer, z);
        let sum = memory.at(places.latent_sum);
        let collective = self.collective("latent sum");
        self.push(&self.all_reduce(AllReduceShape {
            partial: memory.at(places.expert_y),
            weights: memory.at(places.expert_weights),
            residual: GpuVa::NULL,
            out: sum,
            width: latent as u32,
            terms: moe.experts_per_token as u32,
            collective,
        }));
        let normed = memory.at(places.latent_normed);
        self.push(&MixNorm {
            step: memory.step(),
            h: sum,
            blocks: GpuVa::NULL,
            save: GpuVa::NULL,
            norm: GpuVa::NULL,
            proj: GpuVa::NULL,
            weight: self.layer_weight(LayerTensor::LatentNorm),
            out: normed,
            block_stride: 0,
            block_count: 0,
            width: latent as u32,
            eps: self.config.rms_norm_eps,
            last_only: 0,
            tokens: self.tokens,
            reserved: 0,
        });
        // Latent-up is split by columns: this rank multiplies its part of the normed latent.
        let own = GpuVa(normed.0 + u64::from(memory.rank) * part as u64 * 2);
        let up = Input { address: own, pitch: pitch(latent, 2), depth: part as u32 };
        let down = Input { address: shared, pitch: pitch(shared_width, 2), depth: shared_width as u32 };
        let share = Self::output(memory.partial(), self.config.hidden_size, Precision::F32);
        let sum = Segment::sum(
            self.layer_matrix(LayerTensor::LatentUp),
            down,
            self.layer_matrix(LayerTensor::SharedDown),
            share,
        );
        self.project(up, &[sum]);
    }

    /// Joins the ranks' rows of latent-down.
    fn gather_latent(&mut self, part: GpuVa, width: usize, z: GpuVa) {
        let collective = self.collective("latent");
        let mailbox = self.mailbox();
        self.push(&AllGather {
            step: self.memory.step(),
            part,
            out: z,
            mailboxes: mailbox.mailboxes,
            error: mailbox.error,
            words: mailbox.words,
            timeout: mailbox.timeout,
            part_pitch: pitch(width, 4),
            width: width as u32,
            rank: mailbox.rank,
            ranks: mailbox.ranks,
            collective,
            tokens: self.tokens,
        });
    }

    /// Chooses the experts of each token and lists the assignments by expert.
    fn route(&mut self, logits: GpuVa) {
        let (memory, places, moe) = (self.memory, &self.memory.places, &self.config.moe);
        let (experts, top_k, tokens) = (moe.experts as u32, moe.experts_per_token as u32, self.tokens);
        let bias = self.layer_weight(LayerTensor::RouterBias);
        let logit_pitch = pitch(moe.experts, 4);
        let scale = moe.routed_scaling_factor;
        let step = memory.step();
        let [ids, weights, list, tiles, tile_count] = [
            places.expert_ids,
            places.expert_weights,
            places.expert_list,
            places.expert_tiles,
            places.expert_tile_count,
        ]
        .map(|place| memory.at(place));
        if tokens <= ROUTE_AT_ONCE {
            self.push(&MoeRoute {
                step,
                logits,
                bias,
                ids,
                weights,
                list,
                tiles,
                tile_count,
                logit_pitch,
                experts,
                top_k,
                scale,
                tokens,
                reserved: 0,
            });
            return;
        }
        self.push(&RouterTopk {
            step,
            logits,
            bias,
            ids,
            weights,
            logit_pitch,
            experts,
            top_k,
            scale,
            tokens,
            reserved: 0,
        });
        self.push(&MoeGroup { step, ids, list, tiles, tile_count, experts, top_k, tokens, reserved: 0 });
    }

    /// The routed experts, one row of output an assignment.
    fn experts(&mut self, layer: usize, z: GpuVa) {
        let (memory, places, moe) = (self.memory, &self.memory.places, &self.config.moe);
        let table = self.layout.experts(layer).expect("the layout was made from the same config");
        let experts = GpuVa(memory.weights.get() + table.offset);
        let inside = |matrix, part| table.inside(matrix, part);
        let [list, tiles, tile_count, h, y] =
            [places.expert_list, places.expert_tiles, places.expert_tile_count, places.expert_h, places.expert_y]
                .map(|place| memory.at(place));
        let columns = moe.expert_width / self.plan.sizes.ranks;
        let (latent, top_k) = (moe.latent_size, moe.experts_per_token as u32);
        let (w1, w1_scale) =
            (inside(ExpertMatrix::W1, ExpertPart::Packed), inside(ExpertMatrix::W1, ExpertPart::Scale));
        let max_tiles = max_tiles(self.tokens, moe.experts as u32, top_k);
        self.push(&MoeUp {
            list,
            tiles,
            tile_count,
            experts,
            z,
            h,
            stride: table.stride,
            w1_packed: w1.offset as u32,
            w1_scale: w1_scale.offset as u32,
            w3_packed: inside(ExpertMatrix::W3, ExpertPart::Packed).offset as u32,
            w3_scale: inside(ExpertMatrix::W3, ExpertPart::Scale).offset as u32,
            packed_pitch: w1.pitch as u32,
            scale_pitch: w1_scale.pitch as u32,
            z_pitch: pitch(latent, 2),
            h_pitch: pitch(columns, 2),
            depth: latent as u32,
            columns: columns as u32,
            top_k,
            situ_beta: self.config.situ_beta,
            situ_linear_beta: self.config.situ_linear_beta,
            max_tiles,
        });
        let (w2, w2_scale) =
            (inside(ExpertMatrix::W2, ExpertPart::Packed), inside(ExpertMatrix::W2, ExpertPart::Scale));
        self.push(&MoeDown {
            list,
            tiles,
            tile_count,
            experts,
            h,
            y,
            stride: table.stride,
            w2_packed: w2.offset as u32,
            w2_scale: w2_scale.offset as u32,
            packed_pitch: w2.pitch as u32,
            scale_pitch: w2_scale.pitch as u32,
            h_pitch: pitch(columns, 2),
            y_pitch: pitch(latent, 4),
            depth: columns as u32,
            rows: latent as u32,
            max_tiles,
            reserved: 0,
        });
    }
}
