//! One GPU of the engine: its memory, code and queues.

use std::sync::Arc;
use std::time::Duration;

use driver::Gpu;
use driver::address::GpuVa;
use driver::memory::{Access, Allocation, Buffer};
use driver::program::allocate_scratch;
use driver::queue::{AqlQueue, QueueOptions, ScratchLayout};
use driver::signal::{Signal, SignalPool};
use kernels::limits::MAX_RANKS;
use model::layout::Layout;
use model::tensor::{ModelTensor, TensorId};

use super::error::EngineError;
use super::transfer::Transfers;
use crate::forward::RankMemory;
use crate::graph::{KernelSet, Programs};
use crate::plan::MemoryPlan;

/// Timeline signals start here and count down by one a run, so that they need no reset for longer than a GPU lives.
pub(super) const TIMELINE_START: u64 = 1 << 62;

/// One GPU with its part of the model.
///
/// Fields are dropped in order: queues before the memory their packets use.
pub struct Rank {
    /// Runs the graphs.
    pub queue: AqlQueue,
    /// Small copies.
    pub transfers: Transfers,
    /// Counts finished runs down.
    pub timeline: Signal,
    /// The kernels.
    pub programs: Programs,
    /// Where everything is.
    pub memory: RankMemory,
    /// The weight arena.
    pub weights: Buffer,
    /// Mailboxes of collectives.
    pub exchange: Buffer,
    /// The token ring.
    pub ring: Buffer,
    /// Latents, states and activations: held for their addresses in `memory`.
    _sections: [Buffer; 3],
    /// Scratch of kernels that need some.
    pub(super) scratch: Option<(ScratchLayout, Buffer)>,
    /// The GPU.
    pub gpu: Arc<Gpu>,
}

/// Memory of one rank before all ranks know each other's addresses.
struct Sections {
    weights: Buffer,
    cache: Buffer,
    state: Buffer,
    workspace: Buffer,
    exchange: Buffer,
    ring: Buffer,
}

impl Rank {
    /// Allocates every rank's memory, maps what peers reach, and creates queues.
    pub(super) fn open_all(
        gpus: &[Arc<Gpu>],
        plan: &MemoryPlan,
        layout: &Layout,
        patience: Duration,
        kernels: &KernelSet<'_>,
    ) -> Result<Vec<Self>, EngineError> {
        let sections = gpus.iter().map(|gpu| Sections::allocate(gpu, plan)).collect::<Result<Vec<_>, _>>()?;
        let peers: Vec<&Arc<Gpu>> = gpus.iter().collect();
        let embedding =
            layout.region(TensorId::Model(ModelTensor::EmbedTokens)).expect("every model has an embedding").offset;
        let mut embeddings = [kernels::GpuVa::NULL; MAX_RANKS];
        let mut mailboxes = [kernels::GpuVa::NULL; MAX_RANKS];
        for (rank, section) in sections.iter().enumerate() {
            // Peers read embedding rows from the weights, and write to mailboxes.
            section.weights.map_to(&peers)?;
            section.exchange.map_to(&peers)?;
            embeddings[rank] = kernels::GpuVa(section.weights.va().get() + embedding);
            mailboxes[rank] = kernels::GpuVa(section.exchange.va().get());
        }
        for peer in gpus.len()..plan.sizes.ranks {
            // Senders have rooms of `mailbox_words` words of 8 bytes, one after the other: what this rank puts into its
            // own room of a mailbox that starts so much later is where it looks for the peer's.
            mailboxes[peer] = kernels::GpuVa(mailboxes[0].0 + peer as u64 * plan.mailbox_words * 8);
            embeddings[peer] = embeddings[0];
        }
        // A kernel gives up on a peer before the host gives up on the run, so that the error names the peer.
        let timeout = (patience.as_nanos() * 9 / 10 / 10) as u64;
        gpus.iter()
            .zip(sections)
            .enumerate()
            .map(|(rank, (gpu, sections))| {
                let memory = RankMemory {
                    rank: rank as u32,
                    weights: sections.weights.va(),
                    cache: sections.cache.va(),
                    state: sections.state.va(),
                    workspace: sections.workspace.va(),
                    places: plan.places,
                    embeddings,
                    mailboxes,
                    ring: kernels::GpuVa(sections.ring.va().get()),
                    timeout,
                };
                Self::open(gpu, memory, sections, kernels)
            })
            .collect()
    }

    fn open(
        gpu: &Arc<Gpu>,
        memory: RankMemory,
        sections: Sections,
        kernels: &KernelSet<'_>,
    ) -> Result<Self, EngineError> {
        let Sections { weights, cache, state, workspace, exchange, ring } = sections;
        let programs = Programs::load(gpu, kernels)?;
        let mut queue = AqlQueue::create(gpu, QueueOptions::default())?;
        let scratch = allocate_scratch(gpu, programs.most_private_bytes())?;
        if let Some((layout, memory)) = &scratch {
            queue.set_scratch(layout, memory.va())?;
        }
        Ok(Self {
            queue,
            transfers: Transfers::new(gpu)?,
            timeline: SignalPool::new(gpu, 1)?.take_with_event(TIMELINE_START)?,
            programs,
            memory,
            weights,
            exchange,
            ring,
            _sections: [cache, state, workspace],
            scratch,
            gpu: Arc::clone(gpu),
        })
    }

    /// A kernel argument's address in the driver's type.
    #[must_use]
    pub fn address(&self, va: kernels::GpuVa) -> GpuVa {
        super::address(va)
    }
}

impl Sections {
    fn allocate(gpu: &Arc<Gpu>, plan: &MemoryPlan) -> Result<Self, EngineError> {
        let vram = |bytes, label| gpu.allocate(&Allocation::vram(bytes, label));
        Ok(Self {
            weights: vram(plan.weights, "weights")?,
            cache: vram(plan.cache.bytes(), "MLA latents")?,
            state: vram(plan.state.bytes(), "KDA states")?,
            workspace: vram(plan.workspace.bytes(), "workspace")?,
            exchange: gpu.allocate(
                &Allocation::vram(plan.exchange.bytes(), "mailboxes").with(Access::UNCACHED | Access::COHERENT),
            )?,
            ring: gpu.allocate(&Allocation::shared(plan.ring.bytes(), "token ring"))?,
        })
    }
}
