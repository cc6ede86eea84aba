//! Feed-forward blocks in FP32.

use model::config::ROUTER_SUM_EPS;
use model::tensor::{ExpertMatrix, ExpertPart, ExpertTensor, LayerTensor};

use super::math::{Matrix, Weight, sigmoid};
use super::reference::{Computed, Reference};

impl Reference<'_> {
    pub(super) fn dense(&self, x: &Matrix, computed: &mut Computed) -> Matrix {
        self.sum(|rank| {
            let inner = self.gated(x, LayerTensor::MlpGate, LayerTensor::MlpUp, rank);
            let share = self.project(&inner, LayerTensor::MlpDown, rank);
            if rank == 0 {
                computed.stages.insert("dense MLP", inner);
            }
            share
        })
    }

    pub(super) fn moe(&self, x: &Matrix, chosen: &[Vec<u32>], computed: &mut Computed) -> Matrix {
        let logits = self.project(x, LayerTensor::Router, 0);
        let scores = logits.zip(&logits, |logit, _| sigmoid(logit));
        let weights = self.expert_weights(&scores, chosen);
        let z = self.gather(|rank| self.project(x, LayerTensor::LatentDown, rank));
        let sum = self.sum(|rank| self.experts(&z, chosen, &weights, rank));
        let normed = sum.normed(&self.shared(LayerTensor::LatentNorm), self.eps());
        let part = normed.columns() / self.ranks();
        let mut out = self.sum(|rank| {
            let own = normed.each_row().flat_map(|row| &row[rank * part..(rank + 1) * part]).copied().collect();
            self.project(&Matrix::new(part, own), LayerTensor::LatentUp, rank)
        });
        let shared = self.sum(|rank| {
            let inner = self.gated(x, LayerTensor::SharedGate, LayerTensor::SharedUp, rank);
            let share = self.project(&inner, LayerTensor::SharedDown, rank);
            if rank == 0 {
                computed.stages.insert("shared experts", inner);
            }
            share
        });
        computed.stages.insert("router logits", logits);
        computed.stages.insert("latent", z);
        computed.stages.insert("latent sum", sum);
        computed.scores = Some(scores);
        out.add(&shared);
        out
    }

    /// What the chosen experts count, a row a token, in the order they were chosen in.
    fn expert_weights(&self, scores: &Matrix, chosen: &[Vec<u32>]) -> Matrix {
        let moe = &self.weights.config.moe;
        let weigh = |(scores, experts): (&[f32], &Vec<u32>)| {
            let own: Vec<f32> = experts.iter().map(|expert| scores[*expert as usize]).collect();
            let sum = own.iter().sum::<f32>() + ROUTER_SUM_EPS;
            own.into_iter().map(move |score| score / sum * moe.routed_scaling_factor).collect::<Vec<_>>()
        };
        Matrix::new(moe.experts_per_token, scores.each_row().zip(chosen).flat_map(weigh).collect())
    }

    /// A rank's share of the weighted sum of experts, each expert's weights read once.
    fn experts(&self, z: &Matrix, chosen: &[Vec<u32>], weights: &Matrix, rank: usize) -> Matrix {
        let mut sum = Matrix::zeros(z.rows(), z.columns());
        let mut experts: Vec<u32> = chosen.iter().flatten().copied().collect();
        experts.sort_unstable();
        experts.dedup();
        for expert in experts {
            let uses: Vec<(usize, f32)> = chosen
                .iter()
                .enumerate()
                .flat_map(|(token, experts)| {
                    experts.iter().enumerate().map(move |(slot, chosen)| (token, slot, *chosen))
                })
                .filter(|(.., chosen)| *chosen == expert)
                .map(|(token, slot, _)| (token, weights.row(token)[slot]))
                .collect();
            let inputs = uses.iter().flat_map(|(token, _)| z.row(*token)).copied().collect();
            let inputs = Matrix::new(z.columns(), inputs);
            let [gate, up, down] =
                [ExpertMatrix::W1, ExpertMatrix::W3, ExpertMatrix::W2].map(|matrix| self.expert(expert, matrix, rank));
            let outputs =
                down.project(&gate.project(&inputs).zip(&up.project(&inputs), |gate, up| self.situ(gate, up)));
            for ((token, weight), output) in uses.iter().zip(outputs.each_row()) {
                sum.row_mut(*token).iter_mut().zip(output).for_each(|(sum, value)| *sum += weight * value);
            }
        }
        sum
    }

    fn expert(&self, expert: u32, matrix: ExpertMatrix, rank: usize) -> Weight {
        self.weights.expert(ExpertTensor { layer: 0, expert: expert as u16, matrix, part: ExpertPart::Packed }, rank)
    }

    fn gated(&self, x: &Matrix, gate: LayerTensor, up: LayerTensor, rank: usize) -> Matrix {
        self.project(x, gate, rank).zip(&self.project(x, up, rank), |gate, up| self.situ(gate, up))
    }

    fn situ(&self, gate: f32, up: f32) -> f32 {
        let (beta, linear) = (self.weights.config.situ_beta, self.weights.config.situ_linear_beta);
        beta * (gate / beta).tanh() * sigmoid(gate) * linear * (up / linear).tanh()
    }
}
