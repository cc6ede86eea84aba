//! EXEC and its copies, relative moves, constants.

use super::{EDGES, bit, from_bits};
use crate::testbench::Bench;

#[test]
fn exec_is_combined_and_the_old_or_the_new_mask_kept() {
    let names = ["and", "or", "xor", "andn1", "andn2", "orn1", "orn2", "nand", "nor", "xnor"];
    let after = |name: &str, s: bool, e: bool| match name {
        "and" => s && e,
        "or" => s || e,
        "xor" => s != e,
        "andn1" => !s && e,
        "andn2" => s && !e,
        "orn1" => !s || e,
        "orn2" => s || !e,
        "nand" => !(s && e),
        "nor" => !(s || e),
        _ => s == e,
    };
    let forms: Vec<(&str, &str)> =
        names.into_iter().map(|name| (name, "saveexec")).chain([("andn1", "wrexec"), ("andn2", "wrexec")]).collect();
    // For each form: EXEC as given, the form, then EXEC and SCC put aside.
    let text: String = (forms.iter().enumerate())
        .map(|(i, (name, form))| {
            let at = 8 + 6 * i;
            format!(
                "s_mov_b64 exec, s[4:5]\ns_{name}_{form}_b64 s[{at}:{}], s[2:3]\ns_cselect_b32 s{}, 1, 0\n\
                 s_mov_b64 s[{}:{}], exec\n",
                at + 1,
                at + 4,
                at + 2,
                at + 3
            )
        })
        .collect();
    let mut bench = Bench::new();
    for (mask, exec) in EDGES.into_iter().flat_map(|a| EDGES.map(|b| (a, b))) {
        bench.set_s64(2, mask);
        bench.set_s64(4, exec);
        if !bench.run(&text) {
            return;
        }
        for (i, (name, form)) in forms.iter().enumerate() {
            let at = 8 + 6 * i;
            let expected = from_bits((0..64).map(|lane| after(name, bit(mask, lane), bit(exec, lane)))) as u64;
            let kept = if *form == "saveexec" { exec } else { expected };
            let found = (bench.s64(at), bench.s64(at + 2), *bench.s(at + 4) == 1);
            assert_eq!(found, (kept, expected, expected != 0), "{name}_{form} {mask:#x} {exec:#x}");
        }
    }
}

#[test]
fn relative_moves_count_from_m0_and_stay_among_the_sgprs() {
    let mut bench = Bench::new();
    (0..100).for_each(|at| *bench.s(at) = 1000 + at as u32);
    let text = "s_mov_b32 m0, 10\ns_movrels_b32 s5, s7\ns_movreld_b32 s20, s8\ns_movrels_b64 s[40:41], s[50:51]\n\
                s_movreld_b64 s[70:71], s[52:53]\ns_mov_b32 m0, 95\ns_movrels_b32 s6, s7\ns_movreld_b32 s9, s8";
    if bench.run(text) {
        assert_eq!((*bench.s(5), *bench.s(30)), (1017, 1008));
        assert_eq!((bench.s64(40), bench.s64(80)), (1061 << 32 | 1060, 1053 << 32 | 1052));
        assert_eq!(*bench.s(6), 1000, "a source past the last SGPR reads the first");
        assert_eq!(bench.wave.sgprs[104], 0, "a destination past the last SGPR is not written");
    }
}

#[test]
fn literals_and_inline_constants_are_read_as_the_operand_type_says() {
    let mut bench = Bench::new();
    let text = "s_mov_b64 s[2:3], -16\ns_mov_b64 s[4:5], 0x80000000\ns_mov_b32 s6, 0.15915494\ns_mov_b64 s[8:9], 0.5\n\
                s_ashr_i64 s[10:11], 0x80000000, 4\ns_mov_b32 s12, src_shared_base\ns_mov_b64 s[14:15], src_shared_base";
    if bench.run(text) {
        assert_eq!(bench.s64(2), (-16i64) as u64);
        assert_eq!(bench.s64(4), 0x8000_0000);
        assert_eq!(*bench.s(6), 0x3e22_f983);
        assert_eq!(bench.s64(10), 0xffff_ffff_f800_0000);
        assert_eq!(bench.s64(14), 1 << 48);
    }
}
