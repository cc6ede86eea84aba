//! Against results computed in double precision: a scaled number of these formats is exact there, and codes are few enough
//! to look for the nearest one.

use crate::exec::formats::Format;
use crate::random::Random;
use crate::testbench::Bench;
use crate::wave::{LANES, Mode};

const FROM: usize = 64;
const SECOND: usize = 100;
const SEED: usize = 140;
const SCALE: usize = 141;
const TO: usize = 16;
const USUAL: u32 = 0x3f0;

/// Name and format of the narrow types.
const NARROW: [(&str, Format); 5] =
    [("fp8", Format::FP8), ("bf8", Format::BF8), ("fp6", Format::FP6), ("bf6", Format::BF6), ("fp4", Format::FP4)];

fn format(word: &str) -> Format {
    NARROW.iter().find(|(name, _)| *name == word).unwrap().1
}

/// The value of a wide number's bits.
fn value(kind: &str, bits: u32) -> f64 {
    match kind {
        "f32" => f32::from_bits(bits).into(),
        "f16" => half::f16::from_bits(bits as u16).into(),
        _ => half::bf16::from_bits(bits as u16).into(),
    }
}

fn width(kind: &str) -> usize {
    if kind == "f32" { 32 } else { 16 }
}

/// Wide numbers of all sizes, specials among them.
fn wide(random: &mut Random, kind: &str) -> u32 {
    if random.below(4) == 0 {
        let edges = [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            448.0,
            464.0,
            465.0,
            57344.0,
            61440.0,
            7.5,
            28.0,
            5.0,
            1e-40,
        ];
        let edge = edges[random.below(edges.len() as u32) as usize];
        return match kind {
            "f32" => edge.to_bits(),
            "f16" => half::f16::from_f32(edge).to_bits().into(),
            _ => half::bf16::from_f32(edge).to_bits().into(),
        };
    }
    let (bits, exponent_bits, bias) = match kind {
        "f32" => (32, 8, 127),
        "f16" => (16, 5, 15),
        _ => (16, 8, 127),
    };
    // Mostly near one, in the reach of the narrow formats.
    let exponent = bias - 14 + random.below(if kind == "f16" { 28 } else { 34 });
    let mantissa_bits = bits - 1 - exponent_bits;
    let mantissa = random.next() & ((1 << mantissa_bits) - 1);
    (random.next() & 1) << (bits - 1) | exponent << mantissa_bits | mantissa
}

/// Bits of element `i` of an operand of `width`-bit elements.
fn element(bench: &mut Bench, first: usize, lane: usize, i: usize, width: usize) -> u32 {
    (0..width).fold(0, |code, bit| {
        let at = i * width + bit;
        code | (bench.v(first + at / 32)[lane] >> (at % 32) & 1) << bit
    })
}

/// The code that `value`, exact, becomes; with a seed by stochastic rounding.
fn narrowed(format: Format, value: f64, seed: Option<u32>, limited: bool) -> u32 {
    let sign = u32::from(value.is_sign_negative()) << (format.bits() - 1);
    let has_nan = matches!(format, Format::FP8 | Format::BF8);
    let over = match format {
        _ if limited || !has_nan => format.max_code(),
        Format::FP8 => 0x7f,
        _ => 0x7c,
    };
    if value.is_nan() {
        return sign | if has_nan { [0x7f, 0x7e][usize::from(format == Format::BF8)] } else { format.max_code() };
    }
    let magnitude = value.abs();
    let at = |code: u32| f64::from(format.decode(code));
    let largest = at(format.max_code());
    let below = (0..=format.max_code()).rev().find(|&code| at(code) <= magnitude).unwrap();
    let step = if below == format.max_code() { largest - at(below - 1) } else { at(below + 1) - at(below) };
    if magnitude >= largest + step {
        return sign | over;
    }
    let fraction = (magnitude - at(below)) / step;
    let up = match seed {
        None => fraction > 0.5 || (fraction == 0.5 && below % 2 == 1),
        // As many random bits as single precision has below the format's last place.
        Some(seed) => {
            let unit = f64::from(1u32 << (23 - format.mantissa_bits()));
            (fraction * unit).floor() + f64::from(seed >> (9 + format.mantissa_bits())) >= unit
        }
    };
    let code = below + u32::from(up);
    sign | if code > format.max_code() { over } else { code }
}

fn factor(bench: &mut Bench, lane: usize) -> f64 {
    let code = bench.v(SCALE)[lane] >> 23 & 0xff;
    if code == 255 { f64::NAN } else { 2f64.powi(code as i32 - 127) }
}

fn next(seed: u32) -> u32 {
    seed.wrapping_mul(2) ^ (197 * (seed >> 31))
}

fn bench(random: &mut Random, kind: &str) -> Bench {
    let mut bench = Bench::new();
    for register in (FROM..FROM + 32).chain(SECOND..SECOND + 16) {
        *bench.v(register) = std::array::from_fn(|_| {
            let low = wide(random, kind);
            if kind == "f32" { low } else { low | wide(random, kind) << 16 }
        });
    }
    for register in (SEED..SEED + 1).chain(TO..TO + 32) {
        *bench.v(register) = std::array::from_fn(|_| random.next());
    }
    *bench.v(SCALE) = std::array::from_fn(|lane| match lane {
        0 => 255 << 23,
        1 => 0,
        2 => 254 << 23,
        _ => (127 - 6 + random.below(13)) << 23 | random.next() & 0x807f_ffff,
    });
    bench.set_s64(crate::wave::sreg::EXEC_LO, 0xffff_fff7_ffff_ff7f);
    bench
}

fn is_on(lane: usize) -> bool {
    lane != 7 && lane != 35
}

/// Checks one encoding: `sources` finds element `i`'s bits, and the result's `count` codes stand from bit `at` on.
fn check_encoding(
    text: &str,
    kind: &str,
    narrow: Format,
    (count, at): (usize, usize),
    stochastic: bool,
    sources: impl Fn(&mut Bench, usize, usize) -> u32,
) {
    let mut random = Random::new(text.len() as u64 * 31 + at as u64);
    for limited in [false, true] {
        let mut bench = bench(&mut random, kind);
        bench.wave.mode = Mode(USUAL | u32::from(limited) << 23);
        let before: Vec<[u32; LANES]> = (0..6).map(|i| *bench.v(TO + i)).collect();
        if !bench.run(text) {
            return;
        }
        let bits = narrow.bits() as usize;
        for lane in 0..LANES {
            let mut expected: Vec<u32> = before.iter().map(|register| register[lane]).collect();
            let mut seed = bench.v(SEED)[lane];
            for i in 0..count {
                let scaled = value(kind, sources(&mut bench, lane, i));
                let sign = if scaled.is_sign_negative() { -1.0 } else { 1.0 };
                let quotient = (scaled.abs() / factor(&mut bench, lane)).abs().copysign(sign);
                let code = narrowed(narrow, quotient, stochastic.then_some(seed), limited);
                seed = next(seed);
                for bit in 0..bits {
                    let place = at + i * bits + bit;
                    let (register, place) = (place / 32, place % 32);
                    expected[register] = expected[register] & !(1 << place) | (code >> bit & 1) << place;
                }
            }
            for (i, expected) in expected.iter().enumerate() {
                let expected = if is_on(lane) { *expected } else { before[i][lane] };
                assert_eq!(bench.v(TO + i)[lane], expected, "{text} lane {lane} register {i} limited {limited}");
            }
        }
    }
}

#[test]
fn pairs_go_to_the_byte_or_word_that_op_sel_names() {
    for (name, narrow) in NARROW.into_iter().filter(|(name, _)| !name.contains('6')) {
        for kind in ["f32", "f16", "bf16"] {
            for select in 0..if name == "fp4" { 4 } else { 2 } {
                let (from, count) =
                    if kind == "f32" { (format!("v{FROM}, v{SECOND}"), 4) } else { (format!("v{FROM}"), 3) };
                let mut op_sel = vec!["0".to_string(); count];
                op_sel[count - 1] = (if name == "fp4" { select >> 1 } else { select }).to_string();
                if name == "fp4" {
                    // Bit 2 stands before the destination's bit 3, even where there is no third source.
                    op_sel.truncate(2);
                    op_sel.extend([(select & 1).to_string(), (select >> 1).to_string()]);
                }
                let text =
                    format!("v_cvt_scalef32_pk_{name}_{kind} v{TO}, {from}, v{SCALE} op_sel:[{}]", op_sel.join(","));
                let at = select * 2 * narrow.bits() as usize;
                check_encoding(&text, kind, narrow, (2, at), false, |bench, lane, i| {
                    if kind == "f32" { bench.v([FROM, SECOND][i])[lane] } else { element(bench, FROM, lane, i, 16) }
                });
            }
        }
    }
}

#[test]
fn stochastic_conversions_use_a_new_random_number_for_each_element() {
    for kind in ["f32", "f16", "bf16"] {
        for select in 0..4usize {
            let bytes = format!("op_sel:[0,0,{},{}]", select & 1, select >> 1);
            for name in ["fp8", "bf8"] {
                let text = format!("v_cvt_scalef32_sr_{name}_{kind} v{TO}, v{FROM}, v{SEED}, v{SCALE} {bytes}");
                check_encoding(&text, kind, format(name), (1, 8 * select), true, |bench, lane, _| {
                    element(bench, FROM, lane, 0, width(kind))
                });
            }
            let from = if kind == "f32" { format!("v[{FROM}:{}]", FROM + 1) } else { format!("v{FROM}") };
            let text = format!("v_cvt_scalef32_sr_pk_fp4_{kind} v{TO}, {from}, v{SEED}, v{SCALE} {bytes}");
            check_encoding(&text, kind, Format::FP4, (2, 8 * select), true, |bench, lane, i| {
                element(bench, FROM, lane, i, width(kind))
            });
        }
    }
}

#[test]
fn thirty_two_numbers_are_packed_to_six_registers() {
    let to = format!("v[{TO}:{}]", TO + 5);
    for name in ["fp6", "bf6"] {
        for kind in ["f32", "f16", "bf16"] {
            let from = format!("v[{FROM}:{}]", FROM + width(kind) - 1);
            let text = format!("v_cvt_scalef32_sr_pk32_{name}_{kind} {to}, {from}, v{SEED}, v{SCALE}");
            let packed = |bench: &mut Bench, lane, i| element(bench, FROM, lane, i, width(kind));
            check_encoding(&text, kind, format(name), (32, 0), true, packed);
            if kind != "f32" {
                let text = format!("v_cvt_scalef32_pk32_{name}_{kind} {to}, {from}, v{SCALE}");
                check_encoding(&text, kind, format(name), (32, 0), false, packed);
            }
        }
        // The two sources of sixteen alternate.
        let sources = format!("v[{FROM}:{}], v[{SECOND}:{}]", FROM + 15, SECOND + 15);
        let text = format!("v_cvt_scalef32_2xpk16_{name}_f32 {to}, {sources}, v{SCALE}");
        check_encoding(&text, "f32", format(name), (32, 0), false, |bench, lane, i| {
            bench.v([FROM, SECOND][i % 2] + i / 2)[lane]
        });
    }
}

/// Checks one decoding of `count` codes from bit `at` of the source, to `to` of the destination (register, shift).
fn check_decoding(text: &str, kind: &str, narrow: Format, (count, at): (usize, usize), half: usize) {
    let mut random = Random::new(text.len() as u64 * 37 + at as u64);
    for limited in [false, true] {
        let mut bench = bench(&mut random, kind);
        bench.wave.mode = Mode(USUAL | u32::from(limited) << 23);
        for register in FROM..FROM + 6 {
            *bench.v(register) = std::array::from_fn(|_| random.next());
        }
        let before: Vec<[u32; LANES]> = (0..32).map(|i| *bench.v(TO + i)).collect();
        if !bench.run(text) {
            return;
        }
        let bits = narrow.bits() as usize;
        for lane in 0..LANES {
            let mut left = before.clone();
            for i in 0..count {
                let code = (0..bits).fold(0, |code, bit| {
                    let place = at + i * bits + bit;
                    code | (bench.v(FROM + place / 32)[lane] >> (place % 32) & 1) << bit
                });
                let exact = f64::from(narrow.decode(code)) * factor(&mut bench, lane);
                let place = i * width(kind) + 16 * half;
                let (register, shift) = (place / 32, place % 32);
                let mask = if kind == "f32" { u32::MAX } else { 0xffff };
                let result = bench.v(TO + register)[lane] >> shift & mask;
                left[register][lane] = left[register][lane] & !(mask << shift) | result << shift;
                if !is_on(lane) {
                    assert_eq!(result, before[register][lane] >> shift & mask, "{text} lane {lane} is off");
                    continue;
                }
                // All these are exact in double precision; one rounding is left.
                let expected = match kind {
                    "f32" => f64::from(exact as f32),
                    "f16" if limited && exact.is_finite() && exact.abs() >= 65520.0 => 65504f64.copysign(exact),
                    "f16" => half::f16::from_f64(exact).into(),
                    _ => half::bf16::from_f64(exact).into(),
                };
                let result = value(kind, result);
                if expected.is_nan() {
                    assert!(result.is_nan(), "{text} lane {lane}");
                } else {
                    assert_eq!(result.to_bits(), expected.to_bits(), "{text} lane {lane} element {i} code {code:#x}");
                }
            }
            for (i, left) in left.iter().enumerate() {
                assert_eq!(bench.v(TO + i)[lane], left[lane], "{text} lane {lane} register {i} is not written");
            }
        }
    }
}

#[test]
fn narrow_numbers_come_from_the_byte_or_word_that_op_sel_names() {
    for (name, narrow) in NARROW.into_iter().filter(|(name, _)| !name.contains('6')) {
        for kind in ["f32", "f16", "bf16"] {
            let to = if kind == "f32" { format!("v[{TO}:{}]", TO + 1) } else { format!("v{TO}") };
            for select in 0..if name == "fp4" { 4 } else { 2 } {
                let op_sel = format!("op_sel:[{},{},0]", select & 1, select >> 1);
                let text = format!("v_cvt_scalef32_pk_{kind}_{name} {to}, v{FROM}, v{SCALE} {op_sel}");
                check_decoding(&text, kind, narrow, (2, select * 2 * narrow.bits() as usize), 0);
            }
            for select in 0..4 {
                if name != "fp4" && kind != "bf16" {
                    let op_sel = format!("op_sel:[{},{},0]", select & 1, select >> 1);
                    let text = format!("v_cvt_scalef32_{kind}_{name} v{TO}, v{FROM}, v{SCALE} {op_sel}");
                    check_decoding(&text, kind, narrow, (1, 8 * select), 0);
                }
            }
        }
        if name != "fp4" {
            let text = format!("v_cvt_scalef32_f16_{name} v{TO}, v{FROM}, v{SCALE} op_sel:[1,0,1]");
            check_decoding(&text, "f16", narrow, (1, 8), 1);
        }
    }
}

#[test]
fn six_registers_are_unpacked_to_thirty_two_numbers() {
    for name in ["fp6", "bf6"] {
        for kind in ["f32", "f16", "bf16"] {
            let to = format!("v[{TO}:{}]", TO + width(kind) - 1);
            let text = format!("v_cvt_scalef32_pk32_{kind}_{name} {to}, v[{FROM}:{}], v{SCALE}", FROM + 5);
            check_decoding(&text, kind, format(name), (32, 0), 0);
        }
    }
}

#[test]
fn signs_change_before_the_conversion_and_scales_may_be_scalar() {
    let mut bench = Bench::new();
    *bench.v(FROM) = [1.5f32.to_bits(); LANES];
    *bench.v(SECOND) = [(-3f32).to_bits(); LANES];
    *bench.s(3) = 4f32.to_bits();
    let run = bench.run(
        "v_cvt_scalef32_pk_fp4_f32 v16, -v64, |v100|, 1.0
         v_cvt_scalef32_pk_fp4_f32 v17, v64, -v100, s3
         v_cvt_scalef32_pk_f32_fp8 v[18:19], v64, 2.0
         v_cvt_scalef32_sr_fp8_f32 v20, 1.0, v21, 1.0",
    );
    if run {
        assert_eq!(bench.v(16)[0] & 0xff, 0x5b, "-1.5 and 3");
        assert_eq!(bench.v(17)[0] & 0xff, 0x21, "0.375, which is nearest to 0.5, and 0.75, a tie that goes to 1");
        assert_eq!(bench.v(20)[0] & 0xff, 0x38);
    }
}

#[test]
fn single_precision_denormals_are_flushed_if_mode_says_so() {
    let mut bench = Bench::new();
    *bench.v(FROM) = [0x0040_0000; LANES];
    for (mode, code) in [(0x3f0, 0x2), (0x3c0, 0)] {
        bench.wave.mode = Mode(mode);
        if bench.run("v_cvt_scalef32_pk_fp4_f32 v16, v64, v64, v200") {
            assert_eq!(bench.v(16)[0] & 0xf, code, "2^-127 over 2^-127");
        }
    }
}
