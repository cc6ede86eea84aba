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
fn a_64_bit_sum_has_a_high_half_where_its_addend_has_one() {
    let sum = "v_mov_b32 v2, 1\nv_mad_u64_u32 v[6:7], s[20:21], v0, v0, v[2:3]";
    let detail = check(&format!("{sum}\nv_add_u32 v8, v7, v7"), &format!("{sum}\nv_add_u32 v8, v6, v6"));
    assert!(detail.is_none_or(|detail| detail == "v7 has no value"));
    let low = "v_mov_b32 v3, 1\nv_mad_u64_u32 v[6:7], s[20:21], v0, v0, v[2:3]";
    check(low, &format!("v_mov_b32 v2, 1\n{low}\nv_add_u32 v8, v7, v7"));
}

#[test]
fn bits_of_lanes_that_are_off_need_no_value_in_a_mask() {
    check("s_or_b64 s[20:21], s[20:21], s[0:1]", "s_or_b64 s[20:21], s[20:21], exec");
}

#[test]
fn the_gpr_index_needs_its_own_value_and_no_old_one() {
    check(
        "s_set_gpr_idx_on s20, gpr_idx(SRC0)\ns_set_gpr_idx_off",
        "s_set_gpr_idx_on s0, gpr_idx(SRC0)\ns_set_gpr_idx_off",
    );
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
