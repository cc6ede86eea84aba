use super::*;

fn bytes(value: u64) -> [i64; 8] {
    value.to_le_bytes().map(i64::from)
}

/// Sum of absolute differences of four bytes from `offset` on; `masked` leaves out those that are zero in `b`.
fn sad(a: u64, offset: usize, b: u64, masked: bool) -> i64 {
    let (a, b) = (bytes(a), bytes(b));
    (0..4).map(|n| if masked && b[n] == 0 { 0 } else { (a[offset + n] - b[n]).abs() }).sum()
}

fn wrapped(value: i64) -> u32 {
    value as u32
}

fn limited(value: i64) -> u32 {
    value.min(u32::MAX.into()) as u32
}

fn quad(i: In, masked: bool, limit: i64) -> u64 {
    (0..4).fold(0, |out, n| {
        let sum = sad(i.a, n, i.b, masked) + i64::from((i.c >> (16 * n)) as u16);
        out | u64::from(sum.min(limit) as u16) << (16 * n)
    })
}

const EDGES: [u64; 16] = [
    0,
    1,
    0xff,
    0xffff_ffff,
    0x8000_0000,
    0x00ff_00ff,
    0xff00_ff00,
    0x0102_0304,
    0xfdfe_0001,
    0x7f80_7f80,
    0x0000_0100,
    0xffff_ffff_ffff_ffff,
    0xff00_0001_00ff_0100,
    0x0123_4567_89ab_cdef,
    0xfffe_fffd_fffc_fffb,
    0xffff_ff00,
];

#[test]
fn absolute_differences_are_summed() {
    check::<u32>(
        &EDGES,
        &[
            ("v_sad_u8 d, a, b, c", |i| wrapped(sad(i.a, 0, i.b, false) + i64::from(i.c32()))),
            ("v_sad_hi_u8 d, a, b, c", |i| wrapped((sad(i.a, 0, i.b, false) << 16) + i64::from(i.c32()))),
            ("v_msad_u8 d, a, b, c", |i| wrapped(sad(i.a, 0, i.b, true) + i64::from(i.c32()))),
            ("v_sad_u16 d, a, b, c", |i| {
                let half = |n: u32| (i64::from((i.a >> n) as u16) - i64::from((i.b >> n) as u16)).abs();
                wrapped(half(0) + half(16) + i64::from(i.c32()))
            }),
            ("v_sad_u32 d, a, b, c", |i| wrapped((i64::from(i.a32()) - i64::from(i.b32())).abs() + i64::from(i.c32()))),
            ("v_sad_u8 d, a, b, c clamp", |i| limited(sad(i.a, 0, i.b, false) + i64::from(i.c32()))),
            ("v_sad_hi_u8 d, a, b, c clamp", |i| limited((sad(i.a, 0, i.b, false) << 16) + i64::from(i.c32()))),
            ("v_msad_u8 d, a, b, c clamp", |i| limited(sad(i.a, 0, i.b, true) + i64::from(i.c32()))),
            ("v_sad_u32 d, a, b, c clamp", |i| {
                limited((i64::from(i.a32()) - i64::from(i.b32())).abs() + i64::from(i.c32()))
            }),
        ],
    );
    check::<u64>(
        &EDGES,
        &[
            ("v_qsad_pk_u16_u8 D, A, b, C", |i| quad(i, false, i64::MAX)),
            ("v_mqsad_pk_u16_u8 D, A, b, C", |i| quad(i, true, i64::MAX)),
            ("v_qsad_pk_u16_u8 D, A, b, C clamp", |i| quad(i, false, 0xffff)),
            ("v_mqsad_pk_u16_u8 D, A, b, C clamp", |i| quad(i, true, 0xffff)),
        ],
    );
}

#[test]
fn four_sums_of_dwords_take_four_registers() {
    for (suffix, limit) in [("", u64::MAX), (" clamp", u32::MAX.into())] {
        let mut random = Random::new(4);
        let mut bench = Bench::new();
        for register in 0..8 {
            *bench.v(register) = std::array::from_fn(|lane| if lane % 7 == 0 { u32::MAX } else { random.next() });
        }
        bench.set_s64(sreg::EXEC_LO, 0x5555_ffff_0f0f_3333);
        let before: Vec<[u32; LANES]> = (0..12).map(|register| *bench.v(register)).collect();
        let before = |register: usize, lane: usize| before[register][lane];
        if !bench.run(&format!("v_mqsad_u32_u8 v[8:11], v[0:1], v2, v[4:7]{suffix}")) {
            return;
        }
        for lane in 0..LANES {
            let a = u64::from(before(0, lane)) | u64::from(before(1, lane)) << 32;
            for n in 0..4 {
                let sum = sad(a, n, before(2, lane).into(), true) as u64 + u64::from(before(4 + n, lane));
                let on = bench.s64(sreg::EXEC_LO) >> lane & 1 == 1;
                let expected = if on { sum.min(limit) as u32 } else { before(8 + n, lane) };
                assert_eq!(bench.v(8 + n)[lane], expected);
            }
        }
    }
}

#[test]
fn averages_round_as_the_third_operand_says() {
    check::<u32>(
        &EDGES,
        &[("v_lerp_u8 d, a, b, c", |i| {
            let (a, b, c) = (bytes(i.a), bytes(i.b), bytes(i.c));
            (0..4).fold(0, |out, n| out | (((a[n] + b[n] + c[n] % 2) / 2) as u32) << (8 * n))
        })],
    );
}

#[test]
fn bytes_are_packed_with_saturation() {
    fn pair(low: i64, high: i64, from: i64, to: i64) -> u32 {
        u32::from(low.clamp(from, to) as u8) | u32::from(high.clamp(from, to) as u8) << 8
    }
    check::<u32>(
        &EDGES,
        &[
            ("v_sat_pk_u8_i16 d, a", |i| pair((i.a as i16).into(), ((i.a >> 16) as i16).into(), 0, 255)),
            ("v_ashr_pk_u8_i32 d, a, b, c", |i| {
                let shifted = |value: u64| i64::from(value as i32) >> (i.c % 32);
                i.old as u32 & 0xffff_0000 | pair(shifted(i.a), shifted(i.b), 0, 255)
            }),
            ("v_ashr_pk_i8_i32 d, a, b, c", |i| {
                let shifted = |value: u64| i64::from(value as i32) >> (i.c % 32);
                i.old as u32 & 0xffff_0000 | pair(shifted(i.a), shifted(i.b), -128, 127)
            }),
            ("v_ashr_pk_i8_i32 d, a, b, c op_sel:[0,0,0,1]", |i| {
                let shifted = |value: u64| i64::from(value as i32) >> (i.c % 32);
                i.old as u32 & 0xffff | pair(shifted(i.a), shifted(i.b), -128, 127) << 16
            }),
        ],
    );
}
