//! The self-test at load: every kernel once on small fixed inputs, whose results are known bit by bit.
//!
//! A model of two layers with random weights runs on each GPU by itself, launch by launch: a chunk of tokens, one token, and
//! a chunk whose collectives are signals. Together they launch every kernel. Peers are echoes of the GPU, so the results do
//! not depend on how many GPUs there are. Behind each launch all memory that kernels write is hashed and compared with
//! what the emulated machine got ([`known`]).

mod known;

use std::sync::Arc;
use std::time::Duration;

use driver::Gpu;
use driver::address::{Bytes, GpuVa};
use model::sampling::SamplingParams;
use xxhash_rust::xxh3::Xxh3;

use crate::bench::block;
use crate::engine::{Engine, EngineError, Options, open_gpus};
use crate::failure::Failure;
use crate::forward::{Collectives, KernelLaunch};
use crate::graph::KernelSet;
use crate::platform::Platform;

pub use known::{Bits, known, to_text};

/// One run of the model.
struct Pass {
    name: &'static str,
    tokens: u32,
    collectives: Collectives,
    sampling: SamplingParams,
}

/// The token comes behind a chunk, so that caches and states hold something.
const PASSES: [Pass; 3] = [
    Pass { name: "chunk", tokens: CHUNK, collectives: Collectives::OneShot, sampling: GREEDY },
    Pass { name: "token", tokens: 1, collectives: Collectives::OneShot, sampling: DRAWN },
    Pass { name: "signals", tokens: 3, collectives: Collectives::Signals, sampling: GREEDY },
];
/// Takes the most likely token.
const GREEDY: SamplingParams = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 };
/// Draws a token, and cuts off both ways.
const DRAWN: SamplingParams = SamplingParams { temperature: 2.0, top_k: 100, top_p: 0.9, seed: SEED };
/// More tokens than a tile of the small matrix kernel has, and no whole number of tiles.
const CHUNK: u32 = 19;
/// Tokens of all passes, rounded up.
const CONTEXT: u32 = 32;
/// Ranks of the model, of which a GPU is the first.
const RANKS: usize = 2;
/// Any seed does.
const SEED: u64 = 0x6b33;
/// A launch that takes longer hangs: each takes microseconds, emulated milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why a machine does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SelfTestError {
    /// A kernel computes something else than it should.
    #[error(
        "GPU {gpu:#x} fails the self-test: kernel {kernel} gives bits {found:016x} where {expected:016x} are known \
         (launch {number} of pass {pass}); do not use it, or its kernels. `kimi-hcq smoke` says how far off results are, \
         --no-self-test goes on regardless"
    )]
    Differs {
        /// The GPU.
        gpu: u32,
        /// The kernel.
        kernel: &'static str,
        /// The run of the model it is in.
        pass: &'static str,
        /// Its number there, from 0.
        number: usize,
        /// The hash of all memory that it should leave.
        expected: u64,
        /// The hash of what it left.
        found: u64,
    },
    /// A kernel did not end.
    #[error("GPU {gpu:#x} fails the self-test: kernel {kernel} does not end well: {error}")]
    Launch {
        /// The GPU.
        gpu: u32,
        /// The kernel.
        kernel: &'static str,
        /// What happened.
        error: Box<EngineError>,
    },
    /// The test could not be made.
    #[error("the self-test cannot be made: {0}")]
    Engine(Box<EngineError>),
}

impl From<EngineError> for SelfTestError {
    fn from(error: EngineError) -> Self {
        Self::Engine(Box::new(error))
    }
}

impl From<SelfTestError> for Failure {
    fn from(error: SelfTestError) -> Self {
        match error {
            SelfTestError::Engine(error) => (*error).into(),
            SelfTestError::Launch { .. } => Self::gpu(error),
            SelfTestError::Differs { .. } => Self::run(error),
        }
    }
}

/// Tests the first `devices` GPUs with the kernels of `set`. A machine that executes nothing has nothing to test.
///
/// # Errors
/// The first kernel that gives other bits than the known ones, or does not end.
pub fn check(platform: &Platform, devices: usize, set: &KernelSet<'_>) -> Result<(), SelfTestError> {
    if platform.executes_nothing() {
        return Ok(());
    }
    for gpu in &open_gpus(platform, devices)? {
        let mut known = known().into_iter();
        run(platform, gpu, set, &mut |found| {
            let expected = known.next().map_or(0, |known| known.bits);
            let Bits { pass, number, kernel, bits } = found;
            if bits == expected {
                return Ok(());
            }
            Err(SelfTestError::Differs { gpu: gpu.id(), kernel, pass, number, expected, found: bits })
        })?;
    }
    Ok(())
}

/// What the committed kernels compute on the first GPU.
///
/// # Errors
/// See [`SelfTestError`].
pub fn record(platform: &Platform) -> Result<Vec<Bits>, SelfTestError> {
    let mut all = Vec::new();
    for gpu in &open_gpus(platform, 1)? {
        run(platform, gpu, &KernelSet::default(), &mut |bits| {
            all.push(bits);
            Ok(())
        })?;
    }
    Ok(all)
}

/// Runs all passes on `gpu` and tells `say` what each launch left.
fn run(
    platform: &Platform,
    gpu: &Arc<Gpu>,
    set: &KernelSet<'_>,
    say: &mut dyn FnMut(Bits) -> Result<(), SelfTestError>,
) -> Result<(), SelfTestError> {
    let config = block::two_layer_config();
    let options = Options {
        devices: 1,
        echo: Some(RANKS),
        max_context: CONTEXT,
        chunk: CHUNK,
        patience: PATIENCE,
        ..Options::default()
    };
    let mut engine = Engine::on(platform, &[Arc::clone(gpu)], &config, options, set)?;
    block::fill(&mut engine, SEED, config.moe.experts)?;
    let memory = Written::of(&engine);
    memory.clear(&mut engine)?;
    for Pass { name, tokens, collectives, sampling } in PASSES {
        engine.set_sampling(sampling)?;
        let tokens: Vec<u32> = (0..tokens).map(|token| token * 37 % 1024).collect();
        let mut number = 0;
        engine.step_through::<SelfTestError>(
            &tokens,
            collectives,
            &mut |engine: &mut Engine, launch: &KernelLaunch, ended| {
                let kernel = launch.kernel.name;
                ended.map_err(|error| SelfTestError::Launch { gpu: gpu.id(), kernel, error: Box::new(error) })?;
                let bits = memory.hash(engine)?;
                say(Bits { pass: name, number, kernel, bits })?;
                number += 1;
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// All memory that kernels write.
struct Written([(GpuVa, Bytes); 5]);

impl Written {
    fn of(engine: &Engine) -> Self {
        let (rank, plan) = (&engine.ranks()[0], engine.plan());
        Self([
            (rank.memory.cache, plan.cache.bytes()),
            (rank.memory.state, plan.state.bytes()),
            (rank.memory.workspace, plan.workspace.bytes()),
            (rank.exchange.va(), plan.exchange.bytes()),
            (rank.ring.va(), plan.ring.bytes()),
        ])
    }

    fn clear(&self, engine: &mut Engine) -> Result<(), EngineError> {
        let transfers = &mut engine.ranks_mut()[0].transfers;
        Ok(self.0.iter().try_for_each(|&(at, bytes)| transfers.zero(at, bytes))?)
    }

    fn hash(&self, engine: &mut Engine) -> Result<u64, EngineError> {
        let transfers = &mut engine.ranks_mut()[0].transfers;
        let mut hash = Xxh3::new();
        let mut content = Vec::new();
        for &(at, bytes) in &self.0 {
            content.resize(bytes.get() as usize, 0);
            transfers.read(at, &mut content)?;
            hash.update(&content);
        }
        Ok(hash.digest())
    }
}
