use std::sync::{Arc, Mutex};

use super::{Access, AccessKind, Space, Step, WorkgroupObserver};
use crate::testbench::{BUFFER, Bench};
use crate::wave::sreg;

/// Keeps what it is told.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Told>>>);

/// An instruction and its accesses.
type Told = (String, Vec<Access>);

impl WorkgroupObserver for Recorder {
    fn before(&mut self, step: &mut Step<'_, '_>) {
        assert!(step.accesses.is_empty());
        assert_eq!(step.wave.pc, step.index);
    }

    fn after(&mut self, step: &mut Step<'_, '_>) {
        self.0.lock().unwrap().push((step.inst.to_string(), step.accesses.to_vec()));
    }
}

/// The accesses of the first instruction of `text`.
fn accesses_of(bench: &mut Bench, text: &str) -> Option<Vec<Access>> {
    let recorder = Recorder::default();
    bench.run_observed(text, recorder.clone()).then(|| recorder.0.lock().unwrap()[0].1.clone())
}

fn lanes(accesses: &[Access]) -> Vec<(u8, u64, u8)> {
    accesses.iter().map(|access| (access.lane.unwrap(), access.address, access.bytes)).collect()
}

/// Only lanes 0, 3 and 63 are on.
fn three_lanes() -> Bench {
    let mut bench = Bench::new();
    bench.set_s64(sreg::EXEC_LO, 1 << 63 | 1 << 3 | 1);
    bench.set_s64(0, BUFFER);
    *bench.v(0) = std::array::from_fn(|lane| 32 * lane as u32);
    bench
}

#[test]
fn each_active_lane_of_a_load_is_one_access_at_its_exact_address() {
    let mut bench = three_lanes();
    let Some(accesses) = accesses_of(&mut bench, "global_load_dwordx2 v[2:3], v0, s[0:1] offset:8") else { return };
    let expected = [(0, BUFFER + 8, 8), (3, BUFFER + 96 + 8, 8), (63, BUFFER + 2016 + 8, 8)];
    assert_eq!(lanes(&accesses), expected);
    assert!(accesses.iter().all(|access| access.space == Space::Memory && access.kind == AccessKind::Read));
}

#[test]
fn scratch_is_told_dword_by_dword_at_the_memory_behind_it() {
    let mut bench = three_lanes();
    bench.wave.scratch_base = BUFFER;
    let Some(accesses) = accesses_of(&mut bench, "scratch_store_dwordx2 off, v[2:3], off offset:4") else { return };
    let expected = [(0, 256, 4), (0, 512, 4), (3, 268, 4), (3, 524, 4), (63, 508, 4), (63, 764, 4)];
    assert_eq!(lanes(&accesses), expected.map(|(lane, at, bytes)| (lane, BUFFER + at, bytes)));
    assert!(accesses.iter().all(|access| access.space == Space::Scratch && access.kind == AccessKind::Write));
}

#[test]
fn buffer_lanes_out_of_range_access_nothing() {
    let mut bench = three_lanes();
    *bench.s(2) = 100;
    *bench.s(3) = 0x2_0000;
    let Some(accesses) = accesses_of(&mut bench, "buffer_load_dword v2, v0, s[0:3], 0 offen") else { return };
    assert_eq!(lanes(&accesses), [(0, BUFFER, 4), (3, BUFFER + 96, 4)]);
}

#[test]
fn a_load_to_lds_reads_memory_and_writes_lds() {
    let mut bench = three_lanes();
    *bench.s(sreg::M0) = 0x100;
    let Some(accesses) = accesses_of(&mut bench, "global_load_lds_dword v0, s[0:1]") else { return };
    let (reads, writes) = accesses.split_at(3);
    assert_eq!(lanes(reads), [(0, BUFFER, 4), (3, BUFFER + 96, 4), (63, BUFFER + 2016, 4)]);
    assert_eq!(lanes(writes), [(0, 0x100, 4), (3, 0x10c, 4), (63, 0x1fc, 4)]);
    assert!(writes.iter().all(|access| access.space == Space::Lds && access.kind == AccessKind::Write));
}

#[test]
fn scalar_accesses_have_no_lane() {
    let mut bench = three_lanes();
    let Some(accesses) = accesses_of(&mut bench, "s_load_dwordx4 s[4:7], s[0:1], 0x10") else { return };
    let expected = Access { address: BUFFER + 16, bytes: 16, lane: None, space: Space::Memory, kind: AccessKind::Read };
    assert_eq!(accesses, [expected]);
}

#[test]
fn atomics_and_lds_operations_are_told_as_what_they_are() {
    let cases = [
        ("global_atomic_add v0, v2, s[0:1]", Space::Memory, AccessKind::Atomic),
        ("ds_add_u32 v0, v2", Space::Lds, AccessKind::Atomic),
        ("ds_read_b64 v[2:3], v0", Space::Lds, AccessKind::Read),
        ("ds_write_b8 v0, v2", Space::Lds, AccessKind::Write),
        ("ds_read_b64_tr_b16 v[2:3], v0", Space::Lds, AccessKind::Read),
    ];
    for (text, space, kind) in cases {
        let mut bench = three_lanes();
        let Some(accesses) = accesses_of(&mut bench, text) else { return };
        assert_eq!(accesses.iter().map(|access| access.lane).collect::<Vec<_>>(), [Some(0), Some(3), Some(63)]);
        assert!(accesses.iter().all(|access| access.space == space && access.kind == kind), "{text}");
    }
}

#[test]
fn every_instruction_is_told_once_and_vgpr_indexing_works_under_observation() {
    let mut bench = Bench::new();
    *bench.s(0) = 2;
    *bench.v(3) = [7; 64];
    let recorder = Recorder::default();
    let text = "s_set_gpr_idx_on s0, gpr_idx(SRC0)\nv_mov_b32 v5, v1\ns_set_gpr_idx_off";
    if !bench.run_observed(text, recorder.clone()) {
        return;
    }
    assert_eq!(bench.v(5)[9], 7);
    let told: Vec<String> = recorder.0.lock().unwrap().iter().map(|(text, _)| text.clone()).collect();
    assert_eq!(told, ["s_set_gpr_idx_on s0, gpr_idx(SRC0)", "v_mov_b32_e32 v5, v1", "s_set_gpr_idx_off", "s_endpgm"]);
}
