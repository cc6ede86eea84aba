//! Loads straight into LDS.

use super::forms::{RAW, describe};
use crate::random::Random;
use crate::testbench::{BUFFER, Bench};
use crate::wave::{LANES, sreg};

/// Names of the loads: global form, buffer form, bytes in memory, dwords in LDS, step of the lanes, sign.
const LOADS: [(&str, &str, usize, usize, usize, bool); 7] = [
    ("global_load_lds_ubyte", "buffer_load_ubyte", 1, 1, 4, false),
    ("global_load_lds_sbyte", "buffer_load_sbyte", 1, 1, 4, true),
    ("global_load_lds_ushort", "buffer_load_ushort", 2, 1, 4, false),
    ("global_load_lds_sshort", "buffer_load_sshort", 2, 1, 4, true),
    ("global_load_lds_dword", "buffer_load_dword", 4, 1, 4, false),
    ("global_load_lds_dwordx3", "buffer_load_dwordx3", 12, 3, 16, false),
    ("global_load_lds_dwordx4", "buffer_load_dwordx4", 16, 4, 16, false),
];

#[test]
fn each_lane_writes_its_slot_behind_m0_and_the_instructions_offset() {
    for (global, buffer, bytes, dwords, step, signed) in LOADS {
        for (form, spread) in [(0, 1), (0, 3), (1, 1), (1, 3)] {
            for exec in [u64::MAX, 0xffff_0000_f0f0_ff01] {
                let mut random = Random::new(5);
                let mut bench = Bench::new();
                bench.buffer.fill_with(|| random.next());
                bench.lds.as_bytes_mut().fill(0xee);
                let memory: Vec<u8> = bytemuck::cast_slice(&bench.buffer).to_vec();
                let mut expected = bench.lds.as_bytes().to_vec();
                let offset = |lane: usize| (bytes * spread * lane) as u32;
                bench.set_v64(4, |lane| BUFFER + u64::from(offset(lane)));
                *bench.v(2) = std::array::from_fn(offset);
                describe(&mut bench, BUFFER, 0, 64 * 1024, RAW);
                *bench.s(sreg::M0) = 0xfff0_1003;
                bench.set_s64(sreg::EXEC_LO, exec);
                let text = match form {
                    0 => format!("{global} v[4:5], off offset:64"),
                    _ => format!("{buffer} v2, s[8:11], 0 offen offset:64 lds"),
                };
                for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
                    let from = offset(lane) as usize + 64;
                    let mut value = memory[from..from + bytes].to_vec();
                    let fill = if signed && value[bytes - 1] >= 128 { 0xff } else { 0 };
                    value.resize(4 * dwords, fill);
                    let to = 0x1000 + 64 + step * lane;
                    expected[to..to + 4 * dwords].copy_from_slice(&value);
                }
                if !bench.run(&text) {
                    return;
                }
                assert!(bench.lds.as_bytes() == expected, "{text}, EXEC {exec:#x}");
            }
        }
    }
}

#[test]
fn lanes_outside_the_lds_do_not_read_and_lanes_outside_the_buffer_write_zero() {
    let mut bench = Bench::new();
    bench.buffer.fill(7);
    bench.lds.as_bytes_mut().fill(0xee);
    // The last 16 lanes fall off the end of LDS, and their addresses are good for nothing.
    *bench.s(sreg::M0) = 64 * 1024 - 48 * 4;
    bench.set_v64(4, |lane| if lane < 48 { BUFFER } else { u64::MAX - 64 });
    if bench.run("global_load_lds_dword v[4:5], off") {
        assert_eq!(bench.lds.read_u32(64 * 1024 - 4), 7);
    }
    describe(&mut bench, BUFFER, 0, 128, RAW);
    *bench.v(2) = std::array::from_fn(|lane| 4 * lane as u32);
    *bench.s(sreg::M0) = 0;
    if bench.run("buffer_load_dword v2, s[8:11], 0 offen lds") {
        assert_eq!((bench.lds.read_u32(31 * 4), bench.lds.read_u32(32 * 4), bench.lds.read_u32(63 * 4)), (7, 0, 0));
    }
}

#[test]
fn scratch_is_loaded_into_lds_too() {
    let mut bench = Bench::new();
    bench.wave.scratch_base = BUFFER;
    // The upper bytes make the low ones negative in every second lane.
    let word = |i: u32| i | (i & 1) << 7 | (i & 1) << 15;
    bench.buffer.iter_mut().zip(0..).for_each(|(dword, i)| *dword = word(i));
    type Load = (&'static str, fn(u32) -> u32);
    let loads: [Load; 5] = [
        ("dword", |word| word),
        ("ubyte", |word| word & 0xff),
        ("sbyte", |word| word as i8 as u32),
        ("ushort", |word| word & 0xffff),
        ("sshort", |word| word as i16 as u32),
    ];
    for (name, define) in loads {
        if bench.run(&format!("scratch_load_lds_{name} off, off offset:8")) {
            // Dword 2 of each lane's scratch, at the instruction's offset in LDS.
            for lane in 0..LANES as u32 {
                assert_eq!(bench.lds.read_u32(8 + 4 * lane), define(word(128 + lane)), "{name}, lane {lane}");
            }
        }
    }
}
