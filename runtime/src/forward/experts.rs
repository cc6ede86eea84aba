//! Routed experts: from the router's logits and the latent to the sum over experts and ranks.

use kernels::GpuVa;
use kernels::expert::{ExpertDown, ExpertUp};
use kernels::moe::{MoeDown, MoeGroup, MoeRoute, MoeUp, RouterTopk, max_tiles};
use model::layout::{ExpertTable, Region};
use model::tensor::{ExpertMatrix, ExpertPart, LayerTensor};

use super::Builder;
use super::block::AllReduceShape;
use crate::plan::pitch;

/// Runs of at most this many tokens choose and group their experts in one launch.
const ROUTE_AT_ONCE: u32 = 16;

impl Builder<'_> {
    /// The chosen experts of each token on its `latent`, weighted and summed over the ranks; gives where the sum is.
    pub(super) fn experts(&mut self, layer: usize, logits: GpuVa, latent: GpuVa) -> GpuVa {
        let table = *self.layout.experts(layer).expect("the layout was made from the same config");
        let sum = self.memory.at(self.memory.places.latent_sum);
        if self.fused {
            self.experts_of_token(table, logits, latent, sum);
        } else {
            self.route(logits);
            self.experts_of_chunk(table, latent, sum);
        }
        sum
    }

    fn experts_of_token(&mut self, table: ExpertTable, logits: GpuVa, z: GpuVa, out: GpuVa) {
        let (memory, places, moe) = (self.memory, &self.memory.places, &self.config.moe);
        let experts = GpuVa(memory.weights.get() + table.offset);
        let [ids, weights, h] =
            [places.expert_ids, places.expert_weights, places.expert_h].map(|place| memory.at(place));
        let [w1, w1_scale, w2, w2_scale, w3, w3_scale] = parts(table);
        let columns = moe.expert_width / self.plan.sizes.ranks;
        let top_k = moe.experts_per_token as u32;
        self.push(&ExpertUp {
            logits,
            bias: self.layer_weight(LayerTensor::RouterBias),
            z,
            experts,
            ids,
            weights,
            h,
            stride: table.stride,
            w1_packed: w1.offset as u32,
            w1_scale: w1_scale.offset as u32,
            w3_packed: w3.offset as u32,
            w3_scale: w3_scale.offset as u32,
            packed_pitch: w1.pitch as u32,
            scale_pitch: w1_scale.pitch as u32,
            h_pitch: pitch(columns, 2),
            expert_count: moe.experts as u32,
            top_k,
            scale: moe.routed_scaling_factor,
            depth: moe.latent_size as u32,
            columns: columns as u32,
            situ_beta: self.config.situ_beta,
            situ_linear_beta: self.config.situ_linear_beta,
        });
        let collective = self.collective("latent sum");
        self.push(&ExpertDown {
            step: memory.step(),
            ids,
            weights,
            experts,
            h,
            out,
            mailbox: self.mailbox(),
            stride: table.stride,
            w2_packed: w2.offset as u32,
            w2_scale: w2_scale.offset as u32,
            packed_pitch: w2.pitch as u32,
            scale_pitch: w2_scale.pitch as u32,
            h_pitch: pitch(columns, 2),
            top_k,
            depth: columns as u32,
            rows: moe.latent_size as u32,
            collective,
            reserved: 0,
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

    fn experts_of_chunk(&mut self, table: ExpertTable, z: GpuVa, out: GpuVa) {
        let (memory, places, moe) = (self.memory, &self.memory.places, &self.config.moe);
        let experts = GpuVa(memory.weights.get() + table.offset);
        let [w1, w1_scale, w2, w2_scale, w3, w3_scale] = parts(table);
        let [list, tiles, tile_count, h, y] =
            [places.expert_list, places.expert_tiles, places.expert_tile_count, places.expert_h, places.expert_y]
                .map(|place| memory.at(place));
        let columns = moe.expert_width / self.plan.sizes.ranks;
        let (latent, top_k) = (moe.latent_size, moe.experts_per_token as u32);
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
            w3_packed: w3.offset as u32,
            w3_scale: w3_scale.offset as u32,
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
        let collective = self.collective("latent sum");
        let weights = memory.at(places.expert_weights);
        let shape = AllReduceShape { partial: y, weights, residual: GpuVa::NULL, out, width: latent, terms: top_k };
        self.all_reduce(shape, collective);
    }
}

/// Where an expert has w1, w2 and w3, each packed and scale.
fn parts(table: ExpertTable) -> [Region; 6] {
    let inside = |matrix| [ExpertPart::Packed, ExpertPart::Scale].map(|part| table.inside(matrix, part));
    let [[w1, w1_scale], [w2, w2_scale], [w3, w3_scale]] =
        [ExpertMatrix::W1, ExpertMatrix::W2, ExpertMatrix::W3].map(inside);
    [w1, w1_scale, w2, w2_scale, w3, w3_scale]
}
