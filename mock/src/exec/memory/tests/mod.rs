//! Tests of loads and stores: every data format through every way to address memory.

mod atomics;
mod buffers;
mod exact;
mod formats;
mod forms;
mod scalar;
mod to_lds;

use crate::exec::WaveFault;
use crate::memory::{AccessKind, MemoryFaultReason};
use crate::random::Random;
use crate::testbench::{BUFFER, Bench};
use crate::wave::{LANES, sreg};
use forms::{FORMS, Form};

/// A data format: name in load instructions, bytes, and the registers it gives, from memory and what they held.
type LoadFormat = (&'static str, usize, fn(&[u8], u32) -> u32);

const LOADS: [LoadFormat; 14] = [
    ("ubyte", 1, |b, _| b[0].into()),
    ("sbyte", 1, |b, _| i32::from(b[0] as i8) as u32),
    ("ushort", 2, |b, _| u32::from(b[0]) + 256 * u32::from(b[1])),
    ("sshort", 2, |b, _| i32::from(i16::from_le_bytes([b[0], b[1]])) as u32),
    ("ubyte_d16", 1, |b, old| (old & 0xffff_0000) + u32::from(b[0])),
    ("ubyte_d16_hi", 1, |b, old| (old & 0xffff) + 65536 * u32::from(b[0])),
    ("sbyte_d16", 1, |b, old| (old & 0xffff_0000) + u32::from(i16::from(b[0] as i8) as u16)),
    ("sbyte_d16_hi", 1, |b, old| (old & 0xffff) + 65536 * u32::from(i16::from(b[0] as i8) as u16)),
    ("short_d16", 2, |b, old| (old & 0xffff_0000) + u32::from(b[0]) + 256 * u32::from(b[1])),
    ("short_d16_hi", 2, |b, old| (old & 0xffff) + (u32::from(b[0]) << 16) + (u32::from(b[1]) << 24)),
    ("dword", 4, dword),
    ("dwordx2", 8, dword),
    ("dwordx3", 12, dword),
    ("dwordx4", 16, dword),
];

fn dword(bytes: &[u8], _: u32) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value * 256 + u32::from(byte))
}

/// A store format: name, bytes, and how far its lowest bit is up in the first register.
const STORES: [(&str, usize, u32); 8] = [
    ("byte", 1, 0),
    ("byte_d16_hi", 1, 16),
    ("short", 2, 0),
    ("short_d16_hi", 2, 16),
    ("dword", 4, 0),
    ("dwordx2", 8, 0),
    ("dwordx3", 12, 0),
    ("dwordx4", 16, 0),
];

/// Ways in which the lanes' offsets lie to each other; all are below `limit`.
fn patterns(bytes: usize, limit: u32) -> Vec<[u32; LANES]> {
    let mut random = Random::new(bytes as u64);
    let bytes = bytes as u32;
    let mut scattered = |align: u32| std::array::from_fn(|_| random.below(limit / align) * align);
    vec![
        std::array::from_fn(|lane| (256 + lane as u32 * bytes) % limit),
        std::array::from_fn(|lane| (64 + lane as u32 * 48) % limit),
        std::array::from_fn(|lane| (LANES - lane) as u32 * bytes % limit),
        [128; LANES],
        scattered(16),
        scattered(1),
    ]
}

const MASKS: [u64; 4] = [u64::MAX, 0x8000_0000_0000_0001, 0x0fff_f0f5_a5a5_ff00, 0];

/// First data register of all tests, and the text of `bytes` bytes of registers from it on.
const DATA: usize = 20;

fn registers(bytes: usize) -> String {
    match bytes.div_ceil(4) {
        1 => format!("v{DATA}"),
        n => format!("v[{DATA}:{}]", DATA + n - 1),
    }
}

fn bench(form: &Form, seed: u64) -> Bench {
    let mut random = Random::new(seed);
    let mut bench = Bench::new();
    (form.memory)(&mut bench).fill_with(|| random.next() as u8);
    for register in DATA..DATA + 4 {
        *bench.v(register) = std::array::from_fn(|_| random.next());
    }
    bench
}

#[test]
fn loads_bring_the_bytes_at_each_lanes_address_in_every_format() {
    for form in FORMS {
        for (name, bytes, convert) in LOADS {
            for (offsets, mask) in patterns(bytes, form.limit).into_iter().zip(MASKS.into_iter().cycle()) {
                for mask in [u64::MAX, mask] {
                    let mut bench = bench(form, 7);
                    (form.prepare)(&mut bench, &offsets);
                    bench.set_s64(sreg::EXEC_LO, mask);
                    let memory = (form.memory)(&mut bench).to_vec();
                    let old: Vec<[u32; LANES]> = (0..4).map(|i| *bench.v(DATA + i)).collect();
                    let text = (form.load)(name, &registers(bytes));
                    if !bench.run(&text) {
                        return;
                    }
                    for lane in 0..LANES {
                        for (i, old) in old.iter().enumerate().take(bytes.div_ceil(4)) {
                            let part: Vec<u8> = (4 * i..bytes.min(4 * i + 4))
                                .map(|at| memory[(form.place)(lane, offsets[lane] + at as u32)])
                                .collect();
                            let on = mask >> lane & 1 == 1;
                            let expected = if on { convert(&part, old[lane]) } else { old[lane] };
                            assert_eq!(bench.v(DATA + i)[lane], expected, "{text}, lane {lane}, EXEC {mask:#x}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn stores_change_the_bytes_at_each_lanes_address_and_no_others() {
    for form in FORMS {
        for (name, bytes, shift) in STORES {
            for (offsets, mask) in patterns(bytes, form.limit).into_iter().zip(MASKS.into_iter().cycle()) {
                for mask in [u64::MAX, mask] {
                    let mut bench = bench(form, 9);
                    (form.prepare)(&mut bench, &offsets);
                    bench.set_s64(sreg::EXEC_LO, mask);
                    let mut expected = (form.memory)(&mut bench).to_vec();
                    for lane in (0..LANES).filter(|lane| mask >> lane & 1 == 1) {
                        for at in 0..bytes {
                            let value = bench.v(DATA + at / 4)[lane] >> (shift + 8 * (at as u32 % 4));
                            expected[(form.place)(lane, offsets[lane] + at as u32)] = value as u8;
                        }
                    }
                    let text = (form.store)(name, &registers(bytes));
                    if !bench.run(&text) {
                        return;
                    }
                    assert!((form.memory)(&mut bench) == expected, "{text}, EXEC {mask:#x}");
                }
            }
        }
    }
}

#[test]
fn a_load_may_overwrite_its_own_address() {
    let mut bench = Bench::new();
    bench.buffer.iter_mut().enumerate().for_each(|(i, word)| *word = i as u32);
    for stride in [8u64, 24] {
        bench.set_v64(2, |lane| BUFFER + stride * lane as u64);
        if bench.run("global_load_dwordx2 v[2:3], v[2:3], off") {
            let word = |lane: u64| stride * lane / 4;
            assert!((0..LANES).all(|lane| {
                let first = word(lane as u64);
                bench.v64(2, lane) == first | (first + 1) << 32
            }));
        }
    }
}

#[test]
fn accumulation_registers_are_loaded_and_stored() {
    let mut bench = Bench::new();
    bench.buffer.iter_mut().enumerate().for_each(|(i, word)| *word = i as u32);
    bench.set_v64(2, |lane| BUFFER + 16 * lane as u64);
    let text = "global_load_dwordx4 a[4:7], v[2:3], off\nglobal_store_dwordx2 v[2:3], a[6:7], off offset:1024";
    if bench.run(text) {
        assert_eq!((bench.a(4)[5], bench.a(7)[5]), (20, 23));
        assert_eq!((bench.buffer[256 + 20], bench.buffer[256 + 21], bench.buffer[256 + 22]), (22, 23, 278));
    }
}

/// Runs one instruction that faults, and gives the fault's facts: address, size, kind, reason.
fn fault(bench: &mut Bench, text: &str) -> Option<(u64, u64, AccessKind, MemoryFaultReason)> {
    match bench.try_run(text)? {
        Err(WaveFault::Memory(fault)) => Some((fault.address.get(), fault.bytes.get(), fault.kind, fault.reason)),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_fault_names_the_first_address_that_cannot_be_accessed() {
    let end = BUFFER + 64 * 1024;
    let mut bench = Bench::new();
    // Consecutive lanes that run past the end: lane 60 is the first outside.
    bench.set_v64(2, |lane| end - 240 + 4 * lane as u64);
    if let Some(fault) = fault(&mut bench, "global_load_dword v1, v[2:3], off") {
        assert_eq!(fault, (end, 4, AccessKind::Read, MemoryFaultReason::Unmapped));
    }
    // A single lane that straddles the end.
    bench.set_v64(2, |lane| if lane == 33 { end - 8 } else { BUFFER });
    if let Some((address, bytes, kind, reason)) = fault(&mut bench, "global_store_dwordx4 v[2:3], v[4:7], off") {
        assert_eq!((address, bytes, kind), (end, 16, AccessKind::Write));
        assert!(matches!(reason, MemoryFaultReason::PastEnd { .. }));
    }
    // Lanes that are off may point anywhere.
    bench.set_v64(2, |lane| if lane % 2 == 0 { BUFFER + 4 * lane as u64 } else { u64::MAX });
    bench.set_s64(sreg::EXEC_LO, 0x5555_5555_5555_5555);
    if bench.run("global_load_dword v1, v[2:3], off") {
        bench.set_s64(sreg::EXEC_LO, 1 << 7);
        if let Some(fault) = fault(&mut bench, "global_load_dword v1, v[2:3], off offset:3") {
            assert_eq!((fault.0, fault.3), (2, MemoryFaultReason::Unmapped));
        }
    }
}

#[test]
fn global_instructions_do_not_reach_the_apertures() {
    for aperture in [1u64 << 48, 2 << 48] {
        let mut bench = Bench::new();
        bench.set_v64(2, |_| aperture + 16);
        if let Some(fault) = fault(&mut bench, "global_load_dword v1, v[2:3], off") {
            assert_eq!((fault.0, fault.3), (aperture + 16, MemoryFaultReason::Aperture));
        }
    }
}
