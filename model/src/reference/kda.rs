//! Kimi Delta Attention.

use super::Reference;
use super::math::{Matrix, l2_norm, rms_norm, sigmoid};
use crate::config::{CONV_TAPS, Kda, L2_NORM_EPS};
use crate::tensor::LayerTensor as T;

/// What a KDA layer remembers.
#[derive(Clone, Debug)]
pub struct KdaState {
    /// The last three projected values, before the convolution, of q, k and v.
    pub convolution: [Matrix; 3],
    /// `[head][key channel][value channel]`.
    pub recurrent: Vec<f32>,
}

impl KdaState {
    pub(super) fn new(kda: &Kda) -> Self {
        let width = kda.heads * kda.head_dim;
        Self {
            convolution: std::array::from_fn(|_| Matrix::zeros(CONV_TAPS - 1, width)),
            recurrent: vec![0.0; width * kda.head_dim],
        }
    }
}

impl Reference {
    pub(super) fn kda(&self, layer: usize, x: &Matrix, state: &mut KdaState) -> Matrix {
        let dim = self.config.kda.head_dim;
        let [q_past, k_past, v_past] = &mut state.convolution;
        let mut q = convolve(&self.project(layer, x, T::QProj), self.layer(layer, T::QConv), q_past);
        let mut k = convolve(&self.project(layer, x, T::KProj), self.layer(layer, T::KConv), k_past);
        let v = convolve(&self.project(layer, x, T::VProj), self.layer(layer, T::VConv), v_past);
        let decay = self.decay(layer, x);
        let beta = self.project(layer, x, T::BProj);
        let gate = self.project(layer, x, T::GProj);

        let mut out = Matrix::zeros(x.rows(), q.columns());
        for token in 0..x.rows() {
            for head in 0..self.config.kda.heads {
                let channels = head * dim..(head + 1) * dim;
                let q = &mut q.row_mut(token)[channels.clone()];
                let k = &mut k.row_mut(token)[channels.clone()];
                l2_norm(q, L2_NORM_EPS);
                l2_norm(k, L2_NORM_EPS);
                q.iter_mut().for_each(|q| *q *= (dim as f32).powf(-0.5));
                let step = Step {
                    q,
                    k,
                    v: &v.row(token)[channels.clone()],
                    decay: &decay.row(token)[channels.clone()],
                    beta: sigmoid(beta.row(token)[head]),
                };
                let out = &mut out.row_mut(token)[channels.clone()];
                step.run(&mut state.recurrent[head * dim * dim..(head + 1) * dim * dim], out);
                rms_norm(out, self.layer(layer, T::ONorm), self.config.rms_norm_eps);
                let gate = &gate.row(token)[channels];
                out.iter_mut().zip(gate).for_each(|(out, gate)| *out *= sigmoid(*gate));
            }
        }
        self.project(layer, &out, T::OProj)
    }

    /// The factor by which each key channel of each head forgets. `A_log` is one value per head.
    fn decay(&self, layer: usize, x: &Matrix) -> Matrix {
        let dim = self.config.kda.head_dim;
        let (bias, a_log) = (self.layer(layer, T::DtBias), self.layer(layer, T::ALog));
        let mut decay = self.project(layer, &self.project(layer, x, T::FAProj), T::FBProj);
        for token in 0..x.rows() {
            for (channel, (value, bias)) in decay.row_mut(token).iter_mut().zip(bias).enumerate() {
                let gate = sigmoid(a_log[channel / dim].exp() * (*value + bias));
                *value = (self.config.kda.gate_lower_bound * gate).exp();
            }
        }
        decay
    }
}

/// One token of one head.
struct Step<'a> {
    q: &'a [f32],
    k: &'a [f32],
    v: &'a [f32],
    decay: &'a [f32],
    beta: f32,
}

impl Step<'_> {
    /// Decays the state, corrects what it holds for the key towards the value, and reads it with the query.
    fn run(&self, state: &mut [f32], out: &mut [f32]) {
        let dim = self.k.len();
        let mut error = self.v.to_vec();
        for (key, row) in state.chunks_exact_mut(dim).enumerate() {
            for (s, error) in row.iter_mut().zip(&mut error) {
                *s *= self.decay[key];
                *error -= self.k[key] * *s;
            }
        }
        for (key, row) in state.chunks_exact_mut(dim).enumerate() {
            for ((s, error), out) in row.iter_mut().zip(&error).zip(&mut *out) {
                *s += self.beta * self.k[key] * error;
                *out += self.q[key] * *s;
            }
        }
    }
}

/// Causal depthwise convolution, its last tap on the current token, then SiLU.
fn convolve(x: &Matrix, taps: &[f32], past: &mut Matrix) -> Matrix {
    let mut input = past.clone();
    (0..x.rows()).for_each(|token| input.push_row(x.row(token)));
    let mut y = Matrix::zeros(x.rows(), x.columns());
    for token in 0..x.rows() {
        for tap in 0..CONV_TAPS {
            let source = input.row(token + tap);
            for (channel, (y, value)) in y.row_mut(token).iter_mut().zip(source).enumerate() {
                *y += taps[channel * CONV_TAPS + tap] * value;
            }
        }
        y.row_mut(token).iter_mut().for_each(|y| *y *= sigmoid(*y));
    }
    let last = input.rows() - (CONV_TAPS - 1)..input.rows();
    *past = Matrix::from_rows(x.columns(), last.map(|row| input.row(row)));
    y
}
