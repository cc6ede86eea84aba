//! Vector ALU in 64 bits.

use super::{Code, Reason, Result, bit, bits};
use crate::info::ModBits;
use crate::{Encoding, Inst, Op, tables};

/// `| 110100 | op:10 | clamp | op_sel:4 | abs:3 | vdst:8 |`, `| neg:3 | omod:2 | src2:9 | src1:9 | src0:9 |`;
/// with a second destination `| clamp | sdst:7 | vdst:8 |`.
pub(super) fn vop3(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::VOP3, bits(word, 16, 10))?;
    let high = code.next()?;
    let info = op.info();
    (inst.op, inst.encoding) = (op, Encoding::Vop3);

    let vdst = bits(word, 0, 8);
    let scalar_dst = info.encoding == Encoding::Vopc || op == Op::VReadlaneB32;
    if info.dst.ty.is_none() {
        code.zero(vdst)?;
    } else if scalar_dst {
        inst.dst = code.scalar(vdst, info.dst.ty.dwords())?;
    } else {
        inst.dst = code.vgpr(vdst, info.dst.ty.dwords())?;
    }

    let has_sdst = !info.sdst.ty.is_none();
    if has_sdst {
        inst.sdst = code.scalar(bits(word, 8, 7), 2)?;
    }
    for (i, field) in [bits(high, 0, 9), bits(high, 9, 9), bits(high, 18, 9)].into_iter().enumerate() {
        let ty = info.src[i].ty;
        if !ty.is_none() {
            inst.src[i] = code.source(field, ty.dwords())?;
        }
    }

    let low_mods = if has_sdst { bits(word, 15, 1) << 7 } else { bits(word, 8, 8) };
    let mods = ModBits::from_bits_retain((low_mods | bits(high, 27, 5) << 8) as u16);
    modifiers(code, inst, mods, has_sdst)?;
    Ok(())
}

fn modifiers(code: &Code, inst: &mut Inst, mods: ModBits, has_sdst: bool) -> Result<()> {
    let forms = &inst.op.info().forms;
    if !(forms.used | forms.ignored).contains(mods) {
        return Err(code.invalid(Reason::Field));
    }
    let mods = u32::from((mods & forms.used).bits());
    let (abs, neg, omod) = (bits(mods, 0, 3) as u8, bits(mods, 10, 3) as u8, bits(mods, 8, 2) as u8);
    if matches!(inst.op, Op::VBitop3B16 | Op::VBitop3B32) {
        // ISA, V_BITOP3_B32: the truth table is in the place of omod, abs and neg.
        inst.mods.bitop3 = omod << 6 | abs << 3 | neg;
    } else {
        (inst.mods.neg, inst.mods.omod) = (neg, omod);
        inst.mods.abs = if has_sdst { 0 } else { abs };
    }
    inst.mods.op_sel = bits(mods, 3, 4) as u8;
    inst.mods.clamp = bit(mods, 7);
    Ok(())
}
