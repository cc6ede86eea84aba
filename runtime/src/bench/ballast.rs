//! Memory that a measurement takes before it begins.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memmap2::{Advice, MmapMut};

use crate::loader::Progress;

/// Bytes that are let go of at once.
const PIECE: u64 = 32 << 20;
/// How far what is let go of runs ahead of what is used. What lies free for long is lost.
const AHEAD: u64 = 128 << 20;

/// Memory that is let go of as fast as a pass uses memory of its own.
///
/// A virtual machine gives free memory back to its host within seconds, and gets it again more slowly than a disk reads
/// (0.2 GB/s were seen, 9 GB/s for what it has not given back). Machines that serve models have their memory. So what a
/// pass will use is taken before. It lets go of it by and by, so that what it touches is as fresh to it as ever, but not
/// fresh to the machine.
#[derive(Debug)]
pub(super) struct Ballast {
    bytes: u64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    pieces: Vec<MmapMut>,
    /// Bytes that were used, and are not let go of yet.
    owed: u64,
}

impl Ballast {
    /// Takes as much as `bytes` bytes need.
    pub(super) fn new(bytes: u64) -> io::Result<Self> {
        let ballast = Self { bytes: bytes + AHEAD, held: Mutex::default() };
        ballast.take()?;
        Ok(ballast)
    }

    /// Does something that says what memory it uses, and takes all of it again afterwards.
    pub(super) fn lend<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        self.release(AHEAD);
        let outcome = work();
        self.take()?;
        Ok(outcome)
    }

    /// Lets go of `bytes` bytes, which somebody uses now.
    pub(super) fn release(&self, bytes: u64) {
        let mut held = self.held();
        held.owed += bytes;
        while held.owed >= PIECE && held.pieces.pop().is_some() {
            held.owed -= PIECE;
        }
    }

    fn take(&self) -> io::Result<()> {
        let mut held = self.held();
        held.owed = 0;
        while (held.pieces.len() as u64) < self.bytes.div_ceil(PIECE) {
            let mut piece = MmapMut::map_anon(PIECE as usize)?;
            piece.advise(Advice::HugePage)?;
            piece.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            held.pieces.push(piece);
        }
        Ok(())
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // The pieces are whole whatever a panicking thread was about to do.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches a load, which uses as much memory as it has put in place.
pub(super) struct Lending<'a> {
    pub(super) ballast: &'a Ballast,
    pub(super) progress: &'a dyn Progress,
}

impl Progress for Lending<'_> {
    fn begin(&self, bytes: u64) {
        self.progress.begin(bytes);
    }

    fn advance(&self, bytes: u64, layer: Option<u16>) {
        self.progress.advance(bytes, layer);
        self.ballast.release(bytes);
    }

    fn notice(&self, text: &str) {
        self.progress.notice(text);
    }

    fn is_cancelled(&self) -> bool {
        self.progress.is_cancelled()
    }
}
