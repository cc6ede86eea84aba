//! Vector ALU in 32 bits.

use super::{Code, Result, bits, dpp, sdwa};
use crate::operand::Special;
use crate::{Encoding, Inst, Op, Operand, tables};

/// Values of `src0` that announce a second dword.
const SDWA: u32 = 0xf9;
const DPP: u32 = 0xfa;

/// `| 0111111 | vdst:8 | op:8 | src0:9 |`
pub(super) fn vop1(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::VOP1, bits(word, 9, 8))?;
    (inst.op, inst.encoding) = (op, Encoding::Vop1);
    let info = op.info();
    let vdst = bits(word, 17, 8);
    inst.dst = match op {
        _ if info.dst.ty.is_none() => {
            code.zero(vdst)?;
            Operand::None
        }
        Op::VReadfirstlaneB32 => code.scalar(vdst, 1)?,
        Op::VAccvgprMovB32 => code.vector(vdst, 1, true)?,
        _ => code.vgpr(vdst, info.dst.ty.dwords())?,
    };
    first_source(code, inst)
}

/// `| 0 | op:6 | vdst:8 | vsrc1:8 | src0:9 |`
pub(super) fn vop2(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::VOP2, bits(word, 25, 6))?;
    (inst.op, inst.encoding) = (op, Encoding::Vop2);
    let info = op.info();
    inst.dst = code.vgpr(bits(word, 17, 8), info.dst.ty.dwords())?;
    let vsrc1 = code.vgpr(bits(word, 9, 8), info.src[1].ty.dwords())?;
    match op {
        Op::VFmamkF32 | Op::VMadmkF16 => {
            inst.src[1] = Operand::Literal(code.literal()?);
            inst.src[2] = vsrc1;
        }
        Op::VFmaakF32 | Op::VMadakF16 => {
            inst.src[1] = vsrc1;
            inst.src[2] = Operand::Literal(code.literal()?);
        }
        _ => {
            inst.src[1] = vsrc1;
            implicit_masks(inst);
        }
    }
    first_source(code, inst)
}

/// `| 0111110 | op:8 | vsrc1:8 | src0:9 |`
pub(super) fn vopc(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::VOPC, bits(word, 17, 8))?;
    (inst.op, inst.encoding) = (op, Encoding::Vopc);
    inst.dst = Operand::Special(Special::Vcc);
    inst.src[1] = code.vgpr(bits(word, 9, 8), op.info().src[1].ty.dwords())?;
    first_source(code, inst)
}

/// Carry in, condition and carry out are VCC outside VOP3.
fn implicit_masks(inst: &mut Inst) {
    let info = inst.op.info();
    if !info.src[2].ty.is_none() {
        inst.src[2] = Operand::Special(Special::Vcc);
    }
    if !info.sdst.ty.is_none() {
        inst.sdst = Operand::Special(Special::Vcc);
    }
}

fn first_source(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let info = inst.op.info();
    let field = bits(code.word, 0, 9);
    match field {
        SDWA if inst.op == Op::VNop => dpp::nop(code, inst, Encoding::Sdwa),
        DPP if inst.op == Op::VNop => dpp::nop(code, inst, Encoding::Dpp),
        SDWA if info.forms.sdwa => sdwa::sdwa(code, inst)?,
        DPP if info.forms.dpp => dpp::dpp(code, inst)?,
        _ if info.src[0].ty.is_none() => {}
        _ => {
            inst.src[0] = match inst.op {
                Op::VAccvgprMovB32 if field >= 256 => code.vector(field - 256, 1, true)?,
                _ => code.source(field, info.src[0].ty.dwords())?,
            }
        }
    }
    Ok(())
}
