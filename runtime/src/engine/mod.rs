//! The engine: a model resident on its GPUs, ready to run tokens.

mod block;
mod error;
mod generate;
mod null;
mod profile;
mod rank;
mod runs;
mod step_through;
mod timings;
mod transfer;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Gpu;
use driver::address::Bytes;
use driver::memory::Buffer;
use kernels::{ErrorWord, GpuVa, Step};
use model::checkpoint::Checkpoint;
use model::config::Config;
use model::layout::Layout;

use crate::forward::{Builder, Collectives, KernelLaunch, Launches, Logits};
use crate::graph::{self, Form, Graph, GraphRank, KernelSet};
use crate::loader::{self, Progress};
use crate::plan::{MemoryPlan, Sizes};
use crate::platform::Platform;

pub use block::Block;
pub use error::EngineError;
pub use generate::{Finish, Generation, Sampling};
pub use profile::Span;
pub use rank::Rank;
use runs::Runs;
pub use timings::Timings;
pub use transfer::Transfers;

/// How the engine is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// GPUs to split the model over: 1, 2, 4 or 8.
    pub devices: usize,
    /// Tokens of context, prompt and answer together.
    pub max_context: u32,
    /// Tokens of a prefill run.
    pub chunk: u32,
    /// Keep the logits of every token of a run, for perplexity.
    pub all_logits: bool,
    /// How long a run may take before it counts as hung.
    pub patience: Duration,
    /// How runs are submitted.
    pub form: Form,
    /// How ranks exchange values.
    pub collectives: Collectives,
    /// Runs submitted ahead of the one whose token is waited for.
    pub run_ahead: usize,
    /// Splits the model over more ranks than there are GPUs, for measurements: the one GPU runs rank 0, and its mailbox
    /// echoes what it sends as if every peer had sent the same. Kernels do all they do on many GPUs; what comes out is
    /// that of a model whose ranks all have the weights of rank 0.
    pub echo: Option<usize>,
    /// Keep when each dispatch of rank 0 ran ([`Engine::take_spans`]). Only in the AQL form, and nothing runs ahead.
    pub timed: bool,
}

impl Options {
    /// Ranks the model is split over.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.echo.unwrap_or(self.devices)
    }
}

impl Default for Options {
    /// Eight GPUs, 4,096 tokens, chunks of 128, logits of the last token, two minutes.
    fn default() -> Self {
        Self {
            devices: 8,
            max_context: 4096,
            chunk: 128,
            all_logits: false,
            patience: Duration::from_secs(120),
            form: Form::Aql,
            collectives: Collectives::OneShot,
            run_ahead: 0,
            echo: None,
            timed: false,
        }
    }
}

/// Epochs of collectives are 32 bits: past this, a request starts them over. One request of any length fits behind it.
const LAST_EPOCH: u32 = 1 << 31;

/// A model on its GPUs.
pub struct Engine {
    config: Config,
    layout: Layout,
    plan: MemoryPlan,
    options: Options,
    ranks: Vec<Rank>,
    prefill: Arc<Graph>,
    decode: Arc<Graph>,
    /// What the step in device memory is, as the host last wrote it or the graph advanced it.
    step: Step,
    runs: Runs,
    /// A kernel has reported a failure: error words and mailboxes have to be cleared before the next request.
    failed: bool,
    timings: Timings,
    /// Dispatches so far, if they are timed.
    spans: Vec<Span>,
}

impl Engine {
    /// Plans and allocates memory, loads code and weights, and builds the graphs.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn start(
        platform: &Platform,
        checkpoint: &Checkpoint,
        options: Options,
        progress: &dyn Progress,
    ) -> Result<Self, EngineError> {
        Self::start_with(platform, checkpoint, options, progress, &KernelSet::default())
    }

    /// [`Self::start`] with other code objects than the committed ones.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn start_with(
        platform: &Platform,
        checkpoint: &Checkpoint,
        options: Options,
        progress: &dyn Progress,
        kernels: &KernelSet<'_>,
    ) -> Result<Self, EngineError> {
        let engine = Self::without_weights(platform, checkpoint.config(), options, kernels)?;
        let arenas: Vec<&Buffer> = engine.ranks.iter().map(|rank| &rank.weights).collect();
        let gpus: Vec<Arc<Gpu>> = engine.ranks.iter().map(|rank| Arc::clone(&rank.gpu)).collect();
        loader::load(checkpoint, &engine.layout, &gpus, &arenas, &loader::Options::default(), progress)?;
        Ok(engine)
    }

    /// An engine whose weights are whatever its memory held: for measurements that do not execute, or fill them in
    /// ([`Self::ranks_mut`]).
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn without_weights(
        platform: &Platform,
        config: &Config,
        options: Options,
        kernels: &KernelSet<'_>,
    ) -> Result<Self, EngineError> {
        let gpus = open_gpus(platform, options.devices)?;
        Self::on(platform, &gpus, config, options, kernels)
    }

    /// [`Self::without_weights`] on GPUs that are open already, as many as `options.devices`.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn on(
        platform: &Platform,
        gpus: &[Arc<Gpu>],
        config: &Config,
        options: Options,
        kernels: &KernelSet<'_>,
    ) -> Result<Self, EngineError> {
        let config = config.clone();
        let layout = Layout::new(&config, options.ranks())?;
        let sizes = Sizes {
            ranks: options.ranks(),
            chunk: options.chunk,
            max_context: options.max_context,
            all_logits: options.all_logits,
        };
        let plan = MemoryPlan::new(&config, &layout, sizes);
        let ranks = Rank::open_all(gpus, &plan, &layout, options.patience, kernels)?;
        null::stand_in(platform, &ranks);
        let start = Instant::now();
        let logits = if options.all_logits { Logits::All } else { Logits::Last };
        let build = |tokens, logits| build(&config, &layout, &plan, &ranks, |b| b.forward(logits), tokens, &options);
        let (prefill, decode) = (Arc::new(build(options.chunk, logits)?), Arc::new(build(1, Logits::Last)?));
        let mut engine = Self {
            step: Step { epoch: 1, ..Step::default() },
            timings: Timings { graph_build: start.elapsed(), ..Timings::default() },
            config,
            layout,
            plan,
            options,
            ranks,
            prefill,
            decode,
            runs: Runs::default(),
            failed: false,
            spans: Vec::new(),
        };
        engine.zero_exchange()?;
        Ok(engine)
    }

    /// The model.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where each weight is.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The memory of each GPU.
    #[must_use]
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// What has been measured so far.
    #[must_use]
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// When dispatches of rank 0 ran since the last call, if they are timed.
    pub fn take_spans(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// The graph of one token.
    #[must_use]
    pub fn decode_graph(&self) -> &Graph {
        &self.decode
    }

    /// The graph of a prefill chunk.
    #[must_use]
    pub fn prefill_graph(&self) -> &Graph {
        &self.prefill
    }

    /// Builds another graph over the engine's memory, for runs of at most `tokens` tokens.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn build(&self, tokens: u32, launches: impl Fn(Builder<'_>) -> Launches) -> Result<Graph, EngineError> {
        build(&self.config, &self.layout, &self.plan, &self.ranks, launches, tokens, &self.options)
    }

    /// The launches of rank 0 for a run of at most `tokens` tokens.
    #[must_use]
    pub fn launches(&self, tokens: u32) -> Launches {
        let memory = &self.ranks[0].memory;
        let builder = Builder::new(&self.config, &self.layout, &self.plan, memory, tokens);
        builder.with(self.options.collectives).forward(Logits::Last)
    }

    /// Dwords of a resident indirect buffer of launches of rank 0.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn ib_dwords(&self, launches: &[KernelLaunch]) -> Result<usize, EngineError> {
        let Rank { programs, gpu, .. } = &self.ranks[0];
        Ok(graph::ib_dwords(programs, gpu.node().xcc_count, launches)?)
    }

    /// Addresses of the mailbox of rank 0.
    #[must_use]
    pub fn exchange(&self) -> Range<u64> {
        let exchange = &self.ranks[0].exchange;
        exchange.va().get()..exchange.va().get() + exchange.len().get()
    }

    /// The ranks.
    #[must_use]
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }

    /// The ranks.
    pub fn ranks_mut(&mut self) -> &mut [Rank] {
        &mut self.ranks
    }

    /// Forgets all context: zeroes the KDA states; positions start over.
    ///
    /// # Errors
    /// A GPU does not do it.
    pub fn reset(&mut self) -> Result<(), EngineError> {
        if self.failed || self.step.epoch > LAST_EPOCH {
            self.abandon(&Arc::clone(&self.decode))?;
            self.zero_exchange()?;
            self.failed = false;
        }
        // A model without KDA has no state.
        let bytes = if self.plan.state.parts().is_empty() { Bytes::new(0) } else { self.plan.state.bytes() };
        for rank in &mut self.ranks {
            let at = rank.memory.state;
            rank.transfers.zero(at, bytes)?;
        }
        self.step.position = 0;
        Ok(())
    }

    /// Zeroes mailboxes and error words, and starts epochs over.
    fn zero_exchange(&mut self) -> Result<(), EngineError> {
        let bytes = self.plan.exchange.bytes();
        for rank in &mut self.ranks {
            let (at, error) = (rank.exchange.va(), rank.address(rank.memory.error()));
            rank.transfers.zero(at, bytes)?;
            rank.transfers.write(error, &[0; size_of::<ErrorWord>()])?;
        }
        self.step.epoch = 1;
        Ok(())
    }

    /// Writes the tokens of the next run and its step to every GPU. The GPUs must be idle.
    fn write_run(&mut self, tokens: &[u32]) -> Result<(), EngineError> {
        self.step.count = tokens.len() as u32;
        for rank in &mut self.ranks {
            let (step, ids) = (rank.address(rank.memory.step()), rank.address(rank.memory.ids()));
            rank.transfers.write(ids, bytemuck::cast_slice(tokens))?;
            rank.transfers.write(step, bytemuck::bytes_of(&self.step))?;
        }
        Ok(())
    }
}

fn build(
    config: &Config,
    layout: &Layout,
    plan: &MemoryPlan,
    ranks: &[Rank],
    launches: impl Fn(Builder<'_>) -> Launches,
    tokens: u32,
    options: &Options,
) -> Result<Graph, EngineError> {
    let list =
        |rank: &Rank| launches(Builder::new(config, layout, plan, &rank.memory, tokens).with(options.collectives));
    let lists: Vec<Launches> = ranks.iter().map(list).collect();
    graph_of(ranks, &lists, options)
}

/// Builds the graph of `lists`, one a rank.
fn graph_of(ranks: &[Rank], lists: &[Launches], options: &Options) -> Result<Graph, EngineError> {
    let ranks: Vec<GraphRank<'_>> = ranks
        .iter()
        .map(|rank| GraphRank {
            gpu: &rank.gpu,
            programs: &rank.programs,
            scratch: rank.scratch.as_ref().map(|(layout, memory)| (layout, memory.va())),
            timeline: &rank.timeline,
            timed: options.timed,
        })
        .collect();
    Ok(Graph::build(&ranks, lists, options.form)?)
}

/// Opens the first `count` GPUs of the machine.
///
/// # Errors
/// There are fewer, or one cannot be opened.
pub(crate) fn open_gpus(platform: &Platform, count: usize) -> Result<Vec<Arc<Gpu>>, EngineError> {
    let topology = platform.process.topology()?;
    if topology.gpus.len() < count {
        let skipped = topology.skipped.iter().map(|(node, reason)| format!("node {node}: {reason}")).collect();
        return Err(EngineError::TooFewGpus { wanted: count, found: topology.gpus.len(), skipped });
    }
    topology.gpus.into_iter().take(count).map(|node| Ok(Gpu::open(&platform.process, node)?)).collect()
}

/// The driver's form of a kernel argument's address.
fn address(va: GpuVa) -> driver::address::GpuVa {
    driver::address::GpuVa::new(va.0)
}
