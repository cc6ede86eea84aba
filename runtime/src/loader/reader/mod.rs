//! Ways to read many blocks of files at once.

mod ring_error;
mod threads;
mod uring;

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::time::Duration;

pub use ring_error::RingError;
pub(crate) use threads::{Threads, pread_now};
pub(crate) use uring::Uring;

use super::file::ShardFile;
use super::progress::Progress;
use super::staging::Staging;
use super::{LoadError, ReaderChoice};

/// How files are read, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// io_uring, `READ_FIXED` into registered buffers.
    UringFixed,
    /// io_uring, `READ` into buffers the kernel pins anew for each read.
    Uring,
    /// Threads that call pread.
    Pread,
}

impl ReaderKind {
    /// Name for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UringFixed => "io_uring-fixed",
            Self::Uring => "io_uring",
            Self::Pread => "pread",
        }
    }
}

/// One read, into memory that is the reader's until it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Comes back with the completion.
    pub(crate) token: u64,
    /// Number of the file, and its descriptor.
    pub(crate) file: u32,
    pub(crate) fd: RawFd,
    pub(crate) offset: u64,
    /// Where to, inside the staging memory the reader was made for.
    pub(crate) to: NonNull<u8>,
    pub(crate) bytes: u32,
}

/// What the kernel said to one read.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) token: u64,
    pub(crate) result: io::Result<u32>,
}

/// Reads blocks. It retries nothing and hides nothing: what the kernel answered is what comes back.
///
/// # Safety
/// An implementation writes to `to..to + bytes` of a read it was given until it returns the completion, and to nothing
/// else.
pub(crate) unsafe trait Reader {
    fn kind(&self) -> ReaderKind;

    /// Takes a read on.
    ///
    /// # Safety
    /// Until its completion comes back, the memory of the read stays mapped, and nobody else uses it.
    unsafe fn submit(&mut self, read: Read) -> io::Result<()>;

    /// Makes sure that reads taken on are on their way.
    fn flush(&mut self) -> io::Result<()>;

    /// Processor time of threads of its own, so far.
    fn worker_cpu(&self) -> Duration {
        Duration::ZERO
    }

    /// Appends completions; waits for the first for `limit` at most, or until a signal arrives.
    fn wait(&mut self, limit: Duration, done: &mut Vec<Completion>) -> io::Result<()>;
}

/// The best reader that `choice` allows and that works here. `in_flight` is how many reads it must hold.
pub(crate) fn open<'a>(
    choice: ReaderChoice,
    files: &[ShardFile],
    staging: &'a Staging,
    in_flight: usize,
    progress: &dyn Progress,
) -> Result<Box<dyn Reader + 'a>, LoadError> {
    if choice != ReaderChoice::Pread {
        match Uring::new(files, staging, in_flight, progress) {
            Ok(ring) => return Ok(Box::new(ring)),
            Err(error) if choice == ReaderChoice::IoUring => return Err(error.into()),
            Err(error) => progress.notice(&format!("reading with pread instead of io_uring: {error}")),
        }
    }
    Threads::new(in_flight).map(|threads| Box::new(threads) as Box<dyn Reader>).map_err(LoadError::WaitForReads)
}
