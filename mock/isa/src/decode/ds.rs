//! Local data share.

use super::{Code, Result, bit, bits};
use crate::{Class, Encoding, Inst, tables};

/// `| 110110 | acc | op:8 | gds | offset1:8 | offset0:8 |`, `| vdst:8 | data1:8 | data0:8 | addr:8 |`
pub(super) fn ds(code: &mut Code) -> Result<Inst> {
    let word = code.word;
    let op = code.opcode(&tables::DS, bits(word, 17, 8))?;
    let high = code.next()?;
    let info = op.info();
    let acc = bit(word, 25);
    let mut inst = Inst::new(op, Encoding::Ds, 2);
    for (i, field) in [bits(high, 0, 8), bits(high, 8, 8), bits(high, 16, 8)].into_iter().enumerate() {
        let ty = info.src[i].ty;
        if ty.is_none() {
            code.zero(field)?;
        } else {
            inst.src[i] = code.vector(field, ty.dwords(), acc && i > 0)?;
        }
    }
    let vdst = bits(high, 24, 8);
    if info.dst.ty.is_none() {
        code.zero(vdst)?;
    } else {
        inst.dst = code.vector(vdst, info.dst.ty.dwords(), acc)?;
    }
    if two_addresses(info.name) {
        inst.mods.offset0 = bits(word, 0, 8) as u8;
        inst.mods.offset1 = bits(word, 8, 8) as u8;
    } else {
        inst.mods.offset = bits(word, 0, 16) as i32;
    }
    inst.mods.gds = bit(word, 16) || info.class == Class::Gws;
    Ok(inst)
}

fn two_addresses(name: &str) -> bool {
    name.contains("read2") || name.contains("write2") || name.contains("xchg2")
}
