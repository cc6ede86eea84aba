use super::bench::{CheckBench, Grid, ONE, differ};
use crate::check::ReportKind;

const TWO_WAVES: Grid = Grid { waves: 2, lds: 1024, ..ONE };

fn with_buffer() -> CheckBench {
    let mut bench = CheckBench::new();
    bench.zeroed("numbers", 4096);
    bench
}

/// Each wave writes its part of LDS, and reads the other's.
fn exchange(between: &str) -> String {
    format!(
        "v_lshlrev_b32 v1, 2, v0\nv_xor_b32 v2, 0x100, v1\nds_write_b32 v1, v0\n{between}\nds_read_b32 v3, v2\n\
         s_waitcnt lgkmcnt(0)\nv_mov_b32 v4, v3"
    )
}

#[test]
fn a_missing_barrier_between_waves_is_a_race() {
    let (good, bad) = (exchange("s_waitcnt lgkmcnt(0)\ns_barrier"), exchange("s_waitcnt lgkmcnt(0)\ns_nop 0"));
    let mut bench = CheckBench::new();
    if !bench.launch(&good, TWO_WAVES) {
        return;
    }
    assert_eq!(bench.reports(), []);
    let mut bench = CheckBench::new();
    assert!(bench.launch(&bad, TWO_WAVES));
    assert!(bench.kinds().contains(&ReportKind::LdsRace), "{:?}", bench.reports());
}

#[test]
fn a_barrier_does_not_order_what_was_not_waited_for() {
    differ(
        CheckBench::new,
        TWO_WAVES,
        ReportKind::LdsRace,
        &exchange("s_barrier"),
        &exchange("s_waitcnt lgkmcnt(0)\ns_barrier"),
    );
}

#[test]
fn reading_before_another_wave_overwrites_needs_a_barrier_too() {
    let twice = |between: &str| {
        format!(
            "v_lshlrev_b32 v1, 2, v0\nv_xor_b32 v2, 0x100, v1\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\n\
             ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\n{between}\nds_write_b32 v1, v3"
        )
    };
    differ(CheckBench::new, TWO_WAVES, ReportKind::LdsRace, &twice("s_nop 0"), &twice("s_barrier"));
}

#[test]
fn an_lds_atomic_is_no_race_and_orders_what_came_before_it() {
    let mut bench = CheckBench::new();
    let count = "v_mov_b32 v1, 0\nv_mov_b32 v2, 1\nds_add_u32 v1, v2\ns_waitcnt lgkmcnt(0)";
    if bench.launch(count, TWO_WAVES) {
        assert_eq!(bench.reports(), []);
    }
}

#[test]
fn bytes_of_one_dword_are_apart() {
    // Wave 0 writes the even halves, wave 1 the odd ones.
    let text = "v_lshlrev_b32 v1, 2, v0\nv_and_b32 v1, 0xfc, v1\nv_lshrrev_b32 v2, 6, v0\nv_lshl_add_u32 v1, v2, 1, v1\n\
                ds_write_b16 v1, v0";
    let mut bench = CheckBench::new();
    if bench.launch(text, TWO_WAVES) {
        assert_eq!(bench.reports(), []);
    }
}

#[test]
fn a_read_of_lds_that_nobody_has_written_is_reported() {
    let read = "ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)";
    let bad = format!("v_lshlrev_b32 v1, 2, v0\n{read}");
    let good = format!("v_lshlrev_b32 v1, 2, v0\nds_write_b32 v1, v0\n{read}");
    differ(CheckBench::new, Grid { lds: 1024, ..ONE }, ReportKind::UnwrittenLds, &bad, &good);
}

#[test]
fn an_access_past_the_lds_that_was_asked_for_is_reported() {
    let write = |address| format!("v_mov_b32 v1, {address}\nds_write_b32 v1, v0");
    differ(CheckBench::new, Grid { lds: 1024, ..ONE }, ReportKind::PastEnd, &write(1024), &write(1020));
}

#[test]
fn a_load_to_lds_is_there_only_after_its_wait() {
    let load = |wait: &str| {
        format!(
            "v_lshlrev_b32 v1, 2, v0\ns_mov_b32 m0, 0\ns_nop 0\nglobal_load_lds_dword v1, s[0:1]\n{wait}\n\
             ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)"
        )
    };
    let grid = Grid { lds: 1024, ..ONE };
    differ(with_buffer, grid, ReportKind::MissingWait, &load("s_nop 0"), &load("s_waitcnt vmcnt(0)"));
}
