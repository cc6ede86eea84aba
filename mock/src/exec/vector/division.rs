//! The steps of division that are not plain arithmetic: scaling operands out of the range of denormals, the last
//! multiply-add with the scaling undone, and special cases.
//!
//! The manual's pseudo-code has errors that break the sequence which LLVM makes of them (`AMDGPULegalizerInfo`,
//! `legalizeFDIV32` and `legalizeFDIV64`): `div_fmas` scales by the power that `div_scale` scaled by, up or down as the
//! quotient needs; a denominator whose reciprocal is denormal is always scaled down; and `div_fixup` takes a quotient, not
//! a denominator, with the largest exponent for an overflow.

use std::marker::PhantomData;

use isa::Op;

use super::Answer;
use crate::exec::element::{Element, Half, WithBit};
use crate::exec::lanes::{Depends, Flags, Lane, Place, lanes};
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::softfloat::Rules;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VDivScaleF32 => b.lanes::<L, Scale<f32>>(),
        Op::VDivScaleF64 => b.lanes::<L, Scale<f64>>(),
        Op::VDivFmasF32 => b.lanes::<L, FmaSingle>(),
        Op::VDivFmasF64 => b.lanes::<L, FmaDouble>(),
        Op::VDivFixupF32 => b.lanes::<L, Fixup<f32, false>>(),
        Op::VDivFixupF64 => b.lanes::<L, Fixup<f64, false>>(),
        Op::VDivFixupF16 => b.lanes::<L, Fixup<Half, true>>(),
        Op::VDivFixupLegacyF16 => b.lanes::<L, Fixup<Half, false>>(),
        _ => None,
    }
}

/// Where scaling sets in, for one format.
trait Division: Element + Real {
    /// Power of two that operands are scaled by.
    const SCALE: i32;
    /// A quotient of exponents this far apart or more overflows on the way.
    const FAR: i32;
    /// A numerator with this exponent field or less is tiny.
    const TINY: i32;
}

impl Division for f32 {
    const SCALE: i32 = 64;
    const FAR: i32 = 96;
    const TINY: i32 = 23;
}

impl Division for f64 {
    const SCALE: i32 = 128;
    const FAR: i32 = 768;
    const TINY: i32 = 53;
}

/// The operand `a`, scaled if dividing `c` by `b` needs it; the bit says that the quotient is scaled, too.
struct Scale<R>(PhantomData<R>);

impl<R: Division> Lane for Scale<R> {
    type A = R;
    type B = R;
    type C = R;
    type D = WithBit<R>;
    const DEPENDS: Depends = Depends::Mode;
    const HAS_RARE: bool = true;

    #[inline(always)]
    fn fast(_: u32, a: R, _: R, _: R) -> WithBit<R> {
        WithBit(a, false)
    }

    #[inline(always)]
    fn rare(_: R, b: R, c: R, _: WithBit<R>) -> bool {
        let apart = c.exponent_field() - b.exponent_field();
        let reciprocal_is_normal = b.exponent_field() <= -2 * R::LEAST_EXPONENT;
        let plain = b.is_normal()
            & c.is_normal()
            & (apart < R::FAR)
            & (apart > R::LEAST_EXPONENT)
            & reciprocal_is_normal
            & (c.exponent_field() > R::TINY);
        !plain
    }

    fn general(flags: Flags, a: R, b: R, c: R) -> WithBit<R> {
        let [a, b, c] = [a, b, c].map(|operand| flags.input(operand));
        let scaled = |power| Rules::USUAL.scale(a, power);
        let (zero, denormal) = (R::zero(false), |x: R| x.exponent_field() == 0);
        if b.equals(zero) || c.equals(zero) {
            return WithBit(R::invalid(), false);
        }
        let apart = c.exponent_field() - b.exponent_field();
        let reciprocal_is_denormal = quotient_exponent(R::one(), b) < R::LEAST_EXPONENT;
        let quotient_is_denormal = quotient_exponent(c, b) < R::LEAST_EXPONENT;
        if apart >= R::FAR {
            WithBit(if a.equals(b) { scaled(R::SCALE) } else { a }, true)
        } else if denormal(b) {
            WithBit(scaled(R::SCALE), false)
        } else if reciprocal_is_denormal && quotient_is_denormal {
            WithBit(if a.equals(b) { scaled(-R::SCALE) } else { a }, true)
        } else if reciprocal_is_denormal {
            WithBit(scaled(-R::SCALE), false)
        } else if quotient_is_denormal {
            WithBit(if a.equals(c) { scaled(R::SCALE) } else { a }, true)
        } else if c.exponent_field() <= R::TINY {
            WithBit(scaled(R::SCALE), false)
        } else {
            WithBit(a, false)
        }
    }
}

/// The exponent of the quotient of two numbers that are not zero, not rounded.
fn quotient_exponent<R: Real>(numerator: R, denominator: R) -> i32 {
    let parts = |x: R| {
        let (normal, shift) = x.normalised();
        (normal.exponent_field() - shift, normal.bits() & ((1 << R::MANTISSA_BITS) - 1))
    };
    let (numerator, denominator) = (parts(numerator), parts(denominator));
    numerator.0 - denominator.0 - i32::from(numerator.1 < denominator.1)
}

lanes! {
    FmaSingle(a: f32, b: f32, c: WithBit<f32>) -> f32 = a.mul_add(b, c.0), rare |d| c.1 | d.is_nan(),
        mode |flags| fma_unscaled(flags, a, b, c);
    FmaDouble(a: f64, b: f64, c: WithBit<f64>) -> f64 = a.mul_add(b, c.0), rare |d| c.1 | d.is_nan(),
        mode |flags| fma_unscaled(flags, a, b, c);
}

/// a * b + c, times a power of two if the bit of `c` is set: up for a quotient from two on, else down. It is rounded once,
/// and denormal operands are kept (CDNA4 ISA, V_DIV_FMAS_F32).
fn fma_unscaled<R: Division>(flags: Flags, a: R, b: R, c: WithBit<R>) -> R {
    let WithBit(c, scaled) = c;
    let up = c.exponent_field() > R::one().exponent_field();
    let power = match (scaled, up) {
        (false, _) => 0,
        (true, true) => R::SCALE,
        (true, false) => -R::SCALE,
    };
    Rules { keeps_inputs: true, ..flags.rules::<R>() }.fma(a, b, c, power)
}

/// The quotient `a` of `c` by `b`, or what the division gives in special cases. `KEEPS`: see [`Lane::PLACE`].
struct Fixup<R, const KEEPS: bool>(PhantomData<R>);

impl<R: Element + Real, const KEEPS: bool> Fixup<R, KEEPS> {
    /// A quotient of exponents further apart underflows; halves do not look.
    const UNDERFLOW: i32 = match R::MANTISSA_BITS {
        23 => -150,
        52 => -1075,
        _ => i32::MIN,
    };

    #[inline(always)]
    fn overflows(quotient: R) -> bool {
        Self::UNDERFLOW != i32::MIN && !quotient.is_finite()
    }
}

impl<R: Element + Real, const KEEPS: bool> Lane for Fixup<R, KEEPS> {
    type A = R;
    type B = R;
    type C = R;
    type D = R;
    const DEPENDS: Depends = Depends::Mode;
    const HAS_RARE: bool = true;
    const PLACE: Place = if KEEPS { Place::LowHalf } else { Place::Whole };

    #[inline(always)]
    fn fast(_: u32, a: R, b: R, c: R) -> R {
        R::with_bits(a.bits() & !R::SIGN | (b.bits() ^ c.bits()) & R::SIGN)
    }

    #[inline(always)]
    fn rare(a: R, b: R, c: R, _: R) -> bool {
        let vanishes = c.exponent_field() - b.exponent_field() < Self::UNDERFLOW;
        !b.is_normal() | !c.is_normal() | vanishes | Self::overflows(a)
    }

    fn general(flags: Flags, a: R, b: R, c: R) -> R {
        let [b, c] = [b, c].map(|operand| flags.input(operand));
        let negative = b.is_negative() != c.is_negative();
        let one = R::with_bits(R::one().bits() | R::zero(negative).bits());
        let is_zero = |x: R| x.equals(R::zero(false));
        let is_infinite = |x: R| x.bits() & !R::SIGN == R::INFINITY;
        if c.not_a_number() {
            c.quieted()
        } else if b.not_a_number() {
            b.quieted()
        } else if is_zero(b) && is_zero(c) || is_infinite(b) && is_infinite(c) {
            R::invalid()
        } else if is_zero(b) || is_infinite(c) {
            R::infinity(negative)
        } else if is_infinite(b) || is_zero(c) {
            R::zero(negative)
        } else if c.exponent_field() - b.exponent_field() < Self::UNDERFLOW {
            flags.rules::<R>().scale(one, 4 * R::LEAST_EXPONENT)
        } else if Self::overflows(a) {
            flags.rules::<R>().scale(one, -4 * R::LEAST_EXPONENT)
        } else {
            Self::fast(0, a, b, c)
        }
    }
}
