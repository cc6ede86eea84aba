//! Multi-head latent attention in its absorbed form: scores and sums over latents, never over keys and values.

use super::Reference;
use super::math::{Matrix, dot, rms_norm, sigmoid, softmax};
use crate::config::{MLA_NORM_EPS, Mla};
use crate::tensor::LayerTensor as T;

/// What an MLA layer remembers: per token the normed latent, then the key part that all heads share.
#[derive(Clone, Debug)]
pub struct MlaState {
    /// `[token][kv_rank + rope_dim]`.
    pub latents: Matrix,
}

impl MlaState {
    pub(super) fn new(mla: &Mla) -> Self {
        Self { latents: Matrix::zeros(0, mla.kv_rank + mla.rope_dim) }
    }
}

impl Reference {
    pub(super) fn mla(&self, layer: usize, x: &Matrix, state: &mut MlaState) -> Matrix {
        let Mla { heads, kv_rank, nope_dim, rope_dim, v_dim, .. } = self.config.mla;
        let q = self.project(layer, x, T::QAProj).normed(self.layer(layer, T::QALayernorm), MLA_NORM_EPS);
        let q = self.project(layer, &q, T::QBProj);
        let compressed = self.project(layer, x, T::KvAProj);
        let gate = self.project(layer, x, T::GProj);
        let kv_b = self.layer(layer, T::KvBProj);

        let mut out = Matrix::zeros(x.rows(), heads * v_dim);
        for token in 0..x.rows() {
            let mut latent = compressed.row(token).to_vec();
            rms_norm(&mut latent[..kv_rank], self.layer(layer, T::KvALayernorm), MLA_NORM_EPS);
            state.latents.push_row(&latent);
            for head in 0..heads {
                let (key, value) = kv_b_of_head(kv_b, head, &self.config.mla);
                let q = &q.row(token)[head * (nope_dim + rope_dim)..(head + 1) * (nope_dim + rope_dim)];
                // The query in latent space, then its shared part as it is.
                let mut query = vec![0.0; kv_rank];
                for (q, row) in q[..nope_dim].iter().zip(key.chunks_exact(kv_rank)) {
                    query.iter_mut().zip(row).for_each(|(sum, weight)| *sum += q * weight);
                }
                query.extend_from_slice(&q[nope_dim..]);

                let scale = ((nope_dim + rope_dim) as f32).powf(-0.5);
                let seen = 0..state.latents.rows();
                let mut weights: Vec<f32> = seen.map(|past| dot(&query, state.latents.row(past)) * scale).collect();
                softmax(&mut weights);
                let mut sum = vec![0.0; kv_rank];
                for (past, weight) in weights.iter().enumerate() {
                    let latent = &state.latents.row(past)[..kv_rank];
                    sum.iter_mut().zip(latent).for_each(|(sum, value)| *sum += weight * value);
                }
                let gate = &gate.row(token)[head * v_dim..];
                let out = &mut out.row_mut(token)[head * v_dim..(head + 1) * v_dim];
                for ((out, row), gate) in out.iter_mut().zip(value.chunks_exact(kv_rank)).zip(gate) {
                    *out = dot(&sum, row) * sigmoid(*gate);
                }
            }
        }
        self.project(layer, &out, T::OProj)
    }
}

/// The rows of kv_b that make a head's key, and those that make its value.
fn kv_b_of_head<'a>(kv_b: &'a [f32], head: usize, mla: &Mla) -> (&'a [f32], &'a [f32]) {
    let rows = mla.nope_dim + mla.v_dim;
    kv_b[head * rows * mla.kv_rank..(head + 1) * rows * mla.kv_rank].split_at(mla.nope_dim * mla.kv_rank)
}
