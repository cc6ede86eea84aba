use std::sync::Arc;

use driver::address::GpuVa;
use isa::{Class, Inst, Memory};

use super::caches::Scope;
use super::foreign::{Group, Known};
use super::global::{Finding, Visitor};
use super::memory_map::Region;
use super::report::ReportKind;
use super::shadow::Stamp;
use super::workgroup::{Workgroup, words};
use super::{faults, poison, waits};
use crate::exec::Stop;
use crate::observe::{Access, AccessKind, Space, Step};

/// A dword that an instruction accesses, by one lane or several.
struct Touched {
    word: u64,
    bytes: u8,
    kind: AccessKind,
    lane: Option<u8>,
    address: u64,
}

impl Workgroup {
    /// Checks the accesses to device memory and scratch, in the order of their dwords within each region.
    pub(super) fn check_memory(&mut self, step: &mut Step<'_, '_>) {
        let mut touched: Vec<Touched> = Vec::new();
        let mut region: Option<Arc<Region>> = None;
        for access in step.accesses.iter().filter(|access| access.space != Space::Lds) {
            let Some(of) = self.region_of(access.address) else { continue };
            if region.as_ref().is_some_and(|region| !Arc::ptr_eq(region, &of)) {
                self.check_words(step, region.take(), &touched);
                touched.clear();
            }
            if self.is_inside(step, &of, access) {
                for (word, bytes) in words(access) {
                    let (kind, lane, address) = (access.kind, access.lane, access.address);
                    match touched.last_mut() {
                        Some(last) if last.word == word && last.kind == kind => last.bytes |= bytes,
                        _ => touched.push(Touched { word, bytes, kind, lane, address }),
                    }
                }
            }
            region = Some(of);
        }
        self.check_words(step, region, &touched);
    }

    /// Whether an access ends within what the client asked for.
    fn is_inside(&self, step: &Step<'_, '_>, region: &Region, access: &Access) -> bool {
        let end = access.address + u64::from(access.bytes);
        // Scalar loads of kernel arguments are widened to what their alignment allows (LLVM, `AMDGPULowerKernelArguments`).
        let allowed = if access.lane.is_none() { region.end.next_multiple_of(16) } else { region.end };
        if end > allowed {
            self.report(step, ReportKind::PastEnd, access.lane, Some((access.space, access.address)), || {
                let bytes = region.end - region.start;
                format!("{} bytes at {:#x}; the buffer has {bytes:#x} bytes", access.bytes, access.address)
            });
        }
        end <= allowed
    }

    fn check_words(&mut self, step: &mut Step<'_, '_>, region: Option<Arc<Region>>, touched: &[Touched]) {
        let Some(region) = region else { return };
        if region.poisoned {
            self.check_written(step, &region, touched);
        }
        // Scratch belongs to one wave.
        if step.accesses.iter().all(|access| access.space != Space::Scratch) {
            self.visit(step, &region, touched);
        }
    }

    fn check_written(&self, step: &mut Step<'_, '_>, region: &Region, touched: &[Touched]) {
        let bytes = region.end - region.start;
        let unwritten = touched.iter().filter(|touched| touched.kind == AccessKind::Read).find(|touched| {
            poison::is_unwritten(touched.word, touched.bytes, bytes, |at| step.memory.read_u32(at).ok())
                && !self.is_written_by_a_wave(touched)
        });
        if let Some(touched) = unwritten {
            let place = Some((Space::Memory, touched.address));
            self.report(step, ReportKind::UnwrittenMemory, touched.lane, place, || {
                format!("nobody has written the dword at {:#x}", 4 * touched.word)
            });
        }
    }

    fn is_written_by_a_wave(&self, touched: &Touched) -> bool {
        let mut shard = self.shared.shadow.shard(touched.word);
        shard.word(touched.word, false).is_some_and(|last| !last.write.is_none())
    }

    fn visit(&mut self, step: &Step<'_, '_>, region: &Region, touched: &[Touched]) {
        let shared = Arc::clone(&self.shared);
        let (group, wave) = (self.group, step.wave.index as usize);
        let is_earlier = |launch| shared.order().is_before(launch, group.launch);
        let scope = scope(step.inst);
        let tells = self.tells(wave, scope);
        let state = &mut self.waves[wave];
        let mut visitor = Visitor {
            group,
            wave,
            time: state.waits.now(),
            path: waits::path(step.inst),
            place: self.place,
            scope,
            completed: state.waits.completed(),
            known: &state.issued,
            foreign: &mut state.foreign,
            tells: &tells,
            earlier: &mut self.earlier,
            is_earlier: &is_earlier,
        };
        let cached = region.is_cached();
        let mut findings = Vec::new();
        let mut rest = touched;
        while let Some(first) = rest.first() {
            let mut shard = shared.shadow.shard(first.word);
            let together = rest.iter().take_while(|touched| touched.word >> 10 == first.word >> 10).count();
            for touched in &rest[..together] {
                let Touched { word, bytes, kind, .. } = *touched;
                if let Some(finding) = visitor.visit(&mut shard, &shared.caches, cached, kind, word, bytes) {
                    findings.push((touched, finding));
                }
            }
            rest = &rest[together..];
        }
        for (touched, finding) in findings {
            self.report_finding(step, touched, finding);
        }
    }

    /// What whoever reads a value that this wave releases learns.
    fn tells(&mut self, wave: usize, scope: Scope) -> Arc<Known> {
        let state = &mut self.waves[wave];
        if scope < Scope::Agent {
            return Arc::clone(state.foreign.usable());
        }
        let make = || {
            let mut clocks = state.known.clone();
            clocks.learn(wave, state.waits.completed());
            let mut known = Known::clone(state.foreign.usable());
            known.learn(self.group, &clocks);
            Arc::new(known)
        };
        Arc::clone(state.tells.get_or_insert_with(make))
    }

    fn report_finding(&self, step: &Step<'_, '_>, touched: &Touched, finding: Finding) {
        let address = 4 * touched.word;
        let what = match touched.kind {
            AccessKind::Read => "read",
            AccessKind::Write => "written",
            AccessKind::Atomic => "changed by an atomic",
        };
        let between = |stamp: &Stamp| {
            let same = usize::from(stamp.place().gpu) == self.gpu;
            if same { ReportKind::StaleMemory } else { ReportKind::StalePeerMemory }
        };
        let (kind, earlier) = match &finding {
            Finding::NotWaited(stamp) => (ReportKind::MissingWait, stamp),
            Finding::Race { earlier, .. } => (ReportKind::MemoryRace, earlier),
            Finding::NotWrittenBack(stamp) | Finding::NotInvalidated(stamp) => (between(stamp), stamp),
        };
        self.report(step, kind, touched.lane, Some((Space::Memory, touched.address)), || {
            let who = self.describe(earlier);
            match finding {
                Finding::NotWaited(_) => format!("the dword at {address:#x} is {what} before the wave has waited for its own write"),
                Finding::Race { wrote, .. } => {
                    let other = if wrote { "write" } else { "read" };
                    format!("the dword at {address:#x} is {what}, and nothing orders that after the {other} by {who}")
                }
                Finding::NotWrittenBack(_) => {
                    format!("the dword at {address:#x} is {what} after {who} wrote it, whose L2 has not been written back")
                }
                Finding::NotInvalidated(_) => {
                    format!("the dword at {address:#x} is {what} after {who} wrote it, and this L2 has not been invalidated since")
                }
            }
        });
    }

    fn describe(&self, stamp: &Stamp) -> String {
        let Group { launch, flat } = stamp.group();
        let place = stamp.place();
        let entry = self.shared.order().entry(launch);
        let memory = self.shared.memory();
        let kernel = entry.and_then(|entry| memory.label(entry)).unwrap_or("a kernel");
        let same = if launch == self.group.launch { "this launch of " } else { "" };
        let (gpu, xcc, wave) = (place.gpu, place.xcc, stamp.wave);
        format!("{same}{kernel} (GPU {gpu}, XCC {xcc}, workgroup number {flat}, wave {wave})")
    }

    fn region_of(&mut self, address: u64) -> Option<Arc<Region>> {
        let holds = |region: &Arc<Region>| (region.start..region.pages_end).contains(&address);
        if !self.region.as_ref().is_some_and(holds) {
            self.region = self.shared.memory().region(address).cloned();
        }
        self.region.clone()
    }

    pub(super) fn check_fault(&self, step: &Step<'_, '_>) {
        let Some(Stop::Fault(fault)) = step.stop else { return };
        let lane = step.accesses.last().and_then(|access| access.lane);
        let freed = |address: GpuVa| self.shared.memory().freed_label(address.get()).is_some();
        if let Some((kind, space, address)) = faults::kind(fault, freed) {
            self.report(step, kind, lane, Some((space, address)), || fault.to_string());
        }
    }
}

/// How far a memory instruction reaches. Atomics are executed where the whole GPU sees them; `sc0` of them asks for the old
/// value.
fn scope(inst: &Inst) -> Scope {
    let info = inst.op.info();
    match (info.class, info.memory) {
        (Class::Smem | Class::Lds | Class::Gws, _) => Scope::Wave,
        (_, Memory::Atomic) if inst.mods.sc1 => Scope::System,
        (_, Memory::Atomic) => Scope::Agent,
        _ => Scope::of_bits(inst.mods.sc0, inst.mods.sc1),
    }
}
