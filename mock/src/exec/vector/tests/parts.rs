//! Rounding to integers, fractions, exponents, mantissas, scaling by powers of two.

use super::exact::{DOUBLE, Exact, Format, HALF, SINGLE};
use super::float::{DOUBLES, HALVES, SINGLES};
use super::*;
use crate::wave::Rounding;

/// `bits` rounded to an integer: to the format with no digits behind the point, by bisection over its numbers.
fn integer(format: Format, bits: u64, rounding: Rounding) -> u64 {
    let bits = format.bits(bits);
    if let Some(nan) = format.first_nan(&[bits]) {
        return nan;
    }
    let value = format.exact(bits);
    // Numbers as large as the precision have no fraction.
    let large = f64_of(format, bits).abs() >= 2f64.powi(52);
    if format.is_infinite(bits) || large {
        return bits;
    }
    let whole = f64_of(format, bits) as i64;
    let candidates = [whole - 1, whole, whole + 1];
    let exact = |n: i64| Exact::new(n < 0, n.unsigned_abs().into(), 0);
    let not_above = |n: i64| !value.minus(exact(n)).is_negative();
    let floor = *candidates.iter().rfind(|&&n| not_above(n)).unwrap();
    let fraction = value.minus(exact(floor));
    let chosen = match rounding {
        _ if fraction.is_zero() => floor,
        Rounding::Down => floor,
        Rounding::Up => floor + 1,
        Rounding::Zero => floor + i64::from(format.is_negative(bits)),
        Rounding::NearestEven => {
            let rest = fraction.plus(fraction).minus(exact(1));
            floor + i64::from(if rest.is_zero() { floor & 1 == 1 } else { !rest.is_negative() })
        }
    };
    format.round(exact(chosen), format.is_negative(bits))
}

fn f64_of(format: Format, bits: u64) -> f64 {
    f64::from_bits(format.convert(DOUBLE, format.bits(bits)))
}

/// Above the next lower integer, but below one.
fn fraction(format: Format, bits: u64) -> u64 {
    let bits = format.bits(bits);
    if let Some(nan) = format.first_nan(&[bits]) {
        return nan;
    }
    if format.is_infinite(bits) {
        return format.invalid();
    }
    let floor = integer(format, bits, Rounding::Down);
    format.round(format.exact(bits).minus(format.exact(floor)), false).min(format.one() - 1)
}

#[test]
fn numbers_are_rounded_to_integers() {
    fn all(format: Format, bits: u64, rounding: Rounding) -> u64 {
        integer(format, bits, rounding)
    }
    let halfway: Vec<u64> = (-9..9).map(|n| u64::from((n as f32 + 0.5).to_bits())).collect();
    check::<u32>(
        &[&SINGLES[..], &halfway].concat(),
        &[
            ("v_floor_f32 d, a", |i| all(SINGLE, i.a, Rounding::Down) as u32),
            ("v_ceil_f32 d, a", |i| all(SINGLE, i.a, Rounding::Up) as u32),
            ("v_trunc_f32 d, a", |i| all(SINGLE, i.a, Rounding::Zero) as u32),
            ("v_rndne_f32 d, a", |i| all(SINGLE, i.a, Rounding::NearestEven) as u32),
            ("v_fract_f32 d, a", |i| fraction(SINGLE, i.a) as u32),
        ],
    );
    check::<u32>(
        &HALVES,
        &[
            ("v_floor_f16 d, a", |i| all(HALF, i.a, Rounding::Down) as u32),
            ("v_ceil_f16 d, a", |i| all(HALF, i.a, Rounding::Up) as u32),
            ("v_trunc_f16 d, a", |i| all(HALF, i.a, Rounding::Zero) as u32),
            ("v_rndne_f16 d, a", |i| all(HALF, i.a, Rounding::NearestEven) as u32),
            ("v_fract_f16 d, a", |i| fraction(HALF, i.a) as u32),
        ],
    );
    check::<u64>(
        &DOUBLES,
        &[
            ("v_floor_f64 D, A", |i| all(DOUBLE, i.a, Rounding::Down)),
            ("v_ceil_f64 D, A", |i| all(DOUBLE, i.a, Rounding::Up)),
            ("v_trunc_f64 D, A", |i| all(DOUBLE, i.a, Rounding::Zero)),
            ("v_rndne_f64 D, A", |i| all(DOUBLE, i.a, Rounding::NearestEven)),
            ("v_fract_f64 D, A", |i| fraction(DOUBLE, i.a)),
        ],
    );
}

/// Zeros, infinities and NaN have the exponent zero.
fn exponent(format: Format, bits: u64) -> i64 {
    let magnitude = format.bits(bits) & !format.sign();
    if magnitude == 0 || magnitude >= format.infinity() { 0 } else { format.exponent_of(magnitude) }
}

fn mantissa(format: Format, bits: u64) -> u64 {
    scaled(format, bits, -exponent(format, bits))
}

fn scaled(format: Format, bits: u64, power: i64) -> u64 {
    let bits = format.bits(bits);
    if let Some(nan) = format.first_nan(&[bits]) {
        return nan;
    }
    if format.is_infinite(bits) { bits } else { format.scaled(bits, power) }
}

#[test]
fn mantissa_and_exponent_make_the_number() {
    check::<u32>(
        &SINGLES,
        &[
            ("v_frexp_mant_f32 d, a", |i| mantissa(SINGLE, i.a) as u32),
            ("v_frexp_exp_i32_f32 d, a", |i| exponent(SINGLE, i.a) as u32),
        ],
    );
    check::<u32>(
        &HALVES,
        &[
            ("v_frexp_mant_f16 d, a", |i| mantissa(HALF, i.a) as u32),
            ("v_frexp_exp_i16_f16 d, a", |i| u32::from(exponent(HALF, i.a) as u16)),
        ],
    );
    check::<u64>(&DOUBLES, &[("v_frexp_mant_f64 D, A", |i| mantissa(DOUBLE, i.a))]);
    check::<u32>(&DOUBLES, &[("v_frexp_exp_i32_f64 d, A", |i| exponent(DOUBLE, i.a) as u32)]);
}

#[test]
fn powers_of_two_scale_with_one_rounding() {
    let powers = [0u64, 1, 5, 20, 127, 150, 300, 2000, 0x7fff_ffff];
    let powers: Vec<u64> = powers.iter().flat_map(|&n| [n, (n as u32).wrapping_neg().into()]).collect();
    check::<u32>(
        &[&SINGLES[..], &powers].concat(),
        &[("v_ldexp_f32 d, a, b", |i| scaled(SINGLE, i.a, (i.b as i32).into()) as u32)],
    );
    check::<u32>(
        &[&HALVES[..], &powers].concat(),
        &[("v_ldexp_f16 d, a, b", |i| scaled(HALF, i.a, (i.b as i16).into()) as u32)],
    );
    check::<u64>(
        &[&DOUBLES[..], &powers].concat(),
        &[("v_ldexp_f64 D, A, b", |i| scaled(DOUBLE, i.a, (i.b as i32).into()))],
    );
}
