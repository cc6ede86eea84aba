//! Runs on a machine that executes nothing: its processors report each run, in place of the graph's last kernel.

use super::Rank;
use crate::platform::Platform;

/// Has such a machine fill the ranks' token rings; does nothing on any other.
#[cfg(feature = "mock")]
pub(super) fn stand_in(platform: &Platform, ranks: &[Rank]) {
    use crate::plan::RING_ENTRIES;

    // `kernels::RingEntry`: no error; token 0, which is no stop token, and the number of the run above it.
    let entry = |run: u64| [0, (run + 1) << 32];
    let Some(mock) = platform.mock.as_ref().filter(|_| platform.executes_nothing()) else { return };
    for rank in ranks {
        let (signal, ring) = (rank.timeline.va(), rank.ring.va());
        mock.stand_in(mock::StandIn { signal, ring, entries: RING_ENTRIES.into(), entry });
    }
}

/// There is no such machine in this build.
#[cfg(not(feature = "mock"))]
pub(super) fn stand_in(_: &Platform, _: &[Rank]) {}
