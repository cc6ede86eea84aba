//! The engine: a model resident on its GPUs, ready to run tokens.

mod block;
mod error;
mod generate;
mod rank;
mod timings;
mod transfer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Gpu;
use driver::address::Bytes;
use driver::memory::Buffer;
use driver::packets::Compare;
use driver::queue::Report;
use driver::signal::Patience;
use kernels::{ErrorWord, GpuVa, RingEntry, Step};
use model::checkpoint::Checkpoint;
use model::config::Config;
use model::layout::Layout;

use crate::forward::{Builder, Launches, Logits};
use crate::graph::{Form, Graph, GraphRank, KernelSet};
use crate::loader::{self, Progress};
use crate::plan::{MemoryPlan, RING_ENTRIES, Sizes};
use crate::platform::Platform;

pub use block::Block;
pub use error::EngineError;
pub use generate::{Finish, Generation, Sampling};
pub use rank::Rank;
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
}

impl Default for Options {
    /// Eight GPUs, 4,096 tokens, chunks of 128, logits of the last token, two minutes.
    fn default() -> Self {
        Self { devices: 8, max_context: 4096, chunk: 128, all_logits: false, patience: Duration::from_secs(120), form: Form::Aql }
    }
}

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
    /// Runs submitted since the start: what the timeline signals have been asked to count.
    runs: u64,
    timings: Timings,
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
        let config = checkpoint.config().clone();
        let layout = Layout::new(&config, options.devices)?;
        let sizes = Sizes {
            ranks: options.devices,
            chunk: options.chunk,
            max_context: options.max_context,
            all_logits: options.all_logits,
        };
        let plan = MemoryPlan::new(&config, &layout, sizes);
        let gpus = open_gpus(platform, options.devices)?;
        let ranks = Rank::open_all(&gpus, &plan, &layout, options.patience, kernels)?;
        let arenas: Vec<&Buffer> = ranks.iter().map(|rank| &rank.weights).collect();
        loader::load(checkpoint, &layout, &gpus, &arenas, &loader::Options::default(), progress)?;
        let start = Instant::now();
        let logits = if options.all_logits { Logits::All } else { Logits::Last };
        let build =
            |tokens, logits| build(&config, &layout, &plan, &ranks, |b| b.forward(logits), tokens, options.form);
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
            runs: 0,
        };
        engine.zero_exchange()?;
        Ok(engine)
    }

    /// The model.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
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
        build(&self.config, &self.layout, &self.plan, &self.ranks, launches, tokens, self.options.form)
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
        let bytes = self.plan.state.bytes();
        for rank in &mut self.ranks {
            let at = rank.memory.state;
            rank.transfers.zero(at, Bytes::new(bytes.get().next_multiple_of(4)))?;
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

    /// Runs `graph` on what the step in device memory says, waits for it, and gives the token it chose.
    fn run(&mut self, graph: &Graph, has_token: bool) -> Result<u32, EngineError> {
        let submit = Instant::now();
        graph.submit(self.ranks.iter_mut().map(|rank| &mut rank.queue))?;
        self.runs += 1;
        let submitted = submit.elapsed();
        self.wait_rank(graph, 0)?;
        let read = Instant::now();
        let entry = self.ring_entry(0)?;
        let failed = entry.error != 0 || (has_token && entry.token == RingEntry::NO_TOKEN);
        if failed {
            return Err(self.failure(graph, entry));
        }
        self.step.position += self.step.count;
        self.step.count = 1;
        self.step.epoch += graph.collectives().len() as u32;
        self.step.sequence += 1;
        self.timings.host_per_run(submitted + read.elapsed());
        Ok(entry.token)
    }

    /// Waits until rank `rank` has finished the last run.
    fn wait_rank(&self, graph: &Graph, rank: usize) -> Result<(), EngineError> {
        let patience = Patience { limit: self.options.patience, ..Patience::default() };
        let queues: Vec<&dyn Report> = self.ranks.iter().map(|rank| &rank.queue as &dyn Report).collect();
        let done = rank::TIMELINE_START - self.runs;
        let waited = self.ranks[rank].timeline.wait(Compare::LessOrEqual, done, patience, &queues);
        waited.map_err(|error| EngineError::from_wait(error, graph))
    }

    /// Waits until every rank has finished: before the host touches memory that kernels use.
    fn wait_all(&self, graph: &Graph) -> Result<(), EngineError> {
        (0..self.ranks.len()).try_for_each(|rank| self.wait_rank(graph, rank))
    }

    fn ring_entry(&self, rank: usize) -> Result<RingEntry, EngineError> {
        let at = u64::from(self.step.sequence & (RING_ENTRIES - 1)) * size_of::<RingEntry>() as u64;
        let mut entry = RingEntry::default();
        self.ranks[rank].ring.host()?.read(at, bytemuck::bytes_of_mut(&mut entry))?;
        if entry.sequence != self.step.sequence + 1 {
            return Err(EngineError::Ring { rank, expected: self.step.sequence + 1, found: entry.sequence });
        }
        Ok(entry)
    }

    /// The error that a run's ring entry tells of.
    fn failure(&self, graph: &Graph, entry: RingEntry) -> EngineError {
        match ErrorWord(entry.error).failure() {
            Some(failure) => EngineError::kernel(failure, graph, &self.ranks),
            None => EngineError::NoToken,
        }
    }
}

fn build(
    config: &Config,
    layout: &Layout,
    plan: &MemoryPlan,
    ranks: &[Rank],
    launches: impl Fn(Builder<'_>) -> Launches,
    tokens: u32,
    form: Form,
) -> Result<Graph, EngineError> {
    let lists: Vec<Launches> =
        ranks.iter().map(|rank| launches(Builder::new(config, layout, plan, &rank.memory, tokens))).collect();
    let ranks: Vec<GraphRank<'_>> = ranks
        .iter()
        .map(|rank| GraphRank {
            gpu: &rank.gpu,
            programs: &rank.programs,
            scratch: rank.scratch.as_ref().map(|(layout, memory)| (layout, memory.va())),
            timeline: &rank.timeline,
        })
        .collect();
    Ok(Graph::build(&ranks, &lists, form)?)
}

/// The first `count` GPUs of the machine.
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
