//! How many reads to keep in flight.
//!
//! What a disk wants is not known beforehand: one flash drive is busy with a few reads of megabytes, a dozen of them behind
//! one file system want more. So the load itself tries: it doubles the number for as long as that pays.

use std::time::Duration;

/// Reads in flight for each disk to begin with: a thread that is not woken at once must not leave the disk idle.
pub(crate) const FIRST: usize = 4;
/// Most that are tried.
const MOST: usize = 32;
/// Bytes of a trial: long enough for rates that mean something, short beside any checkpoint that takes long.
const TRIAL_BYTES: u64 = 256 << 20;
/// What doubling must gain to be kept.
const GAIN: f64 = 1.05;

/// Reads in flight for each disk: given, or found.
#[derive(Clone, Debug)]
pub(crate) struct Depth {
    now: usize,
    most: usize,
    /// Bytes that have come in this trial, and when it began, counted from the start of the load.
    trial: (u64, Duration),
    /// The best so far: how many, and bytes a second.
    best: Option<(usize, f64)>,
    settled: bool,
}

impl Depth {
    /// So many, whatever comes.
    pub(crate) fn given(depth: usize) -> Self {
        Self { now: depth, most: depth, trial: (0, Duration::ZERO), best: None, settled: true }
    }

    /// As many as pay, up to `most`.
    pub(crate) fn found(most: usize) -> Self {
        let now = FIRST.min(most.max(1));
        Self { settled: false, most: most.clamp(now, MOST), ..Self::given(now) }
    }

    /// How many there may be now.
    pub(crate) fn now(&self) -> usize {
        self.now
    }

    /// How many there may ever be.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// `bytes` have come, `at` after the start of the load.
    pub(crate) fn came(&mut self, bytes: u64, at: Duration) {
        if self.settled {
            return;
        }
        self.trial.0 += bytes;
        if self.trial.0 < TRIAL_BYTES {
            return;
        }
        let rate = self.trial.0 as f64 / (at.saturating_sub(self.trial.1)).as_secs_f64().max(1e-9);
        self.trial = (0, at);
        match self.best {
            Some((best, best_rate)) if rate < best_rate * GAIN => (self.now, self.settled) = (best, true),
            _ => {
                self.best = Some((self.now, rate));
                self.settled = self.now * 2 > self.most;
                self.now = if self.settled { self.now } else { self.now * 2 };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found for a disk that gives `rate(depth)` bytes a second.
    fn settle(mut depth: Depth, rate: impl Fn(usize) -> f64) -> usize {
        let mut at = Duration::ZERO;
        for _ in 0..10_000 {
            let bytes = 4 << 20;
            at += Duration::from_secs_f64(bytes as f64 / rate(depth.now()));
            depth.came(bytes, at);
            assert!(depth.now() <= depth.most());
        }
        depth.now()
    }

    #[test]
    fn a_disk_that_few_reads_keep_busy_gets_no_more() {
        assert_eq!(settle(Depth::found(16), |_| 2e9), FIRST);
        assert_eq!(settle(Depth::found(16), |depth| 2e9 * 1.01_f64.powi(depth as i32)), FIRST);
    }

    #[test]
    fn a_disk_that_gives_more_to_more_reads_gets_them_up_to_a_bound() {
        assert_eq!(settle(Depth::found(100), |depth| depth.min(8) as f64 * 1e9), 8);
        assert_eq!(settle(Depth::found(100), |depth| depth as f64 * 1e9), MOST);
        assert_eq!(settle(Depth::found(7), |depth| depth as f64 * 1e9), 4);
        assert_eq!(settle(Depth::found(1), |depth| depth as f64 * 1e9), 1);
    }

    #[test]
    fn a_given_number_stays() {
        assert_eq!(settle(Depth::given(3), |depth| depth as f64 * 1e9), 3);
    }
}
