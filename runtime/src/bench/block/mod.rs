//! One block at full width on random weights: what its launches do, and how far they are from FP32.

mod attention;
mod context;
mod feed_forward;
mod math;
mod measure;
mod numbers;
mod reference;
mod sizes;
mod weights;

use std::time::{Duration, Instant};

use model::config::Config;

use crate::bench::cost::{Constants, Seconds};
use crate::bench::work::Work;
use crate::engine::{Engine, EngineError, Options};
use crate::failure::Failure;
use crate::forward::Logits;
use crate::graph::{Form, KernelSet};
use crate::platform::Platform;

use context::Context;
use measure::BlockLaunches;
pub use measure::{Counted, KernelUse, Tally};
pub use numbers::{Numbers, StageError, TIE, TOLERANCE};
use reference::Reference;
pub use sizes::{nano_config, two_layer_config};
use weights::Weights;

/// Which block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Kimi Delta Attention.
    Kda,
    /// Multi-head latent attention.
    Mla,
    /// The mixture of experts.
    Moe,
    /// The dense MLP.
    Dense,
}

impl Kind {
    fn is_attention(self) -> bool {
        matches!(self, Self::Kda | Self::Mla)
    }
}

/// How wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// As the released model.
    Official,
    /// As K3-nano.
    Nano,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which block.
    pub kind: Kind,
    /// How wide.
    pub width: Width,
    /// Layers of the kind.
    pub layers: usize,
    /// Tokens of a run.
    pub tokens: u32,
    /// Tokens in the latent caches before it, made up.
    pub context: u32,
    /// Ranks that the width is divided by.
    pub ranks: usize,
    /// GPUs: as many, or one whose peers are its own echo.
    pub devices: usize,
    /// Experts that have weights and are chosen from.
    pub experts: usize,
    /// Seed of the weights.
    pub seed: u64,
}

/// What was found.
pub struct Outcome {
    /// Kernels of the block of one layer, in the order of first use.
    pub kernels: Vec<KernelUse>,
    /// Dispatches of one whole layer, the block's other half included.
    pub layer_dispatches: usize,
    /// Least work of the block's dispatches, one by one.
    pub works: Vec<Work>,
    /// Collectives of the block, which are among its dispatches.
    pub collectives: usize,
    /// Dwords that the block adds to a resident indirect buffer.
    pub pm4_dwords: usize,
    /// Different experts that the run's tokens chose, if there are any.
    pub distinct_experts: Option<usize>,
    /// How far from FP32; with one layer only.
    pub numbers: Option<Numbers>,
    /// Wall time of the run.
    pub elapsed: Duration,
}

impl Outcome {
    /// Dispatches of the block in one layer.
    #[must_use]
    pub fn dispatches(&self) -> usize {
        self.works.len()
    }

    /// The modelled time of the block.
    #[must_use]
    pub fn time(&self, constants: &Constants, form: Form) -> Seconds {
        constants.time(&self.works, self.collectives, form)
    }
}

/// An engine with random weights; of the experts of each layer the first `experts` have some, and are chosen from.
///
/// # Errors
/// See [`EngineError`].
pub fn engine(
    platform: &Platform,
    config: &Config,
    options: Options,
    seed: u64,
    experts: usize,
) -> Result<Engine, EngineError> {
    let mut engine = Engine::without_weights(platform, config, options, &KernelSet::default())?;
    fill(&mut engine, seed, experts)?;
    Ok(engine)
}

/// Gives `engine` random weights, as [`engine`] does.
///
/// # Errors
/// See [`EngineError`].
pub fn fill(engine: &mut Engine, seed: u64, experts: usize) -> Result<(), EngineError> {
    let (config, layout) = (engine.config().clone(), engine.layout().clone());
    let weights = Weights { config: &config, layout: &layout, seed, resident: experts };
    engine.ranks_mut().iter_mut().try_for_each(|rank| weights.upload(rank))
}

/// Measures a block on the first `plan.devices` GPUs of the machine. An emulated machine that keeps a tally of its first
/// GPU tells what kernels did.
///
/// # Errors
/// The plan is refused, or a GPU does not do its work.
pub fn run(plan: &Plan, platform: &Platform) -> Result<Outcome, Failure> {
    let config = sizes::config(plan.kind, plan.width, plan.layers);
    if plan.experts < config.moe.experts_per_token || plan.experts > config.moe.experts {
        return Err(Failure::Input(format!(
            "{} experts: a token chooses {} of {}",
            plan.experts, config.moe.experts_per_token, config.moe.experts
        )));
    }
    let options = Options {
        devices: plan.devices,
        max_context: plan.context + plan.tokens,
        chunk: plan.tokens,
        echo: (plan.devices < plan.ranks).then_some(plan.ranks),
        // What takes a GPU microseconds takes its emulation minutes.
        patience: Duration::from_secs(1800),
        ..Options::default()
    };
    let mut engine = engine(platform, &config, options, plan.seed, plan.experts)?;
    let layout = engine.layout().clone();
    let weights = Weights { config: &config, layout: &layout, seed: plan.seed, resident: plan.experts };
    engine.reset()?;
    let context = Context::make_up(&mut engine, plan)?;
    let launches = BlockLaunches::of(&engine, plan);
    let graph = engine.build(plan.tokens, |builder| {
        let mut list = builder.forward(Logits::Last);
        BlockLaunches::keep_half(&engine, plan, &mut list);
        list
    })?;
    numbers::zero_saved_blocks(&mut engine)?;
    let tally = platform.tally();
    if let Some(tally) = tally {
        BlockLaunches::watch(&engine, tally);
    }
    // Any rows of the embedding do, as long as they are different.
    let tokens: Vec<u32> = (0..plan.tokens).map(|token| token * 37 % 1024).collect();
    let start = Instant::now();
    engine.run_at(&graph, plan.context, &tokens)?;
    let elapsed = start.elapsed();
    let counted = tally.and_then(|tally| launches.counted(&engine, tally));
    let chosen = numbers::chosen_experts(&mut engine, plan)?;
    let distinct_experts = (plan.kind == Kind::Moe).then(|| numbers::distinct(&chosen));
    let works = launches.works(&engine, plan, distinct_experts.unwrap_or(0));
    let numbers = if plan.layers == 1 {
        let reference = Reference {
            weights: &weights,
            is_attention: plan.kind.is_attention(),
            is_echo: options.echo.is_some(),
            context,
        };
        Some(numbers::compare(&mut engine, &reference, &launches, &tokens, &chosen)?)
    } else {
        None
    };
    Ok(Outcome {
        kernels: launches.kernels(&engine, &works, counted),
        layer_dispatches: launches.layer_dispatches,
        works,
        collectives: launches.collectives,
        pm4_dwords: launches.pm4_dwords(&engine)?,
        distinct_experts,
        numbers,
        elapsed,
    })
}
