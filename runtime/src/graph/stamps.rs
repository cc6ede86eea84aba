//! Signals that time single dispatches, in graphs that are built to be looked at.

use std::sync::Arc;

use driver::Gpu;
use driver::address::GpuVa;
use driver::signal::{Error, Signal, SignalPool};

use crate::forward::KernelLaunch;

/// When a dispatch ran, in ticks of the GPU's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its kernel.
    pub kernel: &'static str,
    /// Its layer.
    pub layer: Option<usize>,
    /// When it started.
    pub start: u64,
    /// When it had ended.
    pub end: u64,
}

/// A signal for each dispatch of a run but the last, which completes the timeline.
pub(super) struct Stamps {
    signals: Vec<Signal>,
    dispatches: Vec<(&'static str, Option<usize>)>,
}

/// Signals count down by one a run from here, and never reach zero.
const START: u64 = 1 << 62;

impl Stamps {
    pub(super) fn new(gpu: &Arc<Gpu>, launches: &[KernelLaunch]) -> Result<Self, Error> {
        let count = launches.len().saturating_sub(1);
        let pool = SignalPool::new(gpu, count.max(1) as u64)?;
        let signals = (0..count).map(|_| pool.take(START)).collect::<Result<_, _>>()?;
        let dispatches = launches.iter().map(|launch| (launch.kernel.name, launch.layer)).collect();
        Ok(Self { signals, dispatches })
    }

    /// The completion signal of dispatch `index`; none for the last.
    pub(super) fn signal(&self, index: usize) -> GpuVa {
        self.signals.get(index).map_or(GpuVa::NULL, Signal::va)
    }

    pub(super) fn read<'a>(&'a self, timeline: &'a Signal) -> impl Iterator<Item = Stamp> + 'a {
        let signals = self.signals.iter().chain([timeline]);
        signals.zip(&self.dispatches).map(|(signal, &(kernel, layer))| {
            let (start, end) = signal.times();
            Stamp { kernel, layer, start, end }
        })
    }
}
