use super::bench::{CheckBench, Grid, ONE, differ};
use crate::check::ReportKind;

fn with_buffer() -> CheckBench {
    let mut bench = CheckBench::new();
    bench.zeroed("numbers", 4096);
    bench
}

fn check(bad: &str, good: &str) -> Option<String> {
    let reports = differ(with_buffer, Grid { lds: 1024, ..ONE }, ReportKind::MissingWait, bad, good);
    reports.first().map(|report| report.detail.clone())
}

#[test]
fn a_loaded_value_needs_its_wait() {
    let load = "v_mov_b32 v1, 0\nglobal_load_dword v2, v1, s[0:1]";
    let detail =
        check(&format!("{load}\nv_add_u32 v3, 1, v2"), &format!("{load}\ns_waitcnt vmcnt(0)\nv_add_u32 v3, 1, v2"));
    if let Some(detail) = detail {
        let expected = "v2 is used with no wait (vmcnt) for `global_load_dword v2, v1, s[0:1]` at 0x200004";
        assert_eq!(detail, expected);
    }
}

/// What a kernel stores that loads 5 to v2, which held 7.
fn stored(between: &str) -> Option<u32> {
    let mut bench = CheckBench::new();
    let at = bench.zeroed("numbers", 4096);
    bench.memory(at)[0] = 5;
    let text = format!(
        "v_mov_b32 v1, 0\nv_mov_b32 v2, 7\nglobal_load_dword v2, v1, s[0:1]\n{between}\nv_mov_b32 v3, v2\n\
         s_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[0:1] offset:4\nglobal_store_dword v1, v2, s[0:1] offset:8"
    );
    bench.launch(&text, ONE).then(|| {
        assert_eq!(bench.memory(at)[2], 5, "it is there in the end");
        bench.memory(at)[1]
    })
}

#[test]
fn a_result_that_is_not_waited_for_arrives_late() {
    let Some(waited) = stored("s_waitcnt vmcnt(0)") else { return };
    assert_eq!((waited, stored("s_nop 0")), (5, Some(7)));
}

#[test]
fn results_that_come_one_after_the_other_arrive_in_that_order() {
    let mut bench = CheckBench::new();
    let at = bench.zeroed("numbers", 4096);
    bench.memory(at)[..3].copy_from_slice(&[0x0001_0002, 0x0003_0004, 6]);
    let text = "v_mov_b32 v1, 0\nv_mov_b32 v2, -1\nv_mov_b32 v3, 0\nglobal_load_short_d16_hi v2, v1, s[0:1]\n\
                global_load_short_d16 v2, v1, s[0:1] offset:4\nglobal_load_dword v3, v1, s[0:1]\n\
                global_load_dword v3, v1, s[0:1] offset:8\ns_load_dwordx2 s[20:21], s[0:1], 0x4\n\
                s_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32 v4, s20\nglobal_store_dwordx3 v1, v[2:4], s[0:1] offset:16";
    if bench.launch(text, ONE) {
        assert_eq!(bench.reports(), []);
        assert_eq!(bench.memory(at)[4..7], [0x0002_0004, 6, 0x0003_0004]);
    }
}

#[test]
fn vector_memory_returns_in_order_so_a_count_is_enough() {
    let loads = "v_mov_b32 v1, 0\nglobal_load_dword v2, v1, s[0:1]\nglobal_load_dword v3, v1, s[0:1]";
    let used = |count, register| format!("{loads}\ns_waitcnt vmcnt({count})\nv_mov_b32 v4, v{register}");
    check(&used(1, 3), &used(1, 2));
    check(&used(2, 2), &used(0, 3));
}

#[test]
fn stores_count_too() {
    let text = |count| {
        format!(
            "v_mov_b32 v1, 0\nglobal_load_dword v2, v1, s[0:1]\nglobal_store_dword v1, v1, s[0:1] offset:64\n\
             s_waitcnt vmcnt({count})\nv_mov_b32 v4, v2"
        )
    };
    check(&text(2), &text(1));
}

#[test]
fn lds_returns_in_order() {
    let text = |count| {
        format!(
            "v_lshlrev_b32 v1, 2, v0\nds_write_b32 v1, v0\nds_write_b32 v1, v0 offset:256\nds_read_b32 v2, v1\n\
             ds_read_b32 v3, v1 offset:256\ns_waitcnt lgkmcnt({count})\nv_mov_b32 v4, v2\ns_waitcnt lgkmcnt(0)"
        )
    };
    check(&text(2), &text(1));
}

#[test]
fn scalar_memory_returns_in_any_order_so_only_zero_is_enough() {
    let text = |count| {
        format!(
            "s_load_dword s20, s[0:1], 0x0\ns_load_dword s21, s[0:1], 0x4\ns_waitcnt lgkmcnt({count})\ns_mov_b32 s22, s20"
        )
    };
    check(&text(1), &text(0));
}

#[test]
fn a_register_that_a_load_will_write_may_not_be_written_before() {
    let text = |wait: &str| {
        format!("v_mov_b32 v1, 0\nglobal_load_dword v2, v1, s[0:1]\n{wait}\nv_mov_b32 v2, 0\ns_waitcnt vmcnt(0)")
    };
    let detail = check(&text("s_nop 0"), &text("s_waitcnt vmcnt(0)"));
    assert!(detail.is_none_or(|detail| detail.starts_with("v2 is overwritten with no wait (vmcnt)")));
}

#[test]
fn loads_of_two_halves_of_a_register_need_no_wait_between() {
    let mut bench = with_buffer();
    let text = "v_mov_b32 v1, 0\nglobal_load_short_d16 v2, v1, s[0:1]\nglobal_load_short_d16_hi v2, v1, s[0:1] offset:2\n\
                s_waitcnt vmcnt(0)\nv_mov_b32 v3, v2";
    if bench.launch(text, ONE) {
        assert_eq!(bench.reports(), []);
    }
}

#[test]
fn flat_accesses_are_waited_for_by_the_counter_of_where_they_went() {
    let load = "v_mov_b32 v2, s0\nv_mov_b32 v3, s1\nflat_load_dword v4, v[2:3]";
    check(
        &format!("{load}\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v5, v4"),
        &format!("{load}\ns_waitcnt vmcnt(0) lgkmcnt(0)\nv_mov_b32 v5, v4"),
    );
}
