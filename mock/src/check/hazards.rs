//! Instructions that follow another too soon, where the hardware does not wait by itself.
//!
//! The rules are those of LLVM for gfx940 and gfx950 (`llvm/lib/Target/AMDGPU/GCNHazardRecognizer.cpp`; passes of matrix
//! instructions from `SISchedule.td`). Distances are in wait states: each instruction between counts one, `s_nop N` counts
//! N + 1. Where LLVM's rule depends on what follows, the weaker one is taken.

use std::collections::VecDeque;
use std::sync::Arc;

use isa::{Class, Encoding, Implicit, Inst, Memory, Op, Operand, RegFile, RegRange, SdwaSel};

use super::passes::{self, Engine};
use crate::facts::Facts;

/// Wait states after which nothing is a hazard any more.
const LONGEST: u32 = 20;

const EXEC: RegRange = RegRange { file: RegFile::Scalar, first: 126, count: 2 };
const VCC: RegRange = RegRange { file: RegFile::Scalar, first: 106, count: 2 };
const M0: RegRange = RegRange { file: RegFile::Scalar, first: 124, count: 1 };

/// The instructions of one wave that later ones may follow too soon.
#[derive(Default)]
pub(super) struct Hazards {
    now: u32,
    past: VecDeque<Past>,
}

struct Past {
    after: u32,
    index: u32,
    facts: Arc<Facts>,
    /// Wait states after which it is no hazard any more.
    reach: u32,
}

/// An instruction that came too soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hazard {
    /// Index of the earlier instruction.
    pub(super) index: u32,
    /// Wait states that were between.
    pub(super) there: u32,
    /// Wait states that have to be.
    pub(super) needed: u32,
    /// Which rule, in words.
    pub(super) rule: &'static str,
}

impl Hazards {
    /// What an instruction follows too soon, if anything.
    pub(super) fn check(&self, then: &Facts) -> Option<Hazard> {
        let near = self.past.iter().rev().filter(|past| self.now - past.after < past.reach);
        near.into_iter().find_map(|past| {
            let there = self.now - past.after;
            let (needed, rule) = needed(&past.facts, then)?;
            (needed > there).then_some(Hazard { index: past.index, there, needed, rule })
        })
    }

    /// Records that an instruction has been executed.
    pub(super) fn executed(&mut self, facts: &Arc<Facts>, index: u32) {
        let inst = &facts.inst;
        self.now += if inst.op == Op::SNop { u32::from(inst.mods.simm16 & 0xf) + 1 } else { 1 };
        while self.past.front().is_some_and(|past| self.now - past.after >= LONGEST) {
            self.past.pop_front();
        }
        if let Some(reach) = reach(facts) {
            self.past.push_back(Past { after: self.now, index, facts: Arc::clone(facts), reach });
        }
    }
}

/// For how many wait states an instruction may be followed too soon, if it may.
fn reach(facts: &Facts) -> Option<u32> {
    let inst = &facts.inst;
    if passes::engine(inst).is_some() {
        return Some(LONGEST);
    }
    if is_vector_alu(inst) {
        return Some(5);
    }
    let sets_mode = matches!(inst.op, Op::SSetregB32 | Op::SSetregImm32B32);
    (sets_mode || wide_store(inst).is_some() || writes_m0(facts)).then_some(2)
}

fn writes_m0(facts: &Facts) -> bool {
    facts.inst.op.info().class == Class::Salu && facts.writes.iter().any(|&range| overlap(range, M0))
}

/// The wait states that must be between `first` and `then`, the largest that any rule asks for.
fn needed(first: &Facts, then: &Facts) -> Option<(u32, &'static str)> {
    let rules = [after_valu(first, then), after_matrix(first, then), after_others(first, then)];
    rules.into_iter().flatten().max_by_key(|(needed, _)| *needed)
}

/// After a vector ALU instruction that is no matrix instruction.
fn after_valu(before: &Facts, after: &Facts) -> Option<(u32, &'static str)> {
    let (first, then) = (&before.inst, &after.inst);
    if !is_vector_alu(first) || passes::engine(first).is_some() {
        return None;
    }
    let writes = |range| before.writes.iter().any(|&written| overlap(written, range));
    let written_to = |file| after.reads.iter().any(|&range| range.file == file && writes(range));
    let class = then.op.info().class;
    let mut worst: Option<(u32, &'static str)> = None;
    let mut rule = |applies: bool, needed, text| {
        if applies && worst.is_none_or(|(most, _)| needed > most) {
            worst = Some((needed, text));
        }
    };
    let scalar = written_to(RegFile::Scalar);
    rule(
        is_vector_memory(then) && scalar,
        5,
        "a vector memory instruction reads an SGPR that the vector ALU has written",
    );
    if is_vector_alu(then) {
        let vector = written_to(RegFile::Vector) || written_to(RegFile::Acc);
        rule(then.mods.dpp.is_some() && vector, 2, "DPP reads a VGPR that the vector ALU has written");
        rule(then.mods.dpp.is_some() && writes(EXEC), 5, "DPP after the vector ALU has written EXEC");
        let div_fmas = matches!(then.op, Op::VDivFmasF32 | Op::VDivFmasF64);
        rule(div_fmas && writes(VCC), 4, "v_div_fmas after the vector ALU has written VCC");
        let lane = matches!(then.op, Op::VReadlaneB32 | Op::VWritelaneB32);
        let select = then.src[1].registers();
        let selected = select.is_some_and(|range| range.file == RegFile::Scalar && writes(range));
        rule(lane && selected, 4, "the vector ALU has written the SGPR that selects the lane");
        let reads_lane = matches!(then.op, Op::VReadlaneB32 | Op::VReadfirstlaneB32);
        rule(reads_lane && vector, 1, "a lane is read of a VGPR that the vector ALU has written");
        rule(
            (lane || reads_lane) && writes(EXEC),
            4,
            "a lane is read or written after the vector ALU has written EXEC",
        );
        let transcendental = first.op.info().class == Class::Transcendental;
        let plain = class != Class::Transcendental;
        rule(transcendental && plain && vector, 1, "the vector ALU reads the result of a transcendental");
        rule(writes_part(first) && vector, 1, "the vector ALU reads a VGPR of which a part has just been written");
        let explicit =
            after.reads.iter().any(|&range| range.file == RegFile::Scalar && !overlap(range, EXEC) && writes(range));
        rule(explicit, 2, "the vector ALU reads an SGPR that it has written");
        let matrix = passes::engine(then).is_some();
        rule(
            matrix && vector && !is_dot(first),
            2,
            "a matrix instruction reads a VGPR that the vector ALU has written",
        );
        rule(matrix && writes(EXEC), 4, "a matrix instruction after the vector ALU has written EXEC");
    }
    if is_dot(first) && (is_vector_alu(then) || is_data_memory(then)) && passes::engine(then).is_none() {
        let accumulates = first.op == then.op;
        let read = then
            .src
            .iter()
            .enumerate()
            .any(|(i, operand)| operand.registers().is_some_and(&writes) && !(accumulates && i == 2));
        rule(read, 3, "the result of a dot product is read");
        let overwritten = !accumulates && after.writes.iter().copied().any(&writes);
        rule(overwritten, 3, "the result of a dot product is overwritten");
    }
    worst
}

/// After a matrix instruction.
fn after_matrix(before: &Facts, after: &Facts) -> Option<(u32, &'static str)> {
    let (first, then) = (&before.inst, &after.inst);
    let engine = passes::engine(first)?;
    let passes = passes::passes(first);
    let written = first.dst.registers()?;
    let touches = |operand: Operand| operand.registers().is_some_and(|range| overlap(range, written));
    // gfx950 needs one more than gfx940 after its longer instructions.
    let slow = u32::from(passes != 2);
    let until_read = match engine {
        Engine::Xdl => passes + 3 + slow,
        Engine::Single => passes + 2,
        Engine::Double if passes == 4 => 6,
        Engine::Double => 11,
    };
    if let Some(then_engine) = passes::engine(then) {
        if touches(then.src[0]) || touches(then.src[1]) {
            return Some((until_read, "a matrix instruction reads as A or B what a matrix instruction has written"));
        }
        // A sparse instruction accumulates in its destination.
        let c = if matches!(then.op.info().class, Class::Smfmac(_)) { then.dst } else { then.src[2] };
        if !touches(c) {
            return None;
        }
        let same = c.registers() == Some(written);
        let needed = match (engine, same) {
            (Engine::Double, true) => {
                if passes == 4 && then.op == first.op {
                    4
                } else {
                    0
                }
            }
            (Engine::Double, false) if then_engine == Engine::Xdl => 0,
            (Engine::Double, false) => {
                if passes == 4 {
                    4
                } else {
                    9
                }
            }
            (_, true) => {
                if passes == 2 {
                    2
                } else {
                    0
                }
            }
            (Engine::Single, false) if then_engine == Engine::Xdl => 0,
            (Engine::Single, false) => passes,
            (Engine::Xdl, false) => passes + 1 + slow,
        };
        return Some((needed, "a matrix instruction accumulates onto part of what a matrix instruction has written"));
    }
    let memory = is_data_memory(then);
    if !memory && !is_vector_alu(then) {
        return None;
    }
    if after.inputs.iter().any(|&range| overlap(range, written)) {
        let needed = match (engine, memory, passes) {
            (Engine::Double, true, 4) => 9,
            (Engine::Double, true, _) => 18,
            _ => until_read,
        };
        return Some((needed, "the result of a matrix instruction is read"));
    }
    if after.writes.iter().any(|&range| overlap(range, written)) {
        return Some((until_read, "the result of a matrix instruction is overwritten"));
    }
    let c = first.src[2].registers();
    if engine == Engine::Xdl && c.is_some_and(|c| after.writes.iter().any(|&range| overlap(range, c))) {
        return Some((passes - 1, "a matrix instruction may not have read yet what is overwritten"));
    }
    let fma = matches!(then.op, Op::VFmaF64 | Op::VFmacF64);
    (fma && engine == Engine::Double).then_some((2, "an f64 multiply-add after an f64 matrix instruction"))
}

/// After scalar instructions and stores.
fn after_others(before: &Facts, after: &Facts) -> Option<(u32, &'static str)> {
    let (first, then) = (&before.inst, &after.inst);
    if let Some(data) = wide_store(first)
        && is_vector_alu(then)
        && after.writes.iter().any(|&range| overlap(range, data))
    {
        return Some((2, "the vector ALU overwrites the data of a store of more than 64 bits"));
    }
    let sets = matches!(first.op, Op::SSetregB32 | Op::SSetregImm32B32);
    let same = first.mods.simm16 & 0x3f == then.mods.simm16 & 0x3f;
    if sets && same && matches!(then.op, Op::SGetregB32 | Op::SSetregB32 | Op::SSetregImm32B32) {
        return Some((2, "a hardware register is accessed after s_setreg"));
    }
    let info = then.op.info();
    let to_lds = is_vector_memory(then) && (then.mods.lds || info.name.contains("_lds_"));
    let reads_m0 = to_lds
        || info.class == Class::Message
        || info.class == Class::Gws
        || info.name.starts_with("s_movrel")
        || info.name.contains("addtid")
        || then.src.contains(&Operand::Special(isa::Special::LdsDirect));
    (writes_m0(before) && reads_m0).then_some((1, "M0 is used after the scalar ALU has written it"))
}

fn is_vector_alu(inst: &Inst) -> bool {
    matches!(inst.op.info().class, Class::Valu | Class::Transcendental | Class::Mfma(_) | Class::Smfmac(_))
}

fn is_vector_memory(inst: &Inst) -> bool {
    matches!(inst.op.info().class, Class::Flat | Class::Global | Class::Scratch | Class::Mubuf | Class::Mtbuf)
}

fn is_data_memory(inst: &Inst) -> bool {
    is_vector_memory(inst) || inst.op.info().class == Class::Lds
}

fn is_dot(inst: &Inst) -> bool {
    inst.op.info().name.starts_with("v_dot")
}

/// Whether the instruction writes a part of its destination's dword.
fn writes_part(inst: &Inst) -> bool {
    match inst.mods.sdwa {
        Some(sdwa) => sdwa.dst_sel != SdwaSel::Dword,
        None => inst.encoding == Encoding::Vop3 && inst.mods.op_sel & 8 != 0,
    }
}

/// The data registers of a store that reads them late.
fn wide_store(inst: &Inst) -> Option<RegRange> {
    let info = inst.op.info();
    let data = match info.class {
        Class::Flat | Class::Global | Class::Scratch => inst.src[2],
        Class::Mubuf | Class::Mtbuf if inst.src[2].registers().is_none() => inst.src[3],
        _ => return None,
    };
    let data = data.registers()?;
    (info.memory == Memory::Store && data.count > 2 && info.reads.contains(Implicit::EXEC)).then_some(data)
}

fn overlap(a: RegRange, b: RegRange) -> bool {
    let end = |range: RegRange| u16::from(range.first) + u16::from(range.count);
    a.file == b.file && u16::from(a.first) < end(b) && u16::from(b.first) < end(a)
}
