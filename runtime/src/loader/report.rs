//! What a load has done.

use std::time::Duration;

use super::checksum::Manifest;
use super::reader::ReaderKind;
use super::verify::Verified;

/// Where the time of a load went, as its own thread saw it. What is missing to the whole is work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Planning and setting up: files, staging, queues.
    pub plan: Duration,
    /// Waiting for the disks.
    pub read_wait: Duration,
    /// Waiting for SDMA with nothing else to do.
    pub sdma_wait: Duration,
}

/// What a load has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadReport {
    /// How the files were read.
    pub reader: ReaderKind,
    /// Files, and how many of them were read through the page cache because they refuse O_DIRECT.
    pub files: usize,
    /// See `files`.
    pub buffered_files: usize,
    /// Disks that were read in parallel.
    pub disks: usize,
    /// Bytes the kernel returned.
    pub bytes_read: u64,
    /// Bytes of weights among them. The others are what alignment, and resubmitted reads, made the kernel return.
    pub weight_bytes: u64,
    /// Bytes of weights that were copied to each rank.
    pub bytes_per_rank: Vec<u64>,
    /// Reads, resubmitted ones included.
    pub reads: u64,
    /// Reads that were resubmitted: interrupted, or shorter than asked for.
    pub resubmitted: u64,
    /// From the call to the last byte's arrival.
    pub elapsed: Duration,
    /// Where it went.
    pub stages: StageTimes,
    /// Processor time of the loader's own threads.
    pub cpu: Duration,
    /// Bytes of one read and reads in flight a disk, as used.
    pub block: u64,
    /// See `block`.
    pub depth: usize,
    /// What was read back and compared, if that was asked for.
    pub verified: Option<Verified>,
    /// What became of the manifest of checksums, if there shall be one.
    pub manifest: Option<Manifest>,
}

impl LoadReport {
    /// Rate of reading in bytes a second, start to end.
    #[must_use]
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes_read as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}
