//! Why a load failed.

use std::io;
use std::path::PathBuf;

use driver::packets::EncodeError;
use driver::signal::{self, WaitError};
use driver::{event, memory, queue};

use super::reader::RingError;
use crate::failure::Failure;

/// Why a load failed. Nothing writes to the arenas any more when one of these is returned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The layout, the GPUs and the arenas do not belong together.
    #[error("cannot load {ranks} ranks into {gpus} GPUs with {arenas} arenas")]
    CountArenas {
        /// Ranks of the layout.
        ranks: usize,
        /// GPUs given.
        gpus: usize,
        /// Arenas given.
        arenas: usize,
    },
    /// An arena is too small for the layout.
    #[error("the weight arena of rank {rank} has {bytes} bytes, the layout needs {needed}")]
    FitArena {
        /// Which rank.
        rank: usize,
        /// Its length.
        bytes: u64,
        /// Bytes needed.
        needed: u64,
    },
    /// An option makes no sense.
    #[error("cannot load with {what} of {value}: {limit}")]
    Option {
        /// Which option.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What it may be.
        limit: &'static str,
    },
    /// A shard could not be opened.
    #[error("cannot open shard {}: {source}", path.display())]
    OpenShard {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A shard is not the file any more whose header was checked.
    #[error("shard {} changed while it was loaded: {what}; stop what writes to it and load again", path.display())]
    ShardChanged {
        /// The file.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// A file could not be read.
    #[error("cannot read {bytes} bytes at {offset} of {}: {source}; {}", path.display(), read_advice(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// How much.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// A file ends before its header says.
    #[error("{} ends at {offset}, {missing} bytes before the end of its tensors; it was cut while it was loaded", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where it ends.
        offset: u64,
        /// Bytes that are missing of the read.
        missing: u64,
    },
    /// What lies on a GPU is not what the file says.
    #[error(
        "{tensor} on rank {rank} differs from {}: byte {offset} is {expected:#04x}, byte {arena:#x} of the arena \
         {found:#04x}",
        path.display()
    )]
    Verify {
        /// The tensor.
        tensor: String,
        /// Which rank's arena.
        rank: usize,
        /// The file.
        path: PathBuf,
        /// Which byte of the file.
        offset: u64,
        /// Which byte of the arena.
        arena: u64,
        /// The file's byte.
        expected: u8,
        /// The arena's.
        found: u8,
    },
    /// The manifest of checksums cannot be read or written.
    #[error("checksums in {}: {source}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        source: io::Error,
    },
    /// A tensor is not what the manifest says.
    #[error("{tensor} in {} has checksum {found}, the manifest says {expected}; download this shard again", path.display())]
    Checksum {
        /// The tensor.
        tensor: String,
        /// The file.
        path: PathBuf,
        /// Its checksum.
        found: String,
        /// The manifest's.
        expected: String,
    },
    /// The manifest lists a tensor that the checkpoint has not.
    #[error("{} lists {tensor}, which this checkpoint has not: is it the manifest of another?", path.display())]
    ChecksumOfNothing {
        /// The tensor.
        tensor: String,
        /// The manifest.
        path: PathBuf,
    },
    /// No io_uring, though it was asked for.
    #[error("cannot set up io_uring: {0}")]
    SetUpRing(#[from] RingError),
    /// The ring broke down, or a thread that reads.
    #[error("waiting for reads: {0}")]
    WaitForReads(io::Error),
    /// No memory to read into.
    #[error("cannot allocate {bytes} bytes of staging memory: {source}")]
    AllocateStaging {
        /// How much.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// GPU memory.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// A copy queue.
    #[error(transparent)]
    Queue(#[from] queue::Error),
    /// A packet cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A signal.
    #[error(transparent)]
    Signal(#[from] signal::Error),
    /// Copies did not end, or a GPU faulted.
    #[error("copying weights: {0}")]
    WaitForCopies(#[from] WaitError),
    /// A GPU faulted, or the kernel cannot say.
    #[error("copying weights: {0}")]
    GpuEvent(#[from] event::Error),
    /// The one who waits does not want it any more.
    #[error("interrupted")]
    Interrupted,
}

/// What to do about a failed read.
fn read_advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EIO) => "the disk cannot read it: see dmesg, and download this shard again",
        Some(libc::EACCES | libc::EPERM) => "the file may not be read by this user",
        Some(libc::ENOMEM | libc::EAGAIN) => "the kernel has no memory for the read: load with a smaller --depth",
        Some(libc::ESTALE | libc::ENOTCONN | libc::ETIMEDOUT) => "the network file system lost the file",
        _ => "see dmesg",
    }
}

/// Whether a manifest is to blame, not the disk it is on.
fn is_refused(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, NotADirectory, NotFound};
    matches!(kind, InvalidData | InvalidInput | NotADirectory | NotFound)
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Interrupted => Self::Interrupted,
            LoadError::Option { .. } => Self::input(error),
            LoadError::Manifest { ref source, .. } if is_refused(source.kind()) => Self::input(error),
            LoadError::WaitForCopies(_) | LoadError::GpuEvent(_) => Self::gpu(error),
            _ => Self::run(error),
        }
    }
}
