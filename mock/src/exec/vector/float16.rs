//! Half-precision arithmetic, one number or two to a register.
//!
//! The fast functions work in single precision, which is wide enough that rounding its sums and products again gives the
//! correctly rounded half; fused multiply-adds round to odd first (Boldo and Melquiond, "Emulation of FMA and correctly
//! rounded sums: proved algorithms using rounding to odd", 2008).

use isa::Op;

use super::Answer;
use super::select::{maximum, maximum3, median, median_of, minimum, minimum3, numeric_max, numeric_min};
use crate::exec::element::Half;
use crate::exec::formats::{Format, Overflow};
use crate::exec::lanes::{Flags, lanes};
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VAddF16 => b.lanes::<L, Add>(),
        Op::VSubF16 => b.lanes::<L, Sub>(),
        Op::VSubrevF16 => b.lanes::<L, SubReversed>(),
        Op::VMulF16 => b.lanes::<L, Mul>(),
        Op::VMadF16 => b.lanes::<L, Mad>(),
        Op::VMadLegacyF16 | Op::VMadmkF16 | Op::VMadakF16 => b.lanes::<L, MadLegacy>(),
        Op::VMacF16 => b.accumulating::<L, MadLegacy>(),
        Op::VFmaF16 => b.lanes::<L, Fma>(),
        Op::VFmaLegacyF16 => b.lanes::<L, FmaLegacy>(),
        Op::VMinF16 => b.lanes::<L, Min>(),
        Op::VMaxF16 => b.lanes::<L, Max>(),
        Op::VMin3F16 => b.lanes::<L, Min3>(),
        Op::VMax3F16 => b.lanes::<L, Max3>(),
        Op::VMed3F16 => b.lanes::<L, Med3>(),
        Op::VPackB32F16 => b.lanes::<L, Pack>(),
        Op::VPkAddF16 => b.lanes::<L, PackedAdd>(),
        Op::VPkMulF16 => b.lanes::<L, PackedMul>(),
        Op::VPkFmaF16 => b.lanes::<L, PackedFma>(),
        Op::VPkFmacF16 => b.accumulating::<L, PackedFma>(),
        Op::VPkMinF16 => b.lanes::<L, PackedMin>(),
        Op::VPkMaxF16 => b.lanes::<L, PackedMax>(),
        Op::VPkMinimum3F16 => b.lanes::<L, PackedMinimum3>(),
        Op::VPkMaximum3F16 => b.lanes::<L, PackedMaximum3>(),
        _ => None,
    }
}

lanes! {
    Add(a: Half, b: Half) -> Half = add(a, b), rare |d| d.not_a_number(), mode |flags| flags.add(a, b);
    Sub(a: Half, b: Half) -> Half = Half::nearest(a.single() - b.single()), rare |d| d.not_a_number(),
        mode |flags| flags.sub(a, b);
    SubReversed(a: Half, b: Half) -> Half = Half::nearest(b.single() - a.single()), rare |d| d.not_a_number(),
        mode |flags| flags.sub_reversed(a, b);
    Mul(a: Half, b: Half) -> Half = mul(a, b), rare |d| d.not_a_number(), mode |flags| flags.mul(a, b);
    /// Rounds the product, then the sum, and flushes denormals (CDNA4 ISA, V_MAD_F16).
    Mad(a: Half, b: Half, c: Half) -> Half = mad(a, b, c), low, rare |d| d.not_a_number(), mode |flags| mad_in(flags, a, b, c);
    MadLegacy(a: Half, b: Half, c: Half) -> Half = mad(a, b, c), rare |d| d.not_a_number(), mode |flags| mad_in(flags, a, b, c);
    Fma(a: Half, b: Half, c: Half) -> Half = fma(a, b, c), low, rare |d| d.not_a_number(),
        mode |flags| flags.fma(a, b, c);
    FmaLegacy(a: Half, b: Half, c: Half) -> Half = fma(a, b, c), rare |d| d.not_a_number(), mode |flags| flags.fma(a, b, c);
    Min(a: Half, b: Half) -> Half = numeric_min(a, b), rare |d| is_nan(&[a, b]), ieee |flags| minimum(flags, a, b);
    Max(a: Half, b: Half) -> Half = numeric_max(a, b), rare |d| is_nan(&[a, b]), ieee |flags| maximum(flags, a, b);
    Min3(a: Half, b: Half, c: Half) -> Half = numeric_min(numeric_min(a, b), c), rare |d| is_nan(&[a, b, c]),
        ieee |flags| minimum(flags, minimum(flags, a, b), c);
    Max3(a: Half, b: Half, c: Half) -> Half = numeric_max(numeric_max(a, b), c), rare |d| is_nan(&[a, b, c]),
        ieee |flags| maximum(flags, maximum(flags, a, b), c);
    Med3(a: Half, b: Half, c: Half) -> Half = median_of(a, b, c), rare |d| is_nan(&[a, b, c]),
        ieee |flags| median(flags, a, b, c);
    Pack(a: Half, b: Half) -> u32 = u32::from(a.0) | u32::from(b.0) << 16;
    PackedAdd(a: [Half; 2], b: [Half; 2]) -> [Half; 2] = [add(a[0], b[0]), add(a[1], b[1])], rare |d| is_nan(&d),
        mode |flags| [flags.add(a[0], b[0]), flags.add(a[1], b[1])];
    PackedMul(a: [Half; 2], b: [Half; 2]) -> [Half; 2] = [mul(a[0], b[0]), mul(a[1], b[1])], rare |d| is_nan(&d),
        mode |flags| [flags.mul(a[0], b[0]), flags.mul(a[1], b[1])];
    PackedFma(a: [Half; 2], b: [Half; 2], c: [Half; 2]) -> [Half; 2] = [fma(a[0], b[0], c[0]), fma(a[1], b[1], c[1])],
        rare |d| is_nan(&d), mode |flags| [flags.fma(a[0], b[0], c[0]), flags.fma(a[1], b[1], c[1])];
    PackedMin(a: [Half; 2], b: [Half; 2]) -> [Half; 2] = [numeric_min(a[0], b[0]), numeric_min(a[1], b[1])],
        rare |d| is_nan(&a) | is_nan(&b), ieee |flags| [minimum(flags, a[0], b[0]), minimum(flags, a[1], b[1])];
    PackedMax(a: [Half; 2], b: [Half; 2]) -> [Half; 2] = [numeric_max(a[0], b[0]), numeric_max(a[1], b[1])],
        rare |d| is_nan(&a) | is_nan(&b), ieee |flags| [maximum(flags, a[0], b[0]), maximum(flags, a[1], b[1])];
    PackedMinimum3(a: [Half; 2], b: [Half; 2], c: [Half; 2]) -> [Half; 2] = [
            numeric_min(numeric_min(a[0], b[0]), c[0]),
            numeric_min(numeric_min(a[1], b[1]), c[1]),
        ],
        rare |d| is_nan(&a) | is_nan(&b) | is_nan(&c),
        mode |flags| [minimum3(flags, a[0], b[0], c[0]), minimum3(flags, a[1], b[1], c[1])];
    PackedMaximum3(a: [Half; 2], b: [Half; 2], c: [Half; 2]) -> [Half; 2] = [
            numeric_max(numeric_max(a[0], b[0]), c[0]),
            numeric_max(numeric_max(a[1], b[1]), c[1]),
        ],
        rare |d| is_nan(&a) | is_nan(&b) | is_nan(&c),
        mode |flags| [maximum3(flags, a[0], b[0], c[0]), maximum3(flags, a[1], b[1], c[1])];
}

impl Half {
    /// The same number in single precision; a NaN keeps its payload.
    #[inline(always)]
    pub(super) fn single(self) -> f32 {
        Format::F16.decode(self.0.into())
    }

    /// The half nearest to `value`.
    #[inline(always)]
    pub(super) fn nearest(value: f32) -> Self {
        Self(Format::F16.encode(value, Overflow::Special) as u16)
    }
}

#[inline(always)]
fn is_nan(numbers: &[Half]) -> bool {
    numbers.iter().fold(false, |any, number| any | number.not_a_number())
}

#[inline(always)]
fn add(a: Half, b: Half) -> Half {
    Half::nearest(a.single() + b.single())
}

#[inline(always)]
fn mul(a: Half, b: Half) -> Half {
    Half::nearest(a.single() * b.single())
}

#[inline(always)]
fn mad(a: Half, b: Half, c: Half) -> Half {
    add(mul(a.flushed(), b.flushed()).flushed(), c.flushed()).flushed()
}

fn mad_in(flags: Flags, a: Half, b: Half, c: Half) -> Half {
    if is_nan(&[a, b, c]) {
        return flags.fma(a, b, c);
    }
    let product = flags.mul(a.flushed(), b.flushed());
    flags.add(product.flushed(), c.flushed()).flushed()
}

#[inline(always)]
fn fma(a: Half, b: Half, c: Half) -> Half {
    // The product is exact. Knuth's two-sum gives what the sum's rounding lost.
    let (product, c) = (a.single() * b.single(), c.single());
    let sum = product + c;
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    Half::nearest(rounded_to_odd(sum, lost))
}

/// `sum + lost`, where `sum` is that rounded to nearest, rounded to the odd one of its neighbours instead.
#[inline(always)]
fn rounded_to_odd(sum: f32, lost: f32) -> f32 {
    let bits = sum.to_bits();
    let towards_zero = (lost.to_bits() ^ bits) >> 31;
    let neighbour = if towards_zero == 1 { bits.wrapping_sub(1) } else { bits.wrapping_add(1) };
    let inexact = lost.abs() > 0.0;
    f32::from_bits(if inexact && bits & 1 == 0 { neighbour } else { bits })
}
