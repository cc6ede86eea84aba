//! Looking inside: a trace of one wave, a profile by basic block, and how sure the executed instructions are.
//!
//! [`Inspect`], part of [`Config`](crate::Config), says what to record; [`Mock::inspection`](crate::Mock::inspection) gives
//! what has been recorded so far.

mod banks;
mod block;
mod fidelity;
mod profile;
mod tally;
#[cfg(test)]
mod tests;
mod trace;
mod traffic;

use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

pub use block::Block;
pub use fidelity::{FidelityReport, Judged};
pub use profile::{KernelProfile, Occupancy, Profile};
pub use tally::{Counts, LaunchTally, Requested, Tally};
pub use trace::{Change, Trace, Traced};
pub use traffic::{LdsTraffic, Traffic};

use crate::observe::Observer;

/// What to record while kernels run. Recording slows execution down several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspect {
    /// Each instruction of this wave, of every launch.
    pub trace: Option<WaveName>,
    /// Counts for each basic block of every kernel.
    pub profile: bool,
    /// Executed instructions by how sure their results are.
    pub fidelity: bool,
    /// Counts for each launch of the GPU with this index, in a [`Tally`].
    pub tally: Option<usize>,
}

/// Names a wave of a launch: `WORKGROUP.WAVE` in text, such as `12.0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaveName {
    /// The workgroup's number in the grid, x fastest.
    pub workgroup: u64,
    /// The wave's number in the workgroup.
    pub wave: u32,
}

/// Text that names no wave.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` names no wave; write WORKGROUP.WAVE, two numbers, such as 0.0")]
pub struct NoWaveName(String);

impl FromStr for WaveName {
    type Err = NoWaveName;

    fn from_str(text: &str) -> Result<Self, NoWaveName> {
        let numbers = text
            .split_once('.')
            .and_then(|(workgroup, wave)| Some(Self { workgroup: workgroup.parse().ok()?, wave: wave.parse().ok()? }));
        numbers.ok_or_else(|| NoWaveName(text.into()))
    }
}

/// What has been recorded; `None` for what was not asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Inspection {
    /// Instructions of one wave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Counts by kernel and basic block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Counts by fidelity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<FidelityReport>,
}

/// The recorders of a machine.
#[derive(Default)]
pub(crate) struct Recorders {
    trace: Option<Arc<trace::Recorder>>,
    profile: Option<Arc<profile::Recorder>>,
    fidelity: Option<Arc<fidelity::Recorder>>,
    pub(crate) tally: Option<Arc<Tally>>,
}

impl Recorders {
    /// Recorders of what `wanted` asks for.
    pub(crate) fn new(wanted: &Inspect) -> Self {
        Self {
            trace: wanted.trace.map(|wave| Arc::new(trace::Recorder::new(wave))),
            profile: wanted.profile.then(Arc::default),
            fidelity: wanted.fidelity.then(Arc::default),
            tally: wanted.tally.map(|gpu| Arc::new(Tally::new(gpu))),
        }
    }

    /// The observers to attach to the machine.
    pub(crate) fn observers(&self) -> Vec<Arc<dyn Observer>> {
        let trace = self.trace.clone().map(|recorder| recorder as Arc<dyn Observer>);
        let profile = self.profile.clone().map(|recorder| recorder as Arc<dyn Observer>);
        let fidelity = self.fidelity.clone().map(|recorder| recorder as Arc<dyn Observer>);
        let tally = self.tally.clone().map(|tally| tally as Arc<dyn Observer>);
        [trace, profile, fidelity, tally].into_iter().flatten().collect()
    }

    /// What they have recorded.
    pub(crate) fn inspection(&self) -> Inspection {
        Inspection {
            trace: self.trace.as_ref().map(|recorder| recorder.trace()),
            profile: self.profile.as_ref().map(|recorder| recorder.profile()),
            fidelity: self.fidelity.as_ref().map(|recorder| recorder.report()),
        }
    }
}
