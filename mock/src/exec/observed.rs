//! Execution with observers: one instruction at a time, told before and after.

use super::{Cx, Micro, SrcKind, Stop, special_modes};
use crate::observe::{Access, AccessKind, Space, Step, WorkgroupObserver};

impl Cx<'_> {
    /// Whether memory accesses are recorded.
    #[inline(always)]
    pub(super) fn is_observed(&self) -> bool {
        self.accesses.is_some()
    }

    /// Records an access of a lane, if somebody looks on. An access that may fault is recorded before it is made.
    #[inline(always)]
    pub(super) fn saw(&mut self, space: Space, kind: AccessKind, lane: usize, address: u64, bytes: usize) {
        if let Some(accesses) = &mut self.accesses {
            accesses.push(Access { address, bytes: bytes as u8, lane: Some(lane as u8), space, kind });
        }
    }

    /// Records an access that the wave makes as a whole.
    #[inline(always)]
    pub(super) fn saw_scalar(&mut self, space: Space, kind: AccessKind, address: u64, bytes: usize) {
        if let Some(accesses) = &mut self.accesses {
            accesses.push(Access { address, bytes: bytes as u8, lane: None, space, kind });
        }
    }
}

/// [`super::run`], telling `observers`.
pub(crate) fn run(cx: &mut Cx<'_>, observers: &mut [Box<dyn WorkgroupObserver>]) -> Stop {
    cx.accesses = Some(Vec::new());
    let given = cx.budget;
    let stop = loop {
        if let Some(stop) = cx.stop.take() {
            break stop;
        }
        if cx.budget == 0 {
            break Stop::Quantum;
        }
        let index = cx.w.pc;
        tell(cx, observers, index, |observer, step| observer.before(step));
        if reads_lds_directly(&cx.code.micros()[index as usize]) {
            let address = u64::from(cx.m0() & 0xffff);
            cx.saw_scalar(Space::Lds, AccessKind::Read, address, 4);
        }
        special_modes::step(cx);
        tell(cx, observers, index, |observer, step| observer.after(step));
        if let Some(accesses) = &mut cx.accesses {
            accesses.clear();
        }
    };
    cx.w.executed += u64::from(given - cx.budget);
    stop
}

fn tell(
    cx: &mut Cx<'_>,
    observers: &mut [Box<dyn WorkgroupObserver>],
    index: u32,
    what: impl Fn(&mut dyn WorkgroupObserver, &mut Step<'_, '_>),
) {
    let Some(inst) = cx.code.inst(index) else { return };
    for observer in observers {
        let mut step = Step {
            wave: cx.w,
            memory: &mut cx.memory,
            code: cx.code,
            index,
            inst,
            accesses: cx.accesses.as_deref().unwrap_or_default(),
            stop: cx.stop.as_ref(),
        };
        what(observer.as_mut(), &mut step);
    }
}

fn reads_lds_directly(m: &Micro) -> bool {
    m.src.iter().any(|src| src.kind == SrcKind::LdsDirect)
}
