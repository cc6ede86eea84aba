//! One accelerator complex die: admits workgroups to its compute units in dispatch order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::QueueId;
use super::compute_unit::{ComputeUnit, Needs};
use super::launch::{Launch, Placement, ScratchSlot};
use crate::code::Code;
use crate::workgroup::Workgroup;

/// An XCC's part of a launch: workgroups `next`, `next + stride`, ... below `end`.
struct Share {
    launch: Arc<Launch>,
    code: Arc<Code>,
    next: u64,
    stride: u64,
    end: u64,
}

/// The workgroup scheduler of one XCC.
pub(crate) struct Xcc {
    index: u32,
    backlog: VecDeque<Share>,
    units: Vec<ComputeUnit>,
    next_unit: usize,
    next_simd: usize,
    /// Occupied scratch slots of each area in use, by the area's base address.
    scratch: HashMap<u64, Vec<bool>>,
}

impl Xcc {
    pub(crate) fn new(index: u32, compute_units: u32) -> Self {
        Self {
            index,
            backlog: VecDeque::new(),
            units: vec![ComputeUnit::default(); compute_units as usize],
            next_unit: 0,
            next_simd: 0,
            scratch: HashMap::new(),
        }
    }

    /// Takes workgroups `first`, `first + stride`, ... of `launch`.
    pub(crate) fn enqueue(&mut self, launch: &Arc<Launch>, code: &Arc<Code>, first: u64, stride: u64) {
        let end = launch.shape.workgroup_count();
        if first < end {
            let (launch, code) = (Arc::clone(launch), Arc::clone(code));
            self.backlog.push_back(Share { launch, code, next: first, stride, end });
        }
    }

    /// Whether workgroups wait for a place.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Forgets the workgroups of `queue` that have not been admitted.
    pub(crate) fn drop_queue(&mut self, queue: QueueId) {
        self.backlog.retain(|share| share.launch.queue != queue);
    }

    /// Admits workgroups as long as they fit: of each queue in dispatch order, queues side by side.
    pub(crate) fn admit(&mut self, gpu: usize, mut admitted: impl FnMut(Workgroup)) {
        let mut blocked: Vec<QueueId> = Vec::new();
        let mut at = 0;
        while at < self.backlog.len() {
            if blocked.contains(&self.backlog[at].launch.queue) {
                at += 1;
                continue;
            }
            let needs = Needs::of(&self.backlog[at].launch.shape);
            match self.place(needs, at) {
                Some((placement, first_simd)) => {
                    let share = &mut self.backlog[at];
                    let launch = Arc::clone(&share.launch);
                    let flat = share.next;
                    admitted(Workgroup::new(launch, flat, placement, gpu, first_simd, Arc::clone(&share.code)));
                    share.next += share.stride;
                    if share.next >= share.end {
                        self.backlog.remove(at);
                    }
                }
                None => {
                    blocked.push(self.backlog[at].launch.queue);
                    at += 1;
                }
            }
        }
    }

    fn place(&mut self, needs: Needs, at: usize) -> Option<(Placement, usize)> {
        let area = self.backlog[at].launch.shape.scratch.get(self.index as usize).copied();
        let scratch = match area {
            Some(area) if area.bytes_per_wave > 0 => {
                let taken = self.scratch.entry(area.base).or_default();
                taken.resize(taken.len().max(area.waves as usize), false);
                let first = taken.windows(needs.waves as usize).position(|slots| !slots.contains(&true))?;
                Some(ScratchSlot { base: area.base, index: first as u32, bytes: area.bytes_per_wave })
            }
            _ => None,
        };
        let count = self.units.len();
        let simd = self.next_simd;
        let unit = (0..count).map(|i| (self.next_unit + i) % count).find(|&u| self.units[u].admit(needs, simd))?;
        self.next_unit = (unit + 1) % count;
        self.next_simd = (simd + needs.waves as usize) % 4;
        if let Some(slot) = scratch {
            self.mark_scratch(slot, needs.waves, true);
        }
        Some((Placement { xcc: self.index, cu: unit as u32, scratch }, simd))
    }

    fn mark_scratch(&mut self, slot: ScratchSlot, waves: u32, taken: bool) {
        if let Some(slots) = self.scratch.get_mut(&slot.base) {
            slots[slot.index as usize..(slot.index + waves) as usize].fill(taken);
        }
    }

    /// Frees the place of a workgroup that has ended.
    pub(crate) fn release(&mut self, workgroup: &Workgroup) {
        let needs = Needs::of(&workgroup.launch.shape);
        self.units[workgroup.placement.cu as usize].release(needs, workgroup.first_simd);
        if let Some(slot) = workgroup.placement.scratch {
            self.mark_scratch(slot, needs.waves, false);
        }
    }
}
