//! Attention blocks.

use kernels::GpuVa;
use kernels::gemm::{Input, Precision, Segment};
use kernels::kda::Kda;
use kernels::limits::{MLA_KV_RANK, MLA_ROPE_DIM};
use kernels::mla::{MlaAbsorb, MlaAttention, MlaLatent, MlaQuery, MlaValue};
use model::config::Attention;
use model::tensor::LayerTensor;

use super::Builder;
use super::block::BlockInput;
use crate::plan::{KdaState, LayerState, Offset, pitch};

impl Builder<'_> {
    /// The attention block of `layer`: from `input` to h, on top of what h holds if `add`.
    pub(super) fn attention(&mut self, layer: usize, input: BlockInput, add: bool) {
        let width = match (self.config.layers[layer].attention, self.plan.states[layer]) {
            (Attention::Kda, LayerState::Kda(state)) => self.kda(input, state),
            (Attention::Mla, LayerState::Mla(cache)) => self.mla(layer, input, cache),
            _ => unreachable!("the plan was made from the same config"),
        };
        let heads_out = self.memory.at(self.memory.places.heads_out);
        let x = Input { address: heads_out, pitch: pitch(width, 2), depth: width as u32 };
        self.end_block("attention output", x, self.layer_matrix(LayerTensor::OProj), add);
    }

    /// Leaves the heads' output, whose width it gives.
    fn kda(&mut self, input: BlockInput, state: KdaState) -> usize {
        let (memory, ranks) = (self.memory, self.plan.sizes.ranks);
        let (heads, head_dim) = (self.config.kda.heads / ranks, self.config.kda.head_dim);
        let width = heads * head_dim;
        let [q, k, v, gate] = memory.places.projections.map(|place| memory.at(place));
        let (f_a, b) = (memory.at(memory.places.f_a), memory.at(memory.places.beta));
        let bf16 = |tensor, address, width| {
            Segment::plain(self.layer_matrix(tensor), Self::output(address, width, Precision::Bf16))
        };
        let outputs = [
            bf16(LayerTensor::QProj, q, width),
            bf16(LayerTensor::KProj, k, width),
            bf16(LayerTensor::VProj, v, width),
            bf16(LayerTensor::GProj, gate, width),
            bf16(LayerTensor::FAProj, f_a, head_dim),
            Segment::plain(self.layer_matrix(LayerTensor::BProj), Self::output(b, heads, Precision::F32)),
        ];
        self.start_block(input, &outputs, None);
        let [q_history, k_history, v_history] = state.histories.map(|place| place.at(memory.state));
        self.push(&Kda {
            step: memory.step(),
            q,
            k,
            v,
            gate,
            f_a,
            b,
            f_b: self.layer_weight(LayerTensor::FBProj),
            q_taps: self.layer_weight(LayerTensor::QConv),
            k_taps: self.layer_weight(LayerTensor::KConv),
            v_taps: self.layer_weight(LayerTensor::VConv),
            a_log: self.layer_weight(LayerTensor::ALog),
            dt_bias: self.layer_weight(LayerTensor::DtBias),
            o_norm: self.layer_weight(LayerTensor::ONorm),
            q_history,
            k_history,
            v_history,
            state: state.recurrent.at(memory.state),
            out: memory.at(memory.places.heads_out),
            heads: heads as u32,
            pitch: pitch(width, 2),
            f_a_pitch: pitch(head_dim, 2),
            b_pitch: pitch(heads, 4),
            out_pitch: pitch(width, 2),
            gate_lower_bound: self.config.kda.gate_lower_bound,
            eps: self.config.rms_norm_eps,
            tokens: self.tokens,
        });
        width
    }

    /// Leaves the heads' output, whose width it gives.
    fn mla(&mut self, layer: usize, input: BlockInput, cache: Offset) -> usize {
        let (memory, places) = (self.memory, &self.memory.places);
        let mla = &self.config.mla;
        let heads = mla.heads / self.plan.sizes.ranks;
        let (q_rank, q_width, v_width) = (mla.q_rank, heads * (mla.nope_dim + mla.rope_dim), heads * mla.v_dim);
        let kv_width = (MLA_KV_RANK + MLA_ROPE_DIM) as usize;
        let [q_low, kv_low, q] = [places.q_low, places.kv_low, places.q].map(|place| memory.at(place));
        let gate = memory.at(places.projections[3]);
        let bf16 = |tensor, address: GpuVa, width| {
            Segment::plain(self.layer_matrix(tensor), Self::output(address, width, Precision::Bf16))
        };
        let outputs = [
            bf16(LayerTensor::QAProj, q_low, q_rank),
            bf16(LayerTensor::KvAProj, kv_low, kv_width),
            bf16(LayerTensor::GProj, gate, v_width),
        ];
        self.start_block(input, &outputs, None);
        let cache = cache.at(memory.cache);
        self.query(q_low, kv_low, q, cache);
        let (capacity, tokens) = (self.plan.sizes.max_context, self.tokens);
        let kv_b = self.layout.kv_b(layer).expect("the layout was made from the same config");
        let weight = |offset| GpuVa(memory.weights.get() + offset);
        let absorbed = memory.at(places.q_absorbed);
        self.push(&MlaAbsorb {
            step: memory.step(),
            q,
            key_weight: weight(kv_b.key.offset),
            out: absorbed,
            heads: heads as u32,
            q_pitch: pitch(q_width, 2),
            tokens,
            reserved: 0,
        });
        let splits = if tokens == 1 { self.plan.decode_splits } else { 1 };
        let (partial, sums) = (memory.at(places.attention_partial), memory.at(places.attention_sums));
        self.push(&MlaAttention {
            step: memory.step(),
            query: absorbed,
            cache,
            partial,
            sums,
            heads: heads as u32,
            splits,
            capacity,
            tokens,
        });
        self.push(&MlaValue {
            step: memory.step(),
            partial,
            sums,
            value_weight: weight(kv_b.value.offset),
            gate,
            out: memory.at(places.heads_out),
            heads: heads as u32,
            splits,
            gate_pitch: pitch(v_width, 2),
            out_pitch: pitch(v_width, 2),
            tokens,
            reserved: 0,
        });
        v_width
    }

    /// From the low-rank query and the latent to the query and the cache.
    fn query(&mut self, q_low: GpuVa, kv_low: GpuVa, q: GpuVa, cache: GpuVa) {
        let (memory, mla, capacity) = (self.memory, &self.config.mla, self.plan.sizes.max_context);
        let (step, error, rank) = (memory.step(), memory.error(), memory.rank);
        let (q_rank, q_b) = (mla.q_rank, self.layer_matrix(LayerTensor::QBProj));
        let [q_weight, kv_weight] =
            [LayerTensor::QALayernorm, LayerTensor::KvALayernorm].map(|tensor| self.layer_weight(tensor));
        if self.fused {
            self.push(&MlaQuery {
                step,
                q_low,
                q_weight,
                q_b: q_b.address,
                q,
                kv: kv_low,
                kv_weight,
                cache,
                error,
                depth: q_rank as u32,
                q_b_pitch: q_b.pitch,
                rows: q_b.rows,
                capacity,
                rank,
                reserved: 0,
            });
            return;
        }
        let q_normed = memory.at(memory.places.q_normed);
        self.push(&MlaLatent {
            step,
            q: q_low,
            kv: kv_low,
            q_weight,
            kv_weight,
            q_out: q_normed,
            cache,
            error,
            q_width: q_rank as u32,
            q_pitch: pitch(q_rank, 2),
            kv_pitch: pitch((MLA_KV_RANK + MLA_ROPE_DIM) as usize, 2),
            q_out_pitch: pitch(q_rank, 2),
            capacity,
            rank,
            tokens: self.tokens,
            reserved: 0,
        });
        let x = Input { address: q_normed, pitch: pitch(q_rank, 2), depth: q_rank as u32 };
        let q_width = mla.heads / self.plan.sizes.ranks * (mla.nope_dim + mla.rope_dim);
        self.project(x, &[Segment::plain(q_b, Self::output(q, q_width, Precision::Bf16))]);
    }
}
