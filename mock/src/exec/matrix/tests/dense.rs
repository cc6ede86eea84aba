use super::*;
use crate::exec::formats::Format;
use crate::wave::sreg;

const FLOATS: &[&str] = &[
    "v_mfma_f32_32x32x4_2b_f16",
    "v_mfma_f32_16x16x4_4b_f16",
    "v_mfma_f32_4x4x4_16b_f16",
    "v_mfma_f32_32x32x8_f16",
    "v_mfma_f32_16x16x16_f16",
    "v_mfma_f32_16x16x32_f16",
    "v_mfma_f32_32x32x16_f16",
    "v_mfma_f32_32x32x4_2b_bf16",
    "v_mfma_f32_16x16x4_4b_bf16",
    "v_mfma_f32_4x4x4_16b_bf16",
    "v_mfma_f32_32x32x8_bf16",
    "v_mfma_f32_16x16x16_bf16",
    "v_mfma_f32_16x16x32_bf16",
    "v_mfma_f32_32x32x16_bf16",
    "v_mfma_f32_16x16x32_bf8_bf8",
    "v_mfma_f32_16x16x32_bf8_fp8",
    "v_mfma_f32_16x16x32_fp8_bf8",
    "v_mfma_f32_16x16x32_fp8_fp8",
    "v_mfma_f32_32x32x16_bf8_bf8",
    "v_mfma_f32_32x32x16_bf8_fp8",
    "v_mfma_f32_32x32x16_fp8_bf8",
    "v_mfma_f32_32x32x16_fp8_fp8",
];

const BYTES: &[&str] = &[
    "v_mfma_i32_32x32x4_2b_i8",
    "v_mfma_i32_16x16x4_4b_i8",
    "v_mfma_i32_4x4x4_16b_i8",
    "v_mfma_i32_32x32x16_i8",
    "v_mfma_i32_16x16x32_i8",
    "v_mfma_i32_16x16x64_i8",
    "v_mfma_i32_32x32x32_i8",
];

const SINGLES: &[&str] = &[
    "v_mfma_f32_32x32x1_2b_f32",
    "v_mfma_f32_16x16x1_4b_f32",
    "v_mfma_f32_4x4x1_16b_f32",
    "v_mfma_f32_32x32x2_f32",
    "v_mfma_f32_16x16x4_f32",
];

/// Formats of A and B by the end of an instruction's name.
fn formats(name: &str) -> [Format; 2] {
    let parts: Vec<&str> = name.split('_').collect();
    let format = |part: &str| match part {
        "fp8" => Some(Format::FP8),
        "bf8" => Some(Format::BF8),
        "bf16" => Some(Format::BF16),
        "f16" => Some(Format::F16),
        _ => None,
    };
    let last = format(parts[parts.len() - 1]).unwrap();
    [format(parts[parts.len() - 2]).unwrap_or(last), last]
}

fn registers(dims: Dims, bits: usize) -> usize {
    dims.m * dims.k * dims.blocks * bits / (32 * LANES)
}

/// Text of the instruction with the test's registers.
fn text(name: &str, bits: usize) -> String {
    let dims = Dims::of(name);
    let operand = registers(dims, bits);
    let result = dims.m * dims.m * dims.blocks / LANES;
    format!(
        "{name} {}, {}, {}, {}",
        range('v', D, result),
        range('v', A, operand),
        range('v', B, operand),
        range('v', C, result)
    )
}

/// Block and lane that A's element is read from, and lane of B's, as the calculator has them.
#[derive(Clone, Copy, Default)]
struct Moves {
    cbsz: u32,
    abid: usize,
    blgp: usize,
}

impl Moves {
    fn a_block(self, block: usize) -> usize {
        let group = 1 << self.cbsz;
        block / group * group + self.abid
    }

    fn b_lane(self, lane: usize) -> usize {
        match self.blgp {
            0 => lane,
            1 => lane % 32,
            2 => 32 + lane % 32,
            3 if lane < 48 => lane + 16,
            3 => lane - 48,
            4 => lane % 16,
            5 => 16 + lane % 16,
            6 => 32 + lane % 16,
            _ => 48 + lane % 16,
        }
    }

    fn text(self) -> String {
        format!(" cbsz:{} abid:{} blgp:{}", self.cbsz, self.abid, self.blgp)
    }

    /// Every combination with a meaning for that many blocks, and `blgp` by itself.
    fn all(blocks: usize) -> Vec<Self> {
        let cbsz = (1..=blocks.ilog2()).flat_map(|cbsz| (0..1 << cbsz).map(move |abid| Self { cbsz, abid, blgp: 0 }));
        let blgp = (1..8).map(|blgp| Self { blgp, ..Self::default() });
        cbsz.chain(blgp).chain([Self { cbsz: 1.min(blocks.ilog2()), abid: 0, blgp: 3 }]).collect()
    }
}

/// Calls `check(block, row, column, terms)` for each result, `terms` being the codes of A and B over all k.
fn for_each_result(
    bench: &mut Bench,
    dims: Dims,
    bits: usize,
    moves: Moves,
    mut check: impl FnMut(&mut Bench, (usize, usize), String, &[(u32, u32)]),
) {
    let Dims { m, k, blocks } = dims;
    let element = |i, k, b| dims.element(i, k, b, bits);
    let mut a = vec![0; m * k * blocks];
    let mut b_codes = a.clone();
    for (n, (a, b_code)) in a.iter_mut().zip(&mut b_codes).enumerate() {
        let (block, i, k) = (n / (m * k), n / k % m, n % k);
        *a = code(bench, A, element(i, k, moves.a_block(block)), bits);
        let (lane, item) = element(i, k, block);
        *b_code = code(bench, B, (moves.b_lane(lane), item), bits);
    }
    for (block, i, j) in (0..blocks * m * m).map(|n| (n / (m * m), n / m % m, n % m)) {
        let at = |i: usize, k_: usize| (block * m + i) * k + k_;
        let terms: Vec<(u32, u32)> = (0..k).map(|k| (a[at(i, k)], b_codes[at(j, k)])).collect();
        check(bench, dims.result(i, j, block), format!("block {block} [{i}][{j}]"), &terms);
    }
}

/// Fills the operands of `name` with moderate random numbers.
fn random_floats(bench: &mut Bench, random: &mut Random, formats: [Format; 2]) {
    for (first, format) in [(A, formats[0]), (B, formats[1])] {
        let bits = format.bits() as usize;
        fill(bench, first..first + 8, || {
            (0..32 / bits).fold(0, |word, i| {
                // Infinities and NaNs aside, any code of eight bits will do.
                let value = if bits == 8 { format.decode(random.next() & 0xbf) } else { moderate(random) };
                word | format.encode(value, crate::exec::formats::Overflow::Saturate) << (bits * i)
            })
        });
    }
    fill(bench, C..C + 32, || moderate(random).to_bits());
}

fn check_floats(name: &str, moves: Moves) {
    let (dims, formats) = (Dims::of(name), formats(name));
    let bits = formats[0].bits() as usize;
    let mut random = Random::new(name.len() as u64 + u64::from(moves.cbsz));
    let mut bench = Bench::new();
    random_floats(&mut bench, &mut random, formats);
    let modifiers = if moves.cbsz == 0 && moves.blgp == 0 { String::new() } else { moves.text() };
    if !bench.run(&format!("{}{modifiers}", text(name, bits))) {
        return;
    }
    for_each_result(&mut bench, dims, bits, moves, |bench, (register, lane), place, terms| {
        let c = f32::from_bits(bench.v(C + register)[lane]);
        let product = |(a, b): &(u32, u32)| f64::from(formats[0].decode(*a)) * f64::from(formats[1].decode(*b));
        let sum: i128 = units(c.into()) + terms.iter().map(|term| units(product(term))).sum::<i128>();
        let result = f32::from_bits(bench.v(D + register)[lane]);
        assert_eq!(result, nearest(sum), "{name}{modifiers} {place}");
    });
}

#[test]
fn low_precision_products_are_exact_sums_rounded_once() {
    for name in FLOATS {
        check_floats(name, Moves::default());
    }
}

#[test]
fn blocks_of_a_are_broadcast_and_lanes_of_b_permuted() {
    for name in FLOATS.iter().filter(|name| !name.contains("8_")) {
        for moves in Moves::all(Dims::of(name).blocks) {
            check_floats(name, moves);
        }
    }
}

#[test]
fn byte_products_wrap_in_32_bits() {
    for name in BYTES {
        let dims = Dims::of(name);
        for moves in [vec![Moves::default()], Moves::all(dims.blocks)].concat() {
            let mut random = Random::new(11);
            let mut bench = Bench::new();
            fill(&mut bench, A..A + 8, || random.next() | 0x80);
            fill(&mut bench, B..B + 8, || random.next() | 0x80);
            fill(&mut bench, C..C + 32, || 0x7fff_ff00 | random.next() & 0xff);
            for (mode, clamp) in [(0x3f0, false), (0x3f0 | 1 << 23, true)] {
                bench.wave.mode = crate::wave::Mode(mode);
                if !bench.run(&format!("{}{}", text(name, 8), moves.text())) {
                    return;
                }
                for_each_result(&mut bench, dims, 8, moves, |bench, (register, lane), place, terms| {
                    let c = i128::from(bench.v(C + register)[lane] as i32);
                    let sum = c + terms.iter().map(|&(a, b)| i128::from(a as i8) * i128::from(b as i8)).sum::<i128>();
                    let expected = if clamp { sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32 } else { sum as i32 };
                    assert_eq!(bench.v(D + register)[lane] as i32, expected, "{name} {place}");
                });
            }
        }
    }
}

#[test]
fn single_precision_products_are_chains_of_fused_multiply_adds() {
    for name in SINGLES {
        let dims = Dims::of(name);
        for moves in [vec![Moves::default()], Moves::all(dims.blocks)].concat() {
            let mut random = Random::new(12);
            let mut bench = Bench::new();
            fill(&mut bench, A..A + 1, || moderate(&mut random).to_bits());
            fill(&mut bench, B..B + 1, || moderate(&mut random).to_bits());
            fill(&mut bench, C..C + 32, || moderate(&mut random).to_bits());
            if !bench.run(&format!("{}{}", text(name, 32), moves.text())) {
                return;
            }
            for_each_result(&mut bench, dims, 32, moves, |bench, (register, lane), place, terms| {
                let c = f32::from_bits(bench.v(C + register)[lane]);
                let chain = |sum: f32, &(a, b): &(u32, u32)| f32::from_bits(a).mul_add(f32::from_bits(b), sum);
                let result = f32::from_bits(bench.v(D + register)[lane]);
                assert_eq!(result, terms.iter().fold(c, chain), "{name} {place}");
            });
        }
    }
}

#[test]
fn single_precision_inputs_obey_the_denormal_mode_and_results_do_not() {
    let mut bench = Bench::new();
    bench.v(A)[0] = 0x0040_0000;
    *bench.v(B) = [2f32.powi(100).to_bits(); LANES];
    *bench.v(C) = [1; LANES];
    for (mode, product) in [(0x3f0, 2f32.powi(-27)), (0x3c0, 0.0)] {
        bench.wave.mode = crate::wave::Mode(mode);
        if bench.run(&text("v_mfma_f32_16x16x4_f32", 32)) {
            assert_eq!(f32::from_bits(bench.v(D)[0]), product + f32::from_bits(1));
        }
    }
}

#[test]
fn double_precision_results_lie_where_the_calculator_says() {
    for (name, m, blocks) in [("v_mfma_f64_16x16x4_f64", 16, 1), ("v_mfma_f64_4x4x4_4b_f64", 4, 4)] {
        for neg in 0..8u32 {
            let mut random = Random::new(13);
            let mut bench = Bench::new();
            let mut number = || f64::from(moderate(&mut random)) + f64::from(moderate(&mut random)) * 2f64.powi(-30);
            for first in [A, B, C, C + 2, C + 4, C + 6] {
                let values: [f64; LANES] = std::array::from_fn(|_| number());
                bench.set_v64(first, |lane| values[lane].to_bits());
            }
            let result = 2 * m * m * blocks / LANES;
            let signs = [0, 1, 2].map(|i| (neg >> i & 1).to_string()).join(",");
            let (d, c) = (range('v', D, result), range('v', C, result));
            if !bench.run(&format!("{name} {d}, v[{A}:{}], v[{B}:{}], {c} neg:[{signs}]", A + 1, B + 1)) {
                return;
            }
            let sign = |i: u32| if neg >> i & 1 == 1 { -1.0 } else { 1.0 };
            for (b, i, j) in (0..blocks * m * m).map(|n| (n / (m * m), n / m % m, n % m)) {
                // 16x16x4: four rows in a register pair. 4x4x4: all of a block's rows, blocks innermost.
                let (pair, lane) = if m == 16 { (i / 4, j + 16 * (i % 4)) } else { (0, j + 4 * b + 16 * i) };
                let mut sum = sign(2) * f64::from_bits(bench.v64(C + 2 * pair, lane));
                for k in 0..4 {
                    let a = sign(0) * f64::from_bits(bench.v64(A, i + m * (b + blocks * k)));
                    sum = a.mul_add(sign(1) * f64::from_bits(bench.v64(B, j + m * (b + blocks * k))), sum);
                }
                let result = f64::from_bits(bench.v64(D + 2 * pair, lane));
                assert_eq!(result, sum, "{name} neg {neg} block {b} [{i}][{j}]");
            }
        }
    }
}

#[test]
fn operands_may_overlap_and_exec_does_not_count() {
    for name in
        ["v_mfma_f32_16x16x32_bf16", "v_mfma_f32_32x32x4_2b_f16", "v_mfma_i32_16x16x64_i8", "v_mfma_f32_16x16x4_f32"]
    {
        let dims = Dims::of(name);
        let bits = if name.ends_with("f32") {
            32
        } else if name.ends_with("i8") {
            8
        } else {
            16
        };
        let (operand, result) = (registers(dims, bits), dims.m * dims.m * dims.blocks / LANES);
        let mut random = Random::new(14);
        let mut apart = Bench::new();
        let values: Vec<[u32; LANES]> = (0..40)
            .map(|_| std::array::from_fn(|_| half::bf16::from_f32(moderate(&mut random)).to_bits().into()))
            .collect();
        for (first, c) in [(10, 10), (10, 12), (8, 10), (12, 10)] {
            if c != 10 && result > 4 {
                // LLVM refuses a C that overlaps a large D in part.
                continue;
            }
            // D is at 10; A and B start at `first`, C at `c`.
            let mut bench = Bench::new();
            *bench.s(sreg::EXEC_LO) = 5;
            for (i, value) in values.iter().enumerate() {
                *bench.v(8 + i) = *value;
            }
            for i in 0..operand {
                *apart.v(A + i) = values[first - 8 + i];
                *apart.v(B + i) = values[first - 8 + i];
            }
            for i in 0..result {
                *apart.v(C + i) = values[c - 8 + i];
            }
            let ab = range('v', first, operand);
            let overlapping = format!("{name} {}, {ab}, {ab}, {}", range('v', 10, result), range('v', c, result));
            if !bench.run(&overlapping) || !apart.run(&text(name, bits)) {
                return;
            }
            for i in 0..result {
                assert_eq!(bench.v(10 + i), apart.v(D + i), "{overlapping}");
            }
        }
    }
}

#[test]
fn accumulation_registers_and_constants_serve_as_operands() {
    let mut random = Random::new(15);
    let mut bench = Bench::new();
    random_floats(&mut bench, &mut random, [Format::BF16; 2]);
    for i in 0..4 {
        *bench.a(A + i) = *bench.v(A + i);
        *bench.a(C + i) = *bench.v(C + i);
    }
    let run = bench.run(
        "v_mfma_f32_16x16x32_bf16 v[128:131], v[4:7], v[16:19], v[64:67]
         v_mfma_f32_16x16x32_bf16 a[8:11], a[4:7], v[16:19], a[64:67]
         v_mfma_f32_16x16x32_bf16 v[132:135], v[4:7], v[16:19], 1.0
         v_mfma_i32_16x16x64_i8 v[136:139], v[200:203], v[200:203], -7",
    );
    if run {
        for i in 0..4 {
            let in_acc = *bench.a(8 + i);
            assert_eq!(in_acc, *bench.v(D + i));
            assert_eq!(*bench.v(D + 8 + i), [-7i32 as u32; LANES]);
        }
        *bench.v(C) = [1f32.to_bits(); LANES];
        for i in 1..4 {
            *bench.v(C + i) = [1f32.to_bits(); LANES];
        }
        assert!(bench.run("v_mfma_f32_16x16x32_bf16 v[128:131], v[4:7], v[16:19], v[64:67]"));
        for i in 0..4 {
            let from_registers = *bench.v(D + i);
            assert_eq!(from_registers, *bench.v(D + 4 + i));
        }
    }
}

/// Lane 0's result of 16x16x32 bf16 with the given first elements of row 0 of A, column 0 of B, and C.
fn first_result(mode: u32, a: &[f32], b: &[f32], c: f32) -> Option<f32> {
    let mut bench = Bench::new();
    bench.wave.mode = crate::wave::Mode(mode);
    for (first, values) in [(A, a), (B, b)] {
        for (k, value) in values.iter().enumerate() {
            bench.v(first + k % 8 / 2)[k / 8 * 16] |= value.to_bits() >> 16 << (16 * (k % 2));
        }
    }
    bench.v(C)[0] = c.to_bits();
    bench.run(&text("v_mfma_f32_16x16x32_bf16", 16)).then(|| f32::from_bits(bench.v(D)[0]))
}

#[test]
fn special_values_follow_ieee_and_denormals_are_kept() {
    const USUAL: u32 = 0x3f0;
    let inf = f32::INFINITY;
    let huge = 2f32.powi(127);
    let cases: &[(&[f32], &[f32], f32, f32)] = &[
        (&[inf, 1.0], &[2.0, 1.0], 0.0, inf),
        (&[inf, inf], &[2.0, -1.0], 0.0, f32::NAN),
        (&[inf], &[0.0], 1.0, f32::NAN),
        (&[1.0], &[1.0], -inf, -inf),
        (&[f32::NAN], &[1.0], 1.0, f32::NAN),
        (&[1.0], &[1.0], f32::NAN, f32::NAN),
        // Products beyond single precision may cancel: nothing overflows before the end.
        (&[huge, huge, 1.0], &[huge, -huge, 3.0], 1.0, 4.0),
        (&[huge, huge], &[2.0, -1.0], 0.0, huge),
        (&[huge, huge], &[1.0, 1.0], 0.0, inf),
        (&[-huge], &[huge], 0.0, -inf),
        // The smallest bfloat16 times one, and half the smallest single, a tie that goes to even.
        (&[2f32.powi(-133)], &[1.0], 0.0, 2f32.powi(-133)),
        (&[2f32.powi(-75)], &[2f32.powi(-75)], 0.0, 0.0),
        (&[2f32.powi(-75)], &[2f32.powi(-75)], f32::from_bits(1), f32::from_bits(2)),
        (&[2f32.powi(-75), 2f32.powi(-100)], &[2f32.powi(-75), 2f32.powi(-100)], 0.0, f32::from_bits(1)),
        // A bit far below the tie decides it.
        (&[1.0, 2f32.powi(-24), 2f32.powi(-120)], &[1.0; 3], 0.0, 1.0 + f32::EPSILON),
        (&[1.0, 2f32.powi(-24), -2f32.powi(-120)], &[1.0; 3], 0.0, 1.0),
        (&[1.0, 2f32.powi(-24)], &[1.0; 2], 0.0, 1.0),
        (&[1.0, -1.0, 2f32.powi(-100)], &[1.0; 3], 0.0, 2f32.powi(-100)),
    ];
    for (a, b, c, expected) in cases {
        let Some(result) = first_result(USUAL, a, b, *c) else { return };
        if expected.is_nan() {
            assert!(result.is_nan() && result.to_bits() & 0x0040_0000 != 0, "{a:?} {b:?} {c}");
        } else {
            assert_eq!(result.to_bits(), expected.to_bits(), "{a:?} {b:?} {c}");
        }
    }
    let all = [-0.0f32; 32];
    assert_eq!(first_result(USUAL, &all, &[1.0; 32], -0.0).unwrap().to_bits(), (-0.0f32).to_bits());
    assert_eq!(first_result(USUAL, &all, &[1.0; 32], 0.0).unwrap().to_bits(), 0);
    assert_eq!(first_result(USUAL, &[1.0, -1.0], &[1.0, 1.0], -0.0).unwrap().to_bits(), 0);
    // FP16_OVFL limits what overflows, and only that.
    let limited = USUAL | 1 << 23;
    assert_eq!(first_result(limited, &[huge, huge], &[1.0, 1.0], 0.0), Some(f32::MAX));
    assert_eq!(first_result(limited, &[-huge], &[huge], 0.0), Some(f32::MIN));
    assert_eq!(first_result(limited, &[inf], &[1.0], 0.0), Some(inf));
}
