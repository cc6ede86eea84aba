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
    },
];
