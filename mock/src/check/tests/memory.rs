use driver::kfd::memory::AllocFlags;

use super::bench::{CheckBench, ONE, differ};
use crate::check::ReportKind;

/// A buffer of 400 bytes that the host has written.
fn written() -> CheckBench {
    let mut bench = CheckBench::new();
    bench.zeroed("numbers", 400);
    bench
}

#[test]
fn an_access_past_the_end_of_a_buffer_is_reported_though_the_page_goes_on() {
    let load = |offset| format!("v_mov_b32 v1, {offset}\nglobal_load_dword v2, v1, s[0:1]\ns_waitcnt vmcnt(0)");
    let reports = differ(written, ONE, ReportKind::PastEnd, &load(400), &load(396));
    if let [report] = reports.as_slice() {
        assert_eq!(report.buffer.as_deref(), Some("\"numbers\" + 0x190"));
        assert_eq!((report.lane, report.wave, report.workgroup), (Some(0), 0, [0; 3]));
        assert_eq!(report.instruction, "global_load_dword v2, v1, s[0:1]");
        assert!(report.to_string().contains("access past the end: 4 bytes at"), "{report}");
    }
}

#[test]
fn an_access_to_no_memory_is_reported_with_its_lane() {
    let load = |stride| format!("v_mul_u32_u24 v1, {stride}, v0\nglobal_load_dword v2, v1, s[0:1]\ns_waitcnt vmcnt(0)");
    let reports = differ(written, ONE, ReportKind::Unmapped, &load("0x1000"), &load("4"));
    assert!(reports.iter().all(|report| report.lane == Some(1)), "{reports:?}");
}

#[test]
fn an_access_to_freed_memory_names_what_it_was() {
    let mut bench = CheckBench::new();
    let gone = bench.zeroed("gone", 4096);
    bench.free(gone);
    if !bench.launch("v_mov_b32 v1, 0\nglobal_load_dword v2, v1, s[0:1]\ns_waitcnt vmcnt(0)", ONE) {
        return;
    }
    let reports = bench.reports();
    assert_eq!(bench.kinds(), [ReportKind::FreedMemory]);
    assert_eq!(reports[0].buffer.as_deref(), Some("\"gone\", freed"));
}

#[test]
fn a_misaligned_atomic_is_reported() {
    let atomic = |address| {
        format!("v_mov_b32 v1, {address}\nv_mov_b32 v2, 1\nglobal_atomic_add v1, v2, s[0:1]\ns_waitcnt vmcnt(0)")
    };
    differ(written, ONE, ReportKind::Misaligned, &atomic(2), &atomic(4));
}

#[test]
fn a_write_to_a_read_only_mapping_is_reported() {
    let prepare = || {
        let mut bench = CheckBench::new();
        bench.allocate("constants", 4096, AllocFlags::VRAM);
        bench.zeroed("output", 4096);
        bench
    };
    let store = |buffer| format!("v_mov_b32 v1, 0\nglobal_store_dword v1, v1, s[{buffer}]");
    differ(prepare, ONE, ReportKind::ReadOnly, &store("0:1"), &store("2:3"));
}

#[test]
fn a_byte_that_is_what_the_pattern_has_there_is_no_unwritten_one() {
    let mut bench = CheckBench::new();
    let at = bench.buffer("scales", 4096);
    for written in [0, 2] {
        bench.memory(at)[written] ^= 1;
    }
    let load = |offset| format!("v_mov_b32 v1, {offset}\nglobal_load_ubyte v2, v1, s[0:1]\ns_waitcnt vmcnt(0)");
    if bench.launch(&load(4), ONE) {
        assert_eq!(bench.kinds(), []);
        assert!(bench.launch(&load(64), ONE));
        assert_eq!(bench.kinds(), [ReportKind::UnwrittenMemory]);
    }
}

#[test]
fn a_read_of_memory_that_nobody_has_written_is_reported() {
    let load = "global_load_dword v2, v1, s[0:1]\ns_waitcnt vmcnt(0)";
    let bad = format!("v_lshlrev_b32 v1, 2, v0\n{load}");
    let good = format!("v_lshlrev_b32 v1, 2, v0\nglobal_store_dword v1, v0, s[0:1]\ns_waitcnt vmcnt(0)\n{load}");
    let prepare = || {
        let mut bench = CheckBench::new();
        bench.buffer("fresh", 4096);
        bench
    };
    differ(prepare, ONE, ReportKind::UnwrittenMemory, &bad, &good);
}

#[test]
fn what_the_host_has_written_counts_as_written() {
    let mut bench = CheckBench::new();
    let at = bench.buffer("half", 4096);
    bench.memory(at)[..64].fill(7);
    let load = |offset| {
        format!("v_lshlrev_b32 v1, 2, v0\nglobal_load_dword v2, v1, s[0:1] offset:{offset}\ns_waitcnt vmcnt(0)")
    };
    if !bench.launch(&load(0), ONE) {
        return;
    }
    assert_eq!(bench.reports(), []);
    assert!(bench.launch(&load(4), ONE));
    assert_eq!(bench.kinds(), [ReportKind::UnwrittenMemory]);
    assert_eq!(bench.reports()[0].lane, Some(63));
}
