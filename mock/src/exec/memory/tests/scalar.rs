//! Scalar memory.

use super::forms::describe;
use crate::exec::WaveFault;
use crate::memory::MemoryFaultReason;
use crate::testbench::{BUFFER, Bench};
use crate::wave::sreg;

fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.buffer.iter_mut().enumerate().for_each(|(i, word)| *word = 0x100 + i as u32);
    bench.set_s64(2, BUFFER);
    bench
}

#[test]
fn loads_bring_consecutive_dwords_from_the_sum_of_base_and_offsets() {
    for (suffix, dwords) in [("", 1), ("x2", 2), ("x4", 4), ("x8", 8), ("x16", 16)] {
        let data = if dwords == 1 { "s20".into() } else { format!("s[20:{}]", 19 + dwords) };
        // Offset as given, and the first dword it means; the two lowest bits of the sum do not count.
        for (offset, first) in [("0x40", 16), ("0x43", 16), ("s4", 25), ("m0", 3), ("s4 offset:0x1e", 33)] {
            let mut bench = bench();
            (*bench.s(4), *bench.s(sreg::M0)) = (0x66, 0xc);
            let text = format!("s_load_dword{suffix} {data}, s[2:3], {offset}");
            if !bench.run(&text) {
                return;
            }
            for i in 0..dwords {
                assert_eq!(*bench.s(20 + i), 0x100 + (first + i) as u32, "{text}");
            }
            assert_eq!(*bench.s(20 + dwords), 0, "{text}");
        }
    }
}

#[test]
fn buffer_and_scratch_loads_of_each_size_bring_consecutive_dwords() {
    for (suffix, dwords) in [("", 1), ("x2", 2), ("x4", 4), ("x8", 8), ("x16", 16)] {
        let data = if dwords == 1 { "s20".into() } else { format!("s[20:{}]", 19 + dwords) };
        let mut texts = vec![format!("s_buffer_load_dword{suffix} {data}, s[8:11], 0x40")];
        if dwords <= 4 {
            texts.push(format!("s_scratch_load_dword{suffix} {data}, s[2:3], 0x40"));
        }
        for text in texts {
            let mut bench = bench();
            describe(&mut bench, BUFFER, 0, 4096, 0);
            if !bench.run(&text) {
                return;
            }
            for i in 0..=dwords {
                let expected = if i < dwords { 0x110 + i as u32 } else { 0 };
                assert_eq!(*bench.s(20 + i), expected, "{text}");
            }
        }
    }
}

#[test]
fn buffer_and_scratch_stores_of_each_size_write_consecutive_dwords() {
    for (suffix, dwords) in [("", 1), ("x2", 2), ("x4", 4)] {
        let data = if dwords == 1 { "s20".into() } else { format!("s[20:{}]", 19 + dwords) };
        for text in [
            format!("s_buffer_store_dword{suffix} {data}, s[8:11], 0x40"),
            format!("s_scratch_store_dword{suffix} {data}, s[2:3], 0x40"),
        ] {
            let mut bench = bench();
            describe(&mut bench, BUFFER, 0, 4096, 0);
            (20..25).for_each(|at| *bench.s(at) = at as u32);
            if !bench.run(&text) {
                return;
            }
            for i in 0..=dwords {
                let expected = if i < dwords { 20 } else { 0x110 } + i as u32;
                assert_eq!(bench.buffer[16 + i], expected, "{text}");
            }
        }
    }
}

#[test]
fn instructions_for_caches_and_translations_change_nothing() {
    let text = "ds_nop\ns_dcache_inv\ns_dcache_wb\ns_dcache_inv_vol\ns_dcache_wb_vol\ns_dcache_discard s[2:3], 0x0\n\
                s_dcache_discard_x2 s[2:3], 0x0\ns_atc_probe 1, s[2:3], 0x0\ns_atc_probe_buffer 1, s[8:11], 0x0";
    let mut bench = bench();
    describe(&mut bench, BUFFER, 0, 4096, 0);
    let (buffer, scalars) = (bench.buffer.clone(), bench.wave.sgprs);
    if bench.run(text) {
        assert!(bench.buffer == buffer && bench.wave.sgprs == scalars);
    }
}

#[test]
fn negative_offsets_and_scratch_offsets_of_64_bytes_are_understood() {
    let mut bench = bench();
    bench.set_s64(2, BUFFER + 64);
    *bench.s(4) = 2;
    let text = "s_load_dword s20, s[2:3], -0x10\ns_scratch_load_dwordx2 s[22:23], s[2:3], s4\n\
                s_scratch_load_dword s24, s[2:3], 0x4";
    if bench.run(text) {
        assert_eq!((*bench.s(20), *bench.s(22), *bench.s(23), *bench.s(24)), (0x10c, 0x130, 0x131, 0x111));
    }
}

#[test]
fn buffer_loads_give_zero_past_the_end() {
    // Stride and NUM_RECORDS: bytes without a stride, records with one.
    for (stride, records, size) in [(0, 24, 6), (0, 22, 6), (8, 3, 6), (0, 0, 0)] {
        let mut bench = bench();
        describe(&mut bench, BUFFER, stride, records, 0);
        (20..28).for_each(|at| *bench.s(at) = 9);
        if !bench.run("s_buffer_load_dwordx8 s[20:27], s[8:11], 0x8") {
            return;
        }
        for i in 0..8 {
            let expected = if i + 2 < size { 0x102 + i as u32 } else { 0 };
            assert_eq!(*bench.s(20 + i), expected, "stride {stride}, records {records}, dword {i}");
        }
    }
}

#[test]
fn stores_write_consecutive_dwords() {
    let mut bench = bench();
    (20..24).for_each(|at| *bench.s(at) = at as u32);
    describe(&mut bench, BUFFER, 0, 0x8c, 0);
    let text = "s_store_dword s20, s[2:3], 0x0\ns_store_dwordx2 s[20:21], s[2:3], 0x10\n\
                s_store_dwordx4 s[20:23], s[2:3], 0x20\ns_buffer_store_dwordx4 s[20:23], s[8:11], 0x84\n\
                s_scratch_store_dword s23, s[2:3], m0";
    *bench.s(sreg::M0) = 1;
    if bench.run(text) {
        assert_eq!(bench.buffer[..12], [20, 0x101, 0x102, 0x103, 20, 21, 0x106, 0x107, 20, 21, 22, 23]);
        assert_eq!(bench.buffer[33..37], [20, 21, 0x123, 0x124], "the last two dwords are past the end");
        assert_eq!(bench.buffer[16], 23);
    }
}

#[test]
fn atomics_change_memory_and_return_with_glc() {
    let mut bench = bench();
    describe(&mut bench, BUFFER, 0, 64, 0);
    bench.set_s64(20, 5);
    (*bench.s(24), *bench.s(25)) = (77, 0x103);
    bench.set_s64(28, 1 << 32);
    bench.set_s64(32, u64::MAX);
    let text = "s_atomic_add s20, s[2:3], 0x0\ns_atomic_add s20, s[2:3], 0x4 glc\n\
                s_atomic_cmpswap s[24:25], s[2:3], 0xc glc\ns_atomic_add_x2 s[28:29], s[2:3], 0x10 glc\n\
                s_buffer_atomic_swap_x2 s[32:33], s[8:11], 0x40 glc\ns_mov_b32 s36, 3\n\
                s_buffer_atomic_inc s36, s[8:11], 0x8\ns_mov_b32 s37, 0x55\ns_atomic_umin s37, s[2:3], 0x1c";
    if bench.run(text) {
        assert_eq!(bench.buffer[..8], [0x105, 0x106, 0, 77, 0x104, 0x106, 0x106, 0x55]);
        assert_eq!((*bench.s(20), *bench.s(24), bench.s64(28)), (0x101, 0x103, 0x0000_0105_0000_0104));
        assert_eq!(bench.s64(32), 0, "out of range");
    }
}

#[test]
fn clocks_are_read() {
    let mut bench = Bench::new();
    bench.outside.clock = 0x1_0000_0005;
    if bench.run("s_memrealtime s[20:21]\ns_memtime s[22:23]") {
        assert_eq!((bench.s64(20), bench.s64(22)), (0x1_0000_0005, 24 * 0x1_0000_0005));
    }
}

#[test]
fn a_scalar_fault_names_its_address() {
    let mut bench = Bench::new();
    bench.set_s64(2, BUFFER + 64 * 1024 - 8);
    if let Some(Err(WaveFault::Memory(fault))) = bench.try_run("s_load_dwordx4 s[20:23], s[2:3], 0x0") {
        assert_eq!(fault.address.get(), BUFFER + 64 * 1024);
        assert!(matches!(fault.reason, MemoryFaultReason::PastEnd { .. }));
    }
    if let Some(Err(WaveFault::Memory(fault))) = bench.try_run("s_atomic_add_x2 s[20:21], s[2:3], 0x4") {
        assert_eq!((fault.address.get(), fault.reason), (BUFFER + 64 * 1024 - 4, MemoryFaultReason::Misaligned));
    }
}
