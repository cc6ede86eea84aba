//! DPP, SDWA, clamp and output modifiers, on instructions that show what they do.

use super::float::SINGLES;
use super::*;

/// The lane that `lane` reads under a DPP control (CDNA4 ISA table 94), written with rows of lanes.
fn read(control: &str, lane: usize) -> Option<usize> {
    let (row, at) = (lane & !15, lane & 15);
    let (name, argument) = control.split_once(':').unwrap_or((control, "0"));
    if name == "quad_perm" {
        let digits: Vec<usize> = argument.chars().filter_map(|c| c.to_digit(10)).map(|digit| digit as usize).collect();
        return Some((lane & !3) | digits[lane & 3]);
    }
    let n: usize = argument.parse().unwrap();
    match name {
        "row_shl" => (at + n < 16).then(|| lane + n),
        "row_shr" => at.checked_sub(n).map(|at| row + at),
        "row_ror" => Some(row + (at + 16 - n) % 16),
        "wave_shl" => (lane < 63).then(|| lane + 1),
        "wave_shr" => lane.checked_sub(1),
        "wave_rol" => Some((lane + 1) % 64),
        "wave_ror" => Some((lane + 63) % 64),
        "row_mirror" => Some(row + 15 - at),
        "row_half_mirror" => Some(lane - lane % 8 + 7 - lane % 8),
        "row_bcast" if n == 15 => row.checked_sub(1),
        "row_bcast" => (lane >= 32).then_some(31),
        "row_newbcast" => Some(row + n),
        _ => panic!("{control}"),
    }
}

const CONTROLS: [&str; 17] = [
    "quad_perm:[0,1,2,3]",
    "quad_perm:[3,2,1,0]",
    "quad_perm:[2,2,0,1]",
    "row_shl:1",
    "row_shl:15",
    "row_shr:1",
    "row_shr:7",
    "row_ror:1",
    "row_ror:12",
    "wave_shl:1",
    "wave_shr:1",
    "wave_rol:1",
    "wave_ror:1",
    "row_mirror",
    "row_half_mirror",
    "row_bcast:15",
    "row_bcast:31",
];

#[test]
fn dpp_reads_other_lanes_under_every_control_and_mask() {
    let masks =
        [("0xf", "0xf", 0xf, 0xf), ("0xa", "0xf", 0xa, 0xf), ("0xf", "0x6", 0xf, 0x6), ("0x7", "0xd", 0x7, 0xd)];
    for control in CONTROLS.iter().copied().chain(["row_newbcast:0", "row_newbcast:11"]) {
        for (rows, banks, row_mask, bank_mask) in masks {
            for exec in [u64::MAX, 0xfff0_ffff_0f0f_7ffe] {
                for bound in [false, true] {
                    let mut bench = Bench::new();
                    *bench.v(0) = std::array::from_fn(|lane| 100 + lane as u32);
                    *bench.v(1) = std::array::from_fn(|lane| 1000 * lane as u32);
                    bench.set_s64(sreg::EXEC_LO, exec);
                    let suffix = format!(
                        "{control} row_mask:{rows} bank_mask:{banks}{}",
                        if bound { " bound_ctrl:1" } else { "" }
                    );
                    // The second one reads and writes the same register.
                    let code = format!("v_add_u32_dpp v1, v0, v1 {suffix}\nv_mov_b32_dpp v0, v0 {suffix}");
                    if !bench.run(&code) {
                        return;
                    }
                    for lane in 0..LANES {
                        let from = read(control, lane).filter(|from| exec >> from & 1 == 1);
                        let selected = row_mask >> (lane / 16) & bank_mask >> (lane / 4 % 4) & 1 == 1;
                        let on = exec >> lane & 1 == 1 && selected && (from.is_some() || bound);
                        let moved = from.map_or(0, |from| 100 + from as u32);
                        let (old0, old1) = (100 + lane as u32, 1000 * lane as u32);
                        let expected = if on { (moved, old1 + moved) } else { (old0, old1) };
                        assert_eq!(
                            (bench.v(0)[lane], bench.v(1)[lane]),
                            expected,
                            "{suffix}, exec {exec:#x}, lane {lane}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn dpp_moves_pairs_accumulates_and_negates() {
    let mut bench = Bench::new();
    bench.set_v64(0, |lane| lane as u64 * 0x1_0000_0001);
    *bench.v(4) = std::array::from_fn(|lane| (lane as f32).to_bits());
    *bench.v(5) = [2f32.to_bits(); LANES];
    *bench.v(6) = [0.5f32.to_bits(); LANES];
    let code = "v_mov_b64_dpp v[2:3], v[0:1] row_newbcast:3\nv_fmac_f32_dpp v6, -v4, |v5| row_shr:1 bound_ctrl:1\n\
                v_add_co_u32_dpp v7, vcc, v0, v0 quad_perm:[1,0,3,2] row_mask:0x3";
    if bench.run(code) {
        assert_eq!([0, 17, 63].map(|lane| bench.v64(2, lane)), [3, 19, 51].map(|n: u64| n * 0x1_0000_0001));
        assert_eq!(f32::from_bits(bench.v(6)[5]), 0.5 - 4.0 * 2.0);
        assert_eq!(f32::from_bits(bench.v(6)[16]), 0.5);
        assert_eq!((bench.v(7)[2], bench.v(7)[40], bench.s64(sreg::VCC_LO)), (3 + 2, 0, 0));
    }
}

/// The selected part, zero- or sign-extended.
fn part(value: u64, select: &str, sign: bool) -> u32 {
    let bytes = (value as u32).to_le_bytes();
    let words = [value as u16, (value >> 16) as u16];
    let extended = |unsigned: u32, signed: i32| if sign { signed as u32 } else { unsigned };
    match select.split_once('_') {
        Some(("BYTE", n)) => {
            let byte = bytes[n.parse::<usize>().unwrap()];
            extended(byte.into(), (byte as i8).into())
        }
        Some((_, n)) => {
            let word = words[n.parse::<usize>().unwrap()];
            extended(word.into(), (word as i16).into())
        }
        None => value as u32,
    }
}

/// A result put into the selected part of `old`.
fn placed(old: u64, new: u32, select: &str, unused: &str) -> u32 {
    let (width, n) = match select.split_once('_') {
        Some(("BYTE", n)) => (1, n.parse::<usize>().unwrap()),
        Some((_, n)) => (2, 2 * n.parse::<usize>().unwrap()),
        None => return new,
    };
    let new = new.to_le_bytes();
    let sign = if new[width - 1] >= 0x80 { 0xff } else { 0 };
    let old = (old as u32).to_le_bytes();
    u32::from_le_bytes(std::array::from_fn(|byte| match unused {
        _ if byte >= n && byte < n + width => new[byte - n],
        "UNUSED_PRESERVE" => old[byte],
        "UNUSED_SEXT" if byte >= n + width => sign,
        _ => 0,
    }))
}

const SELECTS: [&str; 7] = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];

#[test]
fn sdwa_selects_extends_and_places_parts_of_registers() {
    for dst in SELECTS {
        for unused in ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"] {
            for (src0, src1, sext) in
                [("DWORD", "DWORD", false), ("BYTE_1", "WORD_1", true), ("WORD_0", "BYTE_3", false)]
            {
                let mut bench = Bench::new();
                let mut random = Random::new(3);
                for register in 0..3 {
                    *bench.v(register) = std::array::from_fn(|_| random.next());
                }
                *bench.s(5) = 0x8421_f0e7;
                let exec = 0xffff_0fff_ffff_fff7u64;
                bench.set_s64(sreg::EXEC_LO, exec);
                let [a, b, old] = [0, 1, 2].map(|register| *bench.v(register));
                let operand = |name: &str| if sext { format!("sext({name})") } else { name.into() };
                let suffix = format!("dst_sel:{dst} dst_unused:{unused} src0_sel:{src0} src1_sel:{src1}");
                let code = format!(
                    "v_mov_b32 v3, v2\nv_sub_u32_sdwa v2, {}, {} {suffix}\nv_xor_b32_sdwa v3, s5, {} {suffix}",
                    operand("v0"),
                    operand("v1"),
                    operand("v1"),
                );
                if !bench.run(&code) {
                    return;
                }
                for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
                    let [a, b, old] = [a, b, old].map(|register| u64::from(register[lane]));
                    let (a, b) = (part(a, src0, sext), part(b, src1, sext));
                    let s = part(0x8421_f0e7, src0, false);
                    assert_eq!(bench.v(2)[lane], placed(old, a.wrapping_sub(b), dst, unused), "{suffix}");
                    assert_eq!(bench.v(3)[lane], placed(old, s ^ b, dst, unused), "{suffix}");
                }
                assert_eq!(bench.v(2)[3], old[3], "a lane that is off");
            }
        }
    }
}

#[test]
fn sdwa_works_on_halves_with_signs_and_on_comparisons() {
    let mut bench = Bench::new();
    *bench.v(0) = std::array::from_fn(|lane| 0x4200_3c00 + (lane as u32) * 0x0010_0001);
    *bench.v(1) = std::array::from_fn(|lane| 0x3800_c400 + (lane as u32 % 3));
    let [a, b] = [0, 1].map(|register| *bench.v(register));
    let code = "v_add_f16_sdwa v2, -v0, |v1| dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0\n\
                v_cmp_lt_u32_sdwa s[4:5], v0, v1 src0_sel:BYTE_0 src1_sel:BYTE_0\n\
                v_cmpx_gt_i32_sdwa vcc, sext(v0), sext(v1) src0_sel:WORD_0 src1_sel:WORD_0";
    if bench.run(code) {
        for lane in 0..LANES {
            let sum = super::exact::HALF.add(u64::from(a[lane] >> 16) ^ 0x8000, u64::from(b[lane]) & 0x7fff);
            assert_eq!(bench.v(2)[lane], (sum as u32) << 16);
            assert_eq!(bench.s64(4) >> lane & 1 == 1, a[lane] & 0xff < b[lane] & 0xff);
            let greater = a[lane] as i16 > b[lane] as i16;
            assert_eq!(
                (bench.s64(sreg::VCC_LO) >> lane & 1 == 1, bench.s64(sreg::EXEC_LO) >> lane & 1 == 1),
                (greater, greater)
            );
        }
    }
}

/// Limited to 0 to 1; with DX10_CLAMP NaN is zero.
fn clamped(bits: u64, dx10: bool) -> u32 {
    let value = f32::from_bits(bits as u32);
    match () {
        () if value.is_nan() && !dx10 => bits as u32 | 0x40_0000,
        () if value.is_nan() || value <= 0.0 => 0,
        () if value > 1.0 => 0x3f80_0000,
        () => bits as u32,
    }
}

#[test]
fn clamp_limits_results_to_zero_and_one() {
    let pairs: Vec<u64> = SINGLES.iter().map(|bits| bits | bits << 32 ^ 0x8000_0000_0000_0000).collect();
    check::<u32>(
        &SINGLES,
        &[
            ("v_mul_f32_e64 d, 1.0, a clamp", |i| clamped(i.a, true)),
            ("v_max_f32_e64 d, a, a clamp", |i| clamped(i.a, true)),
        ],
    );
    check::<u64>(
        &pairs,
        &[("v_pk_mul_f32 D, A, 1.0 op_sel_hi:[1,0] clamp", |i| {
            u64::from(clamped(i.a & 0xffff_ffff, true)) | u64::from(clamped(i.a >> 32, true)) << 32
        })],
    );
    check_in::<u32>(USUAL & !0x100, &SINGLES, &[("v_mul_f32_e64 d, 1.0, a clamp", |i| clamped(i.a, false))]);
    // Halves and doubles: the limits and what is between.
    let mut bench = Bench::new();
    *bench.v(0) = std::array::from_fn(|lane| [0x3c01_3800, 0x7e00_bc00, 0x0001_7c00, 0xfc00_3c00][lane % 4]);
    bench.set_v64(2, |lane| [1.5f64, -0.5, 0.25, f64::NAN][lane % 4].to_bits());
    if bench.run("v_pk_mul_f16 v1, v0, 1.0 op_sel_hi:[1,0] clamp\nv_mul_f64 v[4:5], v[2:3], 1.0 clamp") {
        assert_eq!(bench.v(1)[..4], [0x3c00_3800, 0, 0x0001_3c00, 0x0000_3c00]);
        assert_eq!([0, 1, 2, 3].map(|lane| f64::from_bits(bench.v64(4, lane))), [1.0, 0.0, 0.25, 0.0]);
    }
}

#[test]
fn output_modifiers_work_only_without_denormals_and_ieee() {
    let run = |mode: u32| {
        let mut bench = Bench::new();
        bench.wave.mode = Mode(mode);
        *bench.v(0) = std::array::from_fn(|lane| [3.0f32, -0.0, 1.5e-38, f32::MAX][lane % 4].to_bits());
        let code = "v_mul_f32_e64 v1, v0, 1.0 mul:2\nv_mul_f32_e64 v2, v0, 1.0 mul:4\nv_mul_f32_e64 v3, v0, 1.0 div:2";
        bench.run(code).then(|| [1, 2, 3].map(|n| [0, 1, 2, 3].map(|lane| f32::from_bits(bench.v(n)[lane]))))
    };
    let Some(usual) = run(USUAL) else { return };
    assert_eq!(usual, [[3.0, -0.0, 1.5e-38, f32::MAX]; 3]);
    let flushing = run(0x1c0).unwrap();
    assert_eq!(flushing[0], [6.0, 0.0, 3e-38, f32::INFINITY]);
    assert_eq!(flushing[1], [12.0, 0.0, 6e-38, f32::INFINITY]);
    assert_eq!(flushing[2], [1.5, 0.0, 0.0, f32::MAX / 2.0]);
    assert!(flushing[0][1].is_sign_positive(), "minus zero becomes zero");
    assert_eq!(run(0x3c0).unwrap()[0][0], 3.0, "IEEE mode ignores it");
}
