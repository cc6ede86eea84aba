//! What a wave has issued and not yet waited for.
//!
//! Counters and their order are LLVM's of gfx9 (`SIInsertWaitcnts.cpp`; CDNA4 ISA section 4.4): vector memory returns in
//! the order of issue, and so does LDS; scalar memory and messages return in any order, so that only a wait for zero says
//! anything about them.

use std::collections::VecDeque;

use isa::{Class, Counters, Inst, Op, RegFile, RegRange};

use super::caches::Scope;
use super::late::Late;
use crate::facts::Facts;

/// Outstanding operations at which the hardware holds the next one back: the counters are that wide.
const MOST_VM: usize = 63;
const MOST_LGKM: usize = 15;
const MOST_EXP: usize = 7;

/// The path an access takes; each wave's accesses on one path are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Path {
    /// LDS and scalar memory, counted by LGKM_CNT.
    Lgkm = 0,
    /// Vector memory, counted by VM_CNT.
    Vm = 1,
}

/// The time of the last memory instruction that has completed, of each path. Times count a wave's memory instructions.
pub(super) type Completed = [u32; 2];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    Vm,
    LgkmInOrder,
    LgkmAnyOrder,
    Exp,
}

/// One memory instruction in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    time: u32,
    counter: Counter,
    result: Option<RegRange>,
    /// Index of the instruction in the code.
    pub(super) index: u32,
    /// An L2 write-back that reaches so far.
    writes_back: Option<Scope>,
}

impl Operation {
    /// The path of its access.
    pub(super) fn path(&self) -> Path {
        if self.counter == Counter::Vm { Path::Vm } else { Path::Lgkm }
    }

    /// Whether later operations on its path complete after it.
    pub(super) fn is_in_order(&self) -> bool {
        self.counter != Counter::LgkmAnyOrder
    }

    /// The wait that says it has completed.
    pub(super) fn wait(&self) -> &'static str {
        match self.counter {
            Counter::Vm => "vmcnt",
            Counter::LgkmInOrder | Counter::LgkmAnyOrder => "lgkmcnt",
            Counter::Exp => "expcnt",
        }
    }
}

/// The operations of one wave in flight, oldest first.
#[derive(Default)]
pub(super) struct Waits {
    flying: VecDeque<Operation>,
    /// Results of operations in flight, with their times.
    late: Vec<(u32, Late)>,
    now: u32,
    /// Registers that some operation will write: vector, AccVGPRs from 256 on, and scalar.
    vector: [u64; 8],
    scalar: u128,
}

impl Waits {
    /// The time of the last memory instruction.
    pub(super) fn now(&self) -> u32 {
        self.now
    }

    /// The operation that `range` waits for, if there is one.
    pub(super) fn pending(&self, range: RegRange) -> Option<(Operation, RegRange)> {
        if !self.may_be_pending(range) {
            return None;
        }
        self.flying.iter().find_map(|operation| Some((*operation, overlap(operation.result?, range)?)))
    }

    fn may_be_pending(&self, range: RegRange) -> bool {
        (range.first..range.first.saturating_add(range.count)).any(|number| match range.file {
            RegFile::Scalar => self.scalar >> (number & 127) & 1 == 1,
            RegFile::Vector => self.vector[usize::from(number) / 64] >> (number % 64) & 1 == 1,
            RegFile::Acc => self.vector[4 + usize::from(number) / 64] >> (number % 64) & 1 == 1,
            RegFile::Scc => false,
        })
    }

    /// Forgets that `range` is pending, once that has been reported.
    pub(super) fn forget(&mut self, range: RegRange) {
        for operation in &mut self.flying {
            if operation.result.is_some_and(|result| overlap(result, range).is_some()) {
                operation.result = None;
            }
        }
        self.collect();
    }

    /// Issues an instruction, if it is one that has to be waited for; `lds` says whether a flat access went to LDS, `late`
    /// is what it found.
    pub(super) fn issue(&mut self, facts: &Facts, index: u32, lds: bool, late: Option<Late>) {
        let inst = &facts.inst;
        let info = inst.op.info();
        let counters = info.counters;
        if counters.is_empty() {
            return;
        }
        self.now += 1;
        self.late.extend(late.map(|late| (self.now, late)));
        let result = facts.writes.iter().find(|range| range.file != RegFile::Scc).copied();
        let flat = info.class == Class::Flat;
        let writes_back = (inst.op == Op::BufferWbl2).then(|| Scope::of_bits(inst.mods.sc0, inst.mods.sc1));
        let mut push = |counter, result| {
            self.flying.push_back(Operation { time: self.now, counter, result, index, writes_back });
        };
        if counters.contains(Counters::VM) && !(flat && lds) {
            push(Counter::Vm, result);
        }
        if counters.contains(Counters::LGKM) {
            match info.class {
                Class::Lds => push(Counter::LgkmInOrder, result),
                Class::Flat if lds => push(Counter::LgkmInOrder, result),
                // A flat access that went to memory counts here too, and has nothing to deliver.
                Class::Flat => {}
                _ => push(Counter::LgkmAnyOrder, result),
            }
        }
        if counters.contains(Counters::EXP) {
            push(Counter::Exp, result);
        }
        self.hold_back();
        self.collect();
    }

    /// Executes `s_waitcnt` with the counts in `simm16`; gives the L2 write-back that is known to be complete by it.
    pub(super) fn wait(&mut self, simm16: u16) -> Option<Scope> {
        let vm = usize::from(simm16 & 0xf | simm16 >> 10 & 0x30);
        let exp = usize::from(simm16 >> 4 & 7);
        let lgkm = usize::from(simm16 >> 8 & 0xf);
        let before: Vec<(u32, Scope)> = self.write_backs().collect();
        self.keep(Counter::Vm, vm);
        self.keep(Counter::LgkmInOrder, lgkm);
        self.keep(Counter::Exp, exp);
        if lgkm == 0 {
            self.keep(Counter::LgkmAnyOrder, 0);
        }
        self.collect();
        let left = self.write_backs().count();
        before[..before.len() - left].iter().map(|&(_, scope)| scope).max()
    }

    /// The results that have arrived since the last call, oldest first.
    pub(super) fn arrived(&mut self) -> Vec<Late> {
        if self.late.is_empty() {
            return Vec::new();
        }
        let flying = &self.flying;
        let arrived = |(time, _): &mut (u32, Late)| flying.iter().all(|operation| operation.time != *time);
        self.late.extract_if(.., arrived).map(|(_, late)| late).collect()
    }

    /// Everything issued so far has completed: the wave has ended.
    pub(super) fn finish(&mut self) {
        self.flying.clear();
        self.collect();
    }

    /// What is known to have completed.
    pub(super) fn completed(&self) -> Completed {
        let mut completed = [self.now; 2];
        for operation in &self.flying {
            let path = match operation.counter {
                Counter::Vm => Path::Vm,
                Counter::LgkmInOrder | Counter::LgkmAnyOrder => Path::Lgkm,
                Counter::Exp => continue,
            };
            let last = &mut completed[path as usize];
            *last = (*last).min(operation.time - 1);
        }
        completed
    }

    fn write_backs(&self) -> impl Iterator<Item = (u32, Scope)> {
        self.flying.iter().filter_map(|operation| Some((operation.time, operation.writes_back?)))
    }

    /// Keeps the newest `count` operations of a counter.
    fn keep(&mut self, counter: Counter, count: usize) {
        let there = self.flying.iter().filter(|operation| operation.counter == counter).count();
        let mut surplus = there.saturating_sub(count);
        self.flying.retain(|operation| {
            let done = surplus > 0 && operation.counter == counter;
            surplus -= usize::from(done);
            !done
        });
    }

    fn hold_back(&mut self) {
        self.keep(Counter::Vm, MOST_VM);
        self.keep(Counter::LgkmInOrder, MOST_LGKM);
        self.keep(Counter::Exp, MOST_EXP);
    }

    fn collect(&mut self) {
        (self.vector, self.scalar) = ([0; 8], 0);
        for range in self.flying.iter().filter_map(|operation| operation.result) {
            for number in range.first..range.first.saturating_add(range.count) {
                let bit = usize::from(number);
                match range.file {
                    RegFile::Scalar => self.scalar |= 1 << (bit & 127),
                    RegFile::Vector => self.vector[bit / 64] |= 1 << (bit % 64),
                    RegFile::Acc => self.vector[4 + bit / 64] |= 1 << (bit % 64),
                    RegFile::Scc => {}
                }
            }
        }
    }
}

fn overlap(a: RegRange, b: RegRange) -> Option<RegRange> {
    let first = a.first.max(b.first);
    let end = (u16::from(a.first) + u16::from(a.count)).min(u16::from(b.first) + u16::from(b.count));
    let count = end.checked_sub(u16::from(first)).filter(|&count| count > 0)?;
    (a.file == b.file).then_some(RegRange { file: a.file, first, count: count as u8 })
}

/// The path of an instruction's accesses.
pub(super) fn path(inst: &Inst) -> Path {
    let info = inst.op.info();
    match info.class {
        Class::Lds | Class::Smem | Class::Gws => Path::Lgkm,
        _ => Path::Vm,
    }
}
