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
];

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
