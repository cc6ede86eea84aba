//! Arithmetic under MODE: every rounding and denormal mode, half-precision overflow, IEEE off.

use super::exact::{DOUBLE, Format, HALF, SINGLE};
use super::float::{DOUBLES, HALVES, SINGLES, negated};
use super::*;
use crate::wave::Rounding;

/// The formats of one mode, for functions without captures.
#[derive(Clone, Copy)]
struct Formats {
    half: Format,
    single: Format,
    double: Format,
}

thread_local! {
    static FORMATS: std::cell::Cell<Formats> =
        const { std::cell::Cell::new(Formats { half: HALF, single: SINGLE, double: DOUBLE }) };
}

fn half() -> Format {
    FORMATS.get().half
}

fn single() -> Format {
    FORMATS.get().single
}

fn double() -> Format {
    FORMATS.get().double
}

const ROUNDINGS: [Rounding; 4] = [Rounding::NearestEven, Rounding::Up, Rounding::Down, Rounding::Zero];

/// Runs `test` under modes that meet every rounding with every denormal mode, single and double precision apart.
fn in_all_modes(test: impl Fn(u32)) {
    for n in 0..16u32 {
        let (round_single, denormals_single) = (n % 4, n / 4);
        let (round_other, denormals_other) = ((n + 1) % 4, (n / 4 + n) % 4);
        let saturates = n % 3 == 1;
        let format = |format: Format, rounding: u32, denormals: u32| Format {
            rounding: ROUNDINGS[rounding as usize],
            flush_inputs: denormals & 1 == 0,
            flush_results: denormals & 2 == 0,
            ..format
        };
        FORMATS.set(Formats {
            half: Format { saturate: saturates, ..format(HALF, round_other, denormals_other) },
            single: format(SINGLE, round_single, denormals_single),
            double: format(DOUBLE, round_other, denormals_other),
        });
        let fields = round_single | round_other << 2 | denormals_single << 4 | denormals_other << 6;
        test(fields | 0x300 | u32::from(saturates) << 23);
    }
}

#[test]
fn single_precision_follows_its_mode() {
    in_all_modes(|mode| {
        check_in::<u32>(
            mode,
            &SINGLES,
            &[
                ("v_add_f32 d, a, b", |i| single().add(i.a, i.b) as u32),
                ("v_mul_f32 d, a, b", |i| single().mul(i.a, i.b) as u32),
                ("v_fma_f32 d, a, b, c", |i| single().fma(i.a, i.b, i.c) as u32),
                ("v_fma_f32 d, -a, b, c", |i| single().fma(negated(SINGLE, i.a), i.b, i.c) as u32),
                ("v_cvt_f32_u32 d, b", |i| {
                    single().round(super::exact::Exact::new(false, i.b32().into(), 0), false) as u32
                }),
                ("v_ldexp_f32 d, a, 3", |i| match SINGLE.bits(i.a) {
                    bits if SINGLE.is_nan(bits) => SINGLE.quiet(bits) as u32,
                    bits if SINGLE.is_infinite(bits) => bits as u32,
                    bits => single().scaled(bits, 3) as u32,
                }),
            ],
        );
    });
}

#[test]
fn half_and_double_precision_follow_theirs() {
    in_all_modes(|mode| {
        check_in::<u32>(
            mode,
            &HALVES,
            &[
                ("v_add_f16 d, a, b", |i| half().add(i.a, i.b) as u32),
                ("v_mul_f16 d, a, b", |i| half().mul(i.a, i.b) as u32),
                ("v_fma_legacy_f16 d, a, b, c", |i| half().fma(i.a, i.b, i.c) as u32),
                ("v_cvt_f32_f16 d, a", |i| half().convert(SINGLE, HALF.bits(i.a)) as u32),
            ],
        );
        check_in::<u64>(
            mode,
            &DOUBLES,
            &[
                ("v_add_f64 D, A, B", |i| double().add(i.a, i.b)),
                ("v_fma_f64 D, A, B, C", |i| double().fma(i.a, i.b, i.c)),
            ],
        );
        check_in::<u32>(
            mode,
            &SINGLES,
            &[
                ("v_cvt_f16_f32 d, a", |i| SINGLE.convert(half(), i.a) as u32),
                ("v_cvt_pk_f16_f32 d, a, b", |i| {
                    let nearest = Format { rounding: Rounding::NearestEven, ..half() };
                    (SINGLE.convert(nearest, i.a) | SINGLE.convert(nearest, i.b) << 16) as u32
                }),
            ],
        );
        check_in::<u32>(mode, &DOUBLES, &[("v_cvt_f32_f64 d, A", |i| DOUBLE.convert(single(), i.a) as u32)]);
    });
}

#[test]
fn extremes_pass_signalling_nans_by_without_ieee() {
    let mut bench = Bench::new();
    bench.wave.mode = Mode(USUAL & !0x200);
    *bench.v(0) = [0x7f80_0001; LANES];
    *bench.v(1) = [0x3f80_0000; LANES];
    if bench.run("v_min_f32 v2, v0, v1\nv_max_f32 v3, v1, v0\nv_minimum3_f32 v4, v1, v0, v1") {
        assert_eq!((bench.v(2)[0], bench.v(3)[0], bench.v(4)[0]), (0x3f80_0000, 0x3f80_0000, 0x7fc0_0001));
    }
}

#[test]
fn setreg_changes_the_mode_of_what_follows() {
    let mut bench = Bench::new();
    *bench.v(0) = [0x3f80_0000; LANES];
    *bench.v(1) = [0x3380_0000; LANES];
    // 1 + 2^-24 to nearest, then up.
    let code = "v_add_f32 v2, v0, v1\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 1\nv_add_f32 v3, v0, v1";
    if bench.run(code) {
        assert_eq!((bench.v(2)[0], bench.v(3)[0]), (0x3f80_0000, 0x3f80_0001));
    }
}
