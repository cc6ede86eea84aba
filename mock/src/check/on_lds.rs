use isa::Class;

use super::clocks::Actor;
use super::report::ReportKind;
use super::waits::{self, Path};
use super::workgroup::{Workgroup, words};
use crate::observe::{Access, AccessKind, Space, Step};

impl Workgroup {
    pub(super) fn check_lds(&mut self, step: &Step<'_, '_>, access: &Access) {
        let asked = u64::from(self.launch.shape.lds_bytes);
        let end = access.address + u64::from(access.bytes);
        let place = Some((Space::Lds, access.address));
        if end > asked {
            self.report(step, ReportKind::PastEnd, access.lane, place, || {
                format!("{} bytes of LDS at {:#x}; the workgroup has {asked:#x}", access.bytes, access.address)
            });
        }
        for (word, bytes) in words(access) {
            if access.kind == AccessKind::Read && self.lds.is_unwritten(word as usize, bytes) {
                self.report(step, ReportKind::UnwrittenLds, access.lane, place, || {
                    format!("no wave of the workgroup has written LDS at {:#x}", access.address)
                });
            }
            let path = if step.inst.op.info().class == Class::Flat { Path::Lgkm } else { waits::path(step.inst) };
            let state = &mut self.waves[step.wave.index as usize];
            let mut actor = Actor {
                wave: step.wave.index as usize,
                time: state.waits.now(),
                path,
                completed: state.waits.completed(),
                known: &mut state.known,
            };
            let Some(conflict) = self.lds.access(&mut actor, access.kind, word as usize, bytes, step.index) else {
                continue;
            };
            let own = u32::from(conflict.wave) == step.wave.index;
            let kind = if own { ReportKind::MissingWait } else { ReportKind::LdsRace };
            self.report(step, kind, access.lane, place, || {
                let verb = if access.kind == AccessKind::Read { "read" } else { "written" };
                let other = conflict.index.map_or_else(
                    || "a read".into(),
                    |index| {
                        let (pc, text) = step.code.describe(index);
                        format!("`{text}` at {pc:#x}")
                    },
                );
                let missing = if own { "no wait for it" } else { "no wait and barrier, and no atomic" };
                format!("LDS at {:#x} is {verb} after {other} of wave {}, {missing} between", 4 * word, conflict.wave)
            });
        }
    }
}
