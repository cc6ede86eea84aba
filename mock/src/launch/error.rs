use std::io;

use driver::signal::WaitError;
use driver::{memory, program, queue, signal};

/// Why a kernel could not be loaded, launched or waited for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The emulated machine can't be started.
    #[error("cannot start the emulated machine: {0}")]
    Start(io::Error),
    /// It has no GPU.
    #[error("the machine has no usable GPU")]
    NoGpu,
    /// The driver can't open it.
    #[error(transparent)]
    Driver(#[from] driver::kfd::OpenError),
    /// Reading the list of GPUs.
    #[error(transparent)]
    Topology(#[from] driver::topology::Error),
    /// Opening the GPU.
    #[error(transparent)]
    Open(#[from] driver::OpenError),
    /// Device memory.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// The queue.
    #[error(transparent)]
    Queue(#[from] queue::Error),
    /// The completion signal.
    #[error(transparent)]
    Signal(#[from] signal::Error),
    /// The code object or a kernel of it.
    #[error(transparent)]
    Program(#[from] program::Error),
    /// Another number of arguments than the kernel declares.
    #[error("kernel {kernel} declares {declared} arguments, {given} were given")]
    ArgumentCount {
        /// Which kernel.
        kernel: String,
        /// How many it declares, hidden ones not counted.
        declared: usize,
        /// How many were given.
        given: usize,
    },
    /// An argument of another size than the kernel declares.
    #[error("kernel {kernel}, argument {name}: declared with {declared} bytes, given with {given}")]
    ArgumentSize {
        /// Which kernel.
        kernel: String,
        /// Which argument: its name, or its position if it has none.
        name: String,
        /// Bytes that the kernel declares.
        declared: usize,
        /// Bytes given.
        given: usize,
    },
    /// A grid, workgroup or amount of LDS that the kernel or the hardware can't take.
    #[error("kernel {kernel} can't be launched with {problem}")]
    Dimensions {
        /// Which kernel.
        kernel: String,
        /// What is wrong.
        problem: String,
    },
    /// More data than a buffer has room for.
    #[error("buffer `{label}` has {held} bytes, {given} were written to it")]
    BufferTooShort {
        /// Which buffer.
        label: String,
        /// Its length.
        held: usize,
        /// Bytes given.
        given: usize,
    },
    /// The launch did not complete, and what the machine says about it.
    #[error("{error}{}", faults.iter().map(|fault| format!("\n  {fault}")).collect::<String>())]
    Wait {
        /// How waiting ended.
        error: WaitError,
        /// Faults the emulated machine recorded, or what its queues wait for.
        faults: Vec<String>,
    },
}

impl Error {
    /// Whether the launch or its code object was refused before anything ran.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Program(_)
                | Self::ArgumentCount { .. }
                | Self::ArgumentSize { .. }
                | Self::Dimensions { .. }
                | Self::BufferTooShort { .. }
        )
    }
}
