//! Brings a checkpoint's weights to where the layout wants them, at the speed of the disks.
//!
//! ```text
//! shard files --- reader (io_uring, O_DIRECT) ---> staging slots --- SDMA, one queue a GPU ---> weight arenas
//! ```
//!
//! A [`Plan`] cuts the files into reads. A few of them are in flight at any time, each into a slot of one pinned,
//! huge-page staging buffer that the kernel's block layer and every GPU reach. When a read is complete, the copies that
//! its bytes need are queued on the GPUs that own them while the next reads go on; when the last of these copies is done,
//! the slot takes the next read. Nothing else is kept: host memory does not grow with the checkpoint.
//!
//! Each byte of the files is read once. A loader that is stopped, by an error or by its user, waits for what it has
//! started and leaves nothing half-owned behind.

mod copy;
mod error;
mod file;
mod options;
mod pipeline;
mod plan;
mod progress;
mod reader;
mod report;
mod staging;

use std::sync::Arc;
use std::time::Instant;

use driver::Gpu;
use driver::memory::Buffer;
use model::{Checkpoint, Layout};

use copy::{Copier, Discard, SdmaCopier};
pub use error::LoadError;
use file::ShardFile;
pub use options::{Options, ReaderChoice};
use pipeline::Pipeline;
pub use plan::{ModelPlacement, Placement, Plan};
pub use progress::{Progress, Silent};
pub use reader::{ReaderKind, RingError};
pub use report::{LoadReport, StageTimes};
use staging::Staging;

/// Loads the weights of `checkpoint` into `arenas`: `arenas[rank]`, of at least [`Layout::arena_bytes`] bytes, becomes the
/// weight arena of that rank on `gpus[rank]`. Returns when all of them are there.
///
/// # Errors
/// See [`LoadError`]. The arenas then hold part of the weights, and nothing writes to them any more.
pub fn load(
    checkpoint: &Checkpoint,
    layout: &Layout,
    gpus: &[Arc<Gpu>],
    arenas: &[Buffer],
    options: &Options,
    progress: &dyn Progress,
) -> Result<LoadReport, LoadError> {
    let start = Instant::now();
    let placement = ModelPlacement::new(checkpoint, layout);
    let plan = Plan::of_checkpoint(checkpoint, layout, options.limit_layers);
    check_arenas(layout, gpus, arenas)?;
    run(&plan, &placement, start, options, progress, |_| {
        let staging = Staging::shared(&gpus[0], gpus, options.staging)?;
        Ok((staging, Target::Gpus { gpus, arenas }))
    })
}

/// Reads what [`load`] would, but copies it nowhere: for machines without GPUs, and to measure disks.
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
    let placement = ModelPlacement::new(checkpoint, layout);
    let plan = Plan::of_checkpoint(checkpoint, layout, options.limit_layers);
    run(&plan, &placement, start, options, progress, |_| Ok((Staging::host(options.staging)?, Target::Nowhere)))
}
