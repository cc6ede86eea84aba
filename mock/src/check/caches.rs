use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

/// How far an access or a cache operation reaches (AMDGPUUsage, "Memory Model gfx942": `sc0` and `sc1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
#[repr(u8)]
pub(crate) enum Scope {
    /// The wave.
    #[default]
    Wave = 0,
    /// The workgroup.
    Workgroup = 1,
    /// The GPU: all its XCCs.
    Agent = 2,
    /// All GPUs and the host.
    System = 3,
}

impl Scope {
    /// The scope of a load, a store or a cache operation with these bits.
    pub(super) fn of_bits(sc0: bool, sc1: bool) -> Self {
        match (sc1, sc0) {
            (false, false) => Self::Wave,
            (false, true) => Self::Workgroup,
            (true, false) => Self::Agent,
            (true, true) => Self::System,
        }
    }

    /// The scope with this number.
    pub(super) fn from_number(number: u8) -> Self {
        [Self::Wave, Self::Workgroup, Self::Agent, Self::System][usize::from(number & 3)]
    }
}

/// An XCC of the machine: one L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) gpu: u8,
    pub(super) xcc: u8,
}

/// XCCs of a GPU at most.
const XCCS: usize = 8;
/// Write-backs remembered of each cache. What was written before the oldest of them counts as written back by it.
const REMEMBERED: usize = 4096;

/// When each L2 was last written back and invalidated. Moments count these operations.
pub(super) struct Caches {
    now: AtomicU32,
    all: RwLock<Vec<Cache>>,
}

#[derive(Clone, Default)]
struct Cache {
    written_back: VecDeque<(u32, Scope)>,
    invalidated: [u32; 4],
}

impl Default for Caches {
    fn default() -> Self {
        Self { now: AtomicU32::new(1), all: RwLock::new(vec![Cache::default(); 8 * XCCS]) }
    }
}

impl Caches {
    /// The moment of an access that is made now.
    pub(super) fn now(&self) -> u32 {
        self.now.load(Ordering::Acquire)
    }

    /// The L2 at `place` has been written back.
    pub(super) fn written_back(&self, place: Place, scope: Scope) {
        let moment = self.advance();
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let cache = &mut all[place.index()];
        if cache.written_back.len() == REMEMBERED {
            cache.written_back.pop_front();
        }
        cache.written_back.push_back((moment, scope));
    }

    /// The L2 at `place` has dropped what may be stale.
    pub(super) fn invalidated(&self, place: Place, scope: Scope) {
        let moment = self.advance();
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        for narrower in 0..=scope as usize {
            all[place.index()].invalidated[narrower] = moment;
        }
    }

    /// The first moment after `moment` at which what was written at `place` had been written back with `scope`.
    pub(super) fn first_write_back(&self, place: Place, moment: u32, scope: Scope) -> Option<u32> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let backs = &all[place.index()].written_back;
        let later = backs.iter().rev().take_while(|(at, _)| *at > moment);
        later.filter(|(_, reach)| *reach >= scope).last().map(|(at, _)| *at)
    }

    /// The last moment at which `place` was invalidated with `scope`.
    pub(super) fn last_invalidation(&self, place: Place, scope: Scope) -> u32 {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all[place.index()].invalidated[scope as usize]
    }

    fn advance(&self) -> u32 {
        self.now.fetch_add(1, Ordering::AcqRel) + 1
    }
}

impl Place {
    fn index(self) -> usize {
        usize::from(self.gpu) * XCCS + usize::from(self.xcc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Place = Place { gpu: 0, xcc: 3 };

    #[test]
    fn a_write_is_covered_by_the_first_write_back_after_it() {
        let caches = Caches::default();
        caches.written_back(HERE, Scope::Agent);
        let written = caches.now();
        assert_eq!(caches.first_write_back(HERE, written, Scope::Agent), None);
        caches.written_back(HERE, Scope::Agent);
        let first = caches.now();
        caches.written_back(HERE, Scope::System);
        assert_eq!(caches.first_write_back(HERE, written, Scope::Agent), Some(first));
        assert_eq!(caches.first_write_back(HERE, written, Scope::System), Some(first + 1));
        assert_eq!(caches.first_write_back(Place { gpu: 1, xcc: 3 }, written, Scope::Agent), None);
    }

    #[test]
    fn a_wider_invalidation_is_a_narrower_one_too() {
        let caches = Caches::default();
        caches.invalidated(HERE, Scope::System);
        assert_eq!(caches.last_invalidation(HERE, Scope::Agent), caches.now());
        caches.invalidated(HERE, Scope::Agent);
        assert_eq!(caches.last_invalidation(HERE, Scope::System), caches.now() - 1);
    }
}
