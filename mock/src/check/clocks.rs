use super::waits::{Completed, Path};

/// What is known of the memory instructions of each wave of a workgroup: a vector clock of their last completed ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clocks(Vec<Completed>);

impl Clocks {
    /// Nothing is known of `waves` waves.
    pub(super) fn new(waves: usize) -> Self {
        Self(vec![[0; 2]; waves])
    }

    /// Learns what `other` knows.
    pub(super) fn join(&mut self, other: &Self) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = [own[0].max(other[0]), own[1].max(other[1])];
        }
    }

    /// Learns that `wave` has completed what it has.
    pub(super) fn learn(&mut self, wave: usize, completed: Completed) {
        let own = &mut self.0[wave];
        *own = [own[0].max(completed[0]), own[1].max(completed[1])];
    }

    /// Whether the instruction that `wave` issued on `path` at `time` is known to be complete.
    pub(super) fn includes(&self, wave: usize, path: Path, time: u32) -> bool {
        self.0[wave][path as usize] >= time
    }
}

/// The wave that makes an access, with what it knows.
pub(super) struct Actor<'a> {
    /// Number in its workgroup.
    pub(super) wave: usize,
    /// Time of the access.
    pub(super) time: u32,
    /// Path of the access.
    pub(super) path: Path,
    /// What of its own has completed.
    pub(super) completed: Completed,
    /// What it knows of the others.
    pub(super) known: &'a mut Clocks,
}

impl Actor<'_> {
    /// Whether this access comes after the one that `wave` made on `path` at `time`. A wave's own accesses on one path
    /// are in order; on another path only what has completed is before.
    pub(super) fn knows(&self, wave: usize, path: Path, time: u32) -> bool {
        if wave != self.wave {
            return self.known.includes(wave, path, time);
        }
        path == self.path || self.completed[path as usize] >= time
    }

    /// Meets others at a place all of them access: learns what is known there, and tells what it knows if it `tells`.
    pub(super) fn meet(&mut self, place: &mut Clocks, tells: bool) {
        self.known.join(place);
        if tells {
            place.join(self.known);
            place.learn(self.wave, self.completed);
        }
    }
}
