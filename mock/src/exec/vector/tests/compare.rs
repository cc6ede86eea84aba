use std::cmp::Ordering;

use super::exact::{DOUBLE, Format, HALF, SINGLE};
use super::float::{DOUBLES, HALVES, SINGLES};
use super::*;

/// All types with their edges and how two operands compare; `None` with a NaN.
type Type = (&'static str, &'static [u64], fn(u64, u64) -> Option<Ordering>);

const TYPES: [Type; 9] = [
    ("i16", &INTEGERS, |a, b| Some((a as i16).cmp(&(b as i16)))),
    ("u16", &INTEGERS, |a, b| Some((a as u16).cmp(&(b as u16)))),
    ("i32", &INTEGERS, |a, b| Some((a as i32).cmp(&(b as i32)))),
    ("u32", &INTEGERS, |a, b| Some((a as u32).cmp(&(b as u32)))),
    ("i64", &INTEGERS, |a, b| Some((a as i64).cmp(&(b as i64)))),
    ("u64", &INTEGERS, |a, b| Some(a.cmp(&b))),
    ("f16", &HALVES, |a, b| compare(HALF, a, b)),
    ("f32", &SINGLES, |a, b| compare(SINGLE, a, b)),
    ("f64", &DOUBLES, |a, b| compare(DOUBLE, a, b)),
];

fn compare(format: Format, a: u64, b: u64) -> Option<Ordering> {
    let (a, b) = (format.operand(a), format.operand(b));
    if format.is_nan(a) || format.is_nan(b) {
        return None;
    }
    let difference = format.exact(a).minus(format.exact(b));
    Some(match (difference.is_zero(), difference.is_negative()) {
        (true, _) => Ordering::Equal,
        (false, true) => Ordering::Less,
        (false, false) => Ordering::Greater,
    })
}

/// What each predicate says of less, equal, greater and unordered (CDNA4 ISA table 25).
const PREDICATES: [(&str, [bool; 4]); 18] = [
    ("f", [false, false, false, false]),
    ("lt", [true, false, false, false]),
    ("eq", [false, true, false, false]),
    ("le", [true, true, false, false]),
    ("gt", [false, false, true, false]),
    ("lg", [true, false, true, false]),
    ("ge", [false, true, true, false]),
    ("o", [true, true, true, false]),
    ("u", [false, false, false, true]),
    ("nge", [true, false, false, true]),
    ("nlg", [false, true, false, true]),
    ("ngt", [true, true, false, true]),
    ("nle", [false, false, true, true]),
    ("neq", [true, false, true, true]),
    ("nlt", [false, true, true, true]),
    ("tru", [true, true, true, true]),
    // Integers only.
    ("ne", [true, false, true, false]),
    ("t", [true, true, true, false]),
];

fn has(ty: &str, predicate: &str) -> bool {
    let only_floats = ["lg", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "tru"].contains(&predicate);
    let only_integers = ["ne", "t"].contains(&predicate);
    if ty.starts_with('f') { !only_integers } else { !only_floats }
}

#[test]
fn every_predicate_of_every_type_holds_as_its_table_says() {
    for (ty, edges, order) in TYPES {
        let predicates: Vec<_> = PREDICATES.iter().filter(|(predicate, _)| has(ty, predicate)).collect();
        let (a, b) = if ty.ends_with("64") { ("v[0:1]", "v[2:3]") } else { ("v0", "v2") };
        let mut random = Random::new(64);
        for batch in 0..edges.len().pow(2).div_ceil(LANES) + 4 {
            let inputs = inputs(edges, batch, &mut || u64::from(random.next()) << 32 | u64::from(random.next()));
            let exec = if batch % 2 == 0 { u64::MAX } else { 0x8421_f731_0137_ffff };
            // One form writes a pair of scalar registers, one VCC, and one EXEC too.
            let code: Vec<String> = predicates
                .iter()
                .enumerate()
                .map(|(i, (predicate, _))| {
                    format!(
                        "v_cmp_{predicate}_{ty}_e64 s[{}:{}], {a}, {b}\nv_cmp_{predicate}_{ty} vcc, {a}, {b}\n\
                         s_mov_b64 s[{}:{}], vcc",
                        10 + 4 * i,
                        11 + 4 * i,
                        12 + 4 * i,
                        13 + 4 * i
                    )
                })
                .collect();
            let mut bench = prepared(&inputs, exec);
            if !bench.run(&code.join("\n")) {
                return;
            }
            for (i, (predicate, truth)) in predicates.iter().enumerate() {
                let expected = expected(&inputs, truth, order) & exec;
                assert_eq!(bench.s64(10 + 4 * i), expected, "v_cmp_{predicate}_{ty}_e64 of {inputs:x?}");
                assert_eq!(bench.s64(12 + 4 * i), expected, "v_cmp_{predicate}_{ty} of {inputs:x?}");
            }
            let (predicate, truth) = predicates[batch % predicates.len()];
            let expected = expected(&inputs, truth, order) & exec;
            let mut bench = prepared(&inputs, exec);
            if bench.run(&format!("v_cmpx_{predicate}_{ty} vcc, {a}, {b}")) {
                assert_eq!(bench.s64(sreg::VCC_LO), expected, "v_cmpx_{predicate}_{ty}");
                assert_eq!(bench.s64(sreg::EXEC_LO), expected, "v_cmpx_{predicate}_{ty}");
            }
        }
    }
}

fn prepared(inputs: &[[u64; 3]; LANES], exec: u64) -> Bench {
    let mut bench = Bench::new();
    bench.set_v64(0, |lane| inputs[lane][0]);
    bench.set_v64(2, |lane| inputs[lane][1]);
    bench.set_s64(sreg::EXEC_LO, exec);
    bench
}

fn expected(inputs: &[[u64; 3]; LANES], truth: &[bool; 4], order: fn(u64, u64) -> Option<Ordering>) -> u64 {
    let index = |order| match order {
        Some(Ordering::Less) => 0,
        Some(Ordering::Equal) => 1,
        Some(Ordering::Greater) => 2,
        None => 3,
    };
    inputs.iter().enumerate().fold(0, |bits, (lane, [a, b, _])| bits | u64::from(truth[index(order(*a, *b))]) << lane)
}

#[test]
fn each_class_of_floating_point_values_has_a_bit() {
    fn class(format: Format, value: u64) -> u64 {
        let value = format.bits(value);
        let positive = match () {
            () if format.is_nan(value) => return u64::from(format.quiet(value) == value),
            () if format.is_infinite(value) => 9,
            () if format.is_denormal(value) => 7,
            () if value & !format.sign() == 0 => 6,
            () => 8,
        };
        if format.is_negative(value) { 11 - positive } else { positive }
    }
    fn result(i: In, format: Format) -> Out {
        Out(0, Some(i.b >> class(format, i.a) & 1 == 1))
    }
    let masks: Vec<u64> = (0..10).map(|bit| 1 << bit).chain([0, 0x3ff]).collect();
    for (edges, case) in [
        (&HALVES[..], ("v_cmp_class_f16_e64 m, a, b", (|i| result(i, HALF)) as fn(In) -> Out)),
        (&SINGLES[..], ("v_cmp_class_f32_e64 m, a, b", |i| result(i, SINGLE))),
        (&DOUBLES[..], ("v_cmp_class_f64_e64 m, A, b", |i| result(i, DOUBLE))),
    ] {
        check(&[edges, &masks].concat(), &[case]);
    }
}

#[test]
fn comparisons_flush_denormal_operands_if_mode_says_so() {
    let mut bench = Bench::new();
    bench.wave.mode = Mode(0x300);
    *bench.v(0) = [1; LANES];
    *bench.v(1) = [0x8000_0003; LANES];
    if bench.run("v_cmp_eq_f32 vcc, v0, v1\nv_mov_b32 v2, 0x80\nv_cmp_class_f32_e64 s[2:3], v0, v2") {
        assert_eq!(bench.s64(sreg::VCC_LO), u64::MAX);
        // A class is a matter of bits: denormals are denormal.
        assert_eq!(bench.s64(2), u64::MAX);
    }
}

#[test]
fn class_tests_that_write_exec_leave_on_the_lanes_that_pass() {
    for (ty, value, infinity) in
        [("f16", "v0", 0x7c00), ("f32", "v0", 0x7f80_0000), ("f64", "v[0:1]", 0x7ff0_0000_0000_0000_u64)]
    {
        let mut bench = Bench::new();
        bench.set_v64(0, |lane| if lane % 3 == 0 { infinity } else { 1 });
        // Plus infinity.
        *bench.v(2) = [1 << 9; LANES];
        bench.set_s64(sreg::EXEC_LO, 0xffff_ffff);
        if bench.run(&format!("v_cmpx_class_{ty} vcc, {value}, v2")) {
            let expected = (0..32).filter(|lane| lane % 3 == 0).map(|lane| 1 << lane).sum::<u64>();
            assert_eq!((bench.s64(sreg::EXEC_LO), bench.s64(sreg::VCC_LO)), (expected, expected), "{ty}");
        }
    }
}
