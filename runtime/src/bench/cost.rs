//! Modelled time: what a list of launches would take on a GPU, from counts alone.
//!
//! Each dispatch streams its bytes or computes its FLOPs, whichever takes longer, at a fixed share of the peak; then come
//! fixed costs a dispatch, a collective and a meeting of XCCs. The constants are agreed on and not fitted. It is a model:
//! nothing of it was measured on an MI350X.

use super::work::Work;
use crate::graph::Form;

/// HBM bandwidth of an MI350X in bytes a second (AMD's data sheet).
const PEAK_BANDWIDTH: f64 = 8e12;
/// Dense BF16 matrix peak: 256 compute units, 4,096 FLOPs a clock each, 2.2 GHz (AMD's CDNA 4 white paper).
const PEAK_FLOPS: f64 = 256.0 * 4096.0 * 2.2e9;
/// Share of the matrix peak that is counted on.
const FLOPS_SHARE: f64 = 0.5;

/// What things cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// What the set is called.
    pub name: &'static str,
    /// Share of the HBM peak.
    pub bandwidth_share: f64,
    /// Seconds of a dispatch that waits for the one before.
    pub dispatch: f64,
    /// Seconds of a collective, its dispatch apart.
    pub collective: f64,
    /// Seconds of a meeting of XCCs, in the resident form.
    pub xcc_barrier: f64,
}

/// The set that the project's aims are stated in.
pub const FIRST: Constants =
    Constants { name: "first", bandwidth_share: 0.8, dispatch: 0.9e-6, collective: 4.4e-6, xcc_barrier: 0.9e-6 };
/// A set for those who expect less.
pub const PESSIMISTIC: Constants =
    Constants { name: "pessimistic", bandwidth_share: 0.6, dispatch: 4.5e-6, collective: 6.5e-6, xcc_barrier: 4.5e-6 };
/// Both sets.
pub const SETS: [Constants; 2] = [FIRST, PESSIMISTIC];

/// Seconds by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Seconds {
    /// Dispatches that are bound by bytes.
    pub bytes: f64,
    /// Dispatches that are bound by FLOPs.
    pub flops: f64,
    /// Fixed cost of dispatches.
    pub dispatches: f64,
    /// Fixed cost of collectives.
    pub collectives: f64,
    /// Meetings of XCCs.
    pub barriers: f64,
}

impl Seconds {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.bytes + self.flops + self.dispatches + self.collectives + self.barriers
    }
}

impl std::ops::AddAssign for Seconds {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.flops += other.flops;
        self.dispatches += other.dispatches;
        self.collectives += other.collectives;
        self.barriers += other.barriers;
    }
}

impl Constants {
    /// The time of dispatches with this work, `collectives` of which exchange with other GPUs. In the resident form XCCs
    /// meet after each.
    #[must_use]
    pub fn time(&self, works: &[Work], collectives: usize, form: Form) -> Seconds {
        let mut seconds = Seconds {
            dispatches: works.len() as f64 * self.dispatch,
            collectives: collectives as f64 * self.collective,
            barriers: if form == Form::Ib { works.len() as f64 * self.xcc_barrier } else { 0.0 },
            ..Seconds::default()
        };
        for work in works {
            let (bytes, flops) = (self.streaming(work.bytes()), work.flops as f64 / (PEAK_FLOPS * FLOPS_SHARE));
            if bytes >= flops {
                seconds.bytes += bytes;
            } else {
                seconds.flops += flops;
            }
        }
        seconds
    }

    /// Seconds to stream `bytes` bytes.
    #[must_use]
    pub fn streaming(&self, bytes: u64) -> f64 {
        bytes as f64 / (PEAK_BANDWIDTH * self.bandwidth_share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_streaming_and_computing_counts() {
        let stream = Work { weight_bytes: 6_400_000, ..Work::default() };
        let compute = Work { flops: 2_306_867_200_000, ..stream };
        let seconds = FIRST.time(&[stream, compute], 0, Form::Aql);
        assert!((seconds.bytes - 1e-6).abs() < 1e-12, "6.4 MB at 6.4 TB/s: {seconds:?}");
        assert!((seconds.flops - 2e-3).abs() < 1e-9, "2.3 TFLOP at half of 2.3 PFLOPS: {seconds:?}");
    }

    #[test]
    fn fixed_costs_are_counted_a_dispatch_a_collective_and_a_meeting() {
        let seconds = PESSIMISTIC.time(&[Work::default(); 10], 4, Form::Ib);
        assert!((seconds.total() - (10.0 * 4.5e-6 + 4.0 * 6.5e-6 + 10.0 * 4.5e-6)).abs() < 1e-12);
        let aql = PESSIMISTIC.time(&[Work::default(); 10], 4, Form::Aql);
        assert_eq!(aql.barriers, 0.0);
    }
}
