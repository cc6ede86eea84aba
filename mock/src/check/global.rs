use std::collections::HashMap;
use std::sync::Arc;

use super::caches::{Caches, Place, Scope};
use super::clocks::Clocks;
use super::foreign::{Foreign, Group, Known};
use super::shadow::{Shard, Stamp};
use super::waits::{Completed, Path};
use crate::observe::AccessKind;

/// A wave that accesses device memory, with what it knows.
pub(super) struct Visitor<'a> {
    pub(super) group: Group,
    pub(super) wave: usize,
    pub(super) time: u32,
    pub(super) path: Path,
    pub(super) place: Place,
    pub(super) scope: Scope,
    /// What of its own has completed.
    pub(super) completed: Completed,
    /// What its workgroup had issued before the last barrier.
    pub(super) known: &'a Clocks,
    /// What it knows of other workgroups.
    pub(super) foreign: &'a mut Foreign,
    /// What it tells whoever reads a value that it releases.
    pub(super) tells: &'a Arc<Known>,
    /// Launches that come before its own, as far as it was asked.
    pub(super) earlier: &'a mut HashMap<u32, bool>,
    /// Asks for one more.
    pub(super) is_earlier: &'a dyn Fn(u32) -> bool,
}

/// What is wrong with an access, given an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The wave itself has not waited for the earlier one.
    NotWaited(Stamp),
    /// Nothing orders them.
    Race { earlier: Stamp, wrote: bool },
    /// The earlier write may still be in another L2.
    NotWrittenBack(Stamp),
    /// This L2 may hold what was there before the write.
    NotInvalidated(Stamp),
}

impl Visitor<'_> {
    /// Records the access to `bytes` (bit by bit) of a dword, and finds what is wrong with it. `cached` says whether L2s
    /// may hold the memory without knowing of each other.
    pub(super) fn visit(
        &mut self,
        shard: &mut Shard,
        caches: &Caches,
        cached: bool,
        kind: AccessKind,
        word: u64,
        bytes: u8,
    ) -> Option<Finding> {
        let reads = kind != AccessKind::Write;
        if self.scope >= Scope::Agent {
            if reads && let Some(known) = shard.released(word) {
                self.foreign.acquire(known);
            }
            if kind != AccessKind::Read {
                shard.release(word, self.tells, kind == AccessKind::Atomic);
            }
        }
        let last = *shard.word(word, kind != AccessKind::Read)?;
        let mut finding = None;
        if !last.write.is_none() && last.write.bytes() & bytes != 0 {
            finding = self.unordered(&last.write, true);
            if finding.is_none() && cached && last.write.place() != self.place {
                finding = self.incoherent(&last.write, caches, kind);
            }
        }
        if kind != AccessKind::Read {
            for read in last.reads.iter().filter(|read| !read.is_none() && read.bytes() & bytes != 0) {
                if finding.is_none() && !self.is_own(read) {
                    finding = self.unordered(read, false);
                }
            }
        }
        let stamp =
            Stamp::new(self.group, self.wave, self.time, self.path, self.place, caches.now(), self.scope, bytes);
        let entry = shard.word(word, false)?;
        if kind == AccessKind::Read {
            entry.read(stamp)
        } else {
            entry.written(stamp)
        }
        finding
    }

    fn is_own(&self, stamp: &Stamp) -> bool {
        stamp.group() == self.group && usize::from(stamp.wave) == self.wave
    }

    /// Finds that an earlier access is not known to come before this one, unless both are atomic.
    fn unordered(&mut self, earlier: &Stamp, wrote: bool) -> Option<Finding> {
        if self.is_own(earlier) {
            let done = earlier.path() == self.path || self.completed[earlier.path() as usize] >= earlier.time;
            return (!done).then_some(Finding::NotWaited(*earlier));
        }
        let between = if earlier.group() == self.group {
            Scope::Workgroup
        } else if earlier.place().gpu == self.place.gpu {
            Scope::Agent
        } else {
            Scope::System
        };
        let atomic = earlier.scope() >= between && self.scope >= between;
        (!atomic && !self.is_after(earlier)).then_some(Finding::Race { earlier: *earlier, wrote })
    }

    fn is_after(&mut self, earlier: &Stamp) -> bool {
        let wave = usize::from(earlier.wave);
        if earlier.group() == self.group {
            return self.known.includes(wave, earlier.path(), earlier.time);
        }
        let ordered = earlier.launch != self.group.launch
            && *self.earlier.entry(earlier.launch).or_insert_with(|| (self.is_earlier)(earlier.launch));
        let scoped = self.scope >= Scope::Agent;
        ordered || self.foreign.includes(earlier.group(), wave, earlier.path(), earlier.time, scoped)
    }

    /// Finds that a write in another XCC is not sure to be seen here: it is neither made past the caches nor written back
    /// by now, or this L2 was not invalidated since.
    fn incoherent(&self, write: &Stamp, caches: &Caches, kind: AccessKind) -> Option<Finding> {
        let needed = if write.place().gpu == self.place.gpu { Scope::Agent } else { Scope::System };
        let in_memory = if write.scope() >= needed {
            Some(write.moment)
        } else {
            caches.first_write_back(write.place(), write.moment, needed)
        };
        let Some(since) = in_memory else { return Some(Finding::NotWrittenBack(*write)) };
        let fresh =
            kind != AccessKind::Read || self.scope >= needed || caches.last_invalidation(self.place, needed) > since;
        (!fresh).then_some(Finding::NotInvalidated(*write))
    }
}
