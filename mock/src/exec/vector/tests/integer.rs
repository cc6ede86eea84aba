use super::*;

fn unsigned(value: u32) -> i128 {
    value.into()
}

fn signed(value: u32) -> i128 {
    (value as i32).into()
}

fn low(value: i128) -> u32 {
    value as u32
}

fn clamped(value: i128) -> u32 {
    value.clamp(0, u32::MAX.into()) as u32
}

fn clamped_signed(value: i128) -> u32 {
    value.clamp(i32::MIN.into(), i32::MAX.into()) as u32
}

/// A field of `bits` bits as an unsigned and as a signed number.
fn field(value: u64, bits: u32) -> (i128, i128) {
    let unsigned = i128::from(value) % (1 << bits);
    (unsigned, if unsigned >> (bits - 1) == 1 { unsigned - (1 << bits) } else { unsigned })
}

fn median(mut values: [i128; 3]) -> i128 {
    values.sort_unstable();
    values[1]
}

#[test]
fn sums_and_differences_wrap_or_saturate() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_add_u32 d, a, b", |i| low(unsigned(i.a32()) + unsigned(i.b32()))),
            ("v_sub_u32 d, a, b", |i| low(unsigned(i.a32()) - unsigned(i.b32()))),
            ("v_subrev_u32 d, a, b", |i| low(unsigned(i.b32()) - unsigned(i.a32()))),
            ("v_add_u32_e64 d, a, b clamp", |i| clamped(unsigned(i.a32()) + unsigned(i.b32()))),
            ("v_sub_u32_e64 d, a, b clamp", |i| clamped(unsigned(i.a32()) - unsigned(i.b32()))),
            ("v_subrev_u32_e64 d, a, b clamp", |i| clamped(unsigned(i.b32()) - unsigned(i.a32()))),
            ("v_add_i32 d, a, b", |i| low(signed(i.a32()) + signed(i.b32()))),
            ("v_sub_i32 d, a, b", |i| low(signed(i.a32()) - signed(i.b32()))),
            ("v_add_i32 d, a, b clamp", |i| clamped_signed(signed(i.a32()) + signed(i.b32()))),
            ("v_sub_i32 d, a, b clamp", |i| clamped_signed(signed(i.a32()) - signed(i.b32()))),
            ("v_add3_u32 d, a, b, c", |i| low(unsigned(i.a32()) + unsigned(i.b32()) + unsigned(i.c32()))),
            ("v_lshl_add_u32 d, a, b, c", |i| low(unsigned(i.a32()) * (1 << (i.b % 32)) + unsigned(i.c32()))),
            ("v_add_lshl_u32 d, a, b, c", |i| low((unsigned(i.a32()) + unsigned(i.b32())) * (1 << (i.c % 32)))),
            ("v_xad_u32 d, a, b, c", |i| low(unsigned(i.a32() ^ i.b32()) + unsigned(i.c32()))),
        ],
    );
    check::<u64>(
        &INTEGERS,
        &[("v_lshl_add_u64 D, A, b, C", |i| {
            let count = i.b % 8;
            (u128::from(i.a) * if count > 4 { 1 } else { 1 << count } + u128::from(i.c)) as u64
        })],
    );
}

#[test]
fn carries_go_in_and_out_through_lane_masks() {
    fn sum(a: i128, b: i128, carry: bool) -> Out {
        let sum = a + b + i128::from(carry);
        Out(low(sum).into(), Some(sum >= 1 << 32))
    }
    fn difference(a: i128, b: i128, borrow: bool) -> Out {
        let difference = a - b - i128::from(borrow);
        Out(low(difference).into(), Some(difference < 0))
    }
    check::<Out>(
        &INTEGERS,
        &[
            ("v_add_co_u32_e64 d, m, a, b", |i| sum(unsigned(i.a32()), unsigned(i.b32()), false)),
            ("v_sub_co_u32_e64 d, m, a, b", |i| difference(unsigned(i.a32()), unsigned(i.b32()), false)),
            ("v_subrev_co_u32_e64 d, m, a, b", |i| difference(unsigned(i.b32()), unsigned(i.a32()), false)),
            ("v_addc_co_u32_e64 d, m, a, b, k", |i| sum(unsigned(i.a32()), unsigned(i.b32()), i.k)),
            ("v_subb_co_u32_e64 d, m, a, b, k", |i| difference(unsigned(i.a32()), unsigned(i.b32()), i.k)),
            ("v_subbrev_co_u32_e64 d, m, a, b, k", |i| difference(unsigned(i.b32()), unsigned(i.a32()), i.k)),
            ("v_addc_co_u32_e64 d, m, a, b, k clamp", |i| {
                let Out(_, carry) = sum(unsigned(i.a32()), unsigned(i.b32()), i.k);
                Out(clamped(unsigned(i.a32()) + unsigned(i.b32()) + i128::from(i.k)).into(), carry)
            }),
            ("v_subb_co_u32_e64 d, m, a, b, k clamp", |i| {
                let Out(_, borrow) = difference(unsigned(i.a32()), unsigned(i.b32()), i.k);
                Out(clamped(unsigned(i.a32()) - unsigned(i.b32()) - i128::from(i.k)).into(), borrow)
            }),
            ("v_mad_u64_u32 D, m, a, b, C", |i| {
                let sum = unsigned(i.a32()) * unsigned(i.b32()) + i128::from(i.c);
                Out(sum as u64, Some(sum >= 1 << 64))
            }),
            ("v_mad_i64_i32 D, m, a, b, C", |i| {
                let sum = signed(i.a32()) * signed(i.b32()) + i128::from(i.c as i64);
                Out(sum as u64, Some(sum < 0))
            }),
            ("v_mad_u64_u32 D, m, a, b, C clamp", |i| {
                let sum = unsigned(i.a32()) * unsigned(i.b32()) + i128::from(i.c);
                Out(sum.min(u64::MAX.into()) as u64, Some(sum >= 1 << 64))
            }),
            ("v_mad_i64_i32 D, m, a, b, C clamp", |i| {
                let sum = signed(i.a32()) * signed(i.b32()) + i128::from(i.c as i64);
                Out(sum.clamp(i64::MIN.into(), i64::MAX.into()) as u64, Some(sum < 0))
            }),
        ],
    );
}

#[test]
fn carry_chains_of_vcc_add_long_numbers() {
    let mut bench = Bench::new();
    bench.set_v64(0, |lane| u64::MAX - lane as u64);
    bench.set_v64(2, |lane| 3 * lane as u64);
    if bench.run("v_add_co_u32 v4, vcc, v0, v2\nv_addc_co_u32 v5, vcc, v1, v3, vcc") {
        for lane in 0..LANES {
            let (sum, carry) = (u64::MAX - lane as u64).overflowing_add(3 * lane as u64);
            assert_eq!((bench.v64(4, lane), bench.s64(sreg::VCC_LO) >> lane & 1 == 1), (sum, carry));
        }
    }
}

#[test]
fn products_keep_the_half_they_are_named_for() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_mul_lo_u32 d, a, b", |i| low(unsigned(i.a32()) * unsigned(i.b32()))),
            ("v_mul_hi_u32 d, a, b", |i| low((unsigned(i.a32()) * unsigned(i.b32())) >> 32)),
            ("v_mul_hi_i32 d, a, b", |i| low((signed(i.a32()) * signed(i.b32())) >> 32)),
            ("v_mul_u32_u24 d, a, b", |i| low(field(i.a, 24).0 * field(i.b, 24).0)),
            ("v_mul_hi_u32_u24 d, a, b", |i| low((field(i.a, 24).0 * field(i.b, 24).0) >> 32)),
            ("v_mul_i32_i24 d, a, b", |i| low(field(i.a, 24).1 * field(i.b, 24).1)),
            ("v_mul_hi_i32_i24 d, a, b", |i| low((field(i.a, 24).1 * field(i.b, 24).1) >> 32)),
            ("v_mad_u32_u24 d, a, b, c", |i| low(field(i.a, 24).0 * field(i.b, 24).0 + unsigned(i.c32()))),
            ("v_mad_i32_i24 d, a, b, c", |i| low(field(i.a, 24).1 * field(i.b, 24).1 + signed(i.c32()))),
            ("v_mad_u32_u16 d, a, b, c", |i| low(field(i.a, 16).0 * field(i.b, 16).0 + unsigned(i.c32()))),
            ("v_mad_i32_i16 d, a, b, c", |i| low(field(i.a, 16).1 * field(i.b, 16).1 + signed(i.c32()))),
            ("v_mad_u32_u16 d, a, b, c op_sel:[1,0,0,0]", |i| {
                low(field(i.a >> 16, 16).0 * field(i.b, 16).0 + unsigned(i.c32()))
            }),
            ("v_mul_u32_u24_e64 d, a, b clamp", |i| clamped(field(i.a, 24).0 * field(i.b, 24).0)),
            ("v_mul_i32_i24_e64 d, a, b clamp", |i| clamped_signed(field(i.a, 24).1 * field(i.b, 24).1)),
            ("v_mad_u32_u24 d, a, b, c clamp", |i| clamped(field(i.a, 24).0 * field(i.b, 24).0 + unsigned(i.c32()))),
            ("v_mad_i32_i24 d, a, b, c clamp", |i| {
                clamped_signed(field(i.a, 24).1 * field(i.b, 24).1 + signed(i.c32()))
            }),
            ("v_mad_u32_u16 d, a, b, c clamp", |i| clamped(field(i.a, 16).0 * field(i.b, 16).0 + unsigned(i.c32()))),
            ("v_mad_i32_i16 d, a, b, c clamp", |i| {
                clamped_signed(field(i.a, 16).1 * field(i.b, 16).1 + signed(i.c32()))
            }),
        ],
    );
}

#[test]
fn the_smallest_middle_and_largest_are_chosen() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_min_u32 d, a, b", |i| low(unsigned(i.a32()).min(unsigned(i.b32())))),
            ("v_max_u32 d, a, b", |i| low(unsigned(i.a32()).max(unsigned(i.b32())))),
            ("v_min_i32 d, a, b", |i| low(signed(i.a32()).min(signed(i.b32())))),
            ("v_max_i32 d, a, b", |i| low(signed(i.a32()).max(signed(i.b32())))),
            ("v_min3_u32 d, a, b, c", |i| low([i.a32(), i.b32(), i.c32()].map(unsigned).into_iter().min().unwrap())),
            ("v_max3_u32 d, a, b, c", |i| low([i.a32(), i.b32(), i.c32()].map(unsigned).into_iter().max().unwrap())),
            ("v_med3_u32 d, a, b, c", |i| low(median([i.a32(), i.b32(), i.c32()].map(unsigned)))),
            ("v_min3_i32 d, a, b, c", |i| low([i.a32(), i.b32(), i.c32()].map(signed).into_iter().min().unwrap())),
            ("v_max3_i32 d, a, b, c", |i| low([i.a32(), i.b32(), i.c32()].map(signed).into_iter().max().unwrap())),
            ("v_med3_i32 d, a, b, c", |i| low(median([i.a32(), i.b32(), i.c32()].map(signed)))),
        ],
    );
}
