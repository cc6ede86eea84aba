//! The decoder against LLVM's, on words that nobody wrote down.
//!
//! The other side is the LLVM inside the Rust toolchain. Without it (or with another major release) the tests say SKIPPED; with the
//! environment variable `CI` set they fail instead.

mod llvm;

use llvm::{Disassembled, Llvm};
use std::io::Write;

/// SplitMix64: the words are the same in every run.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) as u32
    }

    fn words(&mut self) -> [u32; 5] {
        std::array::from_fn(|_| self.word())
    }
}

/// Words that make LLVM 22 run into an `llvm_unreachable` or a null register, so that it must not see them.
fn llvm_crashes(words: [u32; 5]) -> bool {
    let [w0, w1, w2, w3, _] = words;
    let vop = w0 >> 31 == 0;
    let reserved_sdwa = [w1 >> 8 & 7, w1 >> 16 & 7, w1 >> 24 & 7].contains(&7) || w1 >> 11 & 3 == 3;
    // v_fmamk_f32, v_fmaak_f32, v_madmk_f16, v_madak_f16.
    let constant_like_a_literal = matches!(w0 >> 25, 0x17 | 0x18 | 0x24 | 0x25) && w1 == 255;
    let scaled = w0 >> 16 == 0xd3ac;
    let literal = [w1, w1 >> 9, w3, w3 >> 9, w3 >> 18].iter().any(|field| field & 0x1ff == 255);
    vop && (w0 & 0x1ff == 0xf9 && reserved_sdwa || constant_like_a_literal)
        || resized_constant(w0, w1)
        || scalar_for_long_tuple(w0, w1)
        || scaled && (literal || resized_constant(w2, w3))
}

/// No vector register where the instruction takes a tuple of 6 or 32: there is no such tuple of scalar registers.
fn scalar_for_long_tuple(low: u32, high: u32) -> bool {
    let is_scalar = |field: u32| high >> field & 0x100 == 0;
    let pk32_conversion = matches!(low >> 16, 0xd252..=0xd263) && (is_scalar(0) || is_scalar(9));
    let mfma_32x32_of_two_blocks = matches!(low >> 16, 0xd3c0 | 0xd3c8 | 0xd3d0 | 0xd3dd) && is_scalar(18);
    pk32_conversion || mfma_32x32_of_two_blocks
}

/// A matrix instruction of type f8f6f4 whose `cbsz` or `blgp` shrinks an operand that is no vector register.
fn resized_constant(low: u32, high: u32) -> bool {
    let f8f6f4 = matches!(low >> 16, 0xd3ad | 0xd3ae);
    let shrinks = low >> 8 & 7 > 1 || high >> 29 > 1;
    f8f6f4 && shrinks && (high & 0x100 == 0 || high & 0x2_0000 == 0)
}

/// Counts of words that both sides decode alike, or both refuse.
#[derive(Default)]
struct Agreement {
    decoded: u64,
    refused: u64,
}

impl Agreement {
    fn check(&mut self, llvm: &Llvm, words: [u32; 5]) {
        if llvm_crashes(words) {
            return;
        }
        let ours = isa::decode(&words).ok().map(|inst| Disassembled {
            length: 4 * usize::from(inst.dwords),
            text: inst.to_string(),
            misaligned: inst.misaligned,
        });
        let theirs = llvm.disassemble(words);
        assert!(ours == theirs, "{words:08x?}\n  ours: {ours:?}\n  LLVM: {theirs:?}");
        *if ours.is_some() { &mut self.decoded } else { &mut self.refused } += 1;
    }

    fn report(&self, what: &str) {
        let Self { decoded, refused } = self;
        // Past the capture of test output, so that the figures are seen.
        let _ = writeln!(std::io::stderr(), "{what}: {decoded} decoded alike, {refused} refused alike");
    }
}

fn llvm() -> Option<Llvm> {
    match Llvm::open() {
        Ok(llvm) => Some(llvm),
        Err(why) if std::env::var_os("CI").is_some() => panic!("no LLVM to compare with: {why}"),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no LLVM to compare with: {why}");
            None
        }
    }
}

#[test]
fn random_words_decode_as_llvm_decodes_them() {
    let Some(llvm) = llvm() else { return };
    let mut random = Random(1);
    let mut agreement = Agreement::default();
    for _ in 0..4_000_000 {
        let mut words = random.words();
        // Fields that an instruction does not have must often be 0, and src0 announces SDWA, DPP and literals by one value each.
        let shape = random.word();
        for byte in 0..4 {
            if shape >> byte & 1 == 0 && shape >> 4 & 1 == 0 {
                words[1] &= !(0xff << (8 * byte));
            }
        }
        match shape >> 8 & 15 {
            0 => words[0] = words[0] & !0x1ff | 0xf9,
            1 => words[0] = words[0] & !0x1ff | 0xfa,
            2 => words[0] = words[0] & !0x1ff | 0xff,
            3 => words[1] &= 0x0007_ffff,
            4 => words[0] &= 0xffff_00ff,
            5 => (words[0], words[2]) = (0xd3ac_0000 | words[0] & 0x1800, 0xd3ad_0800 | words[2] & 0x1_87ff),
            _ => {}
        }
        agreement.check(&llvm, words);
    }
    agreement.report("random words");
    assert!(agreement.decoded > 2_000_000 && agreement.refused > 1_000_000);
}

/// The upper 16 bits hold the opcode of most encodings; each value is tried with a few settings of the rest, and around those that
/// decode, each bit is flipped and each operand field set.
#[test]
fn every_opcode_with_each_field_changed_decodes_as_llvm_decodes_it() {
    let Some(llvm) = llvm() else { return };
    let mut random = Random(2);
    let mut agreement = Agreement::default();
    for upper in 0..=0xffff {
        for setting in 0..4 {
            let mut words = random.words();
            let lower = words[0] & 0xffff;
            (words[0], words[1]) = match setting {
                0 => (0, words[1] & 0x7f | 0x0402_0100),
                1 => (lower, words[1] & 0x07ff_ffff),
                2 => (lower & 0xfe00 | (0xf9 + (upper & 1)), words[1] & 0xff86_9700 | 0x0006_0602),
                _ => (lower & 0x00ff, 0),
            };
            words[0] |= upper << 16;
            agreement.check(&llvm, words);
            if isa::decode(&words).is_err() {
                continue;
            }
            for bit in 0..48 {
                let mut changed = words;
                changed[1 - bit / 32] ^= 1 << (bit % 32);
                agreement.check(&llvm, changed);
            }
            for field in [0, 8, 9, 16, 18, 24, 25] {
                let mut changed = words;
                changed[1] = changed[1] & !(0x1ff << field) | (random.word() & 0x1ff) << field;
                agreement.check(&llvm, changed);
            }
        }
    }
    agreement.report("changed fields");
    assert!(agreement.decoded > 3_000_000 && agreement.refused > 200_000);
}

/// Immediates that print as names: every value.
#[test]
fn every_named_immediate_is_named_as_llvm_names_it() {
    let Some(llvm) = llvm() else { return };
    let mut agreement = Agreement::default();
    // s_waitcnt, s_sendmsg, s_getreg_b32, s_setreg_b32, s_set_gpr_idx_mode, ds_swizzle_b32.
    for first in [0xbf8c_0000, 0xbf90_0000, 0xb882_0000, 0xb902_0000, 0xbf9d_0000, 0xd87a_0000] {
        for immediate in 0..=0xffff {
            agreement.check(&llvm, [first | immediate, 0x0800_0002, 0, 0, 0]);
        }
    }
    agreement.report("named immediates");
    assert_eq!((agreement.decoded, agreement.refused), (6 << 16, 0));
}

/// Every number of every source and destination field of an instruction of each kind.
#[test]
fn every_operand_number_decodes_as_llvm_decodes_it() {
    let Some(llvm) = llvm() else { return };
    let mut random = Random(3);
    let mut agreement = Agreement::default();
    for op in isa::Op::ALL {
        for (encoding, opcode) in op.info().encodings() {
            let Some((base, fields)) = fields(encoding, opcode.into()) else { continue };
            for &(dword, lsb, width) in fields {
                for number in 0..1 << width {
                    let [.., w2, w3, w4] = random.words();
                    let mut words = [base[0], base[1], w2, w3, w4];
                    words[dword] = words[dword] & !(((1 << width) - 1) << lsb) | number << lsb;
                    agreement.check(&llvm, words);
                }
            }
        }
    }
    agreement.report("operand numbers");
    assert!(agreement.decoded > 800_000 && agreement.refused > 100_000);
}

/// An operand field: dword, lowest bit, width.
type Field = (usize, u32, u32);

/// A first and second dword of the encoding with plain operands, and its operand fields.
fn fields(encoding: isa::Encoding, opcode: u32) -> Option<([u32; 2], &'static [Field])> {
    use isa::Encoding::*;
    Some(match encoding {
        Sop1 => ([0xbe80_0000 | opcode << 8, 0], &[(0, 0, 8), (0, 16, 7)]),
        Sop2 => ([0x8000_0000 | opcode << 23, 0], &[(0, 0, 8), (0, 8, 8), (0, 16, 7)]),
        Sopc => ([0xbf00_0000 | opcode << 16, 0], &[(0, 0, 8), (0, 8, 8)]),
        Sopk => ([0xb000_0000 | opcode << 23, 0], &[(0, 0, 8), (0, 8, 8), (0, 16, 7)]),
        Sopp => ([0xbf80_0000 | opcode << 16, 0], &[(0, 0, 8), (0, 8, 8)]),
        Smem => ([0xc002_0000 | opcode << 18, 0], &[(0, 0, 6), (0, 6, 7), (0, 13, 5), (1, 0, 9), (1, 25, 7)]),
        Vop1 => ([0x7e00_0000 | opcode << 9, 0], &[(0, 0, 9), (0, 17, 8)]),
        Vop2 => ([opcode << 25, 0], &[(0, 0, 9), (0, 9, 8), (0, 17, 8)]),
        Vopc => ([0x7c00_0000 | opcode << 17, 0], &[(0, 0, 9), (0, 9, 8)]),
        Vop3 => ([0xd000_0000 | opcode << 16, 0x0402_0100], &[(0, 0, 8), (0, 8, 8), (1, 0, 9), (1, 9, 9), (1, 18, 9)]),
        Vop3p => ([0xd380_4000 | opcode << 16, 0x1c02_0100], &[(0, 0, 8), (1, 0, 9), (1, 9, 9), (1, 18, 9)]),
        Mai => ([0xd380_0000 | opcode << 16, 0x0402_0100], &[(0, 0, 8), (0, 8, 8), (1, 0, 9), (1, 9, 9), (1, 18, 9)]),
        Ds => ([0xd800_0000 | opcode << 17, 0], &[(0, 0, 8), (0, 16, 1), (1, 0, 8), (1, 8, 8), (1, 16, 8), (1, 24, 8)]),
        Flat => ([0xdc00_0000 | opcode << 18, 0], &[(0, 12, 6), (1, 0, 8), (1, 8, 8), (1, 16, 8), (1, 24, 8)]),
        Global => {
            ([0xdc00_8000 | opcode << 18, 0x007f_0000], &[(0, 10, 8), (1, 0, 8), (1, 8, 8), (1, 16, 8), (1, 24, 8)])
        }
        Scratch => {
            ([0xdc00_4000 | opcode << 18, 0x007f_0000], &[(0, 10, 8), (1, 0, 8), (1, 8, 8), (1, 16, 8), (1, 24, 8)])
        }
        Mubuf => ([0xe000_0000 | opcode << 18, 0], &[(0, 10, 8), (1, 0, 8), (1, 8, 8), (1, 16, 8), (1, 24, 8)]),
        Mtbuf => {
            ([0xe800_0000 | opcode << 15, 0], &[(0, 10, 5), (0, 19, 7), (1, 0, 8), (1, 8, 8), (1, 16, 8), (1, 24, 8)])
        }
        Sdwa | Dpp | Vop3px2 => return None,
    })
}
