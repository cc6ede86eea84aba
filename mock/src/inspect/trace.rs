use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::WaveName;
use crate::observe::{Observer, Step, WorkgroupObserver, WorkgroupStart};
use crate::wave::{LANES, Vreg, Wave, sreg};

/// Instructions kept at most: what follows is only counted.
const MOST: usize = 1 << 20;

/// What one wave did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Trace {
    /// Its instructions, in order.
    pub instructions: Vec<Traced>,
    /// Further instructions that were not kept.
    pub left_out: u64,
}

/// One executed instruction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traced {
    /// Its address, counted from the kernel's entry point.
    pub offset: i64,
    /// Its text, as LLVM prints it.
    pub text: String,
    /// The registers whose value it changed. An instruction that writes what was there before changes nothing.
    pub changes: Vec<Change>,
}

/// A register's new value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Change {
    /// A register of the whole wave.
    Scalar {
        /// Its name: `s5`, `vcc_lo`, `scc`, `mode`.
        register: String,
        /// What it holds now.
        value: u32,
    },
    /// A vector register.
    Vector {
        /// Its name: `v5`, or `a5` for an AccVGPR.
        register: String,
        /// The lanes that changed, and what they hold now.
        lanes: Vec<(u8, u32)>,
    },
}

/// Records one wave.
pub(super) struct Recorder {
    wave: WaveName,
    trace: Arc<Mutex<Trace>>,
}

impl Recorder {
    pub(super) fn new(wave: WaveName) -> Self {
        Self { wave, trace: Arc::default() }
    }

    pub(super) fn trace(&self) -> Trace {
        self.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Recorder {
    fn workgroup(&self, start: &WorkgroupStart<'_>) -> Option<Box<dyn WorkgroupObserver>> {
        (start.flat == self.wave.workgroup).then(|| {
            Box::new(Watch {
                wave: self.wave.wave,
                entry: start.launch.shape.entry.get(),
                first_acc: start.launch.shape.resources.accum_offset() as usize,
                before: Registers::default(),
                trace: Arc::clone(&self.trace),
            }) as Box<dyn WorkgroupObserver>
        })
    }
}

struct Watch {
    wave: u32,
    entry: u64,
    /// Where AccVGPRs begin in the wave's vector file.
    first_acc: usize,
    before: Registers,
    trace: Arc<Mutex<Trace>>,
}

impl WorkgroupObserver for Watch {
    fn before(&mut self, step: &mut Step<'_, '_>) {
        if step.wave.index == self.wave {
            self.before.copy(step.wave);
        }
    }

    fn after(&mut self, step: &mut Step<'_, '_>) {
        if step.wave.index != self.wave {
            return;
        }
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        if trace.instructions.len() == MOST {
            trace.left_out += 1;
            return;
        }
        trace.instructions.push(Traced {
            offset: step.code.address(step.index).wrapping_sub(self.entry) as i64,
            text: step.inst.to_string(),
            changes: self.before.changes(step.wave, self.first_acc),
        });
    }
}

/// A copy of a wave's registers.
struct Registers {
    vgprs: Vec<Vreg>,
    sgprs: [u32; sreg::COUNT],
    others: [u32; 3],
}

impl Default for Registers {
    fn default() -> Self {
        Self { vgprs: Vec::new(), sgprs: [0; sreg::COUNT], others: [0; 3] }
    }
}

/// Registers that are neither scalar nor vector registers.
fn others(wave: &Wave) -> [u32; 3] {
    [wave.scc.into(), wave.mode.0, wave.status]
}

impl Registers {
    fn copy(&mut self, wave: &Wave) {
        self.vgprs.clear();
        self.vgprs.extend_from_slice(&wave.vgprs);
        self.sgprs = wave.sgprs;
        self.others = others(wave);
    }

    /// The registers of `wave` that differ from the copy.
    fn changes(&self, wave: &Wave, first_acc: usize) -> Vec<Change> {
        let changed = |(old, new): (&u32, &u32)| (old != new).then_some(*new);
        let scalars = self.sgprs.iter().zip(&wave.sgprs).map(changed).enumerate();
        let scalars = scalars.filter_map(|(n, value)| Some((scalar_name(n), value?)));
        let now = others(wave);
        let others = self.others.iter().zip(&now).map(changed).zip(["scc", "mode", "status"]);
        let others = others.filter_map(|(value, name)| Some((name.to_owned(), value?)));
        let vectors = self.vgprs.iter().zip(&wave.vgprs).enumerate().filter_map(|(n, (old, new))| {
            let lanes: Vec<(u8, u32)> =
                (0..LANES).filter(|&lane| old.0[lane] != new.0[lane]).map(|lane| (lane as u8, new.0[lane])).collect();
            let register = if n < first_acc { format!("v{n}") } else { format!("a{}", n - first_acc) };
            (!lanes.is_empty()).then_some(Change::Vector { register, lanes })
        });
        scalars.chain(others).map(|(register, value)| Change::Scalar { register, value }).chain(vectors).collect()
    }
}

fn scalar_name(number: usize) -> String {
    const HALVES: [&str; 2] = ["lo", "hi"];
    let named = |name: &str, first: usize| format!("{name}_{}", HALVES[number - first]);
    match number {
        sreg::FLAT_SCRATCH_LO..sreg::XNACK_MASK_LO => named("flat_scratch", sreg::FLAT_SCRATCH_LO),
        sreg::XNACK_MASK_LO..sreg::VCC_LO => named("xnack_mask", sreg::XNACK_MASK_LO),
        sreg::VCC_LO..sreg::TTMP0 => named("vcc", sreg::VCC_LO),
        sreg::TTMP0..sreg::M0 => format!("ttmp{}", number - sreg::TTMP0),
        sreg::M0 => "m0".into(),
        sreg::EXEC_LO..sreg::COUNT => named("exec", sreg::EXEC_LO),
        _ => format!("s{number}"),
    }
}
