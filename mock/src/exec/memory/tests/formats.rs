//! Typed buffer accesses.

use half::f16;

use super::forms::describe;
use crate::exec::WaveFault;
use crate::testbench::{BUFFER, Bench};
use crate::wave::{LANES, sreg};

/// Formats by DFMT, their components from the lowest bit up.
const FORMATS: [(u32, &[u32]); 14] = [
    (1, &[8]),
    (2, &[16]),
    (3, &[8, 8]),
    (4, &[32]),
    (5, &[16, 16]),
    (6, &[11, 11, 10]),
    (7, &[10, 11, 11]),
    (8, &[2, 10, 10, 10]),
    (9, &[10, 10, 10, 2]),
    (10, &[8, 8, 8, 8]),
    (11, &[32, 32]),
    (12, &[16, 16, 16, 16]),
    (13, &[32, 32, 32]),
    (14, &[32, 32, 32, 32]),
];

/// Numeric formats that a component of `width` bits has in the ISA document's table.
fn numbers(dfmt: u32, width: u32) -> &'static [u32] {
    match (dfmt, width) {
        (6 | 7, _) => &[7],
        (_, 32) => &[4, 5, 7],
        (_, 16) => &[0, 1, 2, 3, 4, 5, 7],
        _ => &[0, 1, 2, 3, 4, 5],
    }
}

/// What a component of `width` bits loads as: bits of an integer or of a float.
fn loaded(nfmt: u32, width: u32, bits: u32) -> u32 {
    let signed = i64::from(bits) - if bits >> (width - 1) == 1 { 1 << width } else { 0 };
    let (most, most_signed) = ((1u64 << width) - 1, (1u64 << (width - 1)) - 1);
    let float = match nfmt {
        0 => (f64::from(bits) / most as f64) as f32,
        1 => (signed as f64 / most_signed as f64).max(-1.0) as f32,
        2 => bits as f32,
        3 => signed as f32,
        4 => return bits,
        5 => return signed as u32,
        _ if width == 32 => return bits,
        _ if width == 16 => f16::from_bits(bits as u16).to_f32(),
        _ => {
            // No sign, five bits of exponent with bias 15.
            let mantissa_bits = width - 5;
            let (exponent, mantissa) = (bits >> mantissa_bits, f64::from(bits % (1 << mantissa_bits)));
            let fraction = mantissa / f64::from(1 << mantissa_bits);
            match exponent {
                0 => (fraction * 2f64.powi(-14)) as f32,
                31 if fraction == 0.0 => f32::INFINITY,
                31 => return f32::NAN.to_bits(),
                e => ((1.0 + fraction) * 2f64.powi(e as i32 - 15)) as f32,
            }
        }
    };
    if float.is_nan() { f32::NAN.to_bits() } else { float.to_bits() }
}

fn canonical(bits: u32) -> u32 {
    if f32::from_bits(bits).is_nan() { f32::NAN.to_bits() } else { bits }
}

const NAMES: [&str; 4] = ["x", "xy", "xyz", "xyzw"];

fn registers(first: usize, count: usize) -> String {
    if count == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + count - 1) }
}

#[test]
fn typed_loads_convert_every_format() {
    for (dfmt, widths) in FORMATS {
        for &nfmt in numbers(dfmt, widths[0]) {
            let bytes = widths.iter().sum::<u32>() / 8;
            let mut bench = Bench::new();
            let mut random = crate::random::Random::new(dfmt.into());
            let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut bench.buffer);
            memory[..1024].fill_with(|| random.next() as u8);
            // Lanes 0 and 1: all bits clear, all set.
            memory[..bytes as usize].fill(0);
            memory[bytes as usize..2 * bytes as usize].fill(0xff);
            let memory = memory[..1024].to_vec();
            describe(&mut bench, BUFFER, bytes, 64, 0x8000);
            *bench.v(2) = std::array::from_fn(|lane| lane as u32);
            let text = format!("tbuffer_load_format_xyzw v[20:23], v2, s[8:11], 0 format:{} idxen", dfmt | nfmt << 4);
            if !bench.run(&text) {
                return;
            }
            for lane in 0..LANES {
                let mut low = 0;
                for component in 0..4 {
                    let width = widths.get(component).copied().unwrap_or(0);
                    let bits = (0..width).map(|bit| {
                        let at = 8 * bytes as usize * lane + (low + bit) as usize;
                        u32::from(memory[at / 8] >> (at % 8) & 1) << bit
                    });
                    let expected = if width > 0 { loaded(nfmt, width, bits.sum()) } else { 0 };
                    let found = bench.v(20 + component)[lane];
                    let found = if nfmt == 4 || nfmt == 5 || width == 32 { found } else { canonical(found) };
                    assert_eq!(found, expected, "DFMT {dfmt}, NFMT {nfmt}, lane {lane}, component {component}");
                    low += width;
                }
            }
        }
    }
}

#[test]
fn what_was_loaded_is_stored_as_it_was() {
    for (dfmt, widths) in FORMATS {
        for &nfmt in numbers(dfmt, widths[0]) {
            let (bytes, name) = (widths.iter().sum::<u32>() / 8, NAMES[widths.len() - 1]);
            let mut bench = Bench::new();
            let mut random = crate::random::Random::new(u64::from(dfmt) + 100);
            bench.buffer[..256].fill_with(|| random.next());
            describe(&mut bench, BUFFER, bytes, 64, 0x8000);
            *bench.v(2) = std::array::from_fn(|lane| lane as u32);
            let data = registers(20, widths.len());
            let format = dfmt | nfmt << 4;
            let text = format!(
                "tbuffer_load_format_{name} {data}, v2, s[8:11], 0 format:{format} idxen\n\
                 tbuffer_store_format_{name} {data}, v2, s[8:11], s3 format:{format} idxen"
            );
            *bench.s(3) = 4096;
            if !bench.run(&text) {
                return;
            }
            let memory: Vec<u8> = bytemuck::cast_slice(&bench.buffer).to_vec();
            let bytes = bytes as usize;
            for lane in 0..LANES {
                let at = bytes * lane;
                let (from, to) = (&memory[at..at + bytes], &memory[4096 + at..4096 + at + bytes]);
                // Snorm has two codes for minus one, and NaN payloads of small floats are lost.
                let element = |bytes: &[u8]| bytes.iter().rev().fold(0u128, |all, &byte| all << 8 | u128::from(byte));
                let mut low = 0;
                for &width in widths {
                    let part = |bytes: &[u8]| (element(bytes) >> low) as u32 & (u32::MAX >> (32 - width));
                    let same = |bits: u32| canonical(loaded(nfmt, width, bits));
                    let exact = part(from) == part(to);
                    assert!(
                        exact || matches!(nfmt, 1 | 7) && same(part(from)) == same(part(to)),
                        "{dfmt} {nfmt} lane {lane}"
                    );
                    low += width;
                }
            }
        }
    }
}

#[test]
fn stores_clamp_and_round_to_even() {
    // NFMT, value to store in a byte or (7) half, result.
    let cases = [
        (0, f32::to_bits(0.5), 128),
        (0, f32::to_bits(-3.0), 0),
        (0, f32::to_bits(7.0), 255),
        (0, f32::NAN.to_bits(), 0),
        (1, f32::to_bits(-1.0), 0x81),
        (1, f32::to_bits(1.0), 0x7f),
        (2, f32::to_bits(300.0), 255),
        (3, f32::to_bits(-200.0), 0x80),
        (4, 300, 255),
        (5, (-200i32) as u32, 0x80),
        (5, 127, 0x7f),
    ];
    for (nfmt, value, expected) in cases {
        let mut bench = Bench::new();
        describe(&mut bench, BUFFER, 0, 64, 0x8000);
        bench.set_s64(sreg::EXEC_LO, 1);
        *bench.v(1) = [value; LANES];
        if bench.run(&format!("tbuffer_store_format_x v1, off, s[8:11], 0 format:{}", 1 | nfmt << 4)) {
            assert_eq!(bench.buffer[0], expected, "NFMT {nfmt}, {value:#x}");
        }
    }
}

#[test]
fn the_descriptor_gives_format_and_selection_of_untyped_instructions() {
    let mut bench = Bench::new();
    bench.buffer[0] = 0x0403_0201;
    bench.set_s64(sreg::EXEC_LO, 1);
    // W, one, X and zero of 8_8_8_8 UINT.
    let selects = 7 | 1 << 3 | 4 << 6;
    describe(&mut bench, BUFFER, 0, 4, selects | 4 << 12 | 10 << 15);
    let text = "buffer_load_format_xyzw v[20:23], off, s[8:11], 0\nbuffer_load_format_x v24, off, s[8:11], 0 offset:1";
    if bench.run(text) {
        let found: [u32; 5] = std::array::from_fn(|i| bench.v(20 + i)[0]);
        assert_eq!(found, [4, 1, 1, 0, 0], "the second load is partly out of range");
    }
    // Stores put the components where they are selected from.
    (0..4).for_each(|i| *bench.v(20 + i) = [10 + i as u32; LANES]);
    if bench.run("buffer_store_format_xyz v[20:22], off, s[8:11], 0") {
        assert_eq!(bench.buffer[0], 10 << 24 | 12);
    }
    // With components in place, a store of some of them writes the whole element.
    describe(&mut bench, BUFFER, 0, 4, 4 | 5 << 3 | 6 << 6 | 7 << 9 | 4 << 12 | 10 << 15);
    for (name, data, expected) in [("x", "v20", 10), ("xy", "v[20:21]", 0x0b0a), ("xyzw", "v[20:23]", 0x0d0c_0b0a)] {
        bench.buffer[0] = 0;
        if bench.run(&format!("buffer_store_format_{name} {data}, off, s[8:11], 0")) {
            assert_eq!(bench.buffer[0], expected, "{name}");
        }
    }
}

#[test]
fn sixteen_bit_forms_pack_two_components_a_register() {
    let mut bench = Bench::new();
    bench.buffer[..2].copy_from_slice(&[0x0403_0201, 0x3c00_4000]);
    bench.set_s64(sreg::EXEC_LO, 1);
    (20..30).for_each(|at| *bench.v(at) = [0xaaaa_bbbb; LANES]);
    describe(&mut bench, BUFFER, 0, 64, 0x8000);
    let (bytes, halves) = (10 | 4 << 4, 5 | 7 << 4);
    let text = format!(
        "tbuffer_load_format_d16_xyzw v[20:21], off, s[8:11], 0 format:{bytes}\n\
         tbuffer_load_format_d16_xyz v[22:23], off, s[8:11], 0 format:{bytes}\n\
         tbuffer_load_format_d16_x v24, off, s[8:11], 0 format:{bytes}\n\
         tbuffer_load_format_d16_xy v25, off, s[8:11], 0 format:{halves} offset:4\n\
         tbuffer_store_format_d16_xyzw v[20:21], off, s[8:11], 0 format:{bytes} offset:16\n\
         tbuffer_store_format_d16_xy v25, off, s[8:11], 0 format:{halves} offset:20"
    );
    if bench.run(&text) {
        let found: [u32; 6] = std::array::from_fn(|i| bench.v(20 + i)[0]);
        assert_eq!(found, [0x0002_0001, 0x0004_0003, 0x0002_0001, 0xaaaa_0003, 0xaaaa_0001, 0x3c00_4000]);
        assert_eq!(bench.buffer[4..6], [0x0403_0201, 0x3c00_4000]);
    }
    describe(&mut bench, BUFFER, 0, 64, 4 | 5 << 3 | 6 << 6 | 7 << 9 | 4 << 12 | 10 << 15);
    let text = "buffer_load_format_d16_xyzw v[28:29], off, s[8:11], 0\n\
                buffer_store_format_d16_xyzw v[28:29], off, s[8:11], 0 offset:40";
    if bench.run(text) {
        assert_eq!((bench.v(28)[0], bench.v(29)[0], bench.buffer[10]), (0x0002_0001, 0x0004_0003, 0x0403_0201));
    }
    describe(&mut bench, BUFFER, 0, 64, 4 | 4 << 12 | 10 << 15);
    if bench.run(
        "buffer_load_format_d16_hi_x v26, off, s[8:11], 0\nbuffer_store_format_d16_hi_x v26, off, s[8:11], 0 offset:32",
    ) {
        assert_eq!((bench.v(26)[0], bench.buffer[8]), (0x0001_bbbb, 1));
    }
}

#[test]
fn a_format_that_does_not_exist_is_refused() {
    let mut bench = Bench::new();
    describe(&mut bench, BUFFER, 0, 64, 0x8000);
    if let Some(result) = bench.try_run("tbuffer_load_format_x v1, off, s[8:11], 0 format:111") {
        assert!(matches!(result, Err(WaveFault::Instruction(text)) if text.contains("data format 15")));
    }
}

#[test]
fn each_number_of_components_is_loaded_and_stored() {
    // Components in place, 8_8_8_8 UINT.
    let whole = 4 | 5 << 3 | 6 << 6 | 7 << 9 | 4 << 12 | 10 << 15;
    let register = |first: usize, count: usize| match count {
        1 => format!("v{first}"),
        _ => format!("v[{first}:{}]", first + count - 1),
    };
    for (count, name) in [(1, "x"), (2, "xy"), (3, "xyz"), (4, "xyzw")] {
        let mut bench = Bench::new();
        bench.set_s64(sreg::EXEC_LO, 1);
        bench.buffer[0] = 0x0403_0201;
        describe(&mut bench, BUFFER, 0, 64, whole);
        let (wide, packed) = (register(20, count), register(28, count.div_ceil(2)));
        let text = format!(
            "buffer_load_format_{name} {wide}, off, s[8:11], 0\n\
             buffer_load_format_d16_{name} {packed}, off, s[8:11], 0\n\
             buffer_store_format_{name} {wide}, off, s[8:11], 0 offset:16\n\
             buffer_store_format_d16_{name} {packed}, off, s[8:11], 0 offset:32\n\
             tbuffer_store_format_d16_{name} {packed}, off, s[8:11], 0 format:{} offset:48",
            10 | 4 << 4
        );
        if !bench.run(&text) {
            return;
        }
        let found: Vec<u32> = (0..count).map(|i| bench.v(20 + i)[0]).collect();
        assert_eq!(found, (1..=count as u32).collect::<Vec<_>>(), "{name}");
        let halves = |i: usize| bench.wave.vgprs[28 + i / 2].0[0] >> (16 * (i % 2)) & 0xffff;
        assert!((0..count).all(|i| halves(i) == i as u32 + 1), "{name}");
        // Components that are not given are stored as zero.
        let stored = 0x0403_0201 & (u32::MAX >> (32 - 8 * count));
        assert_eq!([4, 8, 12].map(|at| bench.buffer[at]), [stored; 3], "{name}");
    }
}
