//! Every vector instruction against a statement of its result that is made another way.
//!
//! A table holds LLVM assembly and the expected result of one lane. Operands are written as letters: `a`, `b` and `c` for
//! the sources, `d` for the destination, capitals for register pairs, `k` for a lane mask to read and `m` for one to write.
//! Each table runs over all pairs of its edge values and random ones, with all lanes on and with some off.

mod bits;
mod compare;
mod convert;
mod cross_lane;
mod division;
mod dot;
mod exact;
mod float;
mod half;
mod integer;
mod integer16;
mod modes;
mod modifiers;
mod narrow;
mod parts;
mod sad;
mod transcendental;

use crate::random::Random;
use crate::testbench::Bench;
use crate::wave::{LANES, Mode, sreg};

/// What an instruction reads in one lane.
#[derive(Clone, Copy, Debug)]
struct In {
    a: u64,
    b: u64,
    c: u64,
    /// The destination before.
    old: u64,
    /// The lane's bit of the mask.
    k: bool,
    lane: usize,
}

impl In {
    fn a32(&self) -> u32 {
        self.a as u32
    }

    fn b32(&self) -> u32 {
        self.b as u32
    }

    fn c32(&self) -> u32 {
        self.c as u32
    }
}

/// What an instruction gives in one lane: a register, and a bit of a mask if it writes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Out(u64, Option<bool>);

impl From<u32> for Out {
    fn from(value: u32) -> Self {
        Self(value.into(), None)
    }
}

impl From<u64> for Out {
    fn from(value: u64) -> Self {
        Self(value, None)
    }
}

/// Assembly and the result of one lane.
type Case<T> = (&'static str, fn(In) -> T);

const INPUTS: [usize; 3] = [0, 2, 4];
const FIRST_OUTPUT: usize = 8;
const OUTPUTS: usize = 100;
/// Scalar registers of the mask to read, and of the first one to write.
const MASK_IN: usize = 8;
const FIRST_MASK_OUT: usize = 12;
const MASKS_OUT: usize = 40;

/// The mode of compiled kernels: round to nearest, denormals, DX10_CLAMP, IEEE.
const USUAL: u32 = 0x3f0;

/// Runs `cases` over `edges` in the usual mode.
fn check<T: Into<Out>>(edges: &[u64], cases: &[Case<T>]) {
    check_in(USUAL, edges, cases);
}

/// Runs `cases` over `edges` with MODE `mode`.
fn check_in<T: Into<Out>>(mode: u32, edges: &[u64], cases: &[Case<T>]) {
    for cases in cases.chunks(if cases.iter().any(|case| has_token(case.0, "m")) { MASKS_OUT } else { OUTPUTS }) {
        let code: Vec<String> = cases.iter().enumerate().map(|(i, case)| with_registers(case.0, i)).collect();
        let code = code.join("\n");
        let mut random = Random::new(edges.len() as u64);
        for batch in 0..edges.len().pow(2).div_ceil(LANES) + 6 {
            let mut bench = Bench::new();
            bench.wave.mode = Mode(mode);
            let mut wide = || u64::from(random.next()) << 32 | u64::from(random.next());
            let inputs = inputs(edges, batch, &mut wide);
            for (i, &register) in INPUTS.iter().enumerate() {
                bench.set_v64(register, |lane| inputs[lane][i]);
            }
            let mask = wide();
            bench.set_s64(MASK_IN, mask);
            let old: Vec<[u64; LANES]> = cases.iter().map(|_| std::array::from_fn(|_| wide())).collect();
            for (i, old) in old.iter().enumerate() {
                bench.set_v64(output(i), |lane| old[lane]);
            }
            let exec = if batch % 2 == 0 { u64::MAX } else { wide() };
            bench.set_s64(sreg::EXEC_LO, exec);
            if !bench.run(&code) {
                return;
            }
            for (i, (text, expected)) in cases.iter().enumerate() {
                for lane in 0..LANES {
                    let [a, b, c] = inputs[lane];
                    let old = old[i][lane];
                    let on = exec >> lane & 1 == 1;
                    let input = In { a, b, c, old, k: mask >> lane & 1 == 1, lane };
                    let Out(value, bit) = expected(input).into();
                    let expected = match (on, has_token(text, "D")) {
                        (false, _) => old,
                        (true, true) => value,
                        (true, false) if has_token(text, "d") => old & !0xffff_ffff | value & 0xffff_ffff,
                        (true, false) => old,
                    };
                    let found = bench.v64(output(i), lane);
                    assert_eq!(found, expected, "{text}: {found:#x}, not {expected:#x}, of {input:x?} (on: {on})");
                    if let Some(bit) = bit {
                        let found = bench.s64(FIRST_MASK_OUT + 2 * i) >> lane & 1 == 1;
                        assert_eq!(found, bit && on, "{text}: mask bit of {input:x?} (on: {on})");
                    }
                }
            }
        }
    }
}

fn output(case: usize) -> usize {
    FIRST_OUTPUT + 2 * case
}

/// All pairs of edges for `a` and `b` in turn, then values with random bits or random exponents.
fn inputs(edges: &[u64], batch: usize, random: &mut impl FnMut() -> u64) -> [[u64; 3]; LANES] {
    std::array::from_fn(|lane| {
        let i = batch * LANES + lane;
        let any = random() as usize;
        if i < edges.len().pow(2) {
            [edges[i % edges.len()], edges[i / edges.len()], edges[any % edges.len()]]
        } else {
            // Random numbers that share high bits with an edge are near it.
            let mut near = || {
                let keep = [0, 0xffff_0000_ffff_ff00, 0xfff0_0000_ff80_fc00][random() as usize % 3];
                edges[random() as usize % edges.len()] & keep | random() & !keep
            };
            [near(), near(), near()]
        }
    })
}

fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_')
}

fn has_token(text: &str, token: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == token)
}

/// The assembly with registers for its letters; outputs are those of case `i`.
fn with_registers(text: &str, i: usize) -> String {
    let pair = |kind: char, first: usize| format!("{kind}[{first}:{}]", first + 1);
    let mut out = String::new();
    for token in tokens(text) {
        let letter = token.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let replacement = match letter {
            "a" => format!("v{}", INPUTS[0]),
            "b" => format!("v{}", INPUTS[1]),
            "c" => format!("v{}", INPUTS[2]),
            "d" => format!("v{}", output(i)),
            "A" => pair('v', INPUTS[0]),
            "B" => pair('v', INPUTS[1]),
            "C" => pair('v', INPUTS[2]),
            "D" => pair('v', output(i)),
            "k" => pair('s', MASK_IN),
            "m" => pair('s', FIRST_MASK_OUT + 2 * i),
            _ => letter.to_owned(),
        };
        out += &replacement;
        out += &token[letter.len()..];
    }
    out
}

/// Integers at the edges of 8, 16, 24, 32 and 64 bits, and shift counts past the width.
const INTEGERS: [u64; 30] = [
    0,
    1,
    2,
    3,
    5,
    7,
    12,
    16,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7f_ffff,
    0x80_0000,
    0xff_ffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
];
