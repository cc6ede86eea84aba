//! Single- and double-precision arithmetic.

use super::exact::{DOUBLE, Format, SINGLE};
use super::*;

/// Signed zeros, denormals, the ends of the normal numbers, ties, infinities, quiet and signalling NaNs.
pub(super) const SINGLES: [u64; 32] = [
    0x0000_0000,
    0x8000_0000,
    0x0000_0001,
    0x8000_0001,
    0x0040_0000,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x0080_0001,
    0x3400_0000,
    0x3380_0001,
    0x3f00_0000,
    0xbf00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x4040_0000,
    0x4b00_0000,
    0x4b80_0001,
    0xcf00_0000,
    0x5f7f_ffff,
    0x7e80_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_1234,
    0xffc0_0001,
    0x7f80_0001,
    0xffa5_5555,
];

pub(super) const DOUBLES: [u64; 30] = [
    0x0000_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x0000_0000_0000_0001,
    0x800f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x8010_0000_0000_0001,
    0x3690_0000_0000_0000,
    0x3ca0_0000_0000_0000,
    0x3fdf_ffff_ffff_ffff,
    0x3fe0_0000_0000_0000,
    0xbfe0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x4008_0000_0000_0000,
    0x41df_ffff_ffc0_0000,
    0x41ef_ffff_fff0_0000,
    0xc1e0_0000_0000_0000,
    0x4330_0000_0000_0000,
    0x4340_0000_0000_0001,
    0x47ef_ffff_f000_0000,
    0x7fd0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_1234,
    0xfff0_0000_0000_0001,
    0x7ff4_0000_8000_0000,
];

pub(super) const HALVES: [u64; 30] = [
    0x0000, 0x8000, 0x0001, 0x8001, 0x0200, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x1400, 0x1001, 0x3555, 0x37ff, 0x3800,
    0xb800, 0x3bff, 0x3c00, 0xbc00, 0x3c01, 0x4200, 0x6400, 0x6801, 0x7800, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e12,
    0xfc01, 0x7d55,
];

fn single(bits: u64) -> u32 {
    bits as u32
}

/// `bits` with its sign turned, unless `f` is asked about NaN: the sign of a NaN operand is turned, too.
pub(super) fn negated(format: Format, bits: u64) -> u64 {
    format.bits(bits) ^ format.sign()
}

pub(super) fn absolute(format: Format, bits: u64) -> u64 {
    format.bits(bits) & !format.sign()
}

/// The smaller operand by the definition of `v_min` in IEEE mode; the larger for `v_max`.
pub(super) fn extreme(format: Format, a: u64, b: u64, largest: bool) -> u64 {
    let (a, b) = (format.bits(a), format.bits(b));
    let signals = |bits: u64| format.is_nan(bits) && format.quiet(bits) != bits;
    if signals(a) {
        return format.quiet(a);
    }
    if signals(b) {
        return format.quiet(b);
    }
    match (format.is_nan(a), format.is_nan(b)) {
        (true, _) => b,
        (_, true) => a,
        _ => {
            let difference = format.exact(a).minus(format.exact(b));
            let a_is_less = if difference.is_zero() { format.is_negative(a) } else { difference.is_negative() };
            if a_is_less != largest { a } else { b }
        }
    }
}

/// The median: of numbers, what is left when the largest one is taken away and the smaller of the others.
pub(super) fn median(format: Format, a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(|bits| format.bits(bits));
    let max = |a, b| extreme(format, a, b, true);
    if format.first_nan(&[a, b, c]).is_some() {
        return extreme(format, extreme(format, a, b, false), c, false);
    }
    let largest = format.exact(max(max(a, b), c));
    if format.exact(a) == largest {
        max(b, c)
    } else if format.exact(b) == largest {
        max(a, c)
    } else {
        max(a, b)
    }
}

/// IEEE minimum and maximum of three: NaN if any is.
pub(super) fn extreme3(format: Format, operands: [u64; 3], largest: bool) -> u64 {
    format.first_nan(&operands).unwrap_or_else(|| {
        let [a, b, c] = operands;
        extreme(format, extreme(format, a, b, largest), c, largest)
    })
}

#[test]
fn single_precision_arithmetic_is_correctly_rounded() {
    check::<u32>(
        &SINGLES,
        &[
            ("v_add_f32 d, a, b", |i| single(SINGLE.add(i.a, i.b))),
            ("v_sub_f32 d, a, b", |i| single(subtracted(SINGLE, i.a, i.b, false))),
            ("v_subrev_f32 d, a, b", |i| single(subtracted(SINGLE, i.a, i.b, true))),
            ("v_mul_f32 d, a, b", |i| single(SINGLE.mul(i.a, i.b))),
            ("v_fma_f32 d, a, b, c", |i| single(SINGLE.fma(i.a, i.b, i.c))),
            ("v_fmac_f32 d, a, b", |i| single(SINGLE.fma(i.a, i.b, i.old))),
            ("v_fmamk_f32 d, a, 0x3fb504f3, b", |i| single(SINGLE.fma(i.a, 0x3fb5_04f3, i.b))),
            ("v_fmaak_f32 d, a, b, 0xc2f6e979", |i| single(SINGLE.fma(i.a, i.b, 0xc2f6_e979))),
            ("v_mul_legacy_f32 d, a, b", |i| {
                let zero = |bits: u64| bits as u32 & 0x7fff_ffff == 0;
                if zero(i.a) || zero(i.b) { 0 } else { single(SINGLE.mul(i.a, i.b)) }
            }),
            ("v_add_f32_e64 d, -a, |b|", |i| single(SINGLE.add(negated(SINGLE, i.a), absolute(SINGLE, i.b)))),
            ("v_fma_f32 d, -|a|, b, -c", |i| {
                single(SINGLE.fma(negated(SINGLE, absolute(SINGLE, i.a)), i.b, negated(SINGLE, i.c)))
            }),
        ],
    );
}

/// a - b, or b - a with a NaN in `a` still going first.
pub(super) fn subtracted(format: Format, a: u64, b: u64, reversed: bool) -> u64 {
    format
        .first_nan(&[a, b])
        .unwrap_or_else(|| if reversed { format.add(b, negated(format, a)) } else { format.add(a, negated(format, b)) })
}

#[test]
fn single_precision_extremes_know_signs_of_zero_and_kinds_of_nan() {
    check::<u32>(
        &SINGLES,
        &[
            ("v_min_f32 d, a, b", |i| single(extreme(SINGLE, i.a, i.b, false))),
            ("v_max_f32 d, a, b", |i| single(extreme(SINGLE, i.a, i.b, true))),
            ("v_max_f32_e64 d, -a, |b|", |i| {
                single(extreme(SINGLE, negated(SINGLE, i.a), absolute(SINGLE, i.b), true))
            }),
            ("v_min3_f32 d, a, b, c", |i| single(extreme(SINGLE, extreme(SINGLE, i.a, i.b, false), i.c, false))),
            ("v_max3_f32 d, a, b, c", |i| single(extreme(SINGLE, extreme(SINGLE, i.a, i.b, true), i.c, true))),
            ("v_med3_f32 d, a, b, c", |i| single(median(SINGLE, i.a, i.b, i.c))),
            ("v_minimum3_f32 d, a, b, c", |i| single(extreme3(SINGLE, [i.a, i.b, i.c], false))),
            ("v_maximum3_f32 d, a, b, c", |i| single(extreme3(SINGLE, [i.a, i.b, i.c], true))),
        ],
    );
}

/// The dwords of a packed operand, in order of use.
fn halves(low: u64, high: u64) -> u64 {
    low & 0xffff_ffff | high << 32
}

#[test]
fn packed_single_precision_works_dword_by_dword() {
    // Each register pair holds an edge in both dwords, or two random ones.
    let edges: Vec<u64> = SINGLES.iter().map(|&bits| bits | bits.rotate_left(32) ^ 0x8000_0000_0000_0000).collect();
    check::<u64>(
        &edges,
        &[
            ("v_pk_add_f32 D, A, B", |i| halves(SINGLE.add(i.a, i.b), SINGLE.add(i.a >> 32, i.b >> 32))),
            ("v_pk_mul_f32 D, A, B", |i| halves(SINGLE.mul(i.a, i.b), SINGLE.mul(i.a >> 32, i.b >> 32))),
            ("v_pk_fma_f32 D, A, B, C", |i| {
                halves(SINGLE.fma(i.a, i.b, i.c), SINGLE.fma(i.a >> 32, i.b >> 32, i.c >> 32))
            }),
            ("v_pk_add_f32 D, A, B op_sel:[1,0] op_sel_hi:[0,1]", |i| {
                halves(SINGLE.add(i.a >> 32, i.b), SINGLE.add(i.a, i.b >> 32))
            }),
            ("v_pk_mul_f32 D, A, B op_sel_hi:[1,0] neg_lo:[1,0] neg_hi:[0,1]", |i| {
                halves(SINGLE.mul(negated(SINGLE, i.a), i.b), SINGLE.mul(i.a >> 32, negated(SINGLE, i.b)))
            }),
            ("v_pk_mov_b32 D, A, B op_sel:[1,0]", |i| halves(i.a >> 32, i.b)),
            ("v_pk_mov_b32 D, A, B op_sel:[0,1]", |i| halves(i.a, i.b >> 32)),
        ],
    );
}

#[test]
fn double_precision_arithmetic_is_correctly_rounded() {
    check::<u64>(
        &DOUBLES,
        &[
            ("v_add_f64 D, A, B", |i| DOUBLE.add(i.a, i.b)),
            ("v_mul_f64 D, A, B", |i| DOUBLE.mul(i.a, i.b)),
            ("v_fma_f64 D, A, B, C", |i| DOUBLE.fma(i.a, i.b, i.c)),
            ("v_fmac_f64 D, A, B", |i| DOUBLE.fma(i.a, i.b, i.old)),
            ("v_min_f64 D, A, B", |i| extreme(DOUBLE, i.a, i.b, false)),
            ("v_max_f64 D, A, B", |i| extreme(DOUBLE, i.a, i.b, true)),
            ("v_fma_f64 D, -A, |B|, C", |i| DOUBLE.fma(negated(DOUBLE, i.a), absolute(DOUBLE, i.b), i.c)),
        ],
    );
}
