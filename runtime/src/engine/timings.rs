//! What the engine measures about itself.

use std::time::Duration;

/// Times and counts since the engine started.
#[derive(Clone, Debug, Default)]
pub struct Timings {
    /// Building the graphs.
    pub graph_build: Duration,
    /// Runs so far.
    pub runs: u64,
    /// The host's own work in all runs: submitting and reading the token, waiting apart.
    pub host: Duration,
}

impl Timings {
    /// The host's own work of one run, in microseconds.
    #[must_use]
    pub fn host_microseconds_per_run(&self) -> f64 {
        if self.runs == 0 { 0.0 } else { self.host.as_secs_f64() * 1e6 / self.runs as f64 }
    }
}
