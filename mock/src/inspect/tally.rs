//! Counts of each launch: instructions, and bytes requested by where they are.

use std::collections::HashMap;
use std::ops::{AddAssign, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isa::Class;

use super::banks;
use crate::machine::launch::Launch;
use crate::observe::{Access, AccessKind, Event, Observer, Space, Step, WorkgroupObserver, WorkgroupStart};

/// Looks on while one GPU runs, and counts launch by launch. A dispatch that XCCs run each for itself counts as one launch
/// for each.
pub struct Tally {
    gpu: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    regions: Arc<[Range<u64>]>,
    launches: Vec<LaunchTally>,
    /// Launches in flight, by the address they are kept at.
    places: HashMap<usize, usize>,
}

/// What a launch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchTally {
    /// Address of the kernel's first instruction.
    pub entry: u64,
    /// Workgroups that ran.
    pub workgroups: u64,
    /// Their waves.
    pub waves: u64,
    /// What they did.
    pub counts: Counts,
}

/// Instructions and bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions of waves.
    pub instructions: u64,
    /// Of these, matrix instructions.
    pub matrix: u64,
    /// Bytes read, by region; the last is everywhere else.
    pub read: Vec<Requested>,
    /// Bytes written or changed, likewise.
    pub written: Vec<Requested>,
    /// Bytes of scratch memory, of lanes.
    pub scratch: u64,
    /// Cycles of LDS, by the model of its banks.
    pub lds_cycles: u64,
    /// Of these, cycles that bank conflicts cost.
    pub lds_conflicts: u64,
}

/// Bytes that instructions asked for. What lanes of one instruction have in common counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Bytes.
    pub bytes: u64,
    /// Of these, bytes of accesses of 16 bytes or more a lane, or of scalar ones.
    pub wide: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.matrix += other.matrix;
        self.scratch += other.scratch;
        self.lds_cycles += other.lds_cycles;
        self.lds_conflicts += other.lds_conflicts;
        for (sums, others) in [(&mut self.read, &other.read), (&mut self.written, &other.written)] {
            sums.resize(others.len().max(sums.len()), Requested::default());
            for (sum, other) in sums.iter_mut().zip(others) {
                sum.bytes += other.bytes;
                sum.wide += other.wide;
            }
        }
    }
}

impl Tally {
    /// Counts of the GPU with index `gpu`.
    pub(super) fn new(gpu: usize) -> Self {
        Self { gpu, state: Arc::default() }
    }

    /// From here on counts bytes by `regions` of addresses: sorted, and apart from each other.
    pub fn watch(&self, regions: Vec<Range<u64>>) {
        let mut state = lock(&self.state);
        state.regions = regions.into();
        state.launches.clear();
        state.places.clear();
    }

    /// Launches since the last call, in the order they started in. None may be in flight.
    pub fn take(&self) -> Vec<LaunchTally> {
        let mut state = lock(&self.state);
        state.places.clear();
        std::mem::take(&mut state.launches)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names a launch in flight.
fn place(launch: &Arc<Launch>) -> usize {
    Arc::as_ptr(launch) as usize
}

impl Observer for Tally {
    fn workgroup(&self, start: &WorkgroupStart<'_>) -> Option<Box<dyn WorkgroupObserver>> {
        if start.gpu != self.gpu {
            return None;
        }
        let state = lock(&self.state);
        let launch = *state.places.get(&place(start.launch))?;
        let blank = vec![Requested::default(); state.regions.len() + 1];
        Some(Box::new(Counter {
            state: Arc::clone(&self.state),
            launch,
            waves: start.waves.len() as u64,
            regions: Arc::clone(&state.regions),
            last: 0,
            counts: Counts { read: blank.clone(), written: blank, ..Counts::default() },
            ranges: Vec::new(),
        }))
    }

    fn event(&self, event: &Event<'_>) {
        if let Event::LaunchStarted(launch) = event
            && launch.queue.gpu == self.gpu
        {
            let mut state = lock(&self.state);
            let index = state.launches.len();
            state.launches.push(LaunchTally { entry: launch.shape.entry.get(), ..LaunchTally::default() });
            state.places.insert(place(launch), index);
        }
    }
}

/// Counts for one workgroup.
struct Counter {
    state: Arc<Mutex<State>>,
    launch: usize,
    waves: u64,
    regions: Arc<[Range<u64>]>,
    /// The region found last: the next access is most likely there too.
    last: usize,
    counts: Counts,
    /// Room for the accesses of an instruction.
    ranges: Vec<(u64, u64)>,
}

impl Counter {
    /// Index of the region of `address`, or one past the last.
    fn region(&mut self, address: u64) -> usize {
        if !self.regions.get(self.last).is_some_and(|region| region.contains(&address)) {
            let after = self.regions.partition_point(|region| region.start <= address);
            let found = after.checked_sub(1).filter(|&index| self.regions[index].contains(&address));
            self.last = found.unwrap_or(self.regions.len());
        }
        self.last
    }

    /// Counts the accesses of an instruction that go one way.
    fn count(&mut self, accesses: &[Access], reads: bool) {
        let mut ranges = std::mem::take(&mut self.ranges);
        ranges.clear();
        let mut is_wide = true;
        for access in accesses {
            if access.space == Space::Memory && (access.kind == AccessKind::Read) == reads {
                ranges.push((access.address, access.address + u64::from(access.bytes)));
                is_wide &= access.bytes >= 16 || access.lane.is_none();
            }
        }
        if !ranges.is_sorted() {
            ranges.sort_unstable();
        }
        let mut up_to = 0;
        for &(start, end) in &ranges {
            let start = start.max(up_to);
            if start >= end {
                continue;
            }
            up_to = end;
            let region = self.region(start);
            let sums = if reads { &mut self.counts.read } else { &mut self.counts.written };
            sums[region].bytes += end - start;
            sums[region].wide += if is_wide { end - start } else { 0 };
        }
        self.ranges = ranges;
    }
}

impl WorkgroupObserver for Counter {
    fn after(&mut self, step: &mut Step<'_, '_>) {
        self.counts.instructions += 1;
        if step.accesses.is_empty() {
            let class = step.inst.op.info().class;
            self.counts.matrix += u64::from(matches!(class, Class::Mfma(_) | Class::Smfmac(_)));
            return;
        }
        let of = |space| step.accesses.iter().filter(move |access| access.space == space);
        self.count(step.accesses, true);
        self.count(step.accesses, false);
        self.counts.scratch += of(Space::Scratch).map(|access| u64::from(access.bytes)).sum::<u64>();
        if of(Space::Lds).next().is_some() {
            let lds: Vec<Access> = of(Space::Lds).copied().collect();
            let (cycles, conflicts) = banks::cycles(&lds);
            self.counts.lds_cycles += cycles;
            self.counts.lds_conflicts += conflicts;
        }
    }

    fn end(&mut self) {
        let mut state = lock(&self.state);
        if let Some(launch) = state.launches.get_mut(self.launch) {
            launch.workgroups += 1;
            launch.waves += self.waves;
            launch.counts += &self.counts;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(regions: &[Range<u64>]) -> Counter {
        let blank = vec![Requested::default(); regions.len() + 1];
        Counter {
            state: Arc::default(),
            launch: 0,
            waves: 1,
            regions: regions.to_vec().into(),
            last: 0,
            counts: Counts { read: blank.clone(), written: blank, ..Counts::default() },
            ranges: Vec::new(),
        }
    }

    fn reads(bytes: u8, addresses: impl IntoIterator<Item = u64>) -> Vec<Access> {
        let access = |address| Access { address, bytes, lane: Some(0), space: Space::Memory, kind: AccessKind::Read };
        addresses.into_iter().map(access).collect()
    }

    #[test]
    fn bytes_are_counted_where_they_are() {
        let mut counter = counter(&[0x1000..0x2000, 0x3000..0x4000]);
        counter.count(&reads(16, (0..64).map(|lane| 0x3000 + 16 * lane)), true);
        counter.count(&reads(4, [0x1ffc, 0x2000, 0x0ffc]), true);
        let bytes = |region: usize| (counter.counts.read[region].bytes, counter.counts.read[region].wide);
        assert_eq!([bytes(0), bytes(1), bytes(2)], [(4, 0), (1024, 1024), (8, 0)]);
        assert!(counter.counts.written.iter().all(|written| written.bytes == 0));
    }

    #[test]
    fn what_lanes_have_in_common_counts_once() {
        let mut counter = counter(std::slice::from_ref(&(0x1000..0x2000)));
        counter.count(&reads(8, [0x1008, 0x1000, 0x1004, 0x1008]), true);
        assert_eq!(counter.counts.read[0].bytes, 16);
        counter.count(&reads(8, [0x1000]), true);
        assert_eq!(counter.counts.read[0].bytes, 24, "another instruction asks again");
    }
}
