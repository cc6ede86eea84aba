//! Looking on while the machine runs: what a trace, a profile and the sanitizer are made of.
//!
//! # Contract
//!
//! * An [`Observer`] is attached to the machine when it starts. For each workgroup it says whether it wants to look inside,
//!   and gives a [`WorkgroupObserver`] if so. A workgroup nobody looks into runs in the plain loop, at full speed.
//! * A workgroup observer belongs to one workgroup and is called from one host thread at a time: it needs no locks for what
//!   it keeps. It is called before and after each instruction of each wave, in the order of execution: waves take turns, they
//!   do not interleave within an instruction. Micros that are no instructions (joins of runs, undecodable words) are not told.
//! * [`Step::accesses`] has the memory accesses of the instruction by lane, whatever path executed it: exact addresses, in
//!   lane order where lanes matter. What `before` sees is empty. An access that faults is the last one in the list.
//! * Observers may change the wave and its LDS in between, and nothing else.
//! * An [`Event`] is told as it happens, from whatever thread does it, with the machine's locks held: an observer must not
//!   call back into the machine. Events that order memory come after what they order and before what waits for them.

mod access;
mod event;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use access::{Access, AccessKind, Space};
pub(crate) use event::{Allocated, CacheAction, Event, OrderEvent};
use isa::Inst;

use crate::code::Code;
use crate::exec::Stop;
use crate::machine::launch::{Launch, Placement};
use crate::memory::View;
use crate::wave::Wave;

/// Sees the machine at work.
pub(crate) trait Observer: Send + Sync {
    /// A workgroup starts. Gives who looks on from inside, if anybody.
    fn workgroup(&self, _: &WorkgroupStart<'_>) -> Option<Box<dyn WorkgroupObserver>> {
        None
    }

    /// Something happened outside of waves.
    fn event(&self, _: &Event<'_>) {}
}

/// A workgroup before its first instruction.
pub(crate) struct WorkgroupStart<'a> {
    /// GPU it runs on.
    pub(crate) gpu: usize,
    /// What it is part of.
    pub(crate) launch: &'a Arc<Launch>,
    /// XCC, compute unit, scratch.
    pub(crate) placement: Placement,
    /// Its number in the grid, x fastest.
    pub(crate) flat: u64,
    /// Its id in the grid.
    pub(crate) id: [u32; 3],
    /// Its waves with their initial registers.
    pub(crate) waves: &'a [Wave],
    /// Bytes of LDS it may address.
    pub(crate) lds_bytes: u32,
}

/// Sees one workgroup at work.
pub(crate) trait WorkgroupObserver: Send {
    /// An instruction is about to be executed.
    fn before(&mut self, _: &mut Step<'_, '_>) {}

    /// It has been executed. `step.stop` says whether and how it ended the wave's turn: with [`Stop::End`] the wave's life.
    fn after(&mut self, _: &mut Step<'_, '_>) {}

    /// All waves that have not ended have arrived at a barrier, and go on.
    fn barrier(&mut self) {}

    /// All waves have ended, or one has faulted, or the queue is gone.
    fn end(&mut self) {}
}

/// One instruction of one wave.
pub(crate) struct Step<'a, 'm> {
    /// The wave. Its `pc` is the index of this instruction before, of the next one after.
    pub(crate) wave: &'a mut Wave,
    /// Memory as the wave's GPU sees it.
    pub(crate) memory: &'a mut View<'m>,
    /// The code.
    pub(crate) code: &'a Code,
    /// Index of the instruction in the code: [`Code::address`] has its address.
    pub(crate) index: u32,
    /// The instruction.
    pub(crate) inst: &'a Inst,
    /// What it accessed.
    pub(crate) accesses: &'a [Access],
    /// How it ended the wave's turn, if it did.
    pub(crate) stop: Option<&'a Stop>,
}

/// Everybody who looks on.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    all: Vec<Arc<dyn Observer>>,
}

impl Observers {
    /// These observers, called in this order.
    pub(crate) fn new(all: Vec<Arc<dyn Observer>>) -> Self {
        Self { all }
    }

    /// Who looks into a workgroup.
    pub(crate) fn workgroup(&self, start: &WorkgroupStart<'_>) -> Vec<Box<dyn WorkgroupObserver>> {
        self.all.iter().filter_map(|observer| observer.workgroup(start)).collect()
    }

    /// Tells everybody.
    pub(crate) fn event(&self, event: &Event<'_>) {
        for observer in &self.all {
            observer.event(event);
        }
    }
}
