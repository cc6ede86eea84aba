use super::*;
use crate::exec::formats::Format;

/// The formats by their CBSZ and BLGP codes.
const FORMATS: [Format; 5] = [Format::FP8, Format::BF8, Format::FP6, Format::BF6, Format::FP4];
const SHAPES: [&str; 2] = ["16x16x128", "32x32x64"];
const SCALE_A: usize = 30;
const SCALE_B: usize = 31;

/// Codes without infinities and NaNs, whose products are multiples of 2^-32.
fn fill_codes(bench: &mut Bench, random: &mut Random, first: usize, format: usize) {
    let mask = if format < 2 { 0xbfbf_bfbf } else { u32::MAX };
    fill(bench, first..first + 8, || random.next() & mask);
}

fn text(shape: &str, a: usize, b: usize, modifiers: &str, scaled: bool) -> String {
    let count = |format: usize| FORMATS[format].bits() as usize;
    let result = if shape == SHAPES[0] { 4 } else { 16 };
    let (name, scales) =
        if scaled { ("v_mfma_scale", format!(", v{SCALE_A}, v{SCALE_B}")) } else { ("v_mfma", String::new()) };
    format!(
        "{name}_f32_{shape}_f8f6f4 {}, {}, {}, {}{scales}{modifiers} cbsz:{a} blgp:{b}",
        range('v', D, result),
        range('v', A, count(a)),
        range('v', B, count(b)),
        range('v', C, result)
    )
}

/// Checks all results, with the scale factors that `scale(operand, row, k / 32)` gives.
fn check(
    bench: &mut Bench,
    shape: &str,
    (a, b): (usize, usize),
    scale: impl Fn(&mut Bench, usize, usize, usize) -> f64,
) {
    let dims = Dims::of(shape);
    let mut values = |first: usize, format: usize, operand: usize| -> Vec<f64> {
        let bits = FORMATS[format].bits() as usize;
        (0..dims.m * dims.k)
            .map(|n| {
                let (i, k) = (n / dims.k, n % dims.k);
                let code = code(bench, first, dims.element(i, k, 0, bits), bits);
                f64::from(FORMATS[format].decode(code)) * scale(bench, operand, i, k / 32)
            })
            .collect()
    };
    let (a_values, b_values) = (values(A, a, 0), values(B, b, 1));
    for (i, j) in (0..dims.m * dims.m).map(|n| (n / dims.m, n % dims.m)) {
        let (register, lane) = dims.result(i, j, 0);
        let c = units(f32::from_bits(bench.v(C + register)[lane]).into());
        let sum = c + (0..dims.k).map(|k| units(a_values[i * dims.k + k] * b_values[j * dims.k + k])).sum::<i128>();
        let result = f32::from_bits(bench.v(D + register)[lane]);
        assert_eq!(result, nearest(sum), "{shape} {a} {b} [{i}][{j}]");
    }
}

#[test]
fn every_mix_of_formats_multiplies_with_scales_from_every_byte() {
    let mut random = Random::new(21);
    for shape in SHAPES {
        let m = Dims::of(shape).m;
        for (a, b) in (0..25).map(|mix| (mix / 5, mix % 5)) {
            let mut bench = Bench::new();
            fill_codes(&mut bench, &mut random, A, a);
            fill_codes(&mut bench, &mut random, B, b);
            fill(&mut bench, C..C + 16, || moderate(&mut random).to_bits());
            fill(&mut bench, SCALE_A..SCALE_B + 1, || {
                u32::from_le_bytes([0; 4].map(|_: u8| 127 - 6 + random.below(13) as u8))
            });
            let bytes = [(a + b) % 4, (a + 2 * b + 1) % 4];
            let modifiers = format!(
                " op_sel:[{},{},0] op_sel_hi:[{},{},0]",
                bytes[0] & 1,
                bytes[1] & 1,
                bytes[0] >> 1,
                bytes[1] >> 1
            );
            if !bench.run(&text(shape, a, b, &modifiers, true)) {
                return;
            }
            // The 64 scales of a byte in lane order are blocks of 32 k for all rows, one after the other.
            check(&mut bench, shape, (a, b), |bench, operand, row, block| {
                let code = bench.v([SCALE_A, SCALE_B][operand])[block * m + row].to_le_bytes()[bytes[operand]];
                2f64.powi(i32::from(code) - 127)
            });
        }
    }
}

#[test]
fn without_scales_every_factor_is_one() {
    let mut random = Random::new(22);
    for shape in SHAPES {
        for (a, b) in [(0, 0), (1, 4), (2, 3), (4, 0)] {
            let mut bench = Bench::new();
            fill_codes(&mut bench, &mut random, A, a);
            fill_codes(&mut bench, &mut random, B, b);
            if !bench.run(&text(shape, a, b, "", false)) {
                return;
            }
            check(&mut bench, shape, (a, b), |_, _, _, _| 1.0);
        }
    }
}

#[test]
fn a_scale_of_255_is_nan_and_extreme_scales_cancel() {
    let mut bench = Bench::new();
    let ones = 0x2222_2222;
    fill(&mut bench, A..A + 4, || ones);
    fill(&mut bench, B..B + 4, || ones);
    *bench.v(SCALE_A) = [254; LANES];
    *bench.v(SCALE_B) = [0; LANES];
    bench.v(SCALE_A)[16 + 3] = 255;
    if bench.run(&text(SHAPES[0], 4, 4, " op_sel_hi:[0,0,0]", true)) {
        for (row, column) in (0..256).map(|n| (n / 16, n % 16)) {
            let result = f32::from_bits(bench.v(D + row % 4)[column + 16 * (row / 4)]);
            if row == 3 {
                assert!(result.is_nan());
            } else {
                assert_eq!(result, 128.0);
            }
        }
    }
}
