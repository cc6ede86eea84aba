//! Moves: plain, conditional, of single bits, and relative to M0 (CDNA4 ISA sections 5.5 and 5.7).

use isa::Op;

use super::{Scalar, salu};
use crate::exec::{Cx, Handler, Micro, Src, SrcKind, WaveFault};
use crate::wave::sreg;

/// SGPRs that an index may reach.
const SGPRS: u32 = sreg::FLAT_SCRATCH_LO as u32;

salu! {
    plain(cx): plain;
    SMovB32 | SMovkI32(a: u32) = a;
    SMovB64 | SGetpcB64(a: u64) = a;
    SCselectB32(a: u32, b: u32) = if cx.w.scc { a } else { b };
    SCselectB64(a: u64, b: u64) = if cx.w.scc { a } else { b };
}

pub(super) fn handler(op: Op) -> Option<Handler> {
    let run: Handler = match op {
        Op::SCmovB32 | Op::SCmovkI32 => |cx, m| conditional::<u32>(cx, m),
        Op::SCmovB64 => |cx, m| conditional::<u64>(cx, m),
        Op::SBitset0B32 => |cx, m| set_bit::<u32>(cx, m, |old, bit| old & !(1 << (bit & 31))),
        Op::SBitset1B32 => |cx, m| set_bit::<u32>(cx, m, |old, bit| old | 1 << (bit & 31)),
        Op::SBitset0B64 => |cx, m| set_bit::<u64>(cx, m, |old, bit| old & !(1 << (bit & 63))),
        Op::SBitset1B64 => |cx, m| set_bit::<u64>(cx, m, |old, bit| old | 1 << (bit & 63)),
        Op::SMovrelsB32 => |cx, m| from_indexed::<u32>(cx, m),
        Op::SMovrelsB64 => |cx, m| from_indexed::<u64>(cx, m),
        Op::SMovreldB32 => |cx, m| to_indexed::<u32>(cx, m),
        Op::SMovreldB64 => |cx, m| to_indexed::<u64>(cx, m),
        _ => return plain(op),
    };
    Some(run)
}

fn conditional<T: Scalar>(cx: &mut Cx<'_>, m: &Micro) {
    let value = T::read(cx, m.src[0]);
    if cx.w.scc {
        value.write(cx, m.dst);
    }
}

fn set_bit<T: Scalar>(cx: &mut Cx<'_>, m: &Micro, change: impl Fn(T, u32) -> T) {
    let bit = cx.scalar32(m.src[0]);
    let old = T::read(cx, sgpr(m.dst));
    change(old, bit).write(cx, m.dst);
}

/// A source outside the SGPRs reads the first one.
fn from_indexed<T: Scalar>(cx: &mut Cx<'_>, m: &Micro) {
    if m.src[0].kind != SrcKind::Sgpr {
        return cx.fault(WaveFault::Instruction("only SGPRs can be indexed".into()));
    }
    let index = u32::from(m.src[0].index).wrapping_add(cx.m0());
    let value = T::read(cx, sgpr(if index < SGPRS { index as u16 } else { 0 }));
    value.write(cx, m.dst);
}

/// A destination outside the SGPRs is not written.
fn to_indexed<T: Scalar>(cx: &mut Cx<'_>, m: &Micro) {
    let value = T::read(cx, m.src[0]);
    let index = u32::from(m.dst).wrapping_add(cx.m0());
    if index < SGPRS {
        value.write(cx, index as u16);
    }
}

fn sgpr(index: u16) -> Src {
    Src { kind: SrcKind::Sgpr, index, ..Src::NONE }
}
