//! The division steps, alone and in the sequences that LLVM makes of them.

use super::exact::{Format, HALF, SINGLE};
use super::float::{DOUBLES, HALVES, SINGLES};
use super::*;

/// LLVM's single-precision division with denormals on (`AMDGPULegalizerInfo::legalizeFDIV32`): v4 = v0 / v2.
const DIVIDE_SINGLE: &str = "
    v_div_scale_f32 v6, s[20:21], v2, v2, v0
    v_div_scale_f32 v7, vcc, v0, v2, v0
    v_rcp_f32 v8, v6
    v_fma_f32 v9, -v6, v8, 1.0
    v_fmac_f32 v8, v9, v8
    v_mul_f32 v9, v7, v8
    v_fma_f32 v10, -v6, v9, v7
    v_fmac_f32 v9, v10, v8
    v_fma_f32 v6, -v6, v9, v7
    v_div_fmas_f32 v6, v6, v8, v9
    v_div_fixup_f32 v4, v6, v2, v0";

/// LLVM's double-precision division (`legalizeFDIV64`): v[4:5] = v[0:1] / v[2:3].
const DIVIDE_DOUBLE: &str = "
    v_div_scale_f64 v[6:7], s[20:21], v[2:3], v[2:3], v[0:1]
    v_rcp_f64 v[8:9], v[6:7]
    v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0
    v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]
    v_fma_f64 v[10:11], -v[6:7], v[8:9], 1.0
    v_fma_f64 v[8:9], v[8:9], v[10:11], v[8:9]
    v_div_scale_f64 v[10:11], vcc, v[0:1], v[2:3], v[0:1]
    v_mul_f64 v[12:13], v[10:11], v[8:9]
    v_fma_f64 v[6:7], -v[6:7], v[12:13], v[10:11]
    v_div_fmas_f64 v[6:7], v[6:7], v[8:9], v[12:13]
    v_div_fixup_f64 v[4:5], v[6:7], v[2:3], v[0:1]";

fn run_division(code: &str, edges: &[u64], random_batches: usize, check: impl Fn(u64, u64, u64)) {
    let mut random = Random::new(1);
    for batch in 0..edges.len().pow(2).div_ceil(LANES) + random_batches {
        let inputs = inputs(edges, batch, &mut || u64::from(random.next()) << 32 | u64::from(random.next()));
        let mut bench = Bench::new();
        bench.set_v64(0, |lane| inputs[lane][0]);
        bench.set_v64(2, |lane| inputs[lane][1]);
        if !bench.run(code) {
            return;
        }
        for (lane, [a, b, _]) in inputs.into_iter().enumerate() {
            check(a, b, bench.v64(4, lane));
        }
    }
}

#[test]
fn the_single_precision_sequence_divides_correctly_rounded() {
    run_division(DIVIDE_SINGLE, &SINGLES, 40, |a, b, found| {
        let (a, b, found) = (f32::from_bits(a as u32), f32::from_bits(b as u32), f32::from_bits(found as u32));
        let expected = a / b;
        let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(same, "{a:e} / {b:e} = {found:e}, not {expected:e}");
    });
}

#[test]
fn the_double_precision_sequence_divides_correctly_rounded() {
    run_division(DIVIDE_DOUBLE, &DOUBLES, 40, |a, b, found| {
        let (a, b, found) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(found));
        let expected = a / b;
        let same = found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
        assert!(same, "{a:e} / {b:e} = {found:e}, not {expected:e}");
    });
}

#[test]
fn fixups_handle_what_has_no_quotient() {
    /// The result, if it is not the quotient with the right sign.
    fn special(format: Format, denominator: u64, numerator: u64) -> Option<u64> {
        let [denominator, numerator] = [denominator, numerator].map(|bits| format.bits(bits));
        let nan = format.first_nan(&[numerator, denominator]);
        let sign = (denominator ^ numerator) & format.sign();
        let is_zero = |bits: u64| bits & !format.sign() == 0;
        let infinite = [numerator, denominator].map(|bits| format.is_infinite(bits));
        match ([is_zero(numerator), is_zero(denominator)], infinite) {
            _ if nan.is_some() => nan,
            ([true, true], _) | (_, [true, true]) => Some(format.invalid()),
            ([_, true], _) | (_, [true, _]) => Some(format.infinity() | sign),
            ([true, _], _) | (_, [_, true]) => Some(sign),
            _ => None,
        }
    }
    fn quotient(format: Format, i: In) -> u64 {
        format.bits(i.a) & !format.sign() | (format.bits(i.b) ^ format.bits(i.c)) & format.sign()
    }
    fn half(i: In) -> u32 {
        special(HALF, i.b, i.c).unwrap_or(quotient(HALF, i)) as u32
    }
    check::<u32>(
        &SINGLES,
        &[("v_div_fixup_f32 d, a, b, c", |i| {
            let field = |bits: u64| (bits as u32 >> 23 & 0xff) as i32;
            let quotient = quotient(SINGLE, i);
            let sign = quotient & SINGLE.sign();
            let result = special(SINGLE, i.b, i.c).unwrap_or(match () {
                // It vanishes or overflows, whatever the sequence before made of it.
                () if field(i.c) - field(i.b) < -150 => sign,
                () if field(i.a) == 255 => sign | SINGLE.infinity(),
                () => quotient,
            });
            result as u32
        })],
    );
    check::<u32>(
        &HALVES,
        &[
            ("v_div_fixup_f16 d, a, b, c", |i| i.old as u32 & 0xffff_0000 | half(i)),
            ("v_div_fixup_legacy_f16 d, a, b, c", half),
        ],
    );
}

#[test]
fn the_last_multiply_add_undoes_the_scaling_of_marked_lanes() {
    let mut bench = Bench::new();
    bench.set_s64(sreg::VCC_LO, 0xaaaa_aaaa_aaaa_aaaa);
    let edges = [0x3f80_0000, 0x4000_0000, 0x3f7f_ffff, 0x5f00_0000, 0x1f80_0000, 0x0080_0000];
    *bench.v(0) = std::array::from_fn(|lane| edges[lane / 2 % 6]);
    *bench.v(1) = [0x3f00_0000; LANES];
    *bench.v(2) = std::array::from_fn(|lane| edges[lane / 12 % 6]);
    let (a, c) = (*bench.v(0), *bench.v(2));
    if bench.run("v_div_fmas_f32 v3, v0, v1, v2") {
        for lane in 0..LANES {
            let sum = SINGLE.fma(a[lane].into(), 0x3f00_0000, c[lane].into());
            // Scaled up if the addend is two or more, else down, by 2^64.
            let power = if f32::from_bits(c[lane]) >= 2.0 { 64 } else { -64 };
            let scaled = SINGLE.scaled(sum, power) as u32;
            assert_eq!(bench.v(3)[lane], if lane % 2 == 1 { scaled } else { sum as u32 }, "lane {lane}");
        }
    }
}

#[test]
fn operands_are_scaled_out_of_the_reach_of_denormals() {
    // Value, denominator, numerator; scaled value and flag, from the conditions of CDNA4 ISA, V_DIV_SCALE_F32.
    let power = |n: i32| 2f64.powi(n) as f32;
    let cases = [
        (1.0, 1.0, 3.0, 1.0, false),
        (1.0, 1.0, power(100), power(64), true),
        (power(100), 1.0, power(100), power(100), true),
        (power(-140), power(-140), power(-130), power(-76), false),
        (power(127), power(127), 1.0, power(63), true),
        (1.0, power(127), 1.0, 1.0, true),
        (power(127), power(127), power(100), power(63), false),
        (power(-100), power(60), power(-100), power(-36), true),
        (power(60), power(60), power(-100), power(60), true),
        (power(-110), power(-100), power(-110), power(-46), false),
    ];
    let mut bench = Bench::new();
    for (lane, case) in cases.iter().enumerate() {
        bench.v(0)[lane] = case.0.to_bits();
        bench.v(1)[lane] = case.1.to_bits();
        bench.v(2)[lane] = case.2.to_bits();
    }
    bench.set_s64(sreg::EXEC_LO, (1 << cases.len()) - 1);
    if bench.run("v_div_scale_f32 v3, vcc, v0, v1, v2") {
        for (lane, case) in cases.iter().enumerate() {
            assert_eq!(f32::from_bits(bench.v(3)[lane]), case.3, "{case:?}");
            assert_eq!(bench.s64(sreg::VCC_LO) >> lane & 1 == 1, case.4, "{case:?}");
        }
    }
}

#[test]
fn cube_coordinates_follow_the_major_axis() {
    // Rows of the cube map table of graphics APIs: axis and sign give face, S and T.
    fn face(i: In) -> (u32, f32, f32, f32) {
        let [x, y, z] = [i.a, i.b, i.c].map(|bits| f32::from_bits(bits as u32));
        let table = [(x, [0, 1], [-z, z], [-y, -y]), (y, [2, 3], [x, x], [z, -z]), (z, [4, 5], [x, -x], [-y, -y])];
        // Of equal axes the last one is the major.
        let major = match () {
            () if z.abs() >= x.abs() && z.abs() >= y.abs() => 2,
            () if y.abs() >= x.abs() => 1,
            () => 0,
        };
        let (axis, faces, s, t) = table[major];
        let side = usize::from(axis < 0.0);
        (faces[side], s[side], t[side], axis)
    }
    check::<u32>(
        &SINGLES,
        &[
            ("v_cubeid_f32 d, a, b, c", |i| (face(i).0 as f32).to_bits()),
            ("v_cubesc_f32 d, a, b, c", |i| face(i).1.to_bits()),
            ("v_cubetc_f32 d, a, b, c", |i| face(i).2.to_bits()),
            ("v_cubema_f32 d, a, b, c", |i| SINGLE.mul(face(i).3.to_bits().into(), 0x4000_0000) as u32),
        ],
    );
}
