use super::bench::{CheckBench, Grid, ONE, differ};
use crate::check::ReportKind;

fn with_buffer() -> CheckBench {
    let mut bench = CheckBench::new();
    bench.zeroed("numbers", 4096);
    bench
}

/// `first`, `states` wait states, `then`: one fewer must be reported.
fn needs(states: usize, first: &str, then: &str) -> Option<String> {
    let text = |states: usize| {
        let nops = "s_nop 0\n".repeat(states);
        format!("{first}\n{nops}{then}")
    };
    let grid = Grid { lds: 1024, ..ONE };
    let reports = differ(with_buffer, grid, ReportKind::Hazard, &text(states - 1), &text(states));
    reports.first().map(|report| report.detail.clone())
}

const OPERANDS: &str = "v_mov_b32 v2, 0\nv_mov_b32 v3, 0\nv_mov_b32 v4, 0\nv_mov_b32 v5, 0\ns_nop 1\n";

#[test]
fn the_result_of_a_matrix_instruction_is_there_after_its_passes() {
    let mfma = format!("{OPERANDS}v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], 0");
    let detail = needs(8, &mfma, "v_mov_b32 v12, v8");
    assert!(detail.is_none_or(|detail| {
        detail
            == "the result of a matrix instruction is read: 8 wait states are needed after \
                   `v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], 0` at 0x200014, there are 7"
    }));
    needs(8, &mfma, "v_mov_b32 v8, 0");
    let longer = format!("{OPERANDS}v_mfma_f32_32x32x8_f16 v[16:31], v[2:3], v[4:5], 0");
    needs(12, &longer, "v_mov_b32 v12, v16");
    let single = format!("{OPERANDS}v_mfma_f32_16x16x4_f32 v[8:11], v2, v4, 0");
    needs(10, &single, "v_mov_b32 v12, v8");
}

#[test]
fn a_matrix_instruction_forwards_only_a_whole_accumulator() {
    let zero = "v_mov_b32 v12, 0\nv_mov_b32 v13, 0";
    let first = format!("{zero}\n{OPERANDS}v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], 0");
    needs(6, &first, "v_mfma_f32_16x16x16_f16 v[16:19], v[2:3], v[4:5], v[10:13]");
    let mut bench = with_buffer();
    if bench.launch(&format!("{first}\nv_mfma_f32_16x16x16_f16 v[12:15], v[2:3], v[4:5], v[8:11]"), ONE) {
        assert_eq!(bench.reports(), []);
    }
}

#[test]
fn a_matrix_instruction_reads_what_the_vector_alu_wrote_two_states_before() {
    needs(2, "v_mov_b32 v3, 0\nv_mov_b32 v2, 0", "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[2:3], 0");
}

#[test]
fn a_transcendental_is_read_one_state_later() {
    needs(1, "v_rcp_f32 v1, v0", "v_add_f32 v2, v1, v1");
}

#[test]
fn the_vector_alu_reads_its_own_sgprs_two_states_later() {
    needs(2, "v_cmp_eq_u32 vcc, 0, v0", "v_cndmask_b32 v1, v0, v0, vcc");
}

#[test]
fn vector_memory_reads_what_the_vector_alu_wrote_to_sgprs_five_states_later() {
    needs(
        5,
        "v_mov_b32 v1, s0\nv_mov_b32 v2, s1\ns_nop 0\nv_mov_b32 v3, 0\nv_readfirstlane_b32 s20, v1\nv_readfirstlane_b32 s21, v2",
        "global_load_dword v4, v3, s[20:21]",
    );
}

#[test]
fn dpp_reads_what_the_vector_alu_wrote_two_states_before() {
    needs(2, "v_mov_b32 v1, 0", "v_mov_b32_dpp v2, v1 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf");
}

#[test]
fn a_lane_is_read_one_state_after_the_vector_alu_has_written_the_register() {
    needs(1, "v_mov_b32 v1, 0", "v_readfirstlane_b32 s20, v1");
}

#[test]
fn m0_is_set_one_state_before_a_load_to_lds() {
    needs(1, "v_mov_b32 v1, 0\ns_mov_b32 m0, 0", "global_load_lds_dword v1, s[0:1]");
}

#[test]
fn the_data_of_a_wide_store_is_left_alone_for_two_states() {
    let store = format!("{OPERANDS}v_mov_b32 v1, 0\nglobal_store_dwordx4 v1, v[2:5], s[0:1]");
    needs(2, &store, "v_mov_b32 v5, 0");
}
