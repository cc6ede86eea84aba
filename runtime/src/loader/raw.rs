//! Reading and nothing else: what the disks give, to compare the loader with and to estimate loads.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use driver::address::Bytes;
use model::{Checkpoint, Layout};

use super::file::ShardFile;
use super::plan::{Block, Cursor, ModelWeights, PlannedFile, Weights};
use super::reader::{Completion, Read, Reader, Uring, pread_now};
use super::staging::Staging;
use super::{LoadError, Progress, Silent};

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSetting {
    /// Which calls.
    pub method: RawMethod,
    /// Bytes of a read.
    pub block: u64,
}

/// Which calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawMethod {
    /// One thread that calls pread.
    Pread,
    /// io_uring with registered files and buffers, and so many reads in flight.
    IoUring {
        /// How many.
        depth: usize,
    },
}

impl fmt::Display for RawSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.method {
            RawMethod::Pread => write!(f, "pread {} KiB", self.block >> 10),
            RawMethod::IoUring { depth } => write!(f, "io_uring {} KiB x {depth}", self.block >> 10),
        }
    }
}

/// What reading gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawPass {
    /// Bytes the kernel returned.
    pub bytes: u64,
    /// From the first read to the end of the last.
    pub elapsed: Duration,
}

impl RawPass {
    /// Bytes a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Reads the weights of a checkpoint, at most about `limit` bytes of them, past the page cache into one buffer of huge
/// pages, and forgets them.
///
/// # Errors
/// A file cannot be read this way.
pub fn read_raw(
    checkpoint: &Checkpoint,
    layout: &Layout,
    setting: RawSetting,
    limit: u64,
) -> Result<RawPass, LoadError> {
    let weights = ModelWeights::new(checkpoint, layout, None);
    let opened = weights.files().iter().map(ShardFile::open);
    let files = opened.collect::<Result<Vec<_>, _>>()?;
    read_files(weights.files(), &files, (0..files.len()).collect(), setting, limit)
}

/// The same for some files, in the given order.
pub(crate) fn read_files(
    plan: &[PlannedFile],
    files: &[ShardFile],
    order: Vec<usize>,
    setting: RawSetting,
    limit: u64,
) -> Result<RawPass, LoadError> {
    let depth = match setting.method {
        RawMethod::Pread => 1,
        RawMethod::IoUring { depth } => depth,
    };
    let staging = Staging::host(Bytes::new(setting.block * depth as u64))?;
    // Every page is there before the clock runs.
    staging.touch();
    let mut cursor = Cursor::new(order);
    let mut blocks = std::iter::from_fn(|| cursor.next(plan, setting.block, |file| files[file].alignment()));
    let progress: &dyn Progress = &Silent;
    match setting.method {
        RawMethod::Pread => pread(&mut blocks, files, &staging, limit),
        RawMethod::IoUring { .. } => {
            let mut ring = Uring::new(files, &staging, depth, progress)?;
            rounds(&mut ring, &mut blocks, files, &staging, setting.block, limit)
        }
    }
}

fn pread(
    blocks: &mut dyn Iterator<Item = Block>,
    files: &[ShardFile],
    staging: &Staging,
    limit: u64,
) -> Result<RawPass, LoadError> {
    let start = Instant::now();
    let mut bytes = 0;
    while bytes < limit
        && let Some(block) = blocks.next()
    {
        let read = to_read(&block, files, staging, 0, 0);
        // SAFETY: nobody else uses the staging memory, and a block fits it.
        let result = unsafe { pread_now(&read) };
        bytes += finish(&block, files, result)?;
    }
    Ok(RawPass { bytes, elapsed: start.elapsed() })
}

fn rounds(
    reader: &mut dyn Reader,
    blocks: &mut dyn Iterator<Item = Block>,
    files: &[ShardFile],
    staging: &Staging,
    block_bytes: u64,
    limit: u64,
) -> Result<RawPass, LoadError> {
    let start = Instant::now();
    let mut slots: Vec<Option<Block>> = vec![None; staging.len() / block_bytes as usize];
    let mut free: Vec<usize> = (0..slots.len()).collect();
    let (mut bytes, mut asked) = (0, 0);
    let mut failed = None;
    let mut done: Vec<Completion> = Vec::new();
    loop {
        while asked < limit
            && failed.is_none()
            && let Some(slot) = free.pop()
        {
            let Some(block) = blocks.next() else {
                free.push(slot);
                break;
            };
            asked += block.read.end - block.read.start;
            let read = to_read(&block, files, staging, slot as u64, slot * block_bytes as usize);
            // SAFETY: a free slot is nobody else's, and the loop ends only when all reads have.
            unsafe { reader.submit(read) }.map_err(LoadError::WaitForReads)?;
            slots[slot] = Some(block);
        }
        if free.len() == slots.len() {
            return failed.map_or(Ok(RawPass { bytes, elapsed: start.elapsed() }), Err);
        }
        reader.wait(Duration::from_secs(1), &mut done).map_err(LoadError::WaitForReads)?;
        for Completion { token, result } in done.drain(..) {
            let slot = token as usize;
            if let Some(block) = slots[slot].take() {
                match finish(&block, files, result) {
                    Ok(read) => bytes += read,
                    Err(error) => failed = Some(error),
                }
                free.push(slot);
            }
        }
    }
}

fn to_read(block: &Block, files: &[ShardFile], staging: &Staging, token: u64, at: usize) -> Read {
    Read {
        token,
        file: block.file as u32,
        fd: files[block.file].fd(),
        offset: block.read.start,
        // SAFETY: the caller's slots lie in the staging memory.
        to: unsafe { staging.pointer().add(at) },
        bytes: (block.read.end - block.read.start) as u32,
    }
}

/// A short read would make a disk look faster than it is.
fn finish(block: &Block, files: &[ShardFile], result: io::Result<u32>) -> Result<u64, LoadError> {
    let fail = |source| LoadError::Read {
        path: files[block.file].path().to_owned(),
        offset: block.read.start,
        bytes: block.read.end - block.read.start,
        source,
    };
    let bytes = u64::from(result.map_err(fail)?);
    if block.read.start + bytes < block.window.end {
        return Err(fail(io::Error::other("the kernel returned less")));
    }
    Ok(bytes)
}
