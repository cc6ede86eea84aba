use crate::random::Random;
use crate::testbench::Bench;
use crate::wave::{LANES, sreg};

const SIZE: u32 = 64 * 1024;

/// LDS and registers v20 to v27 filled with random values.
fn bench() -> Bench {
    let mut random = Random::new(11);
    let mut bench = Bench::new();
    bench.lds.as_bytes_mut().fill_with(|| random.next() as u8);
    for register in 20..28 {
        *bench.v(register) = std::array::from_fn(|_| random.next());
    }
    bench
}

fn dword(bench: &Bench, at: usize) -> u32 {
    let bytes = &bench.lds.as_bytes()[at..at + 4];
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

#[test]
fn two_addresses_are_read_and_written_in_units_of_the_element_or_of_64() {
    for (suffix, unit, dwords) in [("2_b32", 4, 1), ("2st64_b32", 256, 1), ("2_b64", 8, 2), ("2st64_b64", 512, 2)] {
        let data = |first: usize, count: usize| {
            if count == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + count - 1) }
        };
        let mut bench = bench();
        *bench.v(2) = std::array::from_fn(|lane| 16 * (LANES - lane) as u32);
        bench.set_s64(sreg::EXEC_LO, 0x7fff_ffff_ffff_fffe);
        let before = bench.v(20)[0];
        if !bench.run(&format!("ds_read{suffix} {}, v2 offset0:3 offset1:100", data(20, 2 * dwords))) {
            return;
        }
        assert_eq!(bench.v(20)[0], before);
        for lane in 1..63 {
            for (i, offset) in [3, 100].into_iter().enumerate() {
                for k in 0..dwords {
                    let at = 16 * (LANES - lane) + offset * unit + 4 * k;
                    assert_eq!(dword(&bench, at), bench.v(20 + i * dwords + k)[lane], "read{suffix}");
                }
            }
        }
        let mut bench = self::bench();
        *bench.v(2) = std::array::from_fn(|lane| 16 * lane as u32);
        // Far enough that no lane writes over another's.
        let second = if unit < 64 { 255 } else { 60 };
        let text =
            format!("ds_write{suffix} v2, {}, {} offset0:0 offset1:{second}", data(20, dwords), data(24, dwords));
        if bench.run(&text) {
            for lane in 0..LANES {
                for k in 0..dwords {
                    assert_eq!(dword(&bench, 16 * lane + 4 * k), bench.v(20 + k)[lane], "{text}");
                    assert_eq!(dword(&bench, 16 * lane + second * unit + 4 * k), bench.v(24 + k)[lane], "{text}");
                }
            }
        }
    }
}

#[test]
fn a_double_read_may_overwrite_its_address() {
    let mut bench = bench();
    *bench.v(2) = std::array::from_fn(|lane| 4 * lane as u32);
    if bench.run("ds_read2_b32 v[2:3], v2 offset0:0 offset1:1") {
        assert!((0..LANES).all(|lane| u64::from(dword(&bench, 4 * lane + 4)) == bench.v64(2, lane) >> 32));
    }
}

#[test]
fn double_exchanges_return_what_was_there() {
    for (suffix, unit, dwords) in
        [("2_rtn_b32", 4, 1), ("2st64_rtn_b32", 256, 1), ("2_rtn_b64", 8, 2), ("2st64_rtn_b64", 512, 2)]
    {
        let mut bench = bench();
        *bench.v(2) = std::array::from_fn(|lane| 16 * lane as u32);
        let before = bench.lds.as_bytes().to_vec();
        let text = if dwords == 1 {
            format!("ds_wrxchg{suffix} v[30:31], v2, v20, v24 offset0:1 offset1:80")
        } else {
            format!("ds_wrxchg{suffix} v[30:33], v2, v[20:21], v[24:25] offset0:1 offset1:80")
        };
        if !bench.run(&text) {
            return;
        }
        for lane in 0..LANES {
            for (i, offset) in [1, 80].into_iter().enumerate() {
                for k in 0..dwords {
                    let at = 16 * lane + offset * unit + 4 * k;
                    let old = u32::from_le_bytes([before[at], before[at + 1], before[at + 2], before[at + 3]]);
                    assert_eq!(bench.v(30 + i * dwords + k)[lane], old, "{text}");
                    assert_eq!(dword(&bench, at), bench.v(20 + 4 * i + k)[lane], "{text}");
                }
            }
        }
    }
}

#[test]
fn add_tid_instructions_address_by_lane_and_m0() {
    let mut bench = bench();
    *bench.s(sreg::M0) = 0xabcd_0100;
    if bench.run("ds_read_addtid_b32 v1 offset:12\nds_write_addtid_b32 v20 offset:1024") {
        for lane in 0..LANES {
            assert_eq!(dword(&bench, 0x100 + 12 + 4 * lane), bench.v(1)[lane]);
            assert_eq!(dword(&bench, 0x100 + 1024 + 4 * lane), bench.v(20)[lane]);
        }
    }
}

#[test]
fn append_and_consume_count_active_lanes() {
    let mut bench = bench();
    bench.lds.write(20, &7u32.to_le_bytes());
    bench.set_s64(sreg::EXEC_LO, 0xff0f);
    if bench.run("ds_append v1 offset:20\nds_consume v2 offset:20\nds_consume v3 offset:20") {
        assert_eq!((bench.v(1)[0], bench.v(2)[3], bench.v(3)[8]), (7, 19, 7));
        assert_eq!((bench.v(1)[4], bench.lds.read_u32(20)), (0, 7u32.wrapping_sub(12)));
    }
}

#[test]
fn a_conditional_exchange_stores_what_has_its_highest_bit_set() {
    let mut bench = bench();
    bench.lds.write(8, &[1, 0, 0, 0, 2, 0, 0, 0]);
    *bench.v(2) = [13; LANES];
    bench.set_s64(sreg::EXEC_LO, 1);
    (*bench.v(20), *bench.v(21)) = ([0x8000_0009; LANES], [0x7000_0009; LANES]);
    if bench.run("ds_condxchg32_rtn_b64 v[4:5], v2, v[20:21]") {
        assert_eq!((bench.v(4)[0], bench.v(5)[0], bench.lds.read_u32(8), bench.lds.read_u32(12)), (1, 2, 9, 2));
    }
}

#[test]
fn reads_past_the_end_give_zero_and_writes_there_are_dropped() {
    let mut bench = bench();
    let mut expected = bench.lds.as_bytes().to_vec();
    *bench.v(2) = std::array::from_fn(|lane| if lane % 2 == 0 { 4 * lane as u32 } else { SIZE - 3 + lane as u32 });
    if bench.run("ds_read_b32 v1, v2\nds_read_u8 v3, v2\nds_write_b32 v2, v20") {
        assert_eq!(bench.v(3)[1], expected[SIZE as usize - 2].into(), "the last but one byte is inside");
        for lane in 0..LANES {
            if lane % 2 == 0 {
                assert_ne!(bench.v(1)[lane], 0);
                expected[4 * lane..4 * lane + 4].copy_from_slice(&bench.v(20)[lane].to_le_bytes());
            } else {
                assert_eq!(bench.v(1)[lane], 0);
            }
        }
        assert!(bench.lds.as_bytes() == expected);
    }
}

#[test]
fn permutes_send_and_fetch_between_active_lanes() {
    // The examples of the ISA document, on the first four lanes: EXEC 0xF, then 0xA.
    let cases = [
        (0xf, [Some('B'), Some('D'), None, Some('C')], [Some('A'), Some('A'), Some('D'), Some('B')]),
        (0xa, [Some('-'), Some('D'), Some('-'), None], [Some('-'), None, Some('-'), Some('B')]),
    ];
    for (exec, sent, fetched) in cases {
        let mut bench = Bench::new();
        bench.set_s64(sreg::EXEC_LO, exec);
        bench.v(1)[..4].copy_from_slice(&['A', 'B', 'C', 'D'].map(u32::from));
        bench.v(2)[..4].copy_from_slice(&[0, 0, 12, 4]);
        (*bench.v(3), *bench.v(4)) = ([u32::from('-'); LANES], [u32::from('-'); LANES]);
        if bench.run("ds_permute_b32 v3, v2, v1\nds_bpermute_b32 v4, v2, v1") {
            assert_eq!(bench.v(3)[..4], sent.map(|c| c.map_or(0, u32::from)));
            assert_eq!(bench.v(4)[..4], fetched.map(|c| c.map_or(0, u32::from)));
        }
    }
    // The offset is added, and addresses go around at 64 lanes.
    let mut bench = Bench::new();
    *bench.v(1) = std::array::from_fn(|lane| lane as u32);
    *bench.v(2) = std::array::from_fn(|lane| 4 * lane as u32 + 3);
    if bench.run("ds_bpermute_b32 v3, v2, v1 offset:40") {
        assert!((0..LANES).all(|lane| bench.v(3)[lane] == (lane as u32 + 10) % 64));
    }
}

#[test]
fn swizzles_give_the_lanes_that_the_isa_document_lists() {
    let range = |from: u32, to: u32| (from..=to).collect::<Vec<u32>>();
    let listed: [(u32, Vec<u32>); 8] = [
        (
            0xe000,
            vec![
                1, 17, 9, 25, 5, 21, 13, 29, 3, 19, 11, 27, 7, 23, 15, 31, 2, 18, 10, 26, 6, 22, 14, 30, 4, 20, 12, 28,
                8, 24, 16, 32,
            ],
        ),
        (
            0xe010,
            vec![
                1, 9, 5, 13, 3, 11, 7, 15, 2, 10, 6, 14, 4, 12, 8, 16, 17, 25, 21, 29, 19, 27, 23, 31, 18, 26, 22, 30,
                20, 28, 24, 32,
            ],
        ),
        (0xe01f, range(1, 32)),
        // Rotation by one: left, right, left and right with mask 1.
        (0xc020, [range(2, 32), vec![1]].concat()),
        (0xc420, [vec![32], range(1, 31)].concat()),
        (
            0xc021,
            vec![
                1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15, 18, 17, 20, 19, 22, 21, 24, 23, 26, 25, 28, 27, 30,
                29, 32, 31, 2,
            ],
        ),
        (
            0xc421,
            vec![
                31, 2, 1, 4, 3, 6, 5, 8, 7, 10, 9, 12, 11, 14, 13, 16, 15, 18, 17, 20, 19, 22, 21, 24, 23, 26, 25, 28,
                27, 30, 29, 32,
            ],
        ),
        // Four lanes reversed: selections 3, 2, 1, 0.
        (0x801b, (0..32).map(|lane| lane / 4 * 4 + 3 - lane % 4 + 1).collect()),
    ];
    for (offset, sources) in listed {
        let mut bench = Bench::new();
        *bench.v(1) = std::array::from_fn(|lane| lane as u32 + 1);
        bench.set_s64(sreg::EXEC_LO, !(1 << 33));
        if bench.run(&format!("ds_swizzle_b32 v2, v1 offset:{offset}")) {
            for lane in (0..LANES).filter(|&lane| lane != 33) {
                let from = sources[lane % 32] + if lane < 32 { 0 } else { 32 };
                assert_eq!(bench.v(2)[lane], if from == 34 { 0 } else { from }, "{offset:#x}, lane {lane}");
            }
            assert_eq!(bench.v(2)[33], 0);
        }
    }
}

#[test]
fn swizzles_by_mask_swap_reverse_and_broadcast() {
    /// XOR, OR and AND masks, and the lane of 32 that each reads.
    type Case = (u32, u32, u32, fn(u32) -> u32);
    let cases: [Case; 6] = [
        (0x10, 0, 0x1f, |lane| (lane + 16) % 32),
        (0x01, 0, 0x1f, |lane| lane / 2 * 2 + 1 - lane % 2),
        (0x1f, 0, 0x1f, |lane| 31 - lane),
        (0x07, 0, 0x1f, |lane| lane / 8 * 8 + 7 - lane % 8),
        (0, 5, 0, |_| 5),
        (0, 3, 0x18, |lane| lane / 8 * 8 + 3),
    ];
    for (xor, or, and, from) in cases {
        let mut bench = Bench::new();
        *bench.v(1) = std::array::from_fn(|lane| lane as u32);
        if bench.run(&format!("ds_swizzle_b32 v2, v1 offset:{}", xor << 10 | or << 5 | and)) {
            assert!((0..LANES as u32).all(|lane| bench.v(2)[lane as usize] == from(lane % 32) + lane / 32 * 32));
        }
    }
}

#[test]
fn transposing_reads_give_each_lane_a_column_of_sixteen() {
    for (text, bits, dwords) in [
        ("ds_read_b64_tr_b16 v[20:21], v2 offset:256", 16, 2),
        ("ds_read_b64_tr_b8 v[20:21], v2 offset:256", 8, 2),
        ("ds_read_b64_tr_b4 v[20:21], v2 offset:256", 4, 2),
        ("ds_read_b96_tr_b6 v[20:22], v2 offset:256", 6, 3),
    ] {
        // Rows of 16 elements, row after row with a gap; the lanes of a group share the rows from left to right.
        let (row_bytes, lane_bytes) = (16 * bits / 8, 4 * dwords);
        let (lanes_a_row, pitch) = (row_bytes / lane_bytes, row_bytes + 32);
        let rows_a_group = 16 / lanes_a_row;
        let mut bench = bench();
        *bench.v(2) = std::array::from_fn(|lane| {
            let row = lane / 16 * rows_a_group + lane % 16 / lanes_a_row;
            (row * pitch + lane % lanes_a_row * lane_bytes) as u32
        });
        if !bench.run(text) {
            return;
        }
        for lane in 0..LANES {
            for element in 0..rows_a_group {
                let (row, column) = (lane / 16 * rows_a_group + element, lane % 16);
                for bit in 0..bits {
                    let from = (256 + row * pitch) * 8 + column * bits + bit;
                    let to = element * bits + bit;
                    let stored = bench.lds.as_bytes()[from / 8] >> (from % 8) & 1;
                    let loaded = bench.v(20 + to / 32)[lane] >> (to % 32) & 1;
                    assert_eq!(u32::from(stored), loaded, "{text}, lane {lane}, element {element}");
                }
            }
        }
    }
}
