//! Single-precision arithmetic, one number or two to an operand.

use isa::Op;

use super::Answer;
use super::select::{maximum, maximum3, median, median_of, minimum, minimum3, numeric_max, numeric_min};
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VAddF32 => b.lanes::<L, Add>(),
        Op::VSubF32 => b.lanes::<L, Sub>(),
        Op::VSubrevF32 => b.lanes::<L, SubReversed>(),
        Op::VMulF32 => b.lanes::<L, Mul>(),
        Op::VMulLegacyF32 => b.lanes::<L, MulLegacy>(),
        Op::VFmaF32 | Op::VFmamkF32 | Op::VFmaakF32 => b.lanes::<L, Fma>(),
        Op::VFmacF32 => b.accumulating::<L, Fma>(),
        Op::VMinF32 => b.lanes::<L, Min>(),
        Op::VMaxF32 => b.lanes::<L, Max>(),
        Op::VMin3F32 => b.lanes::<L, Min3>(),
        Op::VMax3F32 => b.lanes::<L, Max3>(),
        Op::VMed3F32 => b.lanes::<L, Med3>(),
        Op::VMinimum3F32 => b.lanes::<L, Minimum3>(),
        Op::VMaximum3F32 => b.lanes::<L, Maximum3>(),
        Op::VPkAddF32 => b.lanes::<L, PackedAdd>(),
        Op::VPkMulF32 => b.lanes::<L, PackedMul>(),
        Op::VPkFmaF32 => b.lanes::<L, PackedFma>(),
        _ => None,
    }
}

lanes! {
    Add(a: f32, b: f32) -> f32 = a + b, nan, mode |flags| flags.add(a, b);
    Sub(a: f32, b: f32) -> f32 = a - b, nan, mode |flags| flags.sub(a, b);
    SubReversed(a: f32, b: f32) -> f32 = b - a, nan, mode |flags| flags.sub_reversed(a, b);
    Mul(a: f32, b: f32) -> f32 = a * b, nan, mode |flags| flags.mul(a, b);
    /// Zero times anything is zero.
    MulLegacy(a: f32, b: f32) -> f32 = if a == 0.0 || b == 0.0 { 0.0 } else { a * b }, nan, mode |flags| {
        if flags.input(a) == 0.0 || flags.input(b) == 0.0 { 0.0 } else { flags.mul(a, b) }
    };
    Fma(a: f32, b: f32, c: f32) -> f32 = a.mul_add(b, c), nan, mode |flags| flags.fma(a, b, c);
    Min(a: f32, b: f32) -> f32 = numeric_min(a, b), rare |d| a.is_nan() | b.is_nan(), ieee |flags| minimum(flags, a, b);
    Max(a: f32, b: f32) -> f32 = numeric_max(a, b), rare |d| a.is_nan() | b.is_nan(), ieee |flags| maximum(flags, a, b);
    Min3(a: f32, b: f32, c: f32) -> f32 = numeric_min(numeric_min(a, b), c), rare |d| a.is_nan() | b.is_nan() | c.is_nan(),
        ieee |flags| minimum(flags, minimum(flags, a, b), c);
    Max3(a: f32, b: f32, c: f32) -> f32 = numeric_max(numeric_max(a, b), c), rare |d| a.is_nan() | b.is_nan() | c.is_nan(),
        ieee |flags| maximum(flags, maximum(flags, a, b), c);
    Med3(a: f32, b: f32, c: f32) -> f32 = median_of(a, b, c), rare |d| a.is_nan() | b.is_nan() | c.is_nan(),
        ieee |flags| median(flags, a, b, c);
    Minimum3(a: f32, b: f32, c: f32) -> f32 = numeric_min(numeric_min(a, b), c),
        rare |d| a.is_nan() | b.is_nan() | c.is_nan(), mode |flags| minimum3(flags, a, b, c);
    Maximum3(a: f32, b: f32, c: f32) -> f32 = numeric_max(numeric_max(a, b), c),
        rare |d| a.is_nan() | b.is_nan() | c.is_nan(), mode |flags| maximum3(flags, a, b, c);
    PackedAdd(a: [f32; 2], b: [f32; 2]) -> [f32; 2] = [a[0] + b[0], a[1] + b[1]], rare |d| d[0].is_nan() | d[1].is_nan(),
        mode |flags| [flags.add(a[0], b[0]), flags.add(a[1], b[1])];
    PackedMul(a: [f32; 2], b: [f32; 2]) -> [f32; 2] = [a[0] * b[0], a[1] * b[1]], rare |d| d[0].is_nan() | d[1].is_nan(),
        mode |flags| [flags.mul(a[0], b[0]), flags.mul(a[1], b[1])];
    PackedFma(a: [f32; 2], b: [f32; 2], c: [f32; 2]) -> [f32; 2] = [a[0].mul_add(b[0], c[0]), a[1].mul_add(b[1], c[1])],
        rare |d| d[0].is_nan() | d[1].is_nan(),
        mode |flags| [flags.fma(a[0], b[0], c[0]), flags.fma(a[1], b[1], c[1])];
}
