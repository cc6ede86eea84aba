//! Brings a checkpoint's weights to where the layout wants them, as fast as the disks give them.
//!
//! ```text
//! shards --- reader (io_uring, O_DIRECT) ---> staging slots --- SDMA, a queue a GPU ---> weight arenas
//! ```
//!
//! The plan cuts the shards into reads. A few of them are in flight at any time, each into a slot of one pinned huge-page
//! buffer that the block layer and every GPU reach. When a read is complete, the copies its bytes need are queued on the
//! GPUs that own them while the next reads go on; when the last of these copies has arrived, the slot takes another read.
//! Nothing else is kept: host memory does not grow with the checkpoint, and each byte is read once.
//!
//! A load that fails or is cancelled waits for what it has started: nothing writes to the arenas after it has returned.

mod checksum;
mod copy;
mod depth;
mod error;
mod file;
mod memory;
mod options;
mod pipeline;
mod plan;
mod probe;
mod progress;
mod raw;
mod reader;
mod report;
mod staging;
mod stream;
#[cfg(all(test, feature = "mock"))]
mod tests;
mod verify;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Gpu;
use driver::address::Bytes;
use driver::memory::Buffer;
use model::{Checkpoint, Layout};
use nix::sys::resource::{UsageWho, getrusage};

pub use checksum::Manifest;
use checksum::{Checksums, check_manifest};
use copy::{Copier, Discard, SdmaCopier};
pub use error::LoadError;
use file::ShardFile;
pub use memory::{peak_rss_bytes, reset_peak_rss};
pub use options::{Options, ReaderChoice};
use pipeline::{Parts, Pipeline, Stopped};
use plan::{Cursor, ModelWeights, Weights};
pub use probe::{DiskProbe, RingProbe, probe_disk, probe_ring};
pub use progress::{Progress, Silent};
pub use raw::{RawMethod, RawPass, RawSetting, read_raw};
pub use reader::{ReaderKind, RingError};
pub use report::{LoadReport, StageTimes};
use staging::Staging;
use stream::Stream;
pub use verify::Verified;
use verify::verify;

/// Loads the weights of `checkpoint`. `arenas[rank]`, memory of `gpus[rank]` with at least [`Layout::arena_bytes`] bytes,
/// becomes the weight arena of that rank. When this returns, all of them are complete.
///
/// # Errors
/// See [`LoadError`]. The arenas then hold some of the weights.
pub fn load(
    checkpoint: &Checkpoint,
    layout: &Layout,
    gpus: &[Arc<Gpu>],
    arenas: &[&Buffer],
    options: &Options,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Instant::now();
    check_arenas(layout, gpus, arenas)?;
    let weights = ModelWeights::new(checkpoint, layout, options.limit_layers);
    let target = Target::Arenas { gpus, arenas };
    run(&weights, target, options, progress, start)
}

/// Reads and plans what [`load`] would for `layout`, and copies it nowhere: for machines without GPUs.
///
/// # Errors
/// See [`LoadError`].
pub fn read_only(
    checkpoint: &Checkpoint,
    layout: &Layout,
    options: &Options,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Instant::now();
    let weights = ModelWeights::new(checkpoint, layout, options.limit_layers);
    run(&weights, Target::Nowhere { ranks: layout.ranks() }, options, progress, start)
}

/// Where the weights go.
#[derive(Clone, Copy)]
enum Target<'a> {
    Arenas { gpus: &'a [Arc<Gpu>], arenas: &'a [&'a Buffer] },
    Nowhere { ranks: usize },
}

impl Target<'_> {
    fn ranks(&self) -> usize {
        match self {
            Self::Arenas { gpus, .. } => gpus.len(),
            Self::Nowhere { ranks } => *ranks,
        }
    }
}

fn check_arenas(layout: &Layout, gpus: &[Arc<Gpu>], arenas: &[&Buffer]) -> Result<(), LoadError> {
    let ranks = layout.ranks();
    if gpus.len() != ranks || arenas.len() != ranks {
        return Err(LoadError::CountArenas { ranks, gpus: gpus.len(), arenas: arenas.len() });
    }
    let needed = layout.arena_bytes();
    match arenas.iter().map(|arena| arena.len().get()).enumerate().find(|(_, bytes)| *bytes < needed) {
        Some((rank, bytes)) => Err(LoadError::FitArena { rank, bytes, needed }),
        None => Ok(()),
    }
}

fn run(
    weights: &dyn Weights,
    target: Target<'_>,
    options: &Options,
    progress: &dyn Progress,
    start: Instant,
) -> Result<LoadReport, LoadError> {
    let cpu_before = thread_cpu();
    options.checksums.as_deref().map_or(Ok(()), check_manifest)?;
    let opened = weights.files().iter().map(ShardFile::open);
    let mut files = opened.collect::<Result<Vec<_>, _>>()?;
    let streams = streams(weights, &files);
    let (disks, block) = (streams.len(), options.block.get());
    options.check(files.iter().map(ShardFile::alignment).max().unwrap_or(1), disks)?;
    // A small model does not need all of it. No file takes more blocks than its bytes fill, and one at either end.
    let blocks = weights.files().iter().map(|file| file.len / block + 2).sum::<u64>();
    let bytes = Bytes::new(options.staging.get().min(blocks * block));
    let staging = match target {
        Target::Arenas { gpus, .. } => Staging::shared(gpus, bytes)?,
        Target::Nowhere { .. } => Staging::host(bytes)?,
    };
    let depth = options.depth(staging.len() as u64 / block, disks);
    let mut reader = reader::open(options.reader, &files, &staging, depth.most() * disks, progress)?;
    let mut sdma = match target {
        Target::Arenas { gpus, arenas } => Some(SdmaCopier::new(gpus, arenas, staging.va(), progress)?),
        Target::Nowhere { .. } => None,
    };
    let mut checksums = options.checksums.as_ref().map(|_| Checksums::new(weights, disks));
    let plan = start.elapsed();
    progress.begin(weights.bytes());
    let mut discard = Discard;
    let parts = Parts {
        weights,
        files: &mut files,
        streams,
        staging: &staging,
        reader: &mut *reader,
        copier: sdma.as_mut().map_or(&mut discard as &mut dyn Copier, |sdma| sdma),
        progress,
        ranks: target.ranks(),
        block,
        depth,
        checksums: checksums.as_mut(),
    };
    let counts = match Pipeline::new(parts).run() {
        Ok(counts) => counts,
        Err(Stopped { error, reads_in_flight }) => {
            // The queues go first: then no engine reads the staging memory.
            drop(sdma);
            if reads_in_flight > 0 {
                let what = "reads do not end; their memory and files are kept until the process ends";
                tracing::warn!(reads_in_flight, "{what}");
                std::mem::forget(reader);
                std::mem::forget((staging, files));
            }
            return Err(*error);
        }
    };
    let mut report = LoadReport {
        reader: reader.kind(),
        files: files.len(),
        buffered_files: files.iter().filter(|file| !file.is_direct()).count(),
        disks,
        bytes_read: counts.bytes_read,
        weight_bytes: counts.weight_bytes,
        bytes_per_rank: counts.bytes_per_rank,
        reads: counts.reads,
        resubmitted: counts.resubmitted,
        elapsed: start.elapsed(),
        stages: StageTimes { plan, ..counts.stages },
        cpu: thread_cpu().saturating_sub(cpu_before) + reader.worker_cpu(),
        block,
        depth: counts.depth,
        verified: None,
        manifest: None,
    };
    drop(reader);
    if let (Some(checksums), Some(path)) = (&checksums, &options.checksums) {
        report.manifest = Some(checksums.settle(weights, path, options.limit_layers.is_some())?);
    }
    if let (Target::Arenas { gpus, arenas }, true) = (target, options.verify) {
        drop(sdma);
        drop(staging);
        progress.begin(weights.bytes());
        report.verified = Some(verify(weights, &files, gpus, arenas, block, progress)?);
    }
    Ok(report)
}

/// The files of each disk, in their order.
fn streams(weights: &dyn Weights, files: &[ShardFile]) -> Vec<Stream> {
    let mut disks: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (number, file) in files.iter().enumerate().filter(|(number, _)| !weights.files()[*number].extents.is_empty()) {
        disks.entry(file.device()).or_default().push(number);
    }
    disks.into_values().map(|files| Stream::new(Cursor::new(files))).collect()
}

/// Processor time of the calling thread.
fn thread_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else { return Duration::ZERO };
    let microseconds = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    Duration::from_micros(microseconds(usage.user_time()) + microseconds(usage.system_time()))
}
