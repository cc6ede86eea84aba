//! Flat, global and scratch memory.

use super::{Code, Reason, Result, bit, bits};
use crate::{Encoding, Inst, Memory, Op, tables};

/// `saddr` that names no register.
const OFF: u32 = 0x7f;

/// `| 110111 | sc1 | op:7 | nt | sc0 | seg:2 | sve | offset:13 |`, `| vdst:8 | acc | saddr:7 | data:8 | addr:8 |`
pub(super) fn flat(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let (encoding, index) = match bits(word, 14, 2) {
        0 => (Encoding::Flat, &tables::FLAT),
        1 => (Encoding::Scratch, &tables::SCRATCH),
        2 => (Encoding::Global, &tables::GLOBAL),
        _ => return Err(code.invalid(Reason::Encoding)),
    };
    let op = code.opcode(index, bits(word, 18, 7))?;
    let high = code.next()?;
    let info = op.info();
    (inst.op, inst.encoding) = (op, encoding);
    let acc = bit(high, 23);
    inst.mods.sc0 = bit(word, 16);
    inst.mods.nt = bit(word, 17);
    inst.mods.sc1 = bit(word, 25);
    inst.mods.offset = match encoding {
        Encoding::Flat => bits(word, 0, 13) as i32,
        _ => ((bits(word, 0, 13) << 19) as i32) >> 19,
    };

    let (addr, saddr, sve) = (bits(high, 0, 8), bits(high, 16, 7), bit(word, 13));
    if encoding != Encoding::Scratch {
        code.zero(sve.into())?;
    }
    match encoding {
        Encoding::Flat => {
            code.zero(saddr)?;
            inst.src[0] = code.vgpr(addr, 2)?;
        }
        Encoding::Global if saddr == OFF => inst.src[0] = code.vgpr(addr, 2)?,
        Encoding::Global => {
            inst.src[0] = code.vgpr(addr, 1)?;
            inst.src[1] = code.scalar(saddr, 2)?;
        }
        _ => {
            if sve {
                inst.src[0] = code.vgpr(addr, 1)?;
            }
            if saddr != OFF {
                inst.src[1] = code.scalar(saddr, 1)?;
            }
        }
    }

    if acc && inst.mods.sc0 && !returns_to_acc(op, inst.mods.sc1) {
        return Err(code.invalid(Reason::Field));
    }
    let data = info.src[2].ty;
    if !data.is_none() {
        inst.src[2] = code.vector(bits(high, 8, 8), data.dwords(), acc)?;
    }
    if !info.dst.ty.is_none() && (info.memory != Memory::Atomic || inst.mods.sc0) {
        inst.dst = code.vector(bits(high, 24, 8), info.dst.ty.dwords(), acc)?;
    }
    if info.dst.ty.is_none() && data.is_none() {
        // A load into LDS has no register that could be an accumulation register.
        code.zero(acc.into())?;
    }
    Ok(())
}

/// Whether the atomic can return its value to an AccVGPR (LLVM `FLATInstructions.td` has no such form of these).
fn returns_to_acc(op: Op, sc1: bool) -> bool {
    match op {
        Op::GlobalAtomicAddF32 | Op::GlobalAtomicPkAddF16 => false,
        Op::FlatAtomicAddF64 | Op::FlatAtomicMinF64 | Op::FlatAtomicMaxF64 => !sc1,
        Op::GlobalAtomicAddF64 | Op::GlobalAtomicMinF64 | Op::GlobalAtomicMaxF64 => !sc1,
        _ => true,
    }
}
