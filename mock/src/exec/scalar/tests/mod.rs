//! Scalar ALU instructions against definitions over exact integers.

mod modes;
mod moves;

use crate::testbench::Bench;

/// What an instruction finds.
#[derive(Clone, Copy)]
struct In {
    a: u64,
    b: u64,
    /// The destination before.
    d: u64,
    scc: bool,
}

/// What it leaves: the destination, and SCC.
type Out = (u64, bool);

/// One instruction: mnemonic, widths of destination and sources in bits (0: it has none), definition.
struct Row(&'static str, [u32; 3], fn(In) -> Out);

const EDGES: [u64; 18] = [
    0,
    1,
    2,
    5,
    31,
    32,
    33,
    63,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x0000_8000_ffff_7fff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0x0010_0004_0020_001c,
    0x5555_5555_5555_5555,
    0xfffe_ffff_cccc_3333,
];

fn inputs() -> Vec<In> {
    let mut random = crate::random::Random::new(0x5a1u64);
    let mut word = || u64::from(random.next()) | u64::from(random.next()) << 32;
    let mut all = Vec::new();
    for a in EDGES {
        for b in EDGES {
            all.push(In { a, b, d: word(), scc: word() & 1 == 1 });
        }
    }
    all.extend((0..96).map(|_| In { a: word(), b: word(), d: word(), scc: word() & 1 == 1 }));
    all
}

fn register(first: usize, bits: u32) -> String {
    if bits == 64 { format!("s[{first}:{}]", first + 1) } else { format!("s{first}") }
}

fn low(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// Runs each instruction on all inputs, twelve in a program, and compares destination and SCC.
fn check(rows: &[Row]) {
    const SETS: usize = 12;
    for Row(name, [d_bits, a_bits, b_bits], define) in rows {
        let mut text = String::new();
        for set in 0..SETS {
            let at = 8 * set;
            let operands: Vec<String> = [(at + 4, *d_bits), (at, *a_bits), (at + 2, *b_bits)]
                .into_iter()
                .filter(|(_, bits)| *bits > 0)
                .map(|(at, bits)| register(at, bits))
                .collect();
            let (scc, operands) = (at + 6, operands.join(", "));
            text += &format!("s_cmp_lg_u32 s{scc}, 0\n{name} {operands}\ns_cselect_b32 s{scc}, 1, 0\n");
        }
        let mut bench = Bench::new();
        for group in inputs().chunks(SETS) {
            for (set, input) in group.iter().enumerate() {
                bench.set_s64(8 * set, input.a);
                bench.set_s64(8 * set + 2, input.b);
                bench.set_s64(8 * set + 4, input.d);
                *bench.s(8 * set + 6) = input.scc.into();
            }
            if !bench.run(&text) {
                return;
            }
            for (set, input) in group.iter().enumerate() {
                let given =
                    In { a: low(input.a, *a_bits), b: low(input.b, *b_bits), d: low(input.d, *d_bits), ..*input };
                let (value, scc) = define(given);
                let what = format!("{name} a={:#x} b={:#x} d={:#x} scc={}", given.a, given.b, given.d, given.scc);
                if *d_bits > 0 {
                    assert_eq!(low(bench.s64(8 * set + 4), *d_bits), value, "{what}");
                    let high_kept = bench.s64(8 * set + 4) >> 32 == input.d >> 32;
                    assert!(high_kept || *d_bits == 64, "{what}: the next register is not the result's");
                }
                assert_eq!(*bench.s(8 * set + 6) == 1, scc, "{what}: SCC");
            }
        }
    }
}

fn signed(value: u64, bits: u32) -> i128 {
    let value = i128::from(value);
    if value >> (bits - 1) & 1 == 1 { value - (1 << bits) } else { value }
}

/// The low bits of `value`, and whether all of it lies between `low` and `high`.
fn fit(value: i128, bits: u32, signed: bool) -> Out {
    let (least, most) =
        if signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
    ((value & ((1 << bits) - 1)) as u64, value < least || value > most)
}

fn kept(value: i128, bits: u32, i: In) -> Out {
    ((value & ((1 << bits) - 1)) as u64, i.scc)
}

fn nonzero(value: i128, bits: u32) -> Out {
    let value = (value & ((1 << bits) - 1)) as u64;
    (value, value != 0)
}

fn u(value: u64) -> i128 {
    value.into()
}

fn s32(value: u64) -> i128 {
    signed(value, 32)
}

/// Bit `i` of `value`.
fn bit(value: u64, i: u32) -> bool {
    value / 2u64.pow(i) % 2 == 1
}

/// A number from its bits, lowest first.
fn from_bits(bits: impl Iterator<Item = bool>) -> i128 {
    bits.enumerate().map(|(i, bit)| i128::from(bit) << i).sum()
}

fn bitwise(i: In, bits: u32, f: fn(bool, bool) -> bool) -> Out {
    nonzero(from_bits((0..bits).map(|at| f(bit(i.a, at), bit(i.b, at)))), bits)
}

fn first(mut found: impl Iterator<Item = bool>) -> i128 {
    found.position(|found| found).map_or(-1, |at| at as i128)
}

fn field(value: i128, b: u64, bits: u32, signed_result: bool) -> Out {
    let (offset, width) = (b % u64::from(bits), b >> 16 & 0x7f);
    let shifted = value >> offset;
    if width >= bits.into() {
        return nonzero(shifted, bits);
    }
    let part = shifted & ((1 << width) - 1);
    nonzero(if signed_result && width > 0 { signed(part as u64, width as u32) } else { part }, bits)
}

#[test]
fn arithmetic_carries_and_overflows_as_exact_integers_do() {
    check(&[
        Row("s_add_u32", [32; 3], |i| fit(u(i.a) + u(i.b), 32, false)),
        Row("s_sub_u32", [32; 3], |i| fit(u(i.a) - u(i.b), 32, false)),
        Row("s_add_i32", [32; 3], |i| fit(s32(i.a) + s32(i.b), 32, true)),
        Row("s_sub_i32", [32; 3], |i| fit(s32(i.a) - s32(i.b), 32, true)),
        Row("s_addc_u32", [32; 3], |i| fit(u(i.a) + u(i.b) + i128::from(i.scc), 32, false)),
        Row("s_subb_u32", [32; 3], |i| fit(u(i.a) - u(i.b) - i128::from(i.scc), 32, false)),
        Row("s_lshl1_add_u32", [32; 3], |i| fit(u(i.a) * 2 + u(i.b), 32, false)),
        Row("s_lshl2_add_u32", [32; 3], |i| fit(u(i.a) * 4 + u(i.b), 32, false)),
        Row("s_lshl3_add_u32", [32; 3], |i| fit(u(i.a) * 8 + u(i.b), 32, false)),
        Row("s_lshl4_add_u32", [32; 3], |i| fit(u(i.a) * 16 + u(i.b), 32, false)),
        Row("s_mul_i32", [32; 3], |i| kept(s32(i.a) * s32(i.b), 32, i)),
        Row("s_mul_hi_u32", [32; 3], |i| kept((u(i.a) * u(i.b)) >> 32, 32, i)),
        Row("s_mul_hi_i32", [32; 3], |i| kept((s32(i.a) * s32(i.b)) >> 32, 32, i)),
        // The difference wraps before its absolute value is taken (ISA, examples of S_ABSDIFF_I32).
        Row("s_absdiff_i32", [32; 3], |i| nonzero(signed(((s32(i.a) - s32(i.b)) & 0xffff_ffff) as u64, 32).abs(), 32)),
        Row("s_abs_i32", [32, 32, 0], |i| nonzero(s32(i.a).abs(), 32)),
        Row("s_sext_i32_i8", [32, 32, 0], |i| kept(signed(i.a % 256, 8), 32, i)),
        Row("s_sext_i32_i16", [32, 32, 0], |i| kept(signed(i.a % 65536, 16), 32, i)),
    ]);
}

#[test]
fn minimum_and_maximum_say_in_scc_whether_they_took_the_first_source() {
    check(&[
        Row("s_min_i32", [32; 3], |i| (if s32(i.a) < s32(i.b) { i.a } else { i.b }, s32(i.a) < s32(i.b))),
        Row("s_max_i32", [32; 3], |i| (if s32(i.a) > s32(i.b) { i.a } else { i.b }, s32(i.a) > s32(i.b))),
        Row("s_min_u32", [32; 3], |i| (if i.a < i.b { i.a } else { i.b }, i.a < i.b)),
        Row("s_max_u32", [32; 3], |i| (if i.a > i.b { i.a } else { i.b }, i.a > i.b)),
    ]);
}

#[test]
fn comparisons_set_scc_alone() {
    check(&[
        Row("s_cmp_eq_i32", [0, 32, 32], |i| (0, s32(i.a) == s32(i.b))),
        Row("s_cmp_lg_i32", [0, 32, 32], |i| (0, s32(i.a) != s32(i.b))),
        Row("s_cmp_gt_i32", [0, 32, 32], |i| (0, s32(i.a) > s32(i.b))),
        Row("s_cmp_ge_i32", [0, 32, 32], |i| (0, s32(i.a) >= s32(i.b))),
        Row("s_cmp_lt_i32", [0, 32, 32], |i| (0, s32(i.a) < s32(i.b))),
        Row("s_cmp_le_i32", [0, 32, 32], |i| (0, s32(i.a) <= s32(i.b))),
        Row("s_cmp_eq_u32", [0, 32, 32], |i| (0, u(i.a) == u(i.b))),
        Row("s_cmp_lg_u32", [0, 32, 32], |i| (0, u(i.a) != u(i.b))),
        Row("s_cmp_gt_u32", [0, 32, 32], |i| (0, u(i.a) > u(i.b))),
        Row("s_cmp_ge_u32", [0, 32, 32], |i| (0, u(i.a) >= u(i.b))),
        Row("s_cmp_lt_u32", [0, 32, 32], |i| (0, u(i.a) < u(i.b))),
        Row("s_cmp_le_u32", [0, 32, 32], |i| (0, u(i.a) <= u(i.b))),
        Row("s_cmp_eq_u64", [0, 64, 64], |i| (0, i.a == i.b)),
        Row("s_cmp_lg_u64", [0, 64, 64], |i| (0, i.a != i.b)),
        Row("s_bitcmp0_b32", [0, 32, 32], |i| (0, !bit(i.a, i.b as u32 % 32))),
        Row("s_bitcmp1_b32", [0, 32, 32], |i| (0, bit(i.a, i.b as u32 % 32))),
        Row("s_bitcmp0_b64", [0, 64, 32], |i| (0, !bit(i.a, i.b as u32 % 64))),
        Row("s_bitcmp1_b64", [0, 64, 32], |i| (0, bit(i.a, i.b as u32 % 64))),
    ]);
}

#[test]
fn logic_works_bit_by_bit() {
    check(&[
        Row("s_and_b32", [32; 3], |i| bitwise(i, 32, |a, b| a && b)),
        Row("s_and_b64", [64; 3], |i| bitwise(i, 64, |a, b| a && b)),
        Row("s_or_b32", [32; 3], |i| bitwise(i, 32, |a, b| a || b)),
        Row("s_or_b64", [64; 3], |i| bitwise(i, 64, |a, b| a || b)),
        Row("s_xor_b32", [32; 3], |i| bitwise(i, 32, |a, b| a != b)),
        Row("s_xor_b64", [64; 3], |i| bitwise(i, 64, |a, b| a != b)),
        Row("s_andn2_b32", [32; 3], |i| bitwise(i, 32, |a, b| a && !b)),
        Row("s_andn2_b64", [64; 3], |i| bitwise(i, 64, |a, b| a && !b)),
        Row("s_orn2_b32", [32; 3], |i| bitwise(i, 32, |a, b| a || !b)),
        Row("s_orn2_b64", [64; 3], |i| bitwise(i, 64, |a, b| a || !b)),
        Row("s_nand_b32", [32; 3], |i| bitwise(i, 32, |a, b| !(a && b))),
        Row("s_nand_b64", [64; 3], |i| bitwise(i, 64, |a, b| !(a && b))),
        Row("s_nor_b32", [32; 3], |i| bitwise(i, 32, |a, b| !(a || b))),
        Row("s_nor_b64", [64; 3], |i| bitwise(i, 64, |a, b| !(a || b))),
        Row("s_xnor_b32", [32; 3], |i| bitwise(i, 32, |a, b| a == b)),
        Row("s_xnor_b64", [64; 3], |i| bitwise(i, 64, |a, b| a == b)),
        Row("s_not_b32", [32, 32, 0], |i| bitwise(i, 32, |a, _| !a)),
        Row("s_not_b64", [64, 64, 0], |i| bitwise(i, 64, |a, _| !a)),
    ]);
}

#[test]
fn shifts_take_the_low_bits_of_their_count() {
    check(&[
        Row("s_lshl_b32", [32; 3], |i| nonzero(u(i.a) << (i.b % 32), 32)),
        Row("s_lshl_b64", [64, 64, 32], |i| nonzero(u(i.a) << (i.b % 64), 64)),
        Row("s_lshr_b32", [32; 3], |i| nonzero(u(i.a) >> (i.b % 32), 32)),
        Row("s_lshr_b64", [64, 64, 32], |i| nonzero(u(i.a) >> (i.b % 64), 64)),
        Row("s_ashr_i32", [32; 3], |i| nonzero(s32(i.a) >> (i.b % 32), 32)),
        Row("s_ashr_i64", [64, 64, 32], |i| nonzero(signed(i.a, 64) >> (i.b % 64), 64)),
    ]);
}

#[test]
fn bit_fields_are_cut_out_and_masks_are_made() {
    check(&[
        Row("s_bfe_u32", [32; 3], |i| field(u(i.a), i.b, 32, false)),
        Row("s_bfe_i32", [32; 3], |i| field(s32(i.a), i.b, 32, true)),
        Row("s_bfe_u64", [64, 64, 32], |i| field(u(i.a), i.b, 64, false)),
        Row("s_bfe_i64", [64, 64, 32], |i| field(signed(i.a, 64), i.b, 64, true)),
        Row("s_bfm_b32", [32; 3], |i| kept(((1 << (i.a % 32)) - 1) << (i.b % 32), 32, i)),
        Row("s_bfm_b64", [64, 32, 32], |i| kept(((1 << (i.a % 64)) - 1) << (i.b % 64), 64, i)),
    ]);
}

#[test]
fn bits_are_counted_found_and_rearranged() {
    check(&[
        Row("s_bcnt0_i32_b32", [32, 32, 0], |i| nonzero((0..32).filter(|&at| !bit(i.a, at)).count() as i128, 32)),
        Row("s_bcnt1_i32_b32", [32, 32, 0], |i| nonzero((0..32).filter(|&at| bit(i.a, at)).count() as i128, 32)),
        Row("s_bcnt0_i32_b64", [32, 64, 0], |i| nonzero((0..64).filter(|&at| !bit(i.a, at)).count() as i128, 32)),
        Row("s_bcnt1_i32_b64", [32, 64, 0], |i| nonzero((0..64).filter(|&at| bit(i.a, at)).count() as i128, 32)),
        Row("s_ff0_i32_b32", [32, 32, 0], |i| kept(first((0..32).map(|at| !bit(i.a, at))), 32, i)),
        Row("s_ff1_i32_b32", [32, 32, 0], |i| kept(first((0..32).map(|at| bit(i.a, at))), 32, i)),
        Row("s_ff0_i32_b64", [32, 64, 0], |i| kept(first((0..64).map(|at| !bit(i.a, at))), 32, i)),
        Row("s_ff1_i32_b64", [32, 64, 0], |i| kept(first((0..64).map(|at| bit(i.a, at))), 32, i)),
        Row("s_flbit_i32_b32", [32, 32, 0], |i| kept(first((0..32).map(|at| bit(i.a, 31 - at))), 32, i)),
        Row("s_flbit_i32_b64", [32, 64, 0], |i| kept(first((0..64).map(|at| bit(i.a, 63 - at))), 32, i)),
        Row("s_flbit_i32", [32, 32, 0], |i| kept(first((0..32).map(|at| bit(i.a, 31 - at) != bit(i.a, 31))), 32, i)),
        Row("s_flbit_i32_i64", [32, 64, 0], |i| {
            kept(first((0..64).map(|at| bit(i.a, 63 - at) != bit(i.a, 63))), 32, i)
        }),
        Row("s_brev_b32", [32, 32, 0], |i| kept(from_bits((0..32).rev().map(|at| bit(i.a, at))), 32, i)),
        Row("s_brev_b64", [64, 64, 0], |i| kept(from_bits((0..64).rev().map(|at| bit(i.a, at))), 64, i)),
        Row("s_wqm_b32", [32, 32, 0], |i| nonzero(from_bits((0..32).map(|at| i.a >> (at & 28) & 15 > 0)), 32)),
        Row("s_wqm_b64", [64, 64, 0], |i| nonzero(from_bits((0..64).map(|at| i.a >> (at & 60) & 15 > 0)), 64)),
        Row("s_quadmask_b32", [32, 32, 0], |i| nonzero(from_bits((0..8).map(|at| i.a >> (4 * at) & 15 > 0)), 32)),
        Row("s_quadmask_b64", [64, 64, 0], |i| nonzero(from_bits((0..16).map(|at| i.a >> (4 * at) & 15 > 0)), 64)),
        Row("s_bitreplicate_b64_b32", [64, 32, 0], |i| kept(from_bits((0..64).map(|at| bit(i.a, at / 2))), 64, i)),
        Row("s_pack_ll_b32_b16", [32; 3], |i| kept(u(i.b % 65536) * 65536 + u(i.a % 65536), 32, i)),
        Row("s_pack_lh_b32_b16", [32; 3], |i| kept(u(i.b / 65536) * 65536 + u(i.a % 65536), 32, i)),
        Row("s_pack_hh_b32_b16", [32; 3], |i| kept(u(i.b / 65536) * 65536 + u(i.a / 65536), 32, i)),
    ]);
}

#[test]
fn moves_select_by_scc_and_set_single_bits() {
    fn set(i: In, bits: u64, on: bool) -> Out {
        let mask = 1u64 << (i.a % bits);
        let cleared = if bit(i.d, (i.a % bits) as u32) { i.d - mask } else { i.d };
        (if on { cleared + mask } else { cleared }, i.scc)
    }
    check(&[
        Row("s_mov_b32", [32, 32, 0], |i| (i.a, i.scc)),
        Row("s_mov_b64", [64, 64, 0], |i| (i.a, i.scc)),
        Row("s_cmov_b32", [32, 32, 0], |i| (if i.scc { i.a } else { i.d }, i.scc)),
        Row("s_cmov_b64", [64, 64, 0], |i| (if i.scc { i.a } else { i.d }, i.scc)),
        Row("s_cselect_b32", [32; 3], |i| (if i.scc { i.a } else { i.b }, i.scc)),
        Row("s_cselect_b64", [64; 3], |i| (if i.scc { i.a } else { i.b }, i.scc)),
        Row("s_bitset0_b32", [32, 32, 0], |i| set(i, 32, false)),
        Row("s_bitset1_b32", [32, 32, 0], |i| set(i, 32, true)),
        Row("s_bitset0_b64", [64, 32, 0], |i| set(i, 64, false)),
        Row("s_bitset1_b64", [64, 32, 0], |i| set(i, 64, true)),
    ]);
}

#[test]
fn sixteen_bit_immediates_are_extended_as_the_type_says() {
    let values = [0u32, 1, 0x7fff, 0x8000, 0xffff, 0xffff_8000, 0xffff_ffff, 0x7fff_8000, 0x8000_7fff];
    for value in values {
        for k in [0i32, 1, 0x7fff, -0x8000, -1] {
            for scc in [false, true] {
                let mut bench = Bench::new();
                let unsigned = k as u16;
                (2..14).for_each(|at| *bench.s(at) = value);
                let mut text =
                    String::from("s_cmp_lg_u32 s0, 0\ns_cmovk_i32 s2, ") + &format!("{k}\ns_movk_i32 s3, {k}\n");
                text += &format!(
                    "s_mulk_i32 s4, {k}\ns_cselect_b32 s5, 1, 0\ns_addk_i32 s6, {k}\ns_cselect_b32 s7, 1, 0\n"
                );
                let signed = ["eq", "lg", "gt", "ge", "lt", "le"].map(|c| format!("s_cmpk_{c}_i32 s8, {k}\n"));
                let other = ["eq", "lg", "gt", "ge", "lt", "le"].map(|c| format!("s_cmpk_{c}_u32 s8, {unsigned}\n"));
                for (i, compare) in signed.iter().chain(&other).enumerate() {
                    text += &format!("{compare}s_cselect_b32 s{}, 1, 0\n", 20 + i);
                }
                *bench.s(0) = scc.into();
                if !bench.run(&text) {
                    return;
                }
                let what = format!("{value:#x} with {k}, SCC {scc}");
                assert_eq!(*bench.s(2), if scc { k as u32 } else { value }, "s_cmovk {what}");
                assert_eq!(*bench.s(3), k as u32, "s_movk {what}");
                let (product, sum) = (s32(value.into()) * i128::from(k), s32(value.into()) + i128::from(k));
                assert_eq!((*bench.s(4), *bench.s(5)), (product as u32, scc.into()), "s_mulk {what}");
                let (low, overflow) = fit(sum, 32, true);
                assert_eq!((*bench.s(6), *bench.s(7)), (low as u32, overflow.into()), "s_addk {what}");
                let orders = [s32(value.into()).cmp(&k.into()), u(value.into()).cmp(&unsigned.into())];
                for (i, order) in orders.into_iter().enumerate() {
                    let expected =
                        [order.is_eq(), order.is_ne(), order.is_gt(), order.is_ge(), order.is_lt(), order.is_le()];
                    let found: [bool; 6] = std::array::from_fn(|at| *bench.s(20 + 6 * i + at) == 1);
                    assert_eq!(found, expected, "s_cmpk {what}");
                }
            }
        }
    }
}
