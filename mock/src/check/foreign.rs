use std::collections::HashMap;
use std::sync::Arc;

use super::clocks::Clocks;
use super::waits::Path;

/// A workgroup of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group {
    /// The launch's number.
    pub(super) launch: u32,
    /// The workgroup's number in the grid.
    pub(super) flat: u32,
}

/// What is known of the memory instructions of other workgroups.
#[derive(Clone, Debug, Default)]
pub(super) struct Known(HashMap<Group, Clocks>);

impl Known {
    /// Learns what `other` knows.
    pub(super) fn join(&mut self, other: &Self) {
        for (group, clocks) in &other.0 {
            self.learn(*group, clocks);
        }
    }

    /// Learns `clocks` of a workgroup.
    pub(super) fn learn(&mut self, group: Group, clocks: &Clocks) {
        match self.0.get_mut(&group) {
            Some(own) => own.join(clocks),
            None => drop(self.0.insert(group, clocks.clone())),
        }
    }

    fn includes(&self, group: Group, wave: usize, path: Path, time: u32) -> bool {
        self.0.get(&group).is_some_and(|clocks| clocks.includes(wave, path, time))
    }
}

/// What one wave has learnt from other workgroups through memory.
///
/// Whoever reads a value that another workgroup has released knows what that one had completed. That helps plain accesses
/// only after `buffer_inv`, which drops what the caches held before (AMDGPUUsage, "Memory Model gfx942", acquire).
#[derive(Clone, Default)]
pub(super) struct Foreign {
    usable: Arc<Known>,
    /// Read, and not yet followed by `buffer_inv`.
    acquired: Vec<Arc<Known>>,
}

impl Foreign {
    /// Has read a value that came with `known`.
    pub(super) fn acquire(&mut self, known: &Arc<Known>) {
        if !self.acquired.iter().any(|other| Arc::ptr_eq(other, known)) {
            self.acquired.push(Arc::clone(known));
        }
    }

    /// `buffer_inv`: from now on plain accesses see it too.
    pub(super) fn invalidate(&mut self) {
        if !self.acquired.is_empty() {
            let usable = Arc::make_mut(&mut self.usable);
            self.acquired.drain(..).for_each(|known| usable.join(&known));
        }
    }

    /// What plain accesses may rely on.
    pub(super) fn usable(&self) -> &Arc<Known> {
        &self.usable
    }

    /// Relies on `usable` from now on: waves have met at a barrier.
    pub(super) fn set_usable(&mut self, usable: &Arc<Known>) {
        self.usable = Arc::clone(usable);
    }

    /// Whether what a wave of another workgroup did is known here; `scoped` accesses need no `buffer_inv`.
    pub(super) fn includes(&self, group: Group, wave: usize, path: Path, time: u32, scoped: bool) -> bool {
        self.usable.includes(group, wave, path, time)
            || scoped && self.acquired.iter().any(|known| known.includes(group, wave, path, time))
    }
}
