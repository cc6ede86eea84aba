use isa::{Implicit, Inst, Op, Operand, RegFile, RegRange, Special};

use crate::facts::Facts;
use crate::observe::WorkgroupStart;
use crate::wave::sreg;

/// Which registers of a wave have been written, vector registers lane by lane.
pub(super) struct Registers {
    vector: Vec<u64>,
    /// First AccVGPR in `vector`.
    acc: usize,
    scalar: u128,
}

impl Registers {
    /// What the hardware has written at the start of a wave: user data, system SGPRs and work-item ids (AMDGPUUsage,
    /// "Initial Kernel Execution State").
    pub(super) fn at_start(start: &WorkgroupStart<'_>) -> Self {
        let resources = start.launch.shape.resources;
        let system = (resources.rsrc2 >> 7 & 0xf).count_ones();
        let user = resources.user_sgprs() + system;
        let special = 0b11 << sreg::FLAT_SCRATCH_LO | 0b11 << sreg::XNACK_MASK_LO | 0b11 << sreg::EXEC_LO;
        let ttmp = 0xffff << sreg::TTMP0;
        let mut vector = vec![0; resources.vgprs() as usize];
        vector[0] = u64::MAX;
        let acc = resources.accum_offset() as usize;
        Self { vector, acc, scalar: ((1 << user) - 1) | special | ttmp }
    }

    /// The first register that `inst` needs in the lanes of `exec` and the wave has not written, with its lane.
    pub(super) fn unwritten(&self, facts: &Facts, exec: u64) -> Option<(RegRange, Option<u8>)> {
        let inst = &facts.inst;
        // Compilers copy registers, and read pairs, of which a part has no value and is not used.
        if is_move(inst) || is_lane_mask(inst) || inst.op.info().name.starts_with("v_pk_") {
            return None;
        }
        // It keeps the bits of M0 that it does not set.
        if inst.op == Op::SSetGprIdxOn {
            return inst.src[0].registers().and_then(|range| self.unwritten_in(range, exec, false));
        }
        // Lanes read from elsewhere than their own: what they need is known only to the instruction.
        let crosses_lanes = inst.mods.dpp.is_some() || !reads_own_lanes(inst);
        let high = addend_high(inst);
        let needed = facts
            .inputs
            .iter()
            .map(|&range| RegRange { count: range.count - u8::from(ends_with(range, high)), ..range });
        needed.filter_map(|range| self.unwritten_in(range, exec, crosses_lanes)).next()
    }

    fn unwritten_in(&self, range: RegRange, exec: u64, crosses_lanes: bool) -> Option<(RegRange, Option<u8>)> {
        let one = |number| RegRange { file: range.file, first: number, count: 1 };
        for number in range.first..range.first.saturating_add(range.count) {
            match range.file {
                RegFile::Scalar if self.scalar >> number & 1 == 0 => return Some((one(number), None)),
                RegFile::Scalar | RegFile::Scc => {}
                RegFile::Vector | RegFile::Acc => {
                    let written = self.vector.get(self.at(range.file, number)).copied().unwrap_or(u64::MAX);
                    let missing = if crosses_lanes { if written == 0 { exec } else { 0 } } else { exec & !written };
                    if missing != 0 {
                        return Some((one(number), Some(missing.trailing_zeros() as u8)));
                    }
                }
            }
        }
        None
    }

    /// Records what `inst` has written in the lanes of `exec`.
    pub(super) fn wrote(&mut self, facts: &Facts, exec: u64) {
        let inst = &facts.inst;
        let info = inst.op.info();
        if info.writes.contains(Implicit::INDEXED) || info.reads.contains(Implicit::INDEXED) {
            // Which register is known at run time only; what is not known is not reported.
            self.vector.fill(u64::MAX);
            self.scalar = u128::MAX;
            return;
        }
        let lanes = if info.reads.contains(Implicit::EXEC) { exec } else { u64::MAX };
        let copied = inst.src[0].registers().filter(|_| is_move(inst) && inst.mods.dpp.is_none());
        for &range in &facts.writes {
            match copied {
                Some(from) => self.copy(from, range, lanes),
                None => self.set(range, lanes),
            }
        }
        if let (Some(from), Some(sum)) = (addend_high(inst), inst.dst.registers()) {
            self.copy(from, RegRange { first: sum.first + 1, count: 1, ..sum }, lanes);
        }
    }

    /// Place of the first AccVGPR among a wave's vector registers.
    pub(super) fn acc(&self) -> usize {
        self.acc
    }

    /// The destination has a value where the source has one.
    fn copy(&mut self, from: RegRange, to: RegRange, lanes: u64) {
        for i in 0..to.count {
            let number = from.first.saturating_add(i.min(from.count.saturating_sub(1)));
            let value = match from.file {
                RegFile::Scalar => {
                    if self.scalar >> (number & 127) & 1 == 1 {
                        u64::MAX
                    } else {
                        0
                    }
                }
                RegFile::Scc => u64::MAX,
                RegFile::Vector | RegFile::Acc => {
                    self.vector.get(self.at(from.file, number)).copied().unwrap_or(u64::MAX)
                }
            };
            let register = RegRange { file: to.file, first: to.first + i, count: 1 };
            match to.file {
                RegFile::Scalar if value == 0 => self.scalar &= !(1 << (register.first & 127)),
                RegFile::Scalar | RegFile::Scc => self.set(register, lanes),
                RegFile::Vector | RegFile::Acc => {
                    let at = self.at(to.file, register.first);
                    if let Some(written) = self.vector.get_mut(at) {
                        *written = *written & !lanes | value & lanes;
                    }
                }
            }
        }
    }

    /// Takes registers as written from now on.
    pub(super) fn set(&mut self, range: RegRange, lanes: u64) {
        for number in range.first..range.first.saturating_add(range.count) {
            match range.file {
                RegFile::Scalar => self.scalar |= 1 << (number & 127),
                RegFile::Scc => {}
                RegFile::Vector | RegFile::Acc => {
                    let at = self.at(range.file, number);
                    if let Some(written) = self.vector.get_mut(at) {
                        *written |= lanes;
                    }
                }
            }
        }
    }

    fn at(&self, file: RegFile, number: u8) -> usize {
        usize::from(number) + if file == RegFile::Acc { self.acc } else { 0 }
    }
}

/// Whether the instruction only copies: what it copies is judged where it is used.
fn is_move(inst: &Inst) -> bool {
    let name = inst.op.info().name;
    name.starts_with("v_mov_b") || name.starts_with("v_accvgpr") || name.starts_with("s_mov_b")
}

/// Whether the instruction merges a mask of lanes with EXEC: bits of other lanes need no value (`SILowerI1Copies`).
fn is_lane_mask(inst: &Inst) -> bool {
    let merges = matches!(inst.op, Op::SAndB64 | Op::SOrB64 | Op::SAndn2B64 | Op::SOrn2B64);
    merges && inst.src.contains(&Operand::Special(Special::Exec))
}

/// The high half of the addend of a 64-bit multiply-add. The low half of the sum does without it, and compilers that want no
/// more give it no value; so the high half of the sum has one where this has.
fn addend_high(inst: &Inst) -> Option<RegRange> {
    let addend = matches!(inst.op, Op::VMadU64U32 | Op::VMadI64I32).then_some(inst.src[2])?.registers()?;
    (addend.file == RegFile::Vector).then_some(RegRange { first: addend.first + 1, count: 1, ..addend })
}

fn ends_with(range: RegRange, last: Option<RegRange>) -> bool {
    last.is_some_and(|last| range.file == last.file && range.first + range.count == last.first + 1 && range.count == 2)
}

/// Whether vector sources are read in the lanes of EXEC and no others.
fn reads_own_lanes(inst: &Inst) -> bool {
    let info = inst.op.info();
    info.reads.contains(Implicit::EXEC) && !info.name.contains("permlane") && !info.name.contains("permute")
}

/// A register as LLVM writes it.
pub(super) fn name(range: RegRange) -> String {
    match (range.file, usize::from(range.first)) {
        (RegFile::Scc, _) => "scc".into(),
        (RegFile::Vector, number) => format!("v{number}"),
        (RegFile::Acc, number) => format!("a{number}"),
        (RegFile::Scalar, sreg::VCC_LO) => "vcc_lo".into(),
        (RegFile::Scalar, 107) => "vcc_hi".into(),
        (RegFile::Scalar, sreg::M0) => "m0".into(),
        (RegFile::Scalar, sreg::EXEC_LO) => "exec_lo".into(),
        (RegFile::Scalar, 127) => "exec_hi".into(),
        (RegFile::Scalar, number @ sreg::TTMP0..sreg::M0) => format!("ttmp{}", number - sreg::TTMP0),
        (RegFile::Scalar, number) => format!("s{number}"),
    }
}
