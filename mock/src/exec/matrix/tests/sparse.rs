use super::*;
use crate::exec::formats::Format;

const SHAPES: &[&str] = &[
    "v_smfmac_f32_16x16x32_f16",
    "v_smfmac_f32_32x32x16_f16",
    "v_smfmac_f32_16x16x32_bf16",
    "v_smfmac_f32_32x32x16_bf16",
    "v_smfmac_i32_16x16x64_i8",
    "v_smfmac_i32_32x32x32_i8",
    "v_smfmac_f32_16x16x64_bf8_bf8",
    "v_smfmac_f32_16x16x64_bf8_fp8",
    "v_smfmac_f32_16x16x64_fp8_bf8",
    "v_smfmac_f32_16x16x64_fp8_fp8",
    "v_smfmac_f32_32x32x32_bf8_bf8",
    "v_smfmac_f32_32x32x32_bf8_fp8",
    "v_smfmac_f32_32x32x32_fp8_bf8",
    "v_smfmac_f32_32x32x32_fp8_fp8",
    "v_smfmac_f32_16x16x64_f16",
    "v_smfmac_f32_32x32x32_f16",
    "v_smfmac_f32_16x16x64_bf16",
    "v_smfmac_f32_32x32x32_bf16",
    "v_smfmac_i32_16x16x128_i8",
    "v_smfmac_i32_32x32x64_i8",
    "v_smfmac_f32_16x16x128_bf8_bf8",
    "v_smfmac_f32_16x16x128_bf8_fp8",
    "v_smfmac_f32_16x16x128_fp8_bf8",
    "v_smfmac_f32_16x16x128_fp8_fp8",
    "v_smfmac_f32_32x32x64_bf8_bf8",
    "v_smfmac_f32_32x32x64_bf8_fp8",
    "v_smfmac_f32_32x32x64_fp8_bf8",
    "v_smfmac_f32_32x32x64_fp8_fp8",
];

/// An element's bits and what a code stands for.
fn element(word: &str) -> (usize, fn(u32) -> f64) {
    match word {
        "f16" => (16, |code| half::f16::from_bits(code as u16).into()),
        "bf16" => (16, |code| half::bf16::from_bits(code as u16).into()),
        "i8" => (8, |code| f64::from(code as i8)),
        "fp8" => (8, |code| Format::FP8.decode(code).into()),
        _ => (8, |code| Format::BF8.decode(code).into()),
    }
}

#[test]
fn each_pair_of_indices_selects_two_of_four_k() {
    let mut random = Random::new(31);
    for name in SHAPES {
        let words: Vec<&str> = name.split('_').collect();
        let (bits, b_value) = element(words[words.len() - 1]);
        let a_value = if words.len() == 6 { element(words[4]).1 } else { b_value };
        let dense = Dims::of(name);
        let stored = Dims { k: dense.k / 2, ..dense };
        let per_lane = stored.k * stored.m / LANES;
        for (cbsz, abid) in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1)] {
            let mut bench = Bench::new();
            let mut word = || {
                if bits == 8 {
                    return random.next() & 0xbfbf_bfbf;
                }
                let mut half = || {
                    let value = moderate(&mut random);
                    if words[words.len() - 1] == "f16" {
                        half::f16::from_f32(value).to_bits()
                    } else {
                        half::bf16::from_f32(value).to_bits()
                    }
                };
                u32::from(half()) | u32::from(half()) << 16
            };
            fill(&mut bench, A..A + 4, &mut word);
            fill(&mut bench, B..B + 8, &mut word);
            let integer = words[2] == "i32";
            let mut random = Random::new(32);
            fill(&mut bench, D..D + 16, || if integer { random.next() } else { moderate(&mut random).to_bits() });
            // Six ordered pairs of different k.
            let pairs = [0x4, 0x8, 0xc, 0x9, 0xd, 0xe];
            fill(&mut bench, INDEX..INDEX + 1, || {
                (0..8).fold(0, |word, i| word | pairs[random.below(6) as usize] << (4 * i))
            });
            let before: Vec<[u32; LANES]> = (0..16).map(|i| *bench.v(D + i)).collect();
            let (d, a) = (range('v', D, dense.m * dense.m / LANES), range('v', A, per_lane * bits / 32));
            let b = range('v', B, 2 * per_lane * bits / 32);
            if !bench.run(&format!("{name} {d}, {a}, {b}, v{INDEX} cbsz:{cbsz} abid:{abid}")) {
                return;
            }
            let sets = 32 / (2 * per_lane);
            let set = if cbsz == 0 { abid % sets } else { 0 };
            for (i, j) in (0..dense.m * dense.m).map(|n| (n / dense.m, n % dense.m)) {
                let (register, lane) = dense.result(i, j, 0);
                let mut sum = 0;
                for k in 0..stored.k {
                    let (a_lane, item) = stored.element(i, k, 0, bits);
                    let index = bench.v(INDEX)[a_lane] >> (2 * (set * per_lane + item)) & 3;
                    let b_at = dense.element(j, k / 2 * 4 + index as usize, 0, bits);
                    let product =
                        a_value(code(&mut bench, A, (a_lane, item), bits)) * b_value(code(&mut bench, B, b_at, bits));
                    sum += units(product);
                }
                let (old, new) = (before[register][lane], bench.v(D + register)[lane]);
                if integer {
                    assert_eq!(new as i32, (i128::from(old as i32) + (sum >> 60)) as i32, "{name} [{i}][{j}]");
                } else {
                    let expected = nearest(units(f32::from_bits(old).into()) + sum);
                    assert_eq!(f32::from_bits(new), expected, "{name} cbsz {cbsz} abid {abid} [{i}][{j}]");
                }
            }
        }
    }
}

#[test]
fn elements_of_b_that_are_not_selected_do_not_count() {
    let mut bench = Bench::new();
    fill(&mut bench, A..A + 2, || 0x3c00_3c00);
    // k 0 and 1 of each four are ones, k 2 and 3 infinite.
    for register in 0..4 {
        *bench.v(B + register) = [if register % 2 == 0 { 0x3c00_3c00 } else { 0x7c00_7c00 }; LANES];
    }
    *bench.v(INDEX) = [0x4444_4444; LANES];
    if bench.run("v_smfmac_f32_16x16x32_f16 v[128:131], v[4:5], v[16:19], v30") {
        assert_eq!(*bench.v(D), [16f32.to_bits(); LANES]);
    }
}
