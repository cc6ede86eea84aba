//! How far a run is from FP32: buffers on the way, the block's output, and the choice of experts.

use driver::address::GpuVa;
use half::bf16;
use model::tensor::LayerTensor;

use super::math::Matrix;
use super::measure::BlockLaunches;
use super::reference::{OUTPUT, Reference};
use super::{Kind, Plan};
use crate::engine::{Engine, EngineError};
use crate::plan::{Part, pitch};

/// Largest relative error of a row, L2.
pub const TOLERANCE: f64 = 1e-2;
/// Scores that are no further apart may change places.
pub const TIE: f32 = 1e-3;

/// What a buffer is off by.
#[derive(Clone, Debug, serde::Serialize)]
pub struct StageError {
    /// The buffer, as the memory plan calls it.
    pub stage: &'static str,
    /// The kernel that writes it.
    pub kernel: &'static str,
    /// L2 of the difference over L2 of the exact row, of the worst row.
    pub relative: f64,
}

/// How far a run is from FP32.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Numbers {
    /// Buffers that are there to be looked at, the residual stream after the layer among them.
    pub stages: Vec<StageError>,
    /// How much lower the worst chosen expert scores than the one that should have been chosen, if there are any.
    pub routing_gap: Option<f32>,
}

impl Numbers {
    /// Whether everything is within what is allowed.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.stages.iter().all(|stage| stage.relative <= TOLERANCE) && self.routing_gap.is_none_or(|gap| gap <= TIE)
    }
}

/// Zeroes the saved residuals of all ranks: the half of the layer that saves one may not run.
pub(super) fn zero_saved_blocks(engine: &mut Engine) -> Result<(), EngineError> {
    let at = engine.plan().places.blocks;
    let part = engine.plan().workspace.parts().iter().find(|part| part.offset == at.get()).cloned();
    let Some(part) = part else { return Ok(()) };
    for rank in engine.ranks_mut() {
        rank.transfers.zero(GpuVa::new(rank.memory.at(at).0), part.bytes)?;
    }
    Ok(())
}

/// The experts that rank 0 chose for each token; empty lists if the layer has none.
pub(super) fn chosen_experts(engine: &mut Engine, plan: &Plan) -> Result<Vec<Vec<u32>>, EngineError> {
    let tokens = plan.tokens as usize;
    if plan.kind != Kind::Moe {
        return Ok(vec![Vec::new(); tokens]);
    }
    let top_k = engine.config().moe.experts_per_token;
    let at = engine.plan().places.expert_ids;
    let rank = &mut engine.ranks_mut()[0];
    let mut ids = vec![0_u32; tokens * top_k];
    rank.transfers.read(GpuVa::new(rank.memory.at(at).0), bytemuck::cast_slice_mut(&mut ids))?;
    Ok(ids.chunks(top_k).map(<[u32]>::to_vec).collect())
}

/// How many different experts there are among them.
pub(super) fn distinct(chosen: &[Vec<u32>]) -> usize {
    let mut experts: Vec<u32> = chosen.iter().flatten().copied().collect();
    experts.sort_unstable();
    experts.dedup();
    experts.len()
}

/// Compares what rank 0 holds with what the host computes.
pub(super) fn compare(
    engine: &mut Engine,
    reference: &Reference<'_>,
    launches: &BlockLaunches,
    tokens: &[u32],
    chosen: &[Vec<u32>],
) -> Result<Numbers, EngineError> {
    let computed = reference.run(tokens, chosen);
    let mut stages = Vec::new();
    for (name, exact) in &computed.stages {
        let Some(part) = engine.plan().workspace.parts().iter().find(|part| part.name == *name).cloned() else {
            continue;
        };
        let start = engine.ranks()[0].memory.workspace.get() + part.offset;
        let Some(kernel) = launches.writer(&(start..start + part.bytes.get()), *name == OUTPUT) else { continue };
        let found = read(engine, &part, exact)?;
        stages.push(StageError { stage: name, kernel, relative: exact.worst_row_error(&found) });
    }
    let routing_gap = computed.scores.map(|scores| {
        let bias = reference.shared(LayerTensor::RouterBias);
        scores.each_row().zip(chosen).map(|(scores, chosen)| gap(scores, &bias, chosen)).fold(0.0, f32::max)
    });
    Ok(Numbers { stages, routing_gap })
}

/// How much lower the worst of the chosen scores, corrected, than the best that was left out.
fn gap(scores: &[f32], bias: &[f32], chosen: &[u32]) -> f32 {
    let corrected = |expert: usize| scores[expert] + bias[expert];
    let worst = chosen.iter().map(|expert| corrected(*expert as usize)).fold(f32::INFINITY, f32::min);
    let left_out = (0..scores.len()).filter(|expert| !chosen.contains(&(*expert as u32)));
    left_out.map(corrected).fold(f32::NEG_INFINITY, f32::max) - worst
}

/// Reads a buffer of rank 0 of the shape of `like`, whose rows are padded as the plan pads them.
fn read(engine: &mut Engine, part: &Part, like: &Matrix) -> Result<Matrix, EngineError> {
    let rank = &mut engine.ranks_mut()[0];
    let row_bytes = part.bytes.get() as usize / like.rows();
    let is_f32 = row_bytes == pitch(like.columns(), 4) as usize;
    let mut bytes = vec![0; part.bytes.get() as usize];
    rank.transfers.read(GpuVa::new(rank.memory.workspace.get() + part.offset), &mut bytes)?;
    let mut values = Vec::with_capacity(like.rows() * like.columns());
    for row in bytes.chunks_exact(row_bytes) {
        if is_f32 {
            values.extend(row[..like.columns() * 4].as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)));
        } else {
            let row = &row[..like.columns() * 2];
            values.extend(row.as_chunks().0.iter().map(|value| bf16::from_le_bytes(*value).to_f32()));
        }
    }
    Ok(Matrix::new(like.columns(), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_as_far_off_as_the_best_that_was_left_out() {
        let (scores, bias) = ([0.1, 0.5, 0.3, 0.4], [0.0, 0.0, 0.3, 0.0]);
        assert!(gap(&scores, &bias, &[2, 1]) < 0.0);
        assert!((gap(&scores, &bias, &[1, 3]) - 0.2).abs() < 1e-6);
    }
}
