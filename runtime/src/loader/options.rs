//! How to load.

use std::path::PathBuf;

use driver::address::Bytes;

use super::LoadError;
use super::depth::Depth;

/// Reads and slots are multiples of a page.
const PAGE: u64 = 4096;
/// Longest read: the block layer cuts longer ones into pieces anyway.
const MOST_BLOCK: u64 = 64 << 20;
/// Most reads in flight for a disk.
const MOST_DEPTH: usize = 1024;

/// Which way to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReaderChoice {
    /// The fastest that works here.
    #[default]
    Best,
    /// io_uring, or fail.
    IoUring,
    /// Threads that call pread.
    Pread,
}

/// Choices of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How to read.
    pub reader: ReaderChoice,
    /// Bytes of one read.
    pub block: Bytes,
    /// Reads in flight for each disk; without, the load finds out how many pay.
    pub depth: Option<usize>,
    /// Bytes of the staging buffer. Reads in flight and bytes that SDMA has not copied yet share it.
    pub staging: Bytes,
    /// Load the first layers only.
    pub limit_layers: Option<usize>,
    /// Read everything back from the GPUs, and compare it with the files.
    pub verify: bool,
    /// Write a manifest of checksums here, or compare with the one that is here.
    pub checksums: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            reader: ReaderChoice::Best,
            block: Bytes::new(4 << 20),
            depth: None,
            staging: Bytes::new(64 << 20),
            limit_layers: None,
            verify: false,
            checksums: None,
        }
    }
}

impl Options {
    /// That the numbers go together, for files whose reads must be aligned to `alignment` and that lie on `disks` disks.
    pub(super) fn check(&self, alignment: u64, disks: usize) -> Result<(), LoadError> {
        let block = self.block.get();
        let refuse = |what, value, limit| Err(LoadError::Option { what, value, limit });
        if block == 0 || !block.is_multiple_of(PAGE) || block > MOST_BLOCK {
            return refuse("a block size", block, "it must be a multiple of 4 KiB and at most 64 MiB");
        }
        if !block.is_multiple_of(alignment) {
            return refuse("a block size", block, "the disk demands larger, or otherwise aligned, reads");
        }
        let depth = self.depth.unwrap_or(1);
        if depth == 0 || depth > MOST_DEPTH {
            return refuse("a depth", depth as u64, "it must be 1 to 1024");
        }
        // With a slot more than can be in flight, copies and reads of a full pipeline overlap.
        if self.staging.get() / block <= (depth * disks) as u64 {
            return refuse("a staging buffer", self.staging.get(), "it must hold more blocks than reads are in flight");
        }
        Ok(())
    }

    /// Reads in flight for each of `disks` disks, with so many slots to read into.
    pub(super) fn depth(&self, slots: u64, disks: usize) -> Depth {
        // A slot more than can be in flight, as in `check`.
        let most = slots.saturating_sub(1) as usize / disks.max(1);
        self.depth.map_or_else(|| Depth::found(most), Depth::given)
    }
}
