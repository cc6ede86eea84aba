use driver::event;
use driver::signal::WaitError;
use driver::{OpenError, memory, queue, signal, topology};
use kernels::error_word::Failure as KernelFailure;
use model::checkpoint::CheckpointError;
use model::layout::LayoutError;
use model::sampling::SamplingError;

use super::rank::Rank;
use super::transfer;
use crate::failure::Failure;
use crate::graph::{self, Graph, ProgramsError};
use crate::loader::LoadError;

/// What went wrong with the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The model can't be split over that many GPUs.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Loading the weights.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The list of GPUs.
    #[error(transparent)]
    Topology(#[from] topology::Error),
    /// There are fewer GPUs than asked for.
    #[error(
        "{wanted} GPUs are wanted, the machine has {found} that can be used{}; ask for fewer with --devices",
        skipped.iter().map(|reason| format!("; {reason}")).collect::<String>()
    )]
    TooFewGpus {
        /// GPUs asked for.
        wanted: usize,
        /// GPUs there are.
        found: usize,
        /// GPUs that can't be used, and why.
        skipped: Vec<String>,
    },
    /// Opening a GPU.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Device memory.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// A queue.
    #[error(transparent)]
    Queue(#[from] queue::Error),
    /// A signal.
    #[error(transparent)]
    Signal(#[from] signal::Error),
    /// The kernels.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// Scratch of the kernels.
    #[error(transparent)]
    Program(#[from] driver::program::Error),
    /// A graph.
    #[error(transparent)]
    Graph(#[from] graph::Error),
    /// A copy to or from a GPU.
    #[error(transparent)]
    Transfer(#[from] transfer::Error),
    /// A GPU faulted.
    #[error(transparent)]
    Fault(event::Error),
    /// A run did not end.
    #[error("a run of {dispatches} dispatches did not end: {error}")]
    Hang {
        /// What was waited for, and what the queues say.
        error: WaitError,
        /// Dispatches of the run on each GPU.
        dispatches: usize,
    },
    /// A kernel reported a failure.
    #[error("{failure}{}", place.as_deref().map(|place| format!("; that is {place}")).unwrap_or_default())]
    Kernel {
        /// What it said.
        failure: KernelFailure,
        /// What the collective or rank that it names is.
        place: Option<String>,
    },
    /// A run ended without a token and without an error.
    #[error("a run chose no token")]
    NoToken,
    /// The ring does not hold the run that has just ended.
    #[error("the token ring of rank {rank} holds run {found}, run {expected} has ended")]
    Ring {
        /// Which rank.
        rank: usize,
        /// The run that should be there.
        expected: u32,
        /// The run that is there.
        found: u32,
    },
    /// The prompt leaves no room for an answer.
    #[error("the prompt has {prompt} tokens; the context is {context} tokens, see --max-context")]
    ContextExceeded {
        /// Tokens of the prompt.
        prompt: usize,
        /// Tokens of the context.
        context: u32,
    },
    /// The prompt is empty.
    #[error("the prompt has no tokens")]
    EmptyPrompt,
    /// Sampling.
    #[error(transparent)]
    Sampling(#[from] SamplingError),
}

impl EngineError {
    /// A wait's end: a GPU's fault is one, anything else a hang.
    pub(super) fn from_wait(error: WaitError, graph: &Graph) -> Self {
        match error {
            WaitError::Event(error) => Self::Fault(error),
            error => Self::Hang { error, dispatches: graph.dispatches() },
        }
    }

    /// A failure that a kernel reported, with the names of what it gives numbers of.
    pub(super) fn kernel(failure: KernelFailure, graph: &Graph, ranks: &[Rank]) -> Self {
        let gpu = |rank: u8| ranks.get(usize::from(rank)).map(|rank| format!("GPU {:#x}", rank.gpu.id()));
        let name = |collective: u16| graph.collectives().get(usize::from(collective)).map(ToString::to_string);
        let place = match failure {
            KernelFailure::PeerTimeout { peer, collective, .. } | KernelFailure::NotFinite { peer, collective, .. } => {
                Some([name(collective), gpu(peer)].into_iter().flatten().collect::<Vec<_>>().join(" on "))
            }
            KernelFailure::NanLogits { peer, .. } => gpu(peer),
            _ => None,
        };
        Self::Kernel { failure, place }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Load(error) => error.into(),
            EngineError::Layout(_)
            | EngineError::Checkpoint(_)
            | EngineError::TooFewGpus { .. }
            | EngineError::ContextExceeded { .. }
            | EngineError::EmptyPrompt
            | EngineError::Sampling(_) => Self::input(error),
            EngineError::Fault(_) | EngineError::Hang { .. } => Self::gpu(error),
            _ => Self::run(error),
        }
    }
}
