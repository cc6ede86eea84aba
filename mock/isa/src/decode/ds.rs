//! Local data share.

use super::{Code, Reason, Result, bit, bits};
use crate::{Class, Encoding, Inst, Op, tables};

/// `| 110110 | acc | op:8 | gds | offset1:8 | offset0:8 |`, `| vdst:8 | data1:8 | data0:8 | addr:8 |`
pub(super) fn ds(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::DS, bits(word, 17, 8))?;
    let high = code.next()?;
    let info = op.info();
    let acc = bit(word, 25);
    (inst.op, inst.encoding) = (op, Encoding::Ds);
    for (i, field) in [bits(high, 0, 8), bits(high, 8, 8), bits(high, 16, 8)].into_iter().enumerate() {
        let ty = info.src[i].ty;
        if ty.is_none() {
            code.zero(field)?;
        } else {
            inst.src[i] = code.vector(field, ty.dwords(), acc && (i > 0 || info.class == Class::Gws))?;
        }
    }
    let vdst = bits(high, 24, 8);
    if info.dst.ty.is_none() {
        code.zero(vdst)?;
    } else {
        inst.dst = code.vector(vdst, info.dst.ty.dwords(), acc)?;
    }
    if info.forms.two_addresses {
        inst.mods.offset0 = bits(word, 0, 8) as u8;
        inst.mods.offset1 = bits(word, 8, 8) as u8;
    } else {
        inst.mods.offset = bits(word, 0, 16) as i32;
    }
    // There is no global data share: the bit is ignored, but for instructions that exist on one side only.
    match info.class {
        Class::Gws => code.zero(u32::from(!bit(word, 16)))?,
        _ if matches!(op, Op::DsPermuteB32 | Op::DsBpermuteB32) => code.zero(u32::from(bit(word, 16)))?,
        _ if op == Op::DsNop => code.zero(bits(word, 0, 17) | u32::from(acc))?,
        _ => {}
    }
    if acc && info.class == Class::Gws && info.src[0].ty.is_none() {
        return Err(code.invalid(Reason::Field));
    }
    inst.mods.gds = info.class == Class::Gws;
    Ok(())
}
