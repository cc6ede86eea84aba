use crate::exec::{HostLevel, Stop, WaveFault};
use crate::testbench::{Bench, assemble};
use crate::wave::sreg;

#[test]
fn branches_are_taken_on_their_condition_alone() {
    // Each line sets its condition, and adds its bit to s0 if the branch is not taken.
    let conditions = [
        ("s_cmp_eq_u32 s10, s10", "scc0", false),
        ("s_cmp_eq_u32 s10, s10", "scc1", true),
        ("s_mov_b64 vcc, 0", "vccz", true),
        ("s_mov_b64 vcc, 0", "vccnz", false),
        ("s_mov_b64 vcc, s[12:13]", "vccz", false),
        ("s_mov_b64 vcc, s[12:13]", "vccnz", true),
        ("s_mov_b64 exec, 0", "execz", true),
        ("s_mov_b64 exec, 0", "execnz", false),
        ("s_mov_b64 exec, s[12:13]", "execz", false),
        ("s_mov_b64 exec, s[12:13]", "execnz", true),
        ("s_nop 0", "cdbgsys", false),
        ("s_nop 0", "cdbguser", false),
        ("s_nop 0", "cdbgsys_or_user", false),
        ("s_nop 0", "cdbgsys_and_user", false),
    ];
    let mut text = String::from("s_mov_b32 s0, 0\n");
    for (i, (set, name, _)) in conditions.iter().enumerate() {
        text += &format!("{set}\ns_cbranch_{name} l{i}\ns_bitset1_b32 s0, {i}\nl{i}:\n");
    }
    let mut bench = Bench::new();
    bench.set_s64(12, 1 << 40);
    if bench.run(&text) {
        let expected = conditions.iter().enumerate().map(|(i, (_, _, taken))| u32::from(!taken) << i).sum::<u32>();
        assert_eq!(*bench.s(0), expected);
    }
}

#[test]
fn calls_leave_the_address_behind_them_and_return_to_it() {
    let text = "s_getpc_b64 s[2:3]\nhere: s_call_b64 s[4:5], f\ns_add_u32 s6, s6, 1\n\
                s_add_u32 s8, s2, g-here\ns_addc_u32 s9, s3, 0\ns_swappc_b64 s[10:11], s[8:9]\n\
                s_add_u32 s6, s6, 16\ns_endpgm\n\
                f: s_add_u32 s6, s6, 256\ns_setpc_b64 s[4:5]\n\
                g: s_add_u32 s6, s6, 0x1000\ns_setpc_b64 s[10:11]";
    let mut bench = Bench::new();
    if bench.run(text) {
        assert_eq!(*bench.s(6), 0x1111);
        assert_eq!(bench.s64(4), bench.s64(2) + 4, "the call is the first instruction after s_getpc");
    }
}

#[test]
fn both_sides_of_a_fork_run_the_smaller_first() {
    // Lanes 0 to 9 pass; both sides append their EXEC to s[20...].
    let text = "s_mov_b32 m0, 0\ns_mov_b64 s[8:9], 0x3ff\ns_getreg_b32 s10, hwreg(HW_REG_MODE, 29, 3)\n\
                s_cbranch_i_fork s[8:9], pass\n\
                s_movreld_b64 s[20:21], exec\ns_add_u32 m0, m0, 2\ns_branch done\n\
                pass: s_movreld_b64 s[30:31], exec\ns_add_u32 m0, m0, 2\n\
                done: s_cbranch_join s10\ns_mov_b64 s[40:41], exec";
    let mut bench = Bench::new();
    if bench.run(text) {
        // 10 lanes pass and 54 fail: passing lanes go first.
        assert_eq!((bench.s64(30), bench.s64(22)), (0x3ff, !0x3ff));
        assert_eq!(bench.s64(40), !0x3ff, "join leaves the mask of the side that came second");
        assert_eq!(bench.wave.mode.branch_stack(), 0);
    }
    let mut bench = Bench::new();
    let text = text.replace("s_mov_b64 s[8:9], 0x3ff", "s_mov_b64 s[8:9], -2");
    if bench.run(&text) {
        assert_eq!((bench.s64(20), bench.s64(32)), (1, !1), "the one lane that fails goes first");
    }
}

#[test]
fn a_fork_to_an_address_branches_when_all_lanes_agree() {
    let text = "s_getpc_b64 s[2:3]\nhere: s_add_u32 s2, s2, target-here\ns_addc_u32 s3, s3, 0\n\
                s_cbranch_g_fork exec, s[2:3]\ns_mov_b32 s5, 1\ns_endpgm\ntarget: s_mov_b32 s6, 1";
    let mut bench = Bench::new();
    if bench.run(text) {
        assert_eq!((*bench.s(5), *bench.s(6)), (0, 1));
    }
}

#[test]
fn a_trap_is_a_fault_that_names_its_number() {
    if let Some(result) = Bench::new().try_run("s_trap 2") {
        assert_eq!(result.unwrap_err(), WaveFault::Trap { id: 2 });
    }
}

#[test]
fn an_interrupt_carries_m0_to_the_host_and_other_messages_are_refused() {
    let mut bench = Bench::new();
    *bench.s(sreg::M0) = 0xab00_0123;
    if bench.run("s_sendmsg sendmsg(MSG_INTERRUPT)") {
        assert_eq!(*bench.outside.interrupts.borrow(), [0x123]);
    }
    if let Some(result) = Bench::new().try_run("s_sendmsg sendmsg(MSG_SAVEWAVE)") {
        assert!(matches!(result, Err(WaveFault::Instruction(text)) if text.contains("message 4")));
    }
}

#[test]
fn a_wave_that_sends_and_halts_sends_once_and_stays() {
    let Some(code) = assemble("s_sendmsghalt sendmsg(MSG_INTERRUPT)\ns_mov_b32 s0, 1") else { return };
    let mut bench = Bench::new();
    *bench.s(sreg::M0) = 7;
    assert_eq!(bench.run_bounded(&code, HostLevel::Baseline, &mut [], 100), Stop::Yield);
    assert_eq!((*bench.s(0), &*bench.outside.interrupts.borrow()), (0, &vec![7]));
}

#[test]
fn the_program_ends_where_it_says_so() {
    for end in ["s_endpgm", "s_endpgm_saved", "s_setkill 1"] {
        let mut bench = Bench::new();
        if bench.run(&format!("s_mov_b32 s0, 1\n{end}\ns_mov_b32 s0, 2")) {
            assert_eq!(*bench.s(0), 1, "{end}");
        }
    }
}

#[test]
fn waits_priorities_and_hints_change_no_register() {
    let mut bench = Bench::new();
    let text = "s_nop 15\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_waitcnt vmcnt(63)\ns_sleep 127\ns_wakeup\ns_setkill 0\n\
                s_sethalt 0\ns_icache_inv\ns_incperflevel 1\ns_decperflevel 1\ns_ttracedata\ns_barrier\ns_setprio 2\n\
                s_getreg_b32 s0, hwreg(HW_REG_STATUS, 3, 2)";
    if bench.run(text) {
        assert_eq!(*bench.s(0), 2, "the priority shows in STATUS");
        assert!(bench.wave.sgprs[1..100].iter().all(|&value| value == 0));
    }
}
