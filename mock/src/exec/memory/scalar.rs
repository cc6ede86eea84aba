//! Scalar memory: loads to SGPRs.

use isa::{Op, Operand};

use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro};

pub(in crate::exec) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let dwords = match b.inst.op {
        Op::SLoadDword => 1,
        Op::SLoadDwordx2 => 2,
        Op::SLoadDwordx4 => 4,
        Op::SLoadDwordx8 => 8,
        Op::SLoadDwordx16 => 16,
        _ => return Err(Unsupported::Instruction),
    };
    let mut micro = b.micro(load)?;
    micro.aux = dwords;
    if b.inst.src[1] == Operand::None {
        micro.src[1].low = 0;
    }
    Ok(micro)
}

fn load(cx: &mut Cx<'_>, m: &Micro) {
    let (low, high) = cx.scalar64(m.src[0]);
    let base = u64::from(low) | u64::from(high) << 32;
    let offset = cx.scalar32(m.src[1]);
    // Scalar loads drop the two lowest address bits.
    let at = base.wrapping_add(u64::from(offset)).wrapping_add_signed(m.imm.into()) & !3;
    for i in 0..m.aux as u16 {
        match cx.memory.read_u32(at + 4 * u64::from(i)) {
            Ok(value) => cx.write_sgpr32(m.dst + i, value),
            Err(fault) => return cx.fault(fault),
        }
    }
}
