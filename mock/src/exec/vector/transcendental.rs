//! Reciprocals, roots, powers of two, logarithms and trigonometric functions.
//!
//! The hardware's results are known by a bound only: 1 ULP in single and half precision, 2^29 ULP in double precision
//! (CDNA4 ISA section 12.8; `v_sin` and `v_cos` give none). The functions here compute in double precision and round the
//! result, which is within 1 ULP and nearly always correctly rounded; reciprocals and square roots always are. In single
//! precision, denormals are flushed whatever MODE says, but for sine and cosine.

use isa::Op;

use super::Answer;
use crate::exec::element::Half;
use crate::exec::lanes::{Flags, lanes};
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::softfloat::Rules;
use crate::exec::translate::Builder;
use crate::wave::Rounding;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VRcpF32 | Op::VRcpIflagF32 => b.lanes::<L, Reciprocal>(),
        Op::VSqrtF32 => b.lanes::<L, Root>(),
        Op::VRsqF32 => b.lanes::<L, ReciprocalRoot>(),
        Op::VExpF32 | Op::VExpLegacyF32 => b.lanes::<L, Exp2>(),
        Op::VLogF32 | Op::VLogLegacyF32 => b.lanes::<L, Log2>(),
        Op::VSinF32 => b.lanes::<L, Sine>(),
        Op::VCosF32 => b.lanes::<L, Cosine>(),
        Op::VRcpF16 => b.lanes::<L, HalfReciprocal>(),
        Op::VSqrtF16 => b.lanes::<L, HalfRoot>(),
        Op::VRsqF16 => b.lanes::<L, HalfReciprocalRoot>(),
        Op::VExpF16 => b.lanes::<L, HalfExp2>(),
        Op::VLogF16 => b.lanes::<L, HalfLog2>(),
        Op::VSinF16 => b.lanes::<L, HalfSine>(),
        Op::VCosF16 => b.lanes::<L, HalfCosine>(),
        Op::VRcpF64 => b.lanes::<L, DoubleReciprocal>(),
        Op::VSqrtF64 => b.lanes::<L, DoubleRoot>(),
        Op::VRsqF64 => b.lanes::<L, DoubleReciprocalRoot>(),
        _ => None,
    }
}

lanes! {
    Reciprocal(a: f32) -> f32 = 1.0 / a, rare |d| !a.is_normal() | !d.is_normal(),
        exact |_flags| nan_or(a, |a| (1.0 / a.flushed()).flushed());
    Root(a: f32) -> f32 = a.sqrt(), rare |d| !(a.is_normal() & (a > 0.0)),
        exact |_flags| nan_or(a, |a| number_or_invalid(a.flushed().sqrt()));
    ReciprocalRoot(a: f32) -> f32 = reciprocal_root(a), rare |d| !(a.is_normal() & (a > 0.0)),
        exact |_flags| nan_or(a, |a| number_or_invalid(reciprocal_root(a.flushed())));
    Exp2(a: f32) -> f32 = exp2(a).flushed(), rare |d| a.is_nan(), exact |_flags| a.quieted();
    Log2(a: f32) -> f32 = log2(a), rare |d| !(a.is_normal() & (a > 0.0)), exact |_flags| nan_or(a, |a| any_log2(a.flushed()));
    Sine(a: f32) -> f32 = sine(turn(a)), rare |d| is_large(a), exact |_flags| nan_or(a, |a| sine(any_turn(a)));
    Cosine(a: f32) -> f32 = cosine(turn(a)), rare |d| is_large(a),
        exact |_flags| nan_or(a, |a| cosine(any_turn(a)));
    HalfReciprocal(a: Half) -> Half = Half::nearest(1.0 / a.single()), rare |d| a.not_a_number(),
        mode |flags| by_single(flags, a, |a| 1.0 / a);
    HalfRoot(a: Half) -> Half = Half::nearest(a.single().sqrt()), rare |d| d.not_a_number(),
        mode |flags| by_single(flags, a, f32::sqrt);
    HalfReciprocalRoot(a: Half) -> Half = Half::nearest(reciprocal_root(a.single())), rare |d| d.not_a_number(),
        mode |flags| by_single(flags, a, reciprocal_root);
    HalfExp2(a: Half) -> Half = Half::nearest(exp2(a.single())), rare |d| a.not_a_number(), mode |flags| by_single(flags, a, exp2);
    HalfLog2(a: Half) -> Half = Half::nearest(log2(a.single())), rare |d| !((a.0 > 0) & (a.0 < 0x7c00)),
        mode |flags| by_single(flags, a, any_log2);
    HalfSine(a: Half) -> Half = Half::nearest(sine(turn(a.single()))), rare |d| a.exponent_field() == 31,
        mode |flags| by_single(flags, a, |a| sine(any_turn(a)));
    HalfCosine(a: Half) -> Half = Half::nearest(cosine(turn(a.single()))), rare |d| a.exponent_field() == 31,
        mode |flags| by_single(flags, a, |a| cosine(any_turn(a)));
    DoubleReciprocal(a: f64) -> f64 = 1.0 / a, nan, mode |flags| by_double(flags, a, |a| 1.0 / a);
    DoubleRoot(a: f64) -> f64 = a.sqrt(), nan, mode |flags| by_double(flags, a, f64::sqrt);
    DoubleReciprocalRoot(a: f64) -> f64 = 1.0 / a.sqrt(), nan, mode |flags| by_double(flags, a, |a| 1.0 / a.sqrt());
}

/// A NaN operand is the result, quiet.
fn nan_or(a: f32, f: impl Fn(f32) -> f32) -> f32 {
    if a.is_nan() { a.quieted() } else { f(a) }
}

fn number_or_invalid<R: Real>(value: R) -> R {
    if value.not_a_number() { R::invalid() } else { value }
}

/// `f` between half-precision numbers under MODE.
fn by_single(flags: Flags, a: Half, f: impl Fn(f32) -> f32) -> Half {
    if a.not_a_number() {
        return a.quieted();
    }
    let rules = flags.rules::<Half>();
    let value = number_or_invalid(f(rules.input(a).single()));
    Rules { rounding: Rounding::NearestEven, ..rules }.convert(Rules::USUAL, value)
}

/// `f` between double-precision numbers under MODE.
fn by_double(flags: Flags, a: f64, f: impl Fn(f64) -> f64) -> f64 {
    if a.not_a_number() { a.quieted() } else { flags.output(number_or_invalid(f(flags.input(a)))) }
}

#[inline(always)]
fn reciprocal_root(a: f32) -> f32 {
    (1.0 / f64::from(a).sqrt()) as f32
}

/// Adding and subtracting it rounds a number of up to 2^22 to an integer.
const TO_INTEGER: f32 = 1.5 * 8_388_608.0;

/// The polynomial with these coefficients, the constant one first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.into_iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// 2^a. The Taylor series for a fraction of up to a half is right to 2^-42.
#[inline(always)]
fn exp2(a: f32) -> f32 {
    // Beyond these limits the result is zero or infinite anyway.
    let a = a.clamp(-200.0, 200.0);
    let whole = (a + TO_INTEGER) - TO_INTEGER;
    let power = f64::from_bits(((whole as i32 + 1023) as u64) << 52);
    let x = f64::from(a - whole) * std::f64::consts::LN_2;
    const FACTORIALS: [f64; 11] = [
        1.0,
        1.0,
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
    ];
    (polynomial(x, FACTORIALS) * power) as f32
}

/// The logarithm of a positive normal number: log2 m = 2 / ln 2 * atanh((m - 1) / (m + 1)) for m between the roots of 1/2
/// and 2, right to 2^-44.
#[inline(always)]
fn log2(a: f32) -> f32 {
    let bits = a.to_bits();
    let exponent = (bits as i32).wrapping_sub(0x3f35_04f3) >> 23;
    let m = f64::from(f32::from_bits((bits as i32).wrapping_sub(exponent << 23) as u32));
    let t = (m - 1.0) / (m + 1.0);
    const ODD: [f64; 9] =
        [1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0, 1.0 / 17.0];
    let log = 2.0 * std::f64::consts::LOG2_E * t * polynomial(t * t, ODD);
    (f64::from(exponent) + log) as f32
}

fn any_log2(a: f32) -> f32 {
    if a == 0.0 {
        f32::NEG_INFINITY
    } else if a < 0.0 {
        f32::invalid()
    } else if a == f32::INFINITY {
        a
    } else {
        log2(a)
    }
}

/// Up to here [`turn`] is exact.
const EXACT_TURNS: f32 = 4_194_304.0;

/// Not a number either.
#[inline(always)]
fn is_large(a: f32) -> bool {
    a.to_bits() & 0x7fff_ffff >= EXACT_TURNS.to_bits()
}

/// The part of `a` turns that is left of the nearest whole one.
#[inline(always)]
fn turn(a: f32) -> f64 {
    f64::from(a - ((a + TO_INTEGER) - TO_INTEGER))
}

fn any_turn(a: f32) -> f64 {
    let a = f64::from(a);
    a - a.round_ties_even()
}

/// The quarter turns nearest to `turn`, and sine and cosine of what is left: Taylor series, right to 2^-41.
#[inline(always)]
fn quarters(turn: f64) -> (i32, f64, f64) {
    const SINE: [f64; 7] =
        [1.0, -1.0 / 6.0, 1.0 / 120.0, -1.0 / 5040.0, 1.0 / 362_880.0, -1.0 / 39_916_800.0, 1.0 / 6_227_020_800.0];
    const COSINE: [f64; 7] =
        [1.0, -1.0 / 2.0, 1.0 / 24.0, -1.0 / 720.0, 1.0 / 40320.0, -1.0 / 3_628_800.0, 1.0 / 479_001_600.0];
    let quarter = (4.0 * turn + 0.5).floor();
    let x = (turn - quarter / 4.0) * std::f64::consts::TAU;
    (quarter as i32, x * polynomial(x * x, SINE), polynomial(x * x, COSINE))
}

#[inline(always)]
fn sine(turn: f64) -> f32 {
    let (quarter, sine, cosine) = quarters(turn);
    let value = if quarter & 1 == 0 { sine } else { cosine };
    (if quarter & 2 == 0 { value } else { 0.0 - value }) as f32
}

#[inline(always)]
fn cosine(turn: f64) -> f32 {
    let (quarter, sine, cosine) = quarters(turn);
    let value = if quarter & 1 == 0 { cosine } else { 0.0 - sine };
    (if quarter & 2 == 0 { value } else { 0.0 - value }) as f32
}
