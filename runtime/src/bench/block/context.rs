//! What a run finds in caches and states: made up, so that no first token from nothing decides how errors look.

use driver::address::GpuVa;
use half::bf16;
use model::config::Config;
use model::tensor::Dtype;

use super::Plan;
use super::math::Matrix;
use crate::engine::{Engine, EngineError};
use crate::fixture::Content;
use crate::plan::{LayerState, MemoryPlan, Section};

/// What all layers of a kind find, rank by rank.
pub(super) struct Context {
    /// Latents of the context, a row a token, the same on every rank.
    pub(super) latents: Matrix,
    /// By rank.
    pub(super) kda: Vec<KdaContext>,
}

/// What a KDA layer finds on one rank.
pub(super) struct KdaContext {
    /// The last inputs of the convolutions of q, k and v, a row a token.
    pub(super) histories: [Matrix; 3],
    /// `[head][key channel][value channel]`.
    pub(super) state: Vec<f32>,
}

/// Inputs whose sum keeps the magnitude of one, by the generator's rule: state elements come out below 1/8.
const STATE_INPUTS: u64 = 128;

/// Random bytes of some elements.
fn bytes(config: &Config, name: &str, dtype: Dtype, shape: &[u64], seed: u64) -> Vec<u8> {
    let elements: u64 = shape.iter().product();
    let mut bytes = vec![0; (elements * dtype.bits() / 8) as usize];
    Content::new(config, name, dtype, shape, seed).fill(0, &mut bytes);
    bytes
}

fn bf16s(columns: usize, bytes: &[u8]) -> Matrix {
    Matrix::new(columns, bytes.as_chunks().0.iter().map(|value| bf16::from_le_bytes(*value).to_f32()).collect())
}

impl Context {
    /// Writes it to all ranks, behind [`Engine::reset`].
    pub(super) fn make_up(engine: &mut Engine, plan: &Plan) -> Result<Self, EngineError> {
        let (config, memory_plan) = (engine.config().clone(), engine.plan().clone());
        let columns = config.mla.kv_rank + config.mla.rope_dim;
        let latents = bytes(&config, "latents", Dtype::BF16, &[u64::from(plan.context) * columns as u64], plan.seed);
        let mut kda = Vec::new();
        for rank in engine.ranks_mut() {
            let own = KdaBytes::new(&config, &memory_plan, plan.seed + u64::from(rank.memory.rank));
            let at = |base: GpuVa, offset: u64| GpuVa::new(base.get() + offset);
            for state in &memory_plan.states {
                match state {
                    LayerState::Mla(place) => rank.transfers.write(at(rank.memory.cache, place.get()), &latents)?,
                    LayerState::Kda(places) => {
                        let base = rank.memory.state;
                        for (place, history) in places.histories.iter().zip(&own.histories) {
                            rank.transfers.write(at(base, place.get()), history)?;
                        }
                        rank.transfers.write(at(base, places.recurrent.get()), &own.state)?;
                    }
                }
            }
            kda.push(own.widened(&config, memory_plan.sizes.ranks));
        }
        Ok(Self { latents: bf16s(columns, &latents), kda })
    }
}

/// A [`KdaContext`] as the GPU has it.
struct KdaBytes {
    histories: [Vec<u8>; 3],
    state: Vec<u8>,
}

impl KdaBytes {
    fn new(config: &Config, plan: &MemoryPlan, seed: u64) -> Self {
        let Some(LayerState::Kda(places)) = plan.states.iter().find(|state| matches!(state, LayerState::Kda(_))) else {
            return Self { histories: Default::default(), state: Vec::new() };
        };
        let length = |section: &Section, offset: u64| {
            section.parts().iter().find(|part| part.offset == offset).map_or(0, |part| part.bytes.get())
        };
        let history = |index: usize| {
            let elements = length(&plan.state, places.histories[index].get()) / 2;
            bytes(config, ["q history", "k history", "v history"][index], Dtype::BF16, &[elements], seed)
        };
        let rows = length(&plan.state, places.recurrent.get()) / 4 / STATE_INPUTS;
        let state = bytes(config, "KDA state", Dtype::F32, &[rows, STATE_INPUTS], seed);
        Self { histories: [0, 1, 2].map(history), state }
    }

    fn widened(&self, config: &Config, ranks: usize) -> KdaContext {
        let width = config.kda.heads / ranks * config.kda.head_dim;
        KdaContext {
            histories: [0, 1, 2].map(|index| bf16s(width, &self.histories[index])),
            state: self.state.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect(),
        }
    }
}
