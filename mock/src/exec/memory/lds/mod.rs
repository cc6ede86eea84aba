//! The local data share: DS instructions.

mod access;
mod atomic;
mod exchange;
#[cfg(test)]
mod tests;
mod transpose;

use isa::Op;

use super::item::{Dwords, HIGH, I8, I16, LOW, Narrow, U8, U16};
use crate::exec::Micro;
use crate::exec::level::{Baseline, Level};
use crate::exec::translate::{Builder, Unsupported};
use access::{Exchange2, Read, Read2, ReadByLane, Write, Write2, WriteByLane};
use exchange::{Bpermute, Permute, Swizzle};
use transpose::ReadTransposed;

pub(super) use access::write;
pub(super) use atomic::update;

pub(in crate::exec) fn translate<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    use Op::*;
    match b.inst.op {
        // The global data share is gone; the bit that chose it is reserved (CDNA4 ISA table 57).
        _ if b.inst.mods.gds => Err(Unsupported::Instruction),
        DsNop => b.micro(|_, _| {}),
        DsReadU8 => b.body::<L, Read<U8>>(),
        DsReadI8 => b.body::<L, Read<I8>>(),
        DsReadU16 => b.body::<L, Read<U16>>(),
        DsReadI16 => b.body::<L, Read<I16>>(),
        DsReadU8D16 => b.body::<L, Read<Narrow<1, false, LOW>>>(),
        DsReadU8D16Hi => b.body::<L, Read<Narrow<1, false, HIGH>>>(),
        DsReadI8D16 => b.body::<L, Read<Narrow<1, true, LOW>>>(),
        DsReadI8D16Hi => b.body::<L, Read<Narrow<1, true, HIGH>>>(),
        DsReadU16D16 => b.body::<L, Read<Narrow<2, false, LOW>>>(),
        DsReadU16D16Hi => b.body::<L, Read<Narrow<2, false, HIGH>>>(),
        DsReadB32 => b.body::<L, Read<Dwords<1>>>(),
        DsReadB64 => b.body::<L, Read<Dwords<2>>>(),
        DsReadB96 => b.body::<L, Read<Dwords<3>>>(),
        DsReadB128 => b.body::<L, Read<Dwords<4>>>(),
        DsWriteB8 => b.body::<L, Write<U8>>(),
        DsWriteB8D16Hi => b.body::<L, Write<Narrow<1, false, HIGH>>>(),
        DsWriteB16 => b.body::<L, Write<U16>>(),
        DsWriteB16D16Hi => b.body::<L, Write<Narrow<2, false, HIGH>>>(),
        DsWriteB32 => b.body::<L, Write<Dwords<1>>>(),
        DsWriteB64 => b.body::<L, Write<Dwords<2>>>(),
        DsWriteB96 => b.body::<L, Write<Dwords<3>>>(),
        DsWriteB128 => b.body::<L, Write<Dwords<4>>>(),
        DsRead2B32 => two::<L, Read2<Dwords<1>>>(b, 4),
        DsRead2st64B32 => two::<L, Read2<Dwords<1>>>(b, 4 * 64),
        DsRead2B64 => two::<L, Read2<Dwords<2>>>(b, 8),
        DsRead2st64B64 => two::<L, Read2<Dwords<2>>>(b, 8 * 64),
        DsWrite2B32 => two::<L, Write2<Dwords<1>>>(b, 4),
        DsWrite2st64B32 => two::<L, Write2<Dwords<1>>>(b, 4 * 64),
        DsWrite2B64 => two::<L, Write2<Dwords<2>>>(b, 8),
        DsWrite2st64B64 => two::<L, Write2<Dwords<2>>>(b, 8 * 64),
        DsWrxchg2RtnB32 => two::<Baseline, Exchange2<Dwords<1>>>(b, 4),
        DsWrxchg2st64RtnB32 => two::<Baseline, Exchange2<Dwords<1>>>(b, 4 * 64),
        DsWrxchg2RtnB64 => two::<Baseline, Exchange2<Dwords<2>>>(b, 8),
        DsWrxchg2st64RtnB64 => two::<Baseline, Exchange2<Dwords<2>>>(b, 8 * 64),
        DsReadAddtidB32 => b.body::<L, ReadByLane>(),
        DsWriteAddtidB32 => b.body::<L, WriteByLane>(),
        DsReadB64TrB16 => b.body::<L, ReadTransposed<16, 2, 4>>(),
        DsReadB64TrB8 => b.body::<L, ReadTransposed<8, 2, 8>>(),
        DsReadB64TrB4 => b.body::<L, ReadTransposed<4, 2, 16>>(),
        DsReadB96TrB6 => b.body::<L, ReadTransposed<6, 3, 16>>(),
        DsPermuteB32 => b.body::<L, Permute>(),
        DsBpermuteB32 => b.body::<L, Bpermute>(),
        DsSwizzleB32 => b.body::<L, Swizzle>(),
        _ => atomic::translate(b),
    }
}

/// An instruction with two addresses: their offsets, in units of `unit` bytes, go to `imm` and `aux`.
fn two<L: Level, B: crate::exec::level::Body>(b: &Builder<'_>, unit: u32) -> Result<Micro, Unsupported> {
    let mut micro = b.body::<L, B>()?;
    micro.imm = (u32::from(b.inst.mods.offset0) * unit) as i32;
    micro.aux = u32::from(b.inst.mods.offset1) * unit;
    Ok(micro)
}
