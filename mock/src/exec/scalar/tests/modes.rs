//! Hardware registers, and the modes of vector instructions.

use crate::testbench::Bench;

#[test]
fn hardware_registers_are_read_and_written_in_parts() {
    let mut bench = Bench::new();
    bench.wave.hw_id = 0x1234;
    bench.wave.xcc = 5;
    *bench.s(1) = 0b10_11;
    let text = "s_getreg_b32 s2, hwreg(HW_REG_MODE)\ns_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s1\n\
                s_getreg_b32 s3, hwreg(HW_REG_MODE, 2, 2)\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0x5\n\
                s_getreg_b32 s4, hwreg(HW_REG_HW_ID)\ns_getreg_b32 s5, hwreg(HW_REG_XCC_ID)\n\
                s_getreg_b32 s6, hwreg(HW_REG_SH_MEM_BASES, 16, 16)\ns_getreg_b32 s7, hwreg(HW_REG_GPR_ALLOC)\n\
                s_getreg_b32 s8, hwreg(HW_REG_LDS_ALLOC, 12, 10)\ns_mov_b64 vcc, 0\ns_cmp_eq_u32 s0, s0\n\
                s_getreg_b32 s9, hwreg(HW_REG_STATUS)\ns_setreg_imm32_b32 hwreg(HW_REG_STATUS), 0\n\
                s_getreg_b32 s10, hwreg(HW_REG_IB_STS)\ns_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1";
    if bench.run(text) {
        assert_eq!((*bench.s(2), *bench.s(3)), (0x3f0, 2));
        assert_eq!(bench.wave.mode.0, 0x35b | 1 << 23);
        assert_eq!((*bench.s(4), *bench.s(5), *bench.s(6)), (0x1234, 5, 1));
        // 256 registers of each kind: 64 granules of eight, 64 granules of four; 128 SGPRs.
        assert_eq!(*bench.s(7), 63 << 6 | 63 << 12 | 7 << 24);
        assert_eq!(*bench.s(8), (64u32 * 1024).div_ceil(1280) * 5);
        assert_eq!(*bench.s(9), 1 << 16 | 1 << 10 | 1, "valid, VCC zero, SCC");
        assert_eq!(*bench.s(10), 0);
    }
}

#[test]
fn what_is_not_emulated_is_refused_by_name() {
    for (text, part) in [
        ("s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)", "TRAPSTS"),
        ("s_getreg_b32 s0, hwreg(HW_REG_TBA_LO)", "number 16"),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 1), 1", "EXCP_EN"),
    ] {
        if let Some(result) = Bench::new().try_run(text) {
            assert!(result.unwrap_err().to_string().contains(part), "{text}");
        }
    }
}

#[test]
fn vgpr_indexing_moves_the_selected_operands() {
    let mut bench = Bench::new();
    (0..256).for_each(|n| *bench.v(n) = [1000 + n as u32; 64]);
    *bench.s(0) = 4;
    let text = "s_set_gpr_idx_on s0, gpr_idx(SRC0)\nv_mov_b32 v10, v20\nv_add_u32 v11, v21, v22\n\
                s_set_gpr_idx_mode gpr_idx(DST)\nv_mov_b32 v30, v20\ns_set_gpr_idx_idx s1\nv_mov_b32 v40, v20\n\
                s_set_gpr_idx_off\nv_mov_b32 v50, v20";
    if bench.run(text) {
        let value = |bench: &mut Bench, n| bench.v(n)[7];
        assert_eq!(value(&mut bench, 10), 1024);
        assert_eq!(value(&mut bench, 11), 1025 + 1022);
        assert_eq!((value(&mut bench, 30), value(&mut bench, 34)), (1030, 1020));
        assert_eq!(value(&mut bench, 40), 1020, "the index is zero again");
        assert_eq!((value(&mut bench, 50), bench.wave.mode.0), (1020, 0x3f0));
    }
    *bench.s(0) = 250;
    let text = "s_set_gpr_idx_on s0, gpr_idx(SRC0)\nv_mov_b32 v10, v20\ns_set_gpr_idx_mode gpr_idx(DST)\n\
                v_mov_b32 v60, v20\ns_set_gpr_idx_off";
    if bench.run(text) {
        assert_eq!(bench.v(10)[3], 1000, "a source out of range is v0");
        assert_eq!(bench.v(60)[3], 1060, "a destination out of range is not written");
    }
}

#[test]
fn vskip_leaves_out_vector_instructions_only() {
    let mut bench = Bench::new();
    let text = "s_setvskip -1, 0\nv_mov_b32 v1, 7\nglobal_store_dword v[2:3], v1, off\ns_mov_b32 s1, 7\n\
                s_setvskip 0, 0\nv_mov_b32 v2, 7";
    if bench.run(text) {
        assert_eq!((bench.v(1)[0], *bench.s(1), bench.v(2)[0]), (0, 7, 7));
    }
}
