//! Scalar ALU and program control.

use super::{Code, Result, bits};
use crate::{Encoding, Inst, Op, Operand, tables};

/// `| 10 | op:7 | sdst:7 | ssrc1:8 | ssrc0:8 |`
pub(super) fn sop2(code: &mut Code) -> Result<Inst> {
    let word = code.word;
    let op = code.opcode(&tables::SOP2, bits(word, 23, 7))?;
    let mut inst = Inst::new(op, Encoding::Sop2, 0);
    sdst(code, &mut inst, bits(word, 16, 7))?;
    ssrc(code, &mut inst, 0, bits(word, 0, 8))?;
    ssrc(code, &mut inst, 1, bits(word, 8, 8))?;
    Ok(finish(code, inst))
}

/// `| 101111101 | sdst:7 | op:8 | ssrc0:8 |`
pub(super) fn sop1(code: &mut Code) -> Result<Inst> {
    let word = code.word;
    let op = code.opcode(&tables::SOP1, bits(word, 8, 8))?;
    let mut inst = Inst::new(op, Encoding::Sop1, 0);
    sdst(code, &mut inst, bits(word, 16, 7))?;
    ssrc(code, &mut inst, 0, bits(word, 0, 8))?;
    Ok(finish(code, inst))
}

/// `| 101111110 | op:7 | ssrc1:8 | ssrc0:8 |`
pub(super) fn sopc(code: &mut Code) -> Result<Inst> {
    let word = code.word;
    let op = code.opcode(&tables::SOPC, bits(word, 16, 7))?;
    let mut inst = Inst::new(op, Encoding::Sopc, 0);
    ssrc(code, &mut inst, 0, bits(word, 0, 8))?;
    if op == Op::SSetGprIdxOn {
        inst.mods.simm16 = bits(word, 8, 8) as u16;
    } else {
        ssrc(code, &mut inst, 1, bits(word, 8, 8))?;
    }
    Ok(finish(code, inst))
}

/// `| 1011 | op:5 | sdst:7 | simm16:16 |`; compares and s_setreg read the register of `sdst`.
pub(super) fn sopk(code: &mut Code) -> Result<Inst> {
    let word = code.word;
    let op = code.opcode(&tables::SOPK, bits(word, 23, 5))?;
    let mut inst = Inst::new(op, Encoding::Sopk, 0);
    inst.mods.simm16 = bits(word, 0, 16) as u16;
    let register = bits(word, 16, 7);
    if op == Op::SSetregImm32B32 {
        inst.src[0] = Operand::Literal(code.literal()?);
    } else if op.info().dst.ty.is_none() {
        ssrc(code, &mut inst, 0, register)?;
    } else {
        sdst(code, &mut inst, register)?;
    }
    Ok(finish(code, inst))
}

/// `| 101111111 | op:7 | simm16:16 |`
pub(super) fn sopp(code: &mut Code) -> Result<Inst> {
    let word = code.word;
    let op = code.opcode(&tables::SOPP, bits(word, 16, 7))?;
    let mut inst = Inst::new(op, Encoding::Sopp, 0);
    inst.mods.simm16 = bits(word, 0, 16) as u16;
    if matches!(op, Op::SBarrier | Op::SWakeup | Op::SIcacheInv | Op::STtracedata | Op::SEndpgmSaved)
        || matches!(op, Op::SSetGprIdxOff | Op::SEndpgmOrderedPsDone)
    {
        code.zero(inst.mods.simm16.into())?;
    }
    Ok(finish(code, inst))
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

fn finish(code: &Code, inst: Inst) -> Inst {
    Inst { dwords: code.dwords, ..inst }
}
