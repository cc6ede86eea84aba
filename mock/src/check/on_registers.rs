use std::sync::Arc;

use isa::{Memory, RegRange};

use super::registers;
use super::report::ReportKind;
use super::waits;
use super::workgroup::Workgroup;
use crate::facts::Facts;
use crate::observe::Step;

impl Workgroup {
    pub(super) fn check_registers(&mut self, step: &Step<'_, '_>, facts: &Facts) {
        if step.wave.mode.indexes_vgprs() {
            return;
        }
        let exec = self.exec;
        while let Some((register, lane)) = self.state(step).registers.unwritten(facts, exec) {
            self.report(step, ReportKind::UnwrittenRegister, lane, None, || {
                format!("{} has no value", registers::name(register))
            });
            self.state(step).registers.set(register, u64::MAX);
        }
    }

    pub(super) fn check_waits(&mut self, step: &Step<'_, '_>, facts: &Facts) {
        let is_memory = step.inst.op.info().memory != Memory::None;
        for &range in if is_memory { &facts.inputs } else { &facts.reads } {
            self.check_wait(step, range, "used");
        }
        for &range in &facts.writes {
            // A result that comes on the same path comes later.
            let in_order = self.state(step).waits.pending(range).is_some_and(|(operation, _)| {
                operation.is_in_order() && operation.path() == waits::path(step.inst) && is_memory
            });
            if !in_order {
                self.check_wait(step, range, "overwritten");
            }
        }
    }

    fn check_wait(&mut self, step: &Step<'_, '_>, range: RegRange, what: &str) {
        let Some((operation, register)) = self.state(step).waits.pending(range) else { return };
        self.report(step, ReportKind::MissingWait, None, None, || {
            let (pc, text) = step.code.describe(operation.index);
            let (register, counter) = (registers::name(register), operation.wait());
            format!("{register} is {what} with no wait ({counter}) for `{text}` at {pc:#x}")
        });
        self.state(step).waits.forget(range);
    }

    pub(super) fn check_hazards(&mut self, step: &Step<'_, '_>, facts: &Arc<Facts>) {
        if let Some(hazard) = self.state(step).hazards.check(facts) {
            self.report(step, ReportKind::Hazard, None, None, || {
                let (pc, text) = step.code.describe(hazard.index);
                let (rule, needed, there) = (hazard.rule, hazard.needed, hazard.there);
                format!("{rule}: {needed} wait states are needed after `{text}` at {pc:#x}, there are {there}")
            });
        }
        self.state(step).hazards.executed(facts, step.index);
    }
}
