//! Functions known by an error bound: 1 ULP against the host's double-precision functions, and the manual's examples.

use super::exact::{DOUBLE, HALF, SINGLE};
use super::float::{DOUBLES, SINGLES};
use super::*;

/// Distance in units in the last place, with the sign of zero not looked at.
fn ulps(a: f32, b: f32) -> i64 {
    let order = |x: f32| {
        let bits = x.to_bits() as i32;
        i64::from(if bits < 0 { i32::MIN - bits } else { bits })
    };
    (order(a) - order(b)).abs()
}

fn flushed(value: f32) -> f32 {
    if value.is_subnormal() { 0f32.copysign(value) } else { value }
}

type Function = (&'static str, fn(f64) -> f64);

fn sine_of_turns(x: f64) -> f64 {
    // Within a turn, the angle in radians is exact enough for the host's sine.
    ((x - x.round()) * std::f64::consts::TAU).sin()
}

fn cosine_of_turns(x: f64) -> f64 {
    ((x - x.round()) * std::f64::consts::TAU).cos()
}

const FUNCTIONS: [Function; 7] = [
    ("rcp", |x| 1.0 / x),
    ("sqrt", f64::sqrt),
    ("rsq", |x| 1.0 / x.sqrt()),
    ("exp", f64::exp2),
    ("log", f64::log2),
    ("sin", sine_of_turns),
    ("cos", cosine_of_turns),
];

fn run(code: &str, inputs: &[u32; LANES]) -> Option<[u32; LANES]> {
    let mut bench = Bench::new();
    *bench.v(0) = *inputs;
    bench.run(code).then(|| *bench.v(1))
}

fn batches(edges: &[u64], spread: fn(u32) -> u32) -> Vec<[u32; LANES]> {
    let mut random = Random::new(7);
    (0..40)
        .map(|batch| {
            std::array::from_fn(|lane| match edges.get(batch * LANES + lane) {
                Some(&edge) => edge as u32,
                None => spread(random.next()),
            })
        })
        .collect()
}

#[test]
fn single_precision_functions_are_within_one_ulp() {
    for (name, function) in FUNCTIONS {
        // Any bits; numbers from 0.5 below 2, where logarithms vanish; moderate numbers.
        for spread in [|bits| bits, |bits: u32| 0x3f00_0000 | bits >> 8, |bits: u32| 0x3c00_0000 + (bits >> 4)] {
            for inputs in batches(&SINGLES, spread) {
                let Some(found) = run(&format!("v_{name}_f32 v1, v0"), &inputs) else { return };
                for (lane, &bits) in inputs.iter().enumerate() {
                    let trigonometric = name == "sin" || name == "cos";
                    let x = f32::from_bits(bits);
                    let operand = if trigonometric { x } else { flushed(x) };
                    let exact = function(operand.into());
                    let expected = if trigonometric { exact as f32 } else { flushed(exact as f32) };
                    let found = f32::from_bits(found[lane]);
                    // The host's own reduction of a turn loses what is below 2^-53 of it.
                    let tiny = trigonometric && exact.abs() < 1e-7 && found.abs() < 1e-7;
                    let close = ulps(found, expected) <= 1 || tiny || found.is_nan() && expected.is_nan();
                    assert!(close, "v_{name}_f32 of {x:e} ({bits:#x}) is {found:e}, not {expected:e}");
                }
            }
        }
    }
}

#[test]
fn half_precision_functions_are_within_one_ulp_for_every_half() {
    for (name, function) in FUNCTIONS {
        for first in (0..0x1_0000).step_by(LANES) {
            let inputs = std::array::from_fn(|lane| (first + lane) as u32);
            let Some(found) = run(&format!("v_{name}_f16 v1, v0"), &inputs) else { return };
            for (lane, &bits) in inputs.iter().enumerate() {
                let x = f64::from_bits(HALF.convert(DOUBLE, bits.into()));
                let expected = DOUBLE.convert(HALF, function(x).to_bits());
                let found = u64::from(found[lane]);
                let order = |bits: u64| if bits & 0x8000 != 0 { 0x8000 - bits as i64 } else { bits as i64 };
                let close = (order(found) - order(expected)).abs() <= 1;
                let both_nan = HALF.is_nan(found) && HALF.is_nan(expected);
                let tiny = found & 0x7fff <= 1 && expected & 0x7fff <= 1;
                assert!(close || both_nan || tiny, "v_{name}_f16 of {bits:#x} is {found:#x}, not {expected:#x}");
            }
        }
    }
}

#[test]
fn reciprocals_and_roots_are_correctly_rounded() {
    check::<u64>(
        &DOUBLES,
        &[
            ("v_rcp_f64 D, A", |i| nan_or(i.a, |x| 1.0 / x)),
            ("v_sqrt_f64 D, A", |i| nan_or(i.a, f64::sqrt)),
            ("v_rsq_f64 D, A", |i| nan_or(i.a, |x| 1.0 / x.sqrt())),
        ],
    );
    fn nan_or(bits: u64, f: fn(f64) -> f64) -> u64 {
        DOUBLE.first_nan(&[bits]).unwrap_or_else(|| {
            let value = f(f64::from_bits(bits));
            if value.is_nan() { DOUBLE.invalid() } else { value.to_bits() }
        })
    }
    check::<u32>(
        &SINGLES,
        &[
            ("v_rcp_f32 d, a", |i| single(i, |x| 1.0 / x)),
            ("v_rcp_iflag_f32 d, a", |i| single(i, |x| 1.0 / x)),
            ("v_sqrt_f32 d, a", |i| single(i, f32::sqrt)),
        ],
    );
    fn single(i: In, f: fn(f32) -> f32) -> u32 {
        let nan = SINGLE.first_nan(&[i.a]).map(|bits| bits as u32);
        nan.unwrap_or_else(|| {
            let value = flushed(f(flushed(f32::from_bits(i.a as u32))));
            if value.is_nan() { SINGLE.invalid() as u32 } else { value.to_bits() }
        })
    }
}

#[test]
fn the_examples_of_the_manual_hold() {
    // CDNA4 ISA section 12.8.
    const EXAMPLES: [(&str, &[(u32, u32)]); 14] = [
        ("v_exp_f32", &[(0xff80_0000, 0), (0x8000_0000, 0x3f80_0000), (0x7f80_0000, 0x7f80_0000)]),
        (
            "v_log_f32",
            &[
                (0xff80_0000, 0xffc0_0000),
                (0xbf80_0000, 0xffc0_0000),
                (0x8000_0000, 0xff80_0000),
                (0x0000_0000, 0xff80_0000),
                (0x3f80_0000, 0x0000_0000),
                (0x7f80_0000, 0x7f80_0000),
            ],
        ),
        (
            "v_rcp_f32",
            &[(0xff80_0000, 0x8000_0000), (0xc000_0000, 0xbf00_0000), (0x8000_0000, 0xff80_0000), (0, 0x7f80_0000)],
        ),
        ("v_rsq_f32", &[(0xff80_0000, 0xffc0_0000), (0x8000_0000, 0xff80_0000), (0x4080_0000, 0x3f00_0000)]),
        ("v_sqrt_f32", &[(0xff80_0000, 0xffc0_0000), (0x8000_0000, 0x8000_0000), (0x4080_0000, 0x4000_0000)]),
        (
            "v_sin_f32",
            &[(0xff80_0000, 0xffc0_0000), (0xff7f_ffff, 0), (0x8000_0000, 0x8000_0000), (0x3e80_0000, 0x3f80_0000)],
        ),
        (
            "v_cos_f32",
            &[(0xff7f_ffff, 0x3f80_0000), (0x8000_0000, 0x3f80_0000), (0x3e80_0000, 0), (0x7f80_0000, 0xffc0_0000)],
        ),
        ("v_rcp_f16", &[(0xfc00, 0x8000), (0xc000, 0xb800), (0x8000, 0xfc00), (0, 0x7c00), (0x7c00, 0)]),
        ("v_sqrt_f16", &[(0xfc00, 0xfe00), (0x8000, 0x8000), (0x4400, 0x4000)]),
        ("v_rsq_f16", &[(0xfc00, 0xfe00), (0x8000, 0xfc00), (0x4400, 0x3800), (0x7c00, 0)]),
        ("v_log_f16", &[(0xfc00, 0xfe00), (0xbc00, 0xfe00), (0x8000, 0xfc00), (0, 0xfc00), (0x3c00, 0)]),
        ("v_exp_f16", &[(0xfc00, 0), (0x8000, 0x3c00), (0x7c00, 0x7c00)]),
        ("v_sin_f16", &[(0xfc00, 0xfe00), (0xfbff, 0), (0x8000, 0x8000), (0x3400, 0x3c00), (0x7bff, 0)]),
        ("v_cos_f16", &[(0xfc00, 0xfe00), (0xfbff, 0x3c00), (0x8000, 0x3c00), (0x3400, 0), (0x7bff, 0x3c00)]),
    ];
    for (name, examples) in EXAMPLES {
        for &(operand, expected) in examples {
            let Some(found) = run(&format!("{name} v1, v0"), &[operand; LANES]) else { return };
            assert_eq!(found[5], expected, "{name} of {operand:#x}");
        }
    }
}

/// Fixed-point numbers of 1300 bits and more, highest word first: enough to check the digits of pi with.
mod fixed {
    const WORDS: usize = 44;
    pub(super) type Fixed = [u32; WORDS];

    pub(super) fn divided(x: &Fixed, by: u64) -> Fixed {
        let mut rest = 0;
        x.map(|word| {
            let part = rest << 32 | u64::from(word);
            rest = part % by;
            (part / by) as u32
        })
    }

    /// The sum, or the difference if `subtract`.
    pub(super) fn sum(a: &Fixed, b: &Fixed, subtract: bool) -> Fixed {
        let mut out = [0; WORDS];
        let mut carry = i64::from(subtract);
        for i in (0..WORDS).rev() {
            let word = if subtract { !b[i] } else { b[i] };
            let total = i64::from(a[i]) + i64::from(word) + carry;
            out[i] = total as u32;
            carry = total >> 32;
        }
        out
    }

    /// A quarter of pi by Machin's formula, with one bit before the point.
    pub(super) fn quarter_of_pi() -> Fixed {
        let arctangent = |x: u64| {
            let mut one = [0; WORDS];
            one[0] = 1 << 31;
            let mut term = divided(&one, x);
            let (mut sum_so_far, mut n) = (term, 1);
            while term.iter().any(|&word| word != 0) {
                term = divided(&term, x * x);
                n += 2;
                sum_so_far = sum(&sum_so_far, &divided(&term, n), n % 4 == 3);
            }
            sum_so_far
        };
        // pi / 4 = 4 atan(1/5) - atan(1/239)
        let (fifth, small) = (arctangent(5), arctangent(239));
        let twice = sum(&fifth, &fifth, false);
        sum(&sum(&twice, &twice, false), &small, true)
    }
}

#[test]
fn segments_are_the_digits_of_two_over_pi() {
    // The segments, put together, are the digits of 2 / pi; their product with pi / 4 must be a half.
    let mut bench = Bench::new();
    bench.set_v64(0, |_| 1f64.to_bits());
    *bench.v(2) = std::array::from_fn(|lane| lane as u32);
    if !bench.run("v_trig_preop_f64 v[4:5], v[0:1], v2") {
        return;
    }
    let quarter_of_pi = fixed::quarter_of_pi();
    // Later segments are denormal.
    let segments = 20;
    let mut product: fixed::Fixed = [0; 44];
    for segment in 0..segments {
        let digits = f64::from_bits(bench.v64(4, segment)) * 2f64.powi(53 * segment as i32) * 2f64.powi(53);
        assert!(digits.fract() == 0.0 && digits < 2f64.powi(53), "segment {segment} has 53 digits");
        for bit in (0..53).filter(|bit| digits as u64 >> (52 - bit) & 1 == 1) {
            // Shifted down by whole words, then divided.
            let place = 53 * segment + bit + 1;
            let mut moved = [0; 44];
            moved[place / 32..].copy_from_slice(&quarter_of_pi[..44 - place / 32]);
            product = fixed::sum(&product, &fixed::divided(&moved, 1 << (place % 32)), false);
        }
    }
    // Digits are cut off, so it is all ones below a half.
    let known = 53 * segments / 32 - 2;
    assert!(product[0] == 0x3fff_ffff && product[1..known].iter().all(|&word| word == u32::MAX), "{product:x?}");
}

#[test]
fn large_angles_shift_the_segments() {
    let mut bench = Bench::new();
    bench.set_v64(0, |lane| ((1000 + 10 * lane as u64) << 52) | 5);
    *bench.v(2) = [2; LANES];
    let mut base = Bench::new();
    base.set_v64(0, |_| 1f64.to_bits());
    *base.v(2) = std::array::from_fn(|lane| lane as u32);
    if !bench.run("v_trig_preop_f64 v[4:5], v[0:1], v2") || !base.run("v_trig_preop_f64 v[4:5], v[0:1], v2") {
        return;
    }
    for lane in 0..LANES {
        let exponent = 1000 + 10 * lane as i32;
        let shift = 106 + (exponent - 1077).max(0);
        // 53 digits from `shift` on, out of the unshifted segments.
        let digit = |n: i32| {
            let segment = f64::from_bits(base.v64(4, (n / 53) as usize)) * 2f64.powi(53 * (n / 53));
            (segment * 2f64.powi(53)) as u64 >> (52 - n % 53) & 1
        };
        let digits = (0..53).fold(0u64, |digits, n| digits << 1 | digit(shift + n));
        let power = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
        let expected = digits as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
        assert_eq!(f64::from_bits(bench.v64(4, lane)), expected, "exponent {exponent}");
    }
}

#[test]
fn legacy_forms_give_what_the_others_do() {
    let mut random = Random::new(11);
    for _ in 0..50 {
        let mut bench = Bench::new();
        *bench.v(0) = std::array::from_fn(|_| random.next());
        let text = "v_exp_f32 v1, v0\nv_exp_legacy_f32 v2, v0\nv_log_f32 v3, v0\nv_log_legacy_f32 v4, v0";
        if bench.run(text) {
            assert_eq!((*bench.v(2), *bench.v(4)), (*bench.v(1), *bench.v(3)));
        }
    }
}
