//! What a token costs the host: storing packets, ringing doorbells and reading the token, of all GPUs together.

use std::time::Duration;

use model::config::Config;

use crate::engine::{Engine, EngineError, Options};
use crate::graph::{Form, KernelSet};
use crate::platform::Platform;

/// What was measured.
#[derive(Clone, Debug)]
pub struct HostCost {
    /// How runs were submitted.
    pub form: Form,
    /// GPUs.
    pub devices: usize,
    /// Dispatches of one GPU in a token.
    pub dispatches: usize,
    /// Packets that the host stores to one GPU's ring for a token: in the AQL form it arms every dispatch anew.
    pub ring_packets: usize,
    /// Dwords of the resident indirect buffer, and meetings of XCCs in it.
    pub indirect_buffer: Option<(usize, usize)>,
    /// Building the graphs.
    pub build: Duration,
    /// Host time token by token.
    pub tokens: Vec<Duration>,
}

impl HostCost {
    /// The token in the middle, in microseconds.
    #[must_use]
    pub fn microseconds(&self) -> f64 {
        super::load::median_seconds(&self.tokens) * 1e6
    }
}

/// Runs before the clock is looked at: they touch rings and mappings for the first time.
const WARM_UP: usize = 8;

/// Measures `tokens` runs of the decode graph of `config`, without its weights: for machines that execute nothing.
///
/// # Errors
/// See [`EngineError`].
pub fn measure(platform: &Platform, config: &Config, options: Options, tokens: usize) -> Result<HostCost, EngineError> {
    let mut engine = Engine::without_weights(platform, config, options, &KernelSet::default())?;
    let mut times = Vec::with_capacity(tokens);
    let mut before = Duration::ZERO;
    engine.replay(WARM_UP + tokens, &mut |timings| {
        times.push(timings.host.saturating_sub(before));
        before = timings.host;
    })?;
    let graph = engine.decode_graph();
    Ok(HostCost {
        form: options.form,
        devices: options.devices,
        dispatches: graph.dispatches(),
        ring_packets: graph.ring_packets(),
        indirect_buffer: graph.ib_size(),
        build: engine.timings().graph_build,
        tokens: times.split_off(WARM_UP),
    })
}
