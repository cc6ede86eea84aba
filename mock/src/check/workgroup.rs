use std::collections::HashMap;
use std::sync::Arc;

use isa::Op;

use super::Shared;
use super::caches::{Place, Scope};
use super::clocks::Clocks;
use super::foreign::{Foreign, Group, Known};
use super::hazards::Hazards;
use super::late::Before;
use super::lds::LdsShadow;
use super::memory_map::Region;
use super::registers::Registers;
use super::report::{Report, ReportKind};
use super::waits::Waits;
use crate::exec::Stop;
use crate::machine::launch::Launch;
use crate::observe::{Access, Space, Step, WorkgroupObserver, WorkgroupStart};

/// Looks into one workgroup.
pub(super) struct Workgroup {
    pub(super) shared: Arc<Shared>,
    pub(super) gpu: usize,
    pub(super) launch: Arc<Launch>,
    id: [u32; 3],
    pub(super) waves: Vec<WaveState>,
    pub(super) lds: LdsShadow,
    /// EXEC before the instruction.
    pub(super) exec: u64,
    /// What the registers of its result held before, if that arrives late.
    before: Option<Before>,
    /// The region of the last access.
    pub(super) region: Option<Arc<Region>>,
    pub(super) group: Group,
    pub(super) place: Place,
    /// Whether other launches come before this one, as far as that was asked.
    pub(super) earlier: HashMap<u32, bool>,
}

pub(super) struct WaveState {
    pub(super) registers: Registers,
    pub(super) waits: Waits,
    pub(super) hazards: Hazards,
    /// What it knows of the waves of its workgroup.
    pub(super) known: Clocks,
    /// What the waves of its workgroup had issued before the last barrier: vector memory of one compute unit is in order
    /// among its waves, so that this is enough for memory, though not for LDS (AMDGPUUsage, "Memory Model gfx942").
    pub(super) issued: Clocks,
    /// What it knows of other workgroups.
    pub(super) foreign: Foreign,
    /// What it tells others, until that changes.
    pub(super) tells: Option<Arc<Known>>,
}

impl Workgroup {
    pub(super) fn new(shared: &Arc<Shared>, start: &WorkgroupStart<'_>) -> Self {
        let count = start.waves.len();
        let wave = |_| WaveState {
            registers: Registers::at_start(start),
            waits: Waits::default(),
            hazards: Hazards::default(),
            known: Clocks::new(count),
            issued: Clocks::new(count),
            foreign: Foreign::default(),
            tells: None,
        };
        Self {
            shared: Arc::clone(shared),
            gpu: start.gpu,
            launch: Arc::clone(start.launch),
            id: start.id,
            waves: (0..count).map(wave).collect(),
            lds: LdsShadow::new(start.lds_bytes, count),
            exec: 0,
            before: None,
            region: None,
            group: Group { launch: start.launch.number, flat: start.flat as u32 },
            place: Place { gpu: start.gpu as u8, xcc: start.placement.xcc as u8 },
            earlier: HashMap::new(),
        }
    }

    pub(super) fn report(
        &self,
        step: &Step<'_, '_>,
        kind: ReportKind,
        lane: Option<u8>,
        address: Option<(Space, u64)>,
        detail: impl FnOnce() -> String,
    ) {
        let pc = step.code.address(step.index);
        self.shared.reports.add(kind, pc, || {
            let memory = self.shared.memory();
            let entry = self.launch.shape.entry.get();
            let owner = |(space, address)| if space == Space::Lds { None } else { memory.owner(address) };
            Report {
                kind,
                kernel: memory.label(entry).map_or_else(|| format!("at {entry:#x}"), str::to_owned),
                pc,
                instruction: step.inst.to_string(),
                gpu: self.gpu,
                workgroup: self.id,
                wave: step.wave.index,
                lane,
                address: address.map(|(_, address)| address),
                buffer: address.and_then(owner),
                detail: detail(),
                count: 1,
            }
        });
    }

    pub(super) fn state(&mut self, step: &Step<'_, '_>) -> &mut WaveState {
        &mut self.waves[step.wave.index as usize]
    }
}

impl WorkgroupObserver for Workgroup {
    fn before(&mut self, step: &mut Step<'_, '_>) {
        let Some(facts) = step.code.facts(step.index) else { return };
        self.exec = step.wave.exec();
        self.check_registers(step, facts);
        self.check_waits(step, facts);
        self.check_hazards(step, facts);
        self.before = Before::of(facts, self.state(step).registers.acc(), step.wave);
    }

    fn after(&mut self, step: &mut Step<'_, '_>) {
        self.check_fault(step);
        let Some(facts) = step.code.facts(step.index) else { return };
        let inst = &facts.inst;
        let (exec, place) = (self.exec, self.place);
        let to_lds = step.accesses.iter().any(|access| access.space == Space::Lds);
        let late = self.before.take().and_then(|before| before.withhold(facts, exec, step.wave));
        let state = self.state(step);
        state.registers.wrote(facts, exec);
        state.waits.issue(facts, step.index, to_lds, late);
        match inst.op {
            Op::SWaitcnt => {
                let written_back = state.waits.wait(inst.mods.simm16);
                state.tells = None;
                if let Some(scope) = written_back.filter(|scope| *scope >= Scope::Agent) {
                    self.shared.caches.written_back(place, scope);
                }
            }
            Op::BufferInv => {
                let scope = Scope::of_bits(inst.mods.sc0, inst.mods.sc1);
                if scope >= Scope::Agent {
                    state.foreign.invalidate();
                    state.tells = None;
                    self.shared.caches.invalidated(place, scope);
                }
            }
            _ => {}
        }
        self.state(step).waits.arrived().iter().for_each(|late| late.deliver(step.wave));
        for access in step.accesses.iter().filter(|access| access.space == Space::Lds) {
            self.check_lds(step, access);
        }
        self.check_memory(step);
        if matches!(step.stop, Some(Stop::End)) {
            self.state(step).waits.finish();
        }
    }

    fn barrier(&mut self) {
        let mut all = Clocks::new(self.waves.len());
        let mut issued = all.clone();
        let mut foreign = Known::default();
        for (wave, state) in self.waves.iter().enumerate() {
            all.join(&state.known);
            all.learn(wave, state.waits.completed());
            issued.learn(wave, [state.waits.now(); 2]);
            foreign.join(state.foreign.usable());
        }
        let foreign = Arc::new(foreign);
        for state in &mut self.waves {
            state.known.clone_from(&all);
            state.issued.clone_from(&issued);
            state.foreign.set_usable(&foreign);
            state.tells = None;
        }
    }
}

/// The dwords of an access, with the bytes of each bit by bit.
pub(super) fn words(access: &Access) -> impl Iterator<Item = (u64, u8)> {
    let (start, end) = (access.address, access.address + u64::from(access.bytes));
    (start / 4..end.div_ceil(4)).map(move |word| {
        let first = start.saturating_sub(4 * word);
        let last = (end - 4 * word).min(4);
        (word, (1_u8 << last) - (1 << first))
    })
}
