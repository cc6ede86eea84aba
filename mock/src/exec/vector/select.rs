//! Minimum, maximum and median of floating-point numbers.

use crate::exec::lanes::Flags;
use crate::exec::real::Real;

/// The smaller of two numbers, -0 below +0; not for NaN.
#[inline(always)]
pub(super) fn numeric_min<R: Real>(a: R, b: R) -> R {
    if a.order() < b.order() { a } else { b }
}

/// The larger of two numbers, -0 below +0; not for NaN.
#[inline(always)]
pub(super) fn numeric_max<R: Real>(a: R, b: R) -> R {
    if a.order() > b.order() { a } else { b }
}

/// The middle one of three numbers; not for NaN. Where one of them equals the largest, it is the larger of the others
/// (CDNA4 ISA, V_MED3_F32), which shows in the sign of zeros.
#[inline(always)]
pub(super) fn median_of<R: Real>(a: R, b: R, c: R) -> R {
    let largest = numeric_max(numeric_max(a, b), c);
    if a.equals(largest) {
        numeric_max(b, c)
    } else if b.equals(largest) {
        numeric_max(a, c)
    } else {
        numeric_max(a, b)
    }
}

/// What min and max do with NaN: a signalling one is the result, quiet, if MODE.IEEE is set; else the other operand is.
fn unless_nan<R: Real>(flags: Flags, a: R, b: R, choose: impl Fn(R, R) -> R) -> R {
    let (a, b) = (flags.input(a), flags.input(b));
    let chosen = if flags.mode.ieee() && a.is_signalling() {
        a.quieted()
    } else if flags.mode.ieee() && b.is_signalling() {
        b.quieted()
    } else if a.not_a_number() {
        b
    } else if b.not_a_number() {
        a
    } else {
        choose(a, b)
    };
    flags.output(chosen)
}

/// `v_min` under any MODE.
pub(super) fn minimum<R: Real>(flags: Flags, a: R, b: R) -> R {
    unless_nan(flags, a, b, numeric_min)
}

/// `v_max` under any MODE.
pub(super) fn maximum<R: Real>(flags: Flags, a: R, b: R) -> R {
    unless_nan(flags, a, b, numeric_max)
}

/// `v_med3` under any MODE.
pub(super) fn median<R: Real>(flags: Flags, a: R, b: R, c: R) -> R {
    if a.not_a_number() || b.not_a_number() || c.not_a_number() {
        return minimum(flags, minimum(flags, a, b), c);
    }
    flags.output(median_of(flags.input(a), flags.input(b), flags.input(c)))
}

/// The first NaN, quiet, or what `choose` gives.
fn nan_or<R: Real>(flags: Flags, operands: [R; 3], choose: impl Fn(R, R) -> R) -> R {
    if let Some(nan) = operands.into_iter().find(|operand| operand.not_a_number()) {
        return nan.quieted();
    }
    let [a, b, c] = operands.map(|operand| flags.input(operand));
    flags.output(choose(choose(a, b), c))
}

/// `v_minimum3` under any MODE: a NaN is the result.
pub(super) fn minimum3<R: Real>(flags: Flags, a: R, b: R, c: R) -> R {
    nan_or(flags, [a, b, c], numeric_min)
}

/// `v_maximum3` under any MODE: a NaN is the result.
pub(super) fn maximum3<R: Real>(flags: Flags, a: R, b: R, c: R) -> R {
    nan_or(flags, [a, b, c], numeric_max)
}
