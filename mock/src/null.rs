//! What a machine that executes nothing (`MOCKKFD=null`) does in place of kernels.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use driver::address::GpuVa;

use crate::memory::{MemoryFault, View};

/// Stands in for the kernel that reports a run: each completion of `signal` first stores an entry to a ring, as the
/// skipped kernels would have.
#[derive(Clone, Copy, Debug)]
pub struct StandIn {
    /// The signal that ends a run.
    pub signal: GpuVa,
    /// First entry of the ring: two 64-bit words each, the second stored last.
    pub ring: GpuVa,
    /// Entries of the ring.
    pub entries: u64,
    /// The entry of a run, from its number counted from 0.
    pub entry: fn(u64) -> [u64; 2],
}

/// All stand-ins of a machine, by signal, with the runs they have seen.
#[derive(Default)]
pub(crate) struct StandIns(Mutex<HashMap<u64, (StandIn, u64)>>);

impl StandIns {
    pub(crate) fn add(&self, stand_in: StandIn) {
        self.lock().insert(stand_in.signal.get(), (stand_in, 0));
    }

    /// Does what stands in for the work that completes `signal`.
    pub(crate) fn before_completion(&self, signal: GpuVa, view: &mut View<'_>) -> Result<(), MemoryFault> {
        if let Some((stand_in, runs)) = self.lock().get_mut(&signal.get()) {
            let at = stand_in.ring.get() + *runs % stand_in.entries * 16;
            let [first, second] = (stand_in.entry)(*runs);
            view.write_u64(at, first)?;
            view.write_u64(at + 8, second)?;
            *runs += 1;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (StandIn, u64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
