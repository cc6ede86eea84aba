//! Scalar memory.

use super::{Code, Result, bit, bits};
use crate::{Encoding, Inst, Memory, Op, tables};

/// `| 110000 | op:8 | imm | glc | nv | soffset_en | - | sdata:7 | sbase:6 |`, `| soffset:7 | - | offset:21 |`
pub(super) fn smem(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::SMEM, bits(word, 18, 8))?;
    let high = code.next()?;
    let info = op.info();
    (inst.op, inst.encoding) = (op, Encoding::Smem);
    let [base, soffset, data, ..] = info.src;
    if !base.ty.is_none() {
        inst.src[0] = code.scalar(bits(word, 0, 6) << 1, base.ty.dwords())?;
    }
    let (imm, soffset_en) = (bit(word, 17), bit(word, 14));
    if !soffset.ty.is_none() {
        // Without either flag the low byte of the offset names a register (LLVM SMInstructions.td, SMEM_Real_SGPR_vi).
        if soffset_en {
            inst.src[1] = code.scalar(bits(high, 25, 7), 1)?;
        } else if !imm {
            inst.src[1] = code.scalar(bits(high, 0, 7), 1)?;
        }
        inst.mods.imm = imm;
        if imm {
            inst.mods.offset = ((bits(high, 0, 21) << 11) as i32) >> 11;
        }
    }
    if base.ty.is_none() {
        code.zero(imm.into())?;
    }
    // Cache instructions and clocks ignore GLC.
    inst.mods.sc0 = bit(word, 16) && matches!(info.memory, Memory::Load | Memory::Store | Memory::Atomic);
    inst.mods.nv = bit(word, 15);
    let sdata = bits(word, 6, 7);
    if matches!(op, Op::SAtcProbe | Op::SAtcProbeBuffer) {
        inst.mods.simm16 = sdata as u16;
    }
    if !data.ty.is_none() {
        inst.src[2] = code.scalar(sdata, data.ty.dwords())?;
    }
    if !info.dst.ty.is_none() && (info.memory != Memory::Atomic || inst.mods.sc0) {
        inst.dst = code.scalar(sdata, info.dst.ty.dwords())?;
    }
    Ok(())
}
