//! The bits that kernels are known to give, as `kimi-hcq self-test --record` wrote them on the emulated machine.

use std::fmt::Write;

/// What one launch leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// The run of the model it is in.
    pub pass: &'static str,
    /// Its number there, from 0.
    pub number: usize,
    /// Its kernel.
    pub kernel: &'static str,
    /// Hash of all memory that kernels write.
    pub bits: u64,
}

/// A launch a line: pass, number, kernel, hash.
const TEXT: &str = include_str!("known.txt");

/// The known bits, in the order of the launches.
///
/// # Panics
/// Never: the file is built in, and a test reads it.
#[must_use]
pub fn known() -> Vec<Bits> {
    let parse = |line: &'static str| {
        let mut words = line.split(' ');
        let (pass, number, kernel) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        Some(Bits { pass, number, kernel, bits: u64::from_str_radix(words.next()?, 16).ok()? })
    };
    let lines: Option<_> = TEXT.lines().map(parse).collect();
    lines.expect("the built-in file is fixed and tested")
}

/// The file's text.
#[must_use]
pub fn to_text(all: &[Bits]) -> String {
    all.iter().fold(String::new(), |mut text, Bits { pass, number, kernel, bits }| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{pass} {number} {kernel} {bits:016x}");
        text
    })
}
