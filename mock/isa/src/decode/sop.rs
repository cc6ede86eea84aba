//! Scalar ALU and program control.

use super::{Code, Result, bits};
use crate::{Encoding, Inst, Op, Operand, tables};

/// `| 10 | op:7 | sdst:7 | ssrc1:8 | ssrc0:8 |`
pub(super) fn sop2(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::SOP2, bits(word, 23, 7))?;
    (inst.op, inst.encoding) = (op, Encoding::Sop2);
    sdst(code, inst, bits(word, 16, 7))?;
    ssrc(code, inst, 0, bits(word, 0, 8))?;
    ssrc(code, inst, 1, bits(word, 8, 8))?;
    Ok(())
}

/// `| 101111101 | sdst:7 | op:8 | ssrc0:8 |`
pub(super) fn sop1(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::SOP1, bits(word, 8, 8))?;
    (inst.op, inst.encoding) = (op, Encoding::Sop1);
    sdst(code, inst, bits(word, 16, 7))?;
    ssrc(code, inst, 0, bits(word, 0, 8))?;
    Ok(())
}

/// `| 101111110 | op:7 | ssrc1:8 | ssrc0:8 |`
pub(super) fn sopc(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::SOPC, bits(word, 16, 7))?;
    (inst.op, inst.encoding) = (op, Encoding::Sopc);
    ssrc(code, inst, 0, bits(word, 0, 8))?;
    if op == Op::SSetGprIdxOn {
        inst.mods.simm16 = bits(word, 8, 8) as u16;
    } else {
        ssrc(code, inst, 1, bits(word, 8, 8))?;
    }
    Ok(())
}

/// `| 1011 | op:5 | sdst:7 | simm16:16 |`; compares and s_setreg read the register of `sdst`.
pub(super) fn sopk(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::SOPK, bits(word, 23, 5))?;
    (inst.op, inst.encoding) = (op, Encoding::Sopk);
    inst.mods.simm16 = bits(word, 0, 16) as u16;
    let register = bits(word, 16, 7);
    if op == Op::SSetregImm32B32 {
        inst.src[0] = Operand::Literal(code.literal()?);
    } else if op.info().dst.ty.is_none() {
        ssrc(code, inst, 0, register)?;
    } else {
        sdst(code, inst, register)?;
    }
    Ok(())
}

/// `| 101111111 | op:7 | simm16:16 |`
pub(super) fn sopp(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::SOPP, bits(word, 16, 7))?;
    (inst.op, inst.encoding) = (op, Encoding::Sopp);
    inst.mods.simm16 = bits(word, 0, 16) as u16;
    if matches!(op, Op::SBarrier | Op::SWakeup | Op::SIcacheInv | Op::STtracedata | Op::SEndpgmSaved)
        || matches!(op, Op::SSetGprIdxOff | Op::SEndpgmOrderedPsDone)
    {
        code.zero(inst.mods.simm16.into())?;
    }
    Ok(())
}

fn sdst(code: &mut Code, inst: &mut Inst, field: u32) -> Result<()> {
    let ty = inst.op.info().dst.ty;
    if !ty.is_none() {
        inst.dst = code.scalar(field, ty.dwords())?;
    }
    Ok(())
}

fn ssrc(code: &mut Code, inst: &mut Inst, index: usize, field: u32) -> Result<()> {
    let ty = inst.op.info().src[index].ty;
    if !ty.is_none() {
        inst.src[index] = code.scalar(field, ty.dwords())?;
    }
    Ok(())
}
