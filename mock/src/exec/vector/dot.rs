//! Dot products.
//!
//! The floating-point ones flush denormals of single precision, whatever MODE says (CDNA4 ISA section 6.4; LLVM
//! `SITargetLowering::performFMACombine`), operands and results alike. Products of halves are exact in single precision;
//! the manual gives the order of the sums, each of which is taken to round to nearest even.

use isa::Op;

use super::Answer;
use crate::exec::element::Half;
use crate::exec::formats::Format;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::softfloat::Rules;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VDot2F32F16 => b.lanes::<L, Dot2Half>(),
        Op::VDot2cF32F16 => b.accumulating::<L, Dot2Half>(),
        Op::VDot2F32Bf16 => b.lanes::<L, Dot2Bfloat>(),
        Op::VDot2cF32Bf16 => b.accumulating::<L, Dot2BfloatAccumulating>(),
        Op::VDot2I32I16 => b.lanes::<L, Dot2Signed>(),
        Op::VDot2cI32I16 => b.accumulating::<L, Dot2Signed>(),
        Op::VDot2U32U16 => b.lanes::<L, Dot2Unsigned>(),
        Op::VDot4I32I8 => b.lanes::<L, Dot4Signed>(),
        Op::VDot4cI32I8 => b.accumulating::<L, Dot4Signed>(),
        Op::VDot4U32U8 => b.lanes::<L, Dot4Unsigned>(),
        Op::VDot8I32I4 => b.lanes::<L, Dot8Signed>(),
        Op::VDot8cI32I4 => b.accumulating::<L, Dot8Signed>(),
        Op::VDot8U32U4 => b.lanes::<L, Dot8Unsigned>(),
        _ => None,
    }
}

lanes! {
    Dot2Half(a: [Half; 2], b: [Half; 2], c: f32) -> f32 = step(half(a[1]), half(b[1]), step(half(a[0]), half(b[0]), c)),
        nan, exact |_flags| chain(half(a[1]), half(b[1]), chain(half(a[0]), half(b[0]), c));
    /// The addend has no modifiers (CDNA4 ISA, V_DOT2_F32_BF16).
    Dot2Bfloat(a: [Half; 2], b: [Half; 2], c: u32) -> f32 =
        (step(bfloat(a[1]), bfloat(b[1]), (bfloat(a[0]) * bfloat(b[0])).flushed()) + f32::from_bits(c).flushed()).flushed(),
        nan, exact |_flags| DOT.add(
            chain(bfloat(a[1]), bfloat(b[1]), DOT.mul(bfloat(a[0]), bfloat(b[0]))),
            f32::from_bits(c),
        );
    Dot2BfloatAccumulating(a: [Half; 2], b: [Half; 2], c: f32) -> f32 =
        step(bfloat(a[1]), bfloat(b[1]), step(bfloat(a[0]), bfloat(b[0]), c)),
        nan, exact |_flags| chain(bfloat(a[1]), bfloat(b[1]), chain(bfloat(a[0]), bfloat(b[0]), c));
    Dot2Signed(a: [i16; 2], b: [i16; 2], c: i32) -> i32 = c.wrapping_add(dot2(a, b) as i32),
        clamp |_flags| saturated(i64::from(c) + dot2(a, b));
    Dot2Unsigned(a: [u16; 2], b: [u16; 2], c: u32) -> u32 = c.wrapping_add(dot2_unsigned(a, b) as u32),
        clamp |_flags| saturated_unsigned(u64::from(c) + dot2_unsigned(a, b));
    Dot4Signed(a: u32, b: u32, c: i32) -> i32 = c.wrapping_add(dot_signed::<8>(a, b)),
        clamp |_flags| c.saturating_add(dot_signed::<8>(a, b));
    Dot4Unsigned(a: u32, b: u32, c: u32) -> u32 = c.wrapping_add(dot_unsigned::<8>(a, b)),
        clamp |_flags| c.saturating_add(dot_unsigned::<8>(a, b));
    Dot8Signed(a: u32, b: u32, c: i32) -> i32 = c.wrapping_add(dot_signed::<4>(a, b)),
        clamp |_flags| c.saturating_add(dot_signed::<4>(a, b));
    Dot8Unsigned(a: u32, b: u32, c: u32) -> u32 = c.wrapping_add(dot_unsigned::<4>(a, b)),
        clamp |_flags| c.saturating_add(dot_unsigned::<4>(a, b));
}

/// How the floating-point dot products compute.
const DOT: Rules = Rules { keeps_inputs: false, keeps_results: false, ..Rules::USUAL };

#[inline(always)]
fn half(value: Half) -> f32 {
    Format::F16.decode(value.0.into())
}

#[inline(always)]
fn bfloat(value: Half) -> f32 {
    f32::from_bits(u32::from(value.0) << 16).flushed()
}

/// a * b + c without denormals; `a` and `b` are none.
#[inline(always)]
fn step(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c.flushed()).flushed()
}

/// [`step`] with the right NaN.
fn chain(a: f32, b: f32, c: f32) -> f32 {
    DOT.fma(a, b, c, 0)
}

#[inline(always)]
fn dot2(a: [i16; 2], b: [i16; 2]) -> i64 {
    i64::from(i32::from(a[0]) * i32::from(b[0])) + i64::from(i32::from(a[1]) * i32::from(b[1]))
}

#[inline(always)]
fn dot2_unsigned(a: [u16; 2], b: [u16; 2]) -> u64 {
    u64::from(u32::from(a[0]) * u32::from(b[0])) + u64::from(u32::from(a[1]) * u32::from(b[1]))
}

#[inline(always)]
fn saturated(value: i64) -> i32 {
    value.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}

#[inline(always)]
fn saturated_unsigned(value: u64) -> u32 {
    value.min(u32::MAX.into()) as u32
}

/// The sum of products of the signed fields of `BITS` bits.
#[inline(always)]
fn dot_signed<const BITS: u32>(a: u32, b: u32) -> i32 {
    let field = |value: u32, i: u32| (value << (32 - BITS - BITS * i)) as i32 >> (32 - BITS);
    (0..32 / BITS).fold(0, |sum, i| sum + field(a, i) * field(b, i))
}

/// The sum of products of the unsigned fields of `BITS` bits.
#[inline(always)]
fn dot_unsigned<const BITS: u32>(a: u32, b: u32) -> u32 {
    let field = |value: u32, i: u32| value << (32 - BITS - BITS * i) >> (32 - BITS);
    (0..32 / BITS).fold(0, |sum, i| sum + field(a, i) * field(b, i))
}
