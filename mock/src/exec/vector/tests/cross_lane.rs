//! Moves, selection, and what goes between lanes.

use super::*;

#[test]
fn values_are_moved_and_selected() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_mov_b32 d, a", |i| i.a32()),
            ("v_mov_b32 d, 0xdeadbeef", |_| 0xdead_beef),
            ("v_mov_b32 d, -16", |_| 0xffff_fff0),
            ("v_mov_b32 d, 0.15915494", |_| 0x3e22_f983),
            ("v_cndmask_b32_e64 d, a, b, k", |i| if i.k { i.b32() } else { i.a32() }),
            ("v_cndmask_b32_e64 d, -a, |b|, k", |i| if i.k { i.b32() & 0x7fff_ffff } else { i.a32() ^ 0x8000_0000 }),
        ],
    );
    check::<u64>(&INTEGERS, &[("v_mov_b64 D, A", |i| i.a), ("v_mov_b64 D, -5", |_| 5u64.wrapping_neg())]);
}

#[test]
fn vcc_selects_if_nothing_else_is_named() {
    let mut bench = Bench::new();
    bench.set_s64(sreg::VCC_LO, 0x0123_4567_89ab_cdef);
    *bench.v(1) = [7; LANES];
    if bench.run("v_cndmask_b32 v2, 3, v1, vcc") {
        let expected: [u32; LANES] =
            std::array::from_fn(|lane| if 0x0123_4567_89ab_cdef_u64 >> lane & 1 == 1 { 7 } else { 3 });
        assert_eq!(*bench.v(2), expected);
    }
}

fn numbered() -> Bench {
    let mut bench = Bench::new();
    *bench.v(0) = std::array::from_fn(|lane| 100 + lane as u32);
    *bench.v(1) = std::array::from_fn(|lane| 200 + lane as u32);
    bench
}

#[test]
fn one_lane_is_read_or_written_whatever_exec_says() {
    let mut bench = numbered();
    bench.set_s64(sreg::EXEC_LO, 0xff00);
    *bench.s(4) = 37 + 64;
    *bench.s(sreg::M0) = 5;
    let code = "v_readfirstlane_b32 s10, v0\nv_readlane_b32 s11, v0, s4\nv_readlane_b32 s12, v0, m0\n\
                v_writelane_b32 v1, s11, 63\nv_writelane_b32 v1, 12, m0\nv_readlane_b32 s13, v1, 63\n\
                s_mov_b64 exec, 0\nv_readfirstlane_b32 s14, v0";
    if bench.run(code) {
        assert_eq!([10, 11, 12, 13, 14].map(|n| *bench.s(n)), [108, 137, 105, 137, 100]);
        assert_eq!((bench.v(1)[63], bench.v(1)[5], bench.v(1)[8]), (137, 12, 208));
    }
}

#[test]
fn registers_are_exchanged_in_active_lanes() {
    let mut bench = numbered();
    bench.set_s64(sreg::EXEC_LO, 0xf0f0);
    if bench.run("v_swap_b32 v0, v1") {
        for lane in 0..LANES {
            let on = 0xf0f0u64 >> lane & 1 == 1;
            let (a, b) = (100 + lane as u32, 200 + lane as u32);
            assert_eq!((bench.v(0)[lane], bench.v(1)[lane]), if on { (b, a) } else { (a, b) });
        }
    }
}

#[test]
fn odd_rows_are_exchanged_with_even_rows() {
    let mut bench = numbered();
    if bench.run("v_permlane16_swap_b32 v0, v1") {
        // First row of v1 into the second of v0, and so on.
        assert_eq!([0, 15, 16, 31, 32, 48].map(|lane| bench.v(0)[lane]), [100, 115, 200, 215, 132, 232]);
        assert_eq!([0, 15, 16, 31, 32, 48].map(|lane| bench.v(1)[lane]), [116, 131, 216, 231, 148, 248]);
    }
    let mut bench = numbered();
    if bench.run("v_permlane32_swap_b32 v0, v1") {
        assert_eq!([0, 31, 32, 63].map(|lane| bench.v(0)[lane]), [100, 131, 200, 231]);
        assert_eq!([0, 31, 32, 63].map(|lane| bench.v(1)[lane]), [132, 163, 232, 263]);
    }
}

#[test]
fn swapped_rows_treat_lanes_that_are_off_as_their_bits_say() {
    // Lane 16 is off: lane 0 of v1, its partner, finds it so.
    let run = |suffix: &str| {
        let mut bench = numbered();
        bench.set_s64(sreg::EXEC_LO, !(1 << 16));
        bench.run(&format!("v_permlane16_swap_b32_e64 v0, v1{suffix}")).then(|| (bench.v(1)[0], bench.v(0)[16]))
    };
    let Some(nothing) = run("") else { return };
    assert_eq!(nothing, (200, 116));
    assert_eq!(run(" bound_ctrl:1"), Some((0, 116)));
    assert_eq!(run(" fi:1"), Some((116, 116)));
}

#[test]
fn accumulation_registers_are_read_written_and_moved() {
    let mut bench = numbered();
    bench.set_s64(sreg::EXEC_LO, 0xffff_0000_ffff);
    let code =
        "v_accvgpr_write_b32 a3, v0\nv_accvgpr_mov_b32 a5, a3\nv_accvgpr_read_b32 v7, a5\nv_accvgpr_write_b32 a6, 1.0";
    if bench.run(code) {
        assert_eq!((bench.a(3)[9], bench.a(5)[40], bench.v(7)[9], bench.v(7)[20]), (109, 140, 109, 0));
        assert_eq!((bench.a(6)[9], bench.a(6)[20]), (0x3f80_0000, 0));
    }
}

#[test]
fn instructions_without_operands_change_nothing() {
    let mut bench = numbered();
    if bench.run("v_nop\nv_clrexcp") {
        assert_eq!(*bench.v(0), std::array::from_fn(|lane| 100 + lane as u32));
    }
}
