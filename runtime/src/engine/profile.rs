//! Time stamps of dispatches, as the GPU's processor writes them to completion signals.

use driver::signal::Signal;

use crate::graph::Graph;

/// Ticks of the GPU's constant clock in a microsecond: 100 MHz.
const TICKS_PER_MICROSECOND: f64 = 100.0;

/// One dispatch of one run on rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The kernel.
    pub kernel: &'static str,
    /// Its layer, `None` before the first and after the last.
    pub layer: Option<usize>,
    /// Its place in the run.
    pub index: usize,
    /// Tokens of the run.
    pub tokens: u32,
    /// Tokens in the caches before it.
    pub position: u32,
    /// When it started, in ticks.
    start: u64,
    /// When it ended, in ticks.
    end: u64,
}

impl Span {
    /// When it started, in microseconds of the GPU's clock.
    #[must_use]
    pub fn start(&self) -> f64 {
        self.start as f64 / TICKS_PER_MICROSECOND
    }

    /// How long it took, in microseconds.
    #[must_use]
    pub fn microseconds(&self) -> f64 {
        self.end.saturating_sub(self.start) as f64 / TICKS_PER_MICROSECOND
    }

    /// How long the GPU had nothing to do between `before` and this, in microseconds.
    #[must_use]
    pub fn idle_after(&self, before: &Self) -> f64 {
        self.start.saturating_sub(before.end) as f64 / TICKS_PER_MICROSECOND
    }
}

/// The dispatches of the last run of `graph`, which had `tokens` tokens from `position` on. `timeline` is the signal that the
/// run's last packet completes.
pub(super) fn spans<'a>(
    graph: &'a Graph,
    timeline: &'a Signal,
    tokens: u32,
    position: u32,
) -> impl Iterator<Item = Span> + 'a {
    graph.stamps(timeline).enumerate().map(move |(index, stamp)| Span {
        kernel: stamp.kernel,
        layer: stamp.layer,
        index,
        tokens,
        position,
        start: stamp.start,
        end: stamp.end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_ten_nanoseconds() {
        let span = |start, end| Span { kernel: "k", layer: None, index: 0, tokens: 1, position: 0, start, end };
        assert_eq!(span(1000, 1250).microseconds(), 2.5);
        assert_eq!(span(1300, 1400).idle_after(&span(1000, 1250)), 0.5);
        assert_eq!(span(1200, 1400).idle_after(&span(1000, 1250)), 0.0, "they overlap");
    }
}
