//! Dense MLP and latent mixture of experts.

use super::Reference;
use super::math::{Matrix, multiply, sigmoid};
use crate::config::ROUTER_SUM_EPS;
use crate::tensor::{ExpertMatrix, LayerTensor as T};

/// For each token the chosen experts with their weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing(pub Vec<Vec<(usize, f32)>>);

impl Reference {
    pub(super) fn dense(&self, layer: usize, x: &Matrix) -> Matrix {
        self.mlp(x, self.layer(layer, T::MlpGate), self.layer(layer, T::MlpUp), self.layer(layer, T::MlpDown))
    }

    /// The experts the router chooses: those of the highest corrected scores, of equals the lower number.
    pub fn route(&self, layer: usize, x: &Matrix) -> Routing {
        let bias = self.layer(layer, T::RouterBias);
        let scores = self.scores(layer, x);
        let choose = |token: usize| {
            let corrected = |expert: &usize| scores.row(token)[*expert] + bias[*expert];
            let mut experts: Vec<usize> = (0..bias.len()).collect();
            experts.sort_by(|a, b| corrected(b).total_cmp(&corrected(a)));
            experts.truncate(self.config.moe.experts_per_token);
            experts
        };
        self.weigh(&scores, (0..x.rows()).map(choose))
    }

    /// Weights as the router gives them, for experts chosen by somebody else: one list per token.
    ///
    /// # Panics
    /// If an expert does not exist.
    pub fn route_forced(&self, layer: usize, x: &Matrix, experts: &[Vec<usize>]) -> Routing {
        self.weigh(&self.scores(layer, x), experts.iter().cloned())
    }

    /// The mixture with given experts and weights.
    ///
    /// # Panics
    /// If an expert does not exist, or tokens are missing.
    pub fn moe(&self, layer: usize, x: &Matrix, routing: &Routing) -> Matrix {
        let z = self.project(layer, x, T::LatentDown);
        let mut sum = Matrix::zeros(z.rows(), z.columns());
        for token in 0..z.rows() {
            let input = Matrix::new(z.columns(), z.row(token).to_vec());
            for (expert, weight) in &routing.0[token] {
                let matrix = |matrix| self.weights.expert(layer, *expert, matrix);
                let y = self.mlp(&input, matrix(ExpertMatrix::W1), matrix(ExpertMatrix::W3), matrix(ExpertMatrix::W2));
                sum.row_mut(token).iter_mut().zip(y.values()).for_each(|(sum, y)| *sum += weight * y);
            }
        }
        let combined = sum.normed(self.layer(layer, T::LatentNorm), self.config.rms_norm_eps);
        let (gate, up) = (self.layer(layer, T::SharedGate), self.layer(layer, T::SharedUp));
        let shared = self.mlp(x, gate, up, self.layer(layer, T::SharedDown));
        self.project(layer, &combined, T::LatentUp).plus(&shared)
    }

    fn scores(&self, layer: usize, x: &Matrix) -> Matrix {
        let logits = self.project(layer, x, T::Router);
        Matrix::new(logits.columns(), logits.values().iter().map(|logit| sigmoid(*logit)).collect())
    }

    /// Uncorrected scores of the chosen, normalised.
    fn weigh(&self, scores: &Matrix, chosen: impl Iterator<Item = Vec<usize>>) -> Routing {
        let weigh = |(token, experts): (usize, Vec<usize>)| {
            let score = |expert: &usize| scores.row(token)[*expert];
            let sum = experts.iter().map(score).sum::<f32>() + ROUTER_SUM_EPS;
            let factor = self.config.moe.routed_scaling_factor;
            experts.into_iter().map(|expert| (expert, score(&expert) / sum * factor)).collect()
        };
        Routing(chosen.enumerate().map(weigh).collect())
    }

    fn mlp(&self, x: &Matrix, gate: &[f32], up: &[f32], down: &[f32]) -> Matrix {
        let (beta, linear_beta) = (self.config.situ_beta, self.config.situ_linear_beta);
        let situ =
            |gate: f32, up: f32| beta * (gate / beta).tanh() * sigmoid(gate) * linear_beta * (up / linear_beta).tanh();
        multiply(&multiply(x, gate).zip(&multiply(x, up), situ), down)
    }
}
