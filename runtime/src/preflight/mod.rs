//! What a load needs, checked before it is started: the model's files, the memory plan, the GPUs, the host, the disks.
//!
//! Every check gives a line: what was looked at, what was found, and what to do if that will not do. Checking changes
//! nothing: GPUs are opened and closed again, disks are read for a moment.

mod gpus;
mod host;
mod model_files;
mod mounts;

use std::path::PathBuf;

use driver::address::Bytes;
use indicatif::BinaryBytes;

use crate::failure::Failure;
use crate::plan::Sizes;
use crate::platform::Platform;
pub use model_files::{ModelFacts, PlanRow};
pub use mounts::MountFacts;

/// VRAM of an MI350X as KFD lists it: 288 GiB of HBM3E, less what firmware keeps.
pub const MI350X_VRAM: Bytes = Bytes::new(309_220_868_096);

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// All is well.
    Ok,
    /// A load would start, but not go as well as it could.
    Warning,
    /// A load would not start.
    Failure,
}

impl Status {
    /// Name for people and machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

/// What a check is about. A model that is refused is the user's input; everything else is the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The model's files.
    Model,
    /// Memory of the GPUs.
    Memory,
    /// The GPUs and their driver.
    Gpu,
    /// The host.
    Host,
    /// A disk that shards are on.
    Disk,
}

impl Topic {
    /// Name for people and machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Memory => "memory",
            Self::Gpu => "gpu",
            Self::Host => "host",
            Self::Disk => "disk",
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What it is about.
    pub topic: Topic,
    /// How it went.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do.
    pub fix: Option<String>,
}

/// What to check.
#[derive(Clone, Debug)]
pub struct Request {
    /// Folder of the model.
    pub folder: PathBuf,
    /// Sizes that the memory plan is made for.
    pub sizes: Sizes,
    /// Look at the model's files only: no GPU, no host, no disk speed.
    pub metadata_only: bool,
}

/// All that was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Line by line.
    pub checks: Vec<Check>,
    /// What the model is, if its files are right.
    pub model: Option<ModelFacts>,
    /// Memory of one GPU, if the model can be split as asked for. The rows add up to [`ModelFacts::vram_bytes`].
    pub plan: Vec<PlanRow>,
    /// Where the shards are.
    pub mounts: Vec<MountFacts>,
    /// How long a load would take, if the disks were read.
    pub load_seconds: Option<f64>,
}

impl Report {
    /// The worst of all checks.
    #[must_use]
    pub fn status(&self) -> Status {
        self.checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok)
    }

    /// Whether the model's own files, or the sizes asked for, are to blame for a failure.
    #[must_use]
    pub fn refuses_input(&self) -> bool {
        let input = |check: &Check| matches!(check.topic, Topic::Model | Topic::Memory);
        self.checks.iter().any(|check| check.status == Status::Failure && input(check))
    }

    fn ok(&mut self, topic: Topic, found: impl Into<String>) {
        self.checks.push(Check { topic, status: Status::Ok, found: found.into(), fix: None });
    }

    fn warn(&mut self, topic: Topic, found: impl Into<String>, fix: impl Into<String>) {
        self.checks.push(Check { topic, status: Status::Warning, found: found.into(), fix: Some(fix.into()) });
    }

    /// A failure whose text says what to do, or for which there is nothing to do.
    fn fail(&mut self, topic: Topic, found: impl Into<String>) {
        self.checks.push(Check { topic, status: Status::Failure, found: found.into(), fix: None });
    }

    fn fail_with(&mut self, topic: Topic, found: impl Into<String>, fix: impl Into<String>) {
        self.checks.push(Check { topic, status: Status::Failure, found: found.into(), fix: Some(fix.into()) });
    }
}

/// A size as people read it.
fn size(bytes: Bytes) -> String {
    BinaryBytes(bytes.get()).to_string()
}

/// Checks everything. `platform` is the machine, or why there is none; it is not asked for if only metadata matters.
#[must_use]
pub fn run(request: &Request, platform: Option<&Result<Platform, Failure>>) -> Report {
    let mut report = Report::default();
    let machine = platform.and_then(|platform| platform.as_ref().ok());
    let vram = machine.and_then(|machine| gpus::vram(machine, request.sizes.ranks));
    let checkpoint = model_files::check(&mut report, request, vram.unwrap_or(MI350X_VRAM));
    if request.metadata_only {
        return report;
    }
    match platform {
        Some(Ok(machine)) => gpus::check(&mut report, machine, request.sizes.ranks),
        Some(Err(failure)) => report.fail(Topic::Gpu, failure.to_string()),
        None => {}
    }
    host::check(&mut report, checkpoint.as_ref());
    if let Some(checkpoint) = &checkpoint {
        mounts::check(&mut report, checkpoint);
    }
    report
}
