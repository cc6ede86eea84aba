//! Integer arithmetic, shifts and comparisons.

use isa::Op;

use super::Answer;
use crate::exec::lanes::{Compare, Flags, Numbers, lanes};
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VAddU32 => b.lanes::<L, Add>(),
        Op::VLshlAddU64 => b.lanes::<L, ShiftLeftAdd64>(),
        Op::VLshlOrB32 => b.lanes::<L, ShiftLeftOr>(),
        Op::VLshlrevB32 => b.lanes::<L, ShiftLeft>(),
        Op::VCmpGtU32 | Op::VCmpxGtU32 => b.compare::<L, GreaterUnsigned>(),
        _ => None,
    }
}

lanes! {
    Add(a: u32, b: u32) -> u32 [Integer] = a.wrapping_add(b);
    ShiftLeft(a: u32, b: u32) -> u32 [Bits] = b << (a & 31);
    ShiftLeftOr(a: u32, b: u32, c: u32) -> u32 [Bits] = a << (b & 31) | c;
    ShiftLeftAdd64(a: u64, b: u32, c: u64) -> u64 [Integer] = (a << (b & 7)).wrapping_add(c);
}

struct GreaterUnsigned;

impl Compare for GreaterUnsigned {
    type A = u32;
    type B = u32;
    const SOURCES: Numbers = Numbers::Integer;
    #[inline(always)]
    fn holds(_: Flags, a: u32, b: u32) -> bool {
        a > b
    }
}
