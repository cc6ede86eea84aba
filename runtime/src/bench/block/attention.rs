//! Attention blocks in FP32.

use model::config::{CONV_TAPS, L2_NORM_EPS, MLA_NORM_EPS};
use model::tensor::LayerTensor;

use super::context::KdaContext;
use super::math::{Matrix, dot, rms_norm, sigmoid, softmax};
use super::reference::{Computed, Reference};
use super::weights::Place;

impl Reference<'_> {
    pub(super) fn kda(&self, x: &Matrix, computed: &mut Computed) -> Matrix {
        self.sum(|rank| {
            let heads_out = self.kda_heads(x, rank);
            let share = self.project(&heads_out, LayerTensor::OProj, rank);
            if rank == 0 {
                computed.stages.insert("heads' output", heads_out);
            }
            share
        })
    }

    /// What a rank's heads give, before the output projection.
    fn kda_heads(&self, x: &Matrix, rank: usize) -> Matrix {
        let kda = &self.weights.config.kda;
        let (heads, dim) = (kda.heads / self.ranks(), kda.head_dim);
        let KdaContext { histories: [q_history, k_history, v_history], state } = &self.context.kda[rank];
        let convolved =
            |projection, taps, history| convolve(&self.project(x, projection, rank), &self.values(taps, rank), history);
        let mut q = convolved(LayerTensor::QProj, LayerTensor::QConv, q_history);
        let mut k = convolved(LayerTensor::KProj, LayerTensor::KConv, k_history);
        let v = convolved(LayerTensor::VProj, LayerTensor::VConv, v_history);
        let gate = self.project(x, LayerTensor::GProj, rank);
        let beta = self.project(x, LayerTensor::BProj, rank);
        let decay = self.decay(x, rank);
        let norm = self.shared(LayerTensor::ONorm);
        let mut out = Matrix::zeros(x.rows(), heads * dim);
        for head in 0..heads {
            let channels = head * dim..(head + 1) * dim;
            let mut state = state[head * dim * dim..(head + 1) * dim * dim].to_vec();
            for token in 0..x.rows() {
                let (q, k) = (&mut q.row_mut(token)[channels.clone()], &mut k.row_mut(token)[channels.clone()]);
                l2_norm(q, (dim as f32).powf(-0.5));
                l2_norm(k, 1.0);
                let decay = &decay.row(token)[channels.clone()];
                let mut error = v.row(token)[channels.clone()].to_vec();
                for ((row, decay), k) in state.chunks_exact_mut(dim).zip(decay).zip(&*k) {
                    for (state, error) in row.iter_mut().zip(&mut error) {
                        *state *= decay;
                        *error -= k * *state;
                    }
                }
                let beta = sigmoid(beta.row(token)[head]);
                let out = &mut out.row_mut(token)[channels.clone()];
                for ((row, q), k) in state.chunks_exact_mut(dim).zip(&*q).zip(&*k) {
                    for ((state, error), out) in row.iter_mut().zip(&error).zip(&mut *out) {
                        *state += beta * k * error;
                        *out += q * *state;
                    }
                }
                rms_norm(out, &norm, self.eps());
                let gate = &gate.row(token)[channels.clone()];
                out.iter_mut().zip(gate).for_each(|(out, gate)| *out *= sigmoid(*gate));
            }
        }
        out
    }

    /// The factor by which each key channel of each head forgets.
    fn decay(&self, x: &Matrix, rank: usize) -> Matrix {
        let kda = &self.weights.config.kda;
        let low = self.project(x, LayerTensor::FAProj, rank);
        let mut decay = self.project(&low, LayerTensor::FBProj, rank);
        let (bias, a_log) = (self.values(LayerTensor::DtBias, rank), self.values(LayerTensor::ALog, rank));
        for token in 0..x.rows() {
            for (channel, (value, bias)) in decay.row_mut(token).iter_mut().zip(&bias).enumerate() {
                let gate = sigmoid(a_log[channel / kda.head_dim].exp() * (*value + bias));
                *value = (kda.gate_lower_bound * gate).exp();
            }
        }
        decay
    }

    pub(super) fn mla(&self, x: &Matrix, computed: &mut Computed) -> Matrix {
        let kv_rank = self.weights.config.mla.kv_rank;
        let low = self.project(x, LayerTensor::QAProj, 0).normed(&self.shared(LayerTensor::QALayernorm), MLA_NORM_EPS);
        let mut new = self.project(x, LayerTensor::KvAProj, 0);
        let norm = self.shared(LayerTensor::KvALayernorm);
        (0..new.rows()).for_each(|token| rms_norm(&mut new.row_mut(token)[..kv_rank], &norm, MLA_NORM_EPS));
        let latents = self.context.latents.each_row().chain(new.each_row()).flatten().copied().collect();
        let latents = Matrix::new(new.columns(), latents);
        self.sum(|rank| {
            let query = self.project(&low, LayerTensor::QBProj, rank);
            let heads_out = self.mla_heads(x, &query, &latents, rank);
            let share = self.project(&heads_out, LayerTensor::OProj, rank);
            if rank == 0 {
                computed.stages.insert("query", query);
                computed.stages.insert("heads' output", heads_out);
            }
            share
        })
    }

    /// What a rank's heads give, before the output projection. The last rows of `latents` are those of `x`.
    fn mla_heads(&self, x: &Matrix, query: &Matrix, latents: &Matrix, rank: usize) -> Matrix {
        let mla = &self.weights.config.mla;
        let (heads, dim) = (mla.heads / self.ranks(), mla.nope_dim + mla.rope_dim);
        let keys = self.weights.weight(Place::KvKey(0), rank).values();
        let values = self.weights.weight(Place::KvValue(0), rank).values();
        let gate = self.project(x, LayerTensor::GProj, rank);
        let scale = (dim as f32).powf(-0.5);
        let mut out = Matrix::zeros(x.rows(), heads * mla.v_dim);
        for token in 0..x.rows() {
            let seen = latents.rows() - x.rows() + token + 1;
            for head in 0..heads {
                let query = &query.row(token)[head * dim..(head + 1) * dim];
                let (nope, rope) = query.split_at(mla.nope_dim);
                let mut absorbed = vec![0.0; mla.kv_rank];
                let rows = keys[head * mla.nope_dim * mla.kv_rank..].chunks_exact(mla.kv_rank);
                for (q, row) in nope.iter().zip(rows) {
                    absorbed.iter_mut().zip(row).for_each(|(sum, key)| *sum += q * key);
                }
                absorbed.extend_from_slice(rope);
                let mut weights: Vec<f32> = (0..seen).map(|past| dot(&absorbed, latents.row(past)) * scale).collect();
                softmax(&mut weights);
                let mut latent = vec![0.0; mla.kv_rank];
                for (past, weight) in weights.iter().enumerate() {
                    let row = latents.row(past)[..mla.kv_rank].iter();
                    latent.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
                }
                let channels = head * mla.v_dim..(head + 1) * mla.v_dim;
                let gate = &gate.row(token)[channels.clone()];
                let rows = values[channels.start * mla.kv_rank..].chunks_exact(mla.kv_rank);
                let out = out.row_mut(token)[channels].iter_mut();
                for ((out, row), gate) in out.zip(rows).zip(gate) {
                    *out = dot(&latent, row) * sigmoid(*gate);
                }
            }
        }
        out
    }
}

/// Scales to length `length`.
fn l2_norm(values: &mut [f32], length: f32) {
    let factor = length * (dot(values, values) + L2_NORM_EPS).sqrt().recip();
    values.iter_mut().for_each(|value| *value *= factor);
}

/// Causal depthwise convolution behind the inputs of `history`, its last tap on the current token, then SiLU.
fn convolve(x: &Matrix, taps: &[f32], history: &Matrix) -> Matrix {
    let mut y = Matrix::zeros(x.rows(), x.columns());
    for token in 0..x.rows() {
        for tap in 0..CONV_TAPS {
            let source = match (token + tap).checked_sub(history.rows()) {
                Some(own) => x.row(own),
                None => history.row(token + tap),
            };
            for (channel, (y, value)) in y.row_mut(token).iter_mut().zip(source).enumerate() {
                *y += taps[channel * CONV_TAPS + tap] * value;
            }
        }
        y.row_mut(token).iter_mut().for_each(|y| *y *= sigmoid(*y));
    }
    y
}
