use super::bench::{CheckBench, ONE, differ};
use crate::check::ReportKind;

fn check(bad: &str, good: &str) -> Option<String> {
    let reports = differ(CheckBench::new, ONE, ReportKind::UnwrittenRegister, bad, good);
    reports.first().map(|report| report.detail.clone())
}

#[test]
fn a_vector_register_has_no_value_until_it_is_written() {
    let detail = check("v_add_u32 v2, v0, v1", "v_mov_b32 v1, 1\nv_add_u32 v2, v0, v1");
    assert!(detail.is_none_or(|detail| detail == "v1 has no value"));
}

#[test]
fn a_vector_register_is_written_lane_by_lane() {
    let half = "s_mov_b64 exec, 0xff\nv_mov_b32 v1, 1\ns_mov_b64 exec, -1\nv_add_u32 v2, v1, v1";
    let whole = "v_mov_b32 v1, 1\ns_mov_b64 exec, 0xff\nv_add_u32 v2, v1, v1";
    let reports = differ(CheckBench::new, ONE, ReportKind::UnwrittenRegister, half, whole);
    assert!(reports.iter().all(|report| report.lane == Some(8)));
}

#[test]
fn a_scalar_register_has_no_value_until_it_is_written() {
    let detail = check("s_add_u32 s20, s21, 1", "s_mov_b32 s21, 0\ns_add_u32 s20, s21, 1");
    assert!(detail.is_none_or(|detail| detail == "s21 has no value"));
}

#[test]
fn vcc_has_no_value_until_it_is_written() {
    check("v_cndmask_b32 v1, v0, v0, vcc", "v_cmp_eq_u32 vcc, 0, v0\ns_nop 4\nv_cndmask_b32 v1, v0, v0, vcc");
}

#[test]
fn an_accumulation_register_has_no_value_until_it_is_written() {
    let read = "v_accvgpr_read_b32 v1, a3\nv_add_u32 v2, v1, v1";
    check(read, &format!("v_accvgpr_write_b32 a3, v0\ns_nop 3\n{read}"));
}

#[test]
fn an_accumulator_is_an_input_and_a_kept_half_is_none() {
    check("v_fmac_f32 v1, v0, v0", "v_mov_b32 v1, 0\nv_fmac_f32 v1, v0, v0");
    let mut bench = CheckBench::new();
    bench.zeroed("numbers", 4096);
    if bench.launch("v_mov_b32 v1, 0\nglobal_load_short_d16 v2, v1, s[0:1]\ns_waitcnt vmcnt(0)", ONE) {
        assert_eq!(bench.reports(), []);
    }
}

#[test]
fn user_data_and_workgroup_ids_are_there_from_the_start() {
    let mut bench = CheckBench::new();
    bench.zeroed("numbers", 4096);
    if bench.launch("s_add_u32 s10, s0, s2\nv_mov_b32 v1, v0", ONE) {
        assert_eq!(bench.reports(), []);
        assert!(bench.launch("s_add_u32 s10, s3, s3", ONE));
        assert_eq!(bench.kinds(), [ReportKind::UnwrittenRegister]);
    }
}
