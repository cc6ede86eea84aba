//! Buffers.

use super::{Code, Reason, Result, bit, bits};
use crate::{Encoding, Inst, Memory, tables};

/// `| 111000 | - | op:7 | nt | lds | sc1 | sc0 | idxen | offen | offset:12 |`,
/// `| soffset:8 | acc | - | srsrc:5 | vdata:8 | vaddr:8 |`
pub(super) fn mubuf(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::MUBUF, bits(word, 18, 7))?;
    let high = code.next()?;
    (inst.op, inst.encoding) = (op, Encoding::Mubuf);
    inst.mods.sc0 = bit(word, 14);
    inst.mods.sc1 = bit(word, 15);
    inst.mods.lds = bit(word, 16);
    inst.mods.nt = bit(word, 17);
    if inst.mods.lds && !op.info().forms.lds {
        return Err(code.invalid(Reason::Field));
    }
    operands(code, inst, high)?;
    Ok(())
}

/// `| 111010 | nfmt:3 | dfmt:4 | op:4 | sc0 | idxen | offen | offset:12 |`,
/// `| soffset:8 | acc | nt | sc1 | srsrc:5 | vdata:8 | vaddr:8 |`
pub(super) fn mtbuf(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::MTBUF, bits(word, 15, 4))?;
    let high = code.next()?;
    (inst.op, inst.encoding) = (op, Encoding::Mtbuf);
    inst.mods.sc0 = bit(word, 14);
    inst.mods.sc1 = bit(high, 21);
    inst.mods.nt = bit(high, 22);
    inst.mods.format = bits(word, 19, 7) as u8;
    operands(code, inst, high)?;
    Ok(())
}

fn operands(code: &mut Code, inst: &mut Inst, high: u32) -> Result<()> {
    let word = code.word;
    let info = inst.op.info();
    if info.memory == Memory::Cache {
        code.zero(bits(word, 12, 2) | bits(word, 16, 1) | bits(high, 23, 1))?;
        inst.mods.nt = false;
        return Ok(());
    }
    let acc = bit(high, 23);
    if inst.mods.lds {
        code.zero(acc.into())?;
    }
    inst.mods.offset = bits(word, 0, 12) as i32;
    inst.mods.offen = bit(word, 12);
    inst.mods.idxen = bit(word, 13);
    let address = u8::from(inst.mods.offen) + u8::from(inst.mods.idxen);
    if address > 0 {
        inst.src[0] = code.vgpr(bits(high, 0, 8), address)?;
    }
    inst.src[1] = code.scalar(bits(high, 16, 5) << 2, 4)?;
    inst.src[2] = code.scalar(bits(high, 24, 8), 1)?;
    let vdata = bits(high, 8, 8);
    if !info.src[3].ty.is_none() {
        inst.src[3] = code.vector(vdata, info.src[3].ty.dwords(), acc)?;
    }
    let returns = info.memory != Memory::Atomic || inst.mods.sc0;
    if !info.dst.ty.is_none() && returns && !inst.mods.lds {
        inst.dst = code.vector(vdata, info.dst.ty.dwords(), acc)?;
    }
    Ok(())
}
