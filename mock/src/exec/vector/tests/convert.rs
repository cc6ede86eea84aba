//! Conversions between integers and floating-point numbers.

use super::exact::{DOUBLE, Exact, Format, HALF, SINGLE};
use super::float::{DOUBLES, HALVES, SINGLES};
use super::*;
use crate::wave::Rounding;

fn value(format: Format, bits: u64) -> f64 {
    f64::from_bits(format.convert(DOUBLE, format.bits(bits)))
}

/// Truncated and limited; NaN gives zero.
fn truncated(format: Format, bits: u64, low: i64, high: i64) -> i64 {
    if format.is_nan(format.bits(bits)) {
        return 0;
    }
    let value = value(format, bits);
    if value <= low as f64 {
        low
    } else if value >= high as f64 {
        high
    } else {
        // All types here have less than 53 bits, so this is exact.
        value as i64
    }
}

fn from_integer(format: Format, value: i64) -> u64 {
    format.round(Exact::new(value < 0, value.unsigned_abs().into(), 0), false)
}

#[test]
fn integers_from_numbers_are_truncated_and_saturate() {
    const I32: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);
    check::<u32>(
        &SINGLES,
        &[
            ("v_cvt_i32_f32 d, a", |i| truncated(SINGLE, i.a, I32.0, I32.1) as u32),
            ("v_cvt_u32_f32 d, a", |i| truncated(SINGLE, i.a, 0, u32::MAX.into()) as u32),
            ("v_cvt_i32_f32_e64 d, -a clamp", |i| truncated(SINGLE, i.a ^ 0x8000_0000, I32.0, I32.1) as u32),
        ],
    );
    check::<u32>(
        &DOUBLES,
        &[
            ("v_cvt_i32_f64 d, A", |i| truncated(DOUBLE, i.a, I32.0, I32.1) as u32),
            ("v_cvt_u32_f64 d, A", |i| truncated(DOUBLE, i.a, 0, u32::MAX.into()) as u32),
        ],
    );
    check::<u32>(
        &HALVES,
        &[
            ("v_cvt_i16_f16 d, a", |i| u32::from(truncated(HALF, i.a, -0x8000, 0x7fff) as u16)),
            ("v_cvt_u16_f16 d, a", |i| truncated(HALF, i.a, 0, 0xffff) as u32),
        ],
    );
}

#[test]
fn rounding_conversions_round_down_or_half_up() {
    let halfway: Vec<u64> = (-9..9).map(|n| u64::from((n as f32 + 0.5).to_bits())).collect();
    // Just below a half, a sum with a half is rounded up to one: it must not be.
    let edges = [&SINGLES[..], &halfway, &[0x3eff_ffff, 0xbeff_ffff, 0x4afb_ffff]].concat();
    fn floor_of(bits: u64, halves: i64) -> u32 {
        if SINGLE.is_nan(SINGLE.bits(bits)) {
            return 0;
        }
        // Exact: a single times two, plus one, has less than 53 bits wherever it matters.
        let doubled = 2.0 * value(SINGLE, bits) + halves as f64;
        ((doubled / 2.0).floor() as i64).clamp(i32::MIN.into(), i32::MAX.into()) as u32
    }
    check::<u32>(
        &edges,
        &[("v_cvt_rpi_i32_f32 d, a", |i| floor_of(i.a, 1)), ("v_cvt_flr_i32_f32 d, a", |i| floor_of(i.a, 0))],
    );
}

#[test]
fn numbers_from_integers_are_correctly_rounded() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_cvt_f32_i32 d, a", |i| from_integer(SINGLE, (i.a as i32).into()) as u32),
            ("v_cvt_f32_u32 d, a", |i| from_integer(SINGLE, i.a32().into()) as u32),
            ("v_cvt_f16_i16 d, a", |i| from_integer(HALF, (i.a as i16).into()) as u32),
            ("v_cvt_f16_u16 d, a", |i| from_integer(HALF, (i.a as u16).into()) as u32),
            ("v_cvt_f32_ubyte0 d, a", |i| from_integer(SINGLE, i64::from(i.a.to_le_bytes()[0])) as u32),
            ("v_cvt_f32_ubyte1 d, a", |i| from_integer(SINGLE, i64::from(i.a.to_le_bytes()[1])) as u32),
            ("v_cvt_f32_ubyte2 d, a", |i| from_integer(SINGLE, i64::from(i.a.to_le_bytes()[2])) as u32),
            ("v_cvt_f32_ubyte3 d, a", |i| from_integer(SINGLE, i64::from(i.a.to_le_bytes()[3])) as u32),
            ("v_cvt_off_f32_i4 d, a", |i| {
                // The manual's table.
                let table = [
                    0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, -0.5, -0.4375, -0.375, -0.3125, -0.25,
                    -0.1875, -0.125, -0.0625f32,
                ];
                table[i.a as usize % 16].to_bits()
            }),
        ],
    );
    check::<u64>(
        &INTEGERS,
        &[
            ("v_cvt_f64_i32 D, a", |i| from_integer(DOUBLE, (i.a as i32).into())),
            ("v_cvt_f64_u32 D, a", |i| from_integer(DOUBLE, i.a32().into())),
        ],
    );
}

#[test]
fn numbers_change_their_precision_with_one_rounding() {
    // Ties and near-ties of the narrower format.
    let near_ties =
        [0x3f80_1000, 0x3f80_3000, 0x3f80_1001, 0x3880_0fff, 0x3380_0000, 0x3300_0000, 0x3300_0001, 0x477f_efff];
    let singles = [&SINGLES[..], &near_ties, &[0x477f_f000, 0x477f_e000, 0x4780_0000, 0xc77f_ffff]].concat();
    const TOWARDS_ZERO: Format = Format { rounding: Rounding::Zero, ..HALF };
    fn pair(format: Format, a: u64, b: u64) -> u32 {
        (SINGLE.convert(format, a) | SINGLE.convert(format, b) << 16) as u32
    }
    check::<u32>(
        &singles,
        &[
            ("v_cvt_f16_f32 d, a", |i| SINGLE.convert(HALF, i.a) as u32),
            ("v_cvt_f16_f32_e64 d, -|a|", |i| SINGLE.convert(HALF, i.a | 0x8000_0000) as u32),
            ("v_cvt_pk_f16_f32 d, a, b", |i| pair(HALF, i.a, i.b)),
            ("v_cvt_pkrtz_f16_f32 d, a, b", |i| pair(TOWARDS_ZERO, i.a, i.b)),
        ],
    );
    check::<u32>(&HALVES, &[("v_cvt_f32_f16 d, a", |i| HALF.convert(SINGLE, HALF.bits(i.a)) as u32)]);
    check::<u64>(&SINGLES, &[("v_cvt_f64_f32 D, a", |i| SINGLE.convert(DOUBLE, SINGLE.bits(i.a)))]);
    let near = [0x3ff0_0000_1000_0000, 0x3ff0_0000_3000_0000, 0x3ff0_0000_1000_0001, 0x36a8_0000_0000_0000u64];
    check::<u32>(&[&DOUBLES[..], &near].concat(), &[("v_cvt_f32_f64 d, A", |i| DOUBLE.convert(SINGLE, i.a) as u32)]);
}

/// `bits` limited to `low` to one, times `steps`, to the nearest integer.
fn normalised(format: Format, bits: u64, low: f64, steps: i64) -> u16 {
    if format.is_nan(format.bits(bits)) {
        return 0;
    }
    let value = value(format, bits).clamp(low, 1.0);
    // Twice the product in integers: a single has no more than 24 bits, steps no more than 16.
    let scaled = (value.abs() * 2f64.powi(44)) as i128 * i128::from(steps);
    let (whole, rest) = (scaled >> 44, scaled & ((1 << 44) - 1));
    let up = rest > 1 << 43 || rest == 1 << 43 && whole & 1 == 1;
    let magnitude = (whole + i128::from(up)) as i32;
    (if value < 0.0 { -magnitude } else { magnitude }) as u16
}

#[test]
fn normalised_integers_are_the_nearest() {
    fn packed(low: u16, high: u16) -> u32 {
        u32::from(low) | u32::from(high) << 16
    }
    check::<u32>(
        &SINGLES,
        &[
            ("v_cvt_pknorm_i16_f32 d, a, b", |i| {
                packed(normalised(SINGLE, i.a, -1.0, 0x7fff), normalised(SINGLE, i.b, -1.0, 0x7fff))
            }),
            ("v_cvt_pknorm_u16_f32 d, a, b", |i| {
                packed(normalised(SINGLE, i.a, 0.0, 0xffff), normalised(SINGLE, i.b, 0.0, 0xffff))
            }),
        ],
    );
    let halves: Vec<u64> = HALVES.iter().map(|bits| bits | (bits ^ 0x0100) << 16).collect();
    check::<u32>(
        &halves,
        &[
            ("v_cvt_norm_i16_f16 d, a", |i| normalised(HALF, i.a, -1.0, 0x7fff).into()),
            ("v_cvt_norm_u16_f16 d, a", |i| normalised(HALF, i.a, 0.0, 0xffff).into()),
            ("v_cvt_pknorm_i16_f16 d, a, b op_sel:[0,1,0]", |i| {
                packed(normalised(HALF, i.a, -1.0, 0x7fff), normalised(HALF, i.b >> 16, -1.0, 0x7fff))
            }),
            ("v_cvt_pknorm_u16_f16 d, a, b", |i| {
                packed(normalised(HALF, i.a, 0.0, 0xffff), normalised(HALF, i.b, 0.0, 0xffff))
            }),
        ],
    );
}

#[test]
fn packing_conversions_saturate() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_cvt_pk_u16_u32 d, a, b", |i| i.a32().min(0xffff) | i.b32().min(0xffff) << 16),
            ("v_cvt_pk_i16_i32 d, a, b", |i| {
                let narrow = |value: u64| i64::from(value as i32).clamp(-0x8000, 0x7fff) as u16;
                u32::from(narrow(i.a)) | u32::from(narrow(i.b)) << 16
            }),
        ],
    );
    fn inserted(a: u64, b: u64, into: u64) -> u32 {
        let mut bytes = (into as u32).to_le_bytes();
        bytes[b as usize % 4] = truncated(SINGLE, a, 0, 255) as u8;
        u32::from_le_bytes(bytes)
    }
    let numbers = [0x4300_0000, 0x437f_0000, 0x437f_8000, 0x4380_0000, 0x3f40_0000, 0x4020_0000, 0, 1, 2, 3];
    check::<u32>(
        &[&SINGLES[..], &numbers].concat(),
        &[
            ("v_cvt_pk_u8_f32 d, a, b, c", |i| inserted(i.a, i.b, i.c)),
            ("v_cvt_pkaccum_u8_f32 d, a, b", |i| inserted(i.a, i.b, i.old)),
        ],
    );
}
