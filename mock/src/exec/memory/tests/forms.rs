//! Ways to address memory, each with an independent statement of which byte it reaches.

use crate::testbench::{BUFFER, Bench};
use crate::wave::LANES;

/// One way: the instruction's text, the registers it needs, and the byte that offset `at` of lane `lane` means.
pub(super) struct Form {
    /// Instruction of a format's name and data registers.
    pub(super) load: fn(&str, &str) -> String,
    pub(super) store: fn(&str, &str) -> String,
    /// Sets registers so that each lane accesses its offset.
    pub(super) prepare: fn(&mut Bench, &[u32; LANES]),
    /// What the form reads and writes.
    pub(super) memory: fn(&mut Bench) -> &mut [u8],
    /// Index in that memory.
    pub(super) place: fn(usize, u32) -> usize,
    /// Offsets that `prepare` can reach.
    pub(super) limit: u32,
}

fn buffer(bench: &mut Bench) -> &mut [u8] {
    bytemuck::cast_slice_mut(&mut bench.buffer)
}

pub(super) const FORMS: &[Form] = &[
    Form {
        load: |name, data| format!("global_load_{name} {data}, v[2:3], off offset:-4096"),
        store: |name, data| format!("global_store_{name} v[2:3], {data}, off offset:-4096"),
        prepare: |bench, offsets| bench.set_v64(2, |lane| BUFFER + 4096 + u64::from(offsets[lane])),
        memory: buffer,
        place: |_, at| at as usize,
        limit: 4096,
    },
    Form {
        load: |name, data| format!("global_load_{name} {data}, v2, s[2:3] offset:4095"),
        store: |name, data| format!("global_store_{name} v2, {data}, s[2:3] offset:4095"),
        prepare: |bench, offsets| {
            bench.set_s64(2, BUFFER - 4095);
            *bench.v(2) = *offsets;
        },
        memory: buffer,
        place: |_, at| at as usize,
        limit: 4096,
    },
    Form {
        load: |name, data| format!("flat_load_{name} {data}, v[2:3] offset:4095"),
        store: |name, data| format!("flat_store_{name} v[2:3], {data} offset:4095"),
        prepare: |bench, offsets| bench.set_v64(2, |lane| BUFFER - 4095 + u64::from(offsets[lane])),
        memory: buffer,
        place: |_, at| at as usize,
        limit: 4096,
    },
    Form {
        load: |name, data| format!("flat_load_{name} {data}, v[2:3] offset:16"),
        store: |name, data| format!("flat_store_{name} v[2:3], {data} offset:16"),
        prepare: |bench, offsets| bench.set_v64(2, |lane| (1 << 48) + u64::from(offsets[lane])),
        memory: lds,
        place: |_, at| at as usize + 16,
        limit: 4096,
    },
    Form {
        load: |name, data| format!("flat_load_{name} {data}, v[2:3]"),
        store: |name, data| format!("flat_store_{name} v[2:3], {data}"),
        prepare: |bench, offsets| {
            bench.wave.scratch_base = BUFFER;
            bench.set_v64(2, |lane| (2 << 48) + u64::from(offsets[lane]));
        },
        memory: buffer,
        place: interleaved,
        limit: SCRATCH,
    },
    Form {
        load: |name, data| format!("scratch_load_{name} {data}, v2, off offset:-8"),
        store: |name, data| format!("scratch_store_{name} v2, {data}, off offset:-8"),
        prepare: |bench, offsets| {
            bench.wave.scratch_base = BUFFER;
            *bench.v(2) = offsets.map(|offset| offset + 8);
        },
        memory: buffer,
        place: interleaved,
        limit: SCRATCH,
    },
    Form {
        load: |name, data| format!("scratch_load_{name} {data}, v2, s2 offset:4"),
        store: |name, data| format!("scratch_store_{name} v2, {data}, s2 offset:4"),
        prepare: |bench, offsets| {
            bench.wave.scratch_base = BUFFER - 256 * 3;
            *bench.s(2) = 8;
            *bench.v(2) = *offsets;
        },
        memory: buffer,
        place: interleaved,
        limit: SCRATCH,
    },
    Form {
        load: |name, data| format!("ds_read_{} {data}, v2 offset:65535", ds_name(name, "u16")),
        store: |name, data| format!("ds_write_{} v2, {data} offset:65535", ds_name(name, "b16")),
        prepare: |bench, offsets| *bench.v(2) = offsets.map(|offset| offset.wrapping_sub(65535)),
        memory: lds,
        place: |_, at| at as usize,
        limit: 4096,
    },
    Form {
        load: |name, data| format!("buffer_load_{name} {data}, v2, s[8:11], s3 offen offset:4095"),
        store: |name, data| format!("buffer_store_{name} {data}, v2, s[8:11], s3 offen offset:4095"),
        prepare: |bench, offsets| {
            describe(bench, BUFFER - 4096 - 4095, 0, 64 * 1024, RAW);
            *bench.s(3) = 4096;
            *bench.v(2) = *offsets;
        },
        memory: buffer,
        place: |_, at| at as usize,
        limit: 4096,
    },
    Form {
        load: |name, data| format!("buffer_load_{name} {data}, v[2:3], s[8:11], 64 idxen offen"),
        store: |name, data| format!("buffer_store_{name} {data}, v[2:3], s[8:11], 64 idxen offen"),
        prepare: |bench, offsets| {
            describe(bench, BUFFER - 64, 24, 1000, RAW);
            *bench.v(2) = offsets.map(|offset| offset / 24);
            *bench.v(3) = offsets.map(|offset| offset % 24);
        },
        memory: buffer,
        place: |_, at| at as usize,
        limit: 4096,
    },
];

/// Fourth word of a descriptor of plain memory: a data format, which must be there, and nothing else.
pub(super) const RAW: u32 = 4 << 15;

/// Puts a descriptor into s[8:11]: base address, the upper 16 bits of its second word (stride and flags), records.
pub(super) fn describe(bench: &mut Bench, base: u64, stride: u32, records: u32, last: u32) {
    let words = [base as u32, (base >> 32) as u32 | stride << 16, records, last];
    words.into_iter().enumerate().for_each(|(i, word)| *bench.s(8 + i) = word);
}

/// Offsets whose interleaved dwords fit the bench's buffer.
const SCRATCH: u32 = 992;

/// Dword `n` of 64 lanes, then dword `n + 1`.
fn interleaved(lane: usize, at: u32) -> usize {
    let (dword, byte) = (at as usize / 4, at as usize % 4);
    (dword * LANES + lane) * 4 + byte
}

fn lds(bench: &mut Bench) -> &mut [u8] {
    bench.lds.as_bytes_mut()
}

/// What DS instructions call a format, `short` being their name of two bytes.
fn ds_name(name: &str, short: &str) -> String {
    let (size, half) = name.split_once('_').map_or((name, String::new()), |(size, half)| (size, format!("_{half}")));
    let size = match size {
        "ubyte" => "u8",
        "sbyte" => "i8",
        "ushort" => "u16",
        "sshort" => "i16",
        "byte" => "b8",
        "dword" => "b32",
        "dwordx2" => "b64",
        "dwordx3" => "b96",
        "dwordx4" => "b128",
        _ => short,
    };
    size.to_owned() + &half
}
