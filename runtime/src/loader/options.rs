//! How to load.

use driver::address::Bytes;

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
    /// Reads in flight for each disk.
    pub depth: usize,
    /// Bytes of the staging buffer. Reads in flight and bytes that SDMA has not copied yet share it.
    pub staging: Bytes,
    /// Load the first layers only.
    pub limit_layers: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            reader: ReaderChoice::Best,
            block: Bytes::new(4 << 20),
            depth: 2,
            staging: Bytes::new(64 << 20),
            limit_layers: None,
        }
    }
}
