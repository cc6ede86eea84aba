//! From dwords to [`Inst`].
//!
//! What is refused is what LLVM refuses: unknown opcodes, reserved operand numbers, register tuples past the end of the file,
//! and set bits in fields that an instruction does not have. LLVM lets some fields that have no meaning hold anything, and so
//! does this decoder.

mod buffer;
mod dpp;
mod ds;
mod flat;
mod matrix;
mod operands;
mod sdwa;
mod smem;
mod sop;
mod vop;
mod vop3;

pub(crate) use sdwa::narrow_float;

use crate::{Inst, Op};
use thiserror::Error;

/// Why no instruction was decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum DecodeError {
    /// The instruction, or its literal, goes on past the last dword given.
    #[error("the instruction that starts with {word:#010x} goes on past the {available} dwords at hand")]
    Truncated {
        /// First dword, 0 if there is none.
        word: u32,
        /// Dwords given.
        available: usize,
    },
    /// These bits are no gfx950 instruction.
    #[error("{word:#010x} starts no gfx950 instruction: {reason}")]
    Invalid {
        /// First dword.
        word: u32,
        /// What is wrong with it.
        reason: Reason,
    },
}

/// What makes bits no instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Reason {
    /// No encoding has these leading bits.
    #[error("unknown encoding")]
    Encoding,
    /// The encoding has no instruction with this opcode.
    #[error("unknown opcode")]
    Opcode,
    /// A source or destination number is reserved, or a register tuple ends past the last register.
    #[error("reserved operand")]
    Operand,
    /// A field that the instruction does not have is not zero.
    #[error("set bits in an unused field")]
    Field,
}

type Result<T> = std::result::Result<T, DecodeError>;

/// Decodes the instruction that starts at `words[0]`.
///
/// An instruction has up to five dwords; give at least as many when there are that many, or [`DecodeError::Truncated`] may be
/// the answer.
pub fn decode(words: &[u32]) -> Result<Inst> {
    let &[word, ..] = words else { return Err(DecodeError::Truncated { word: 0, available: 0 }) };
    let code = &mut Code { words, word, dwords: 1, literal: None, misaligned: false };
    // ISA, "Microcode Formats": the encoding is a prefix of 1 to 9 bits.
    let mut inst = Inst::BLANK;
    match word >> 26 {
        0b00_0000..=0b01_1110 => vop::vop2(code, &mut inst),
        0b01_1111 if word >> 25 == 0b011_1110 => vop::vopc(code, &mut inst),
        0b01_1111 => vop::vop1(code, &mut inst),
        0b10_0000..=0b10_1111 => match word >> 23 {
            0b1_0111_1101 => sop::sop1(code, &mut inst),
            0b1_0111_1110 => sop::sopc(code, &mut inst),
            0b1_0111_1111 => sop::sopp(code, &mut inst),
            _ if word >> 28 == 0b1011 => sop::sopk(code, &mut inst),
            _ => sop::sop2(code, &mut inst),
        },
        0b11_0000 => smem::smem(code, &mut inst),
        0b11_0100 if word >> 23 == 0b1_1010_0111 => matrix::vop3p(code, &mut inst),
        0b11_0100 => vop3::vop3(code, &mut inst),
        0b11_0110 => ds::ds(code, &mut inst),
        0b11_0111 => flat::flat(code, &mut inst),
        0b11_1000 => buffer::mubuf(code, &mut inst),
        0b11_1010 => buffer::mtbuf(code, &mut inst),
        _ => Err(code.invalid(Reason::Encoding)),
    }?;
    (inst.dwords, inst.misaligned) = (code.dwords, code.misaligned);
    Ok(inst)
}

/// The dwords of one instruction and how far they have been taken.
struct Code<'a> {
    words: &'a [u32],
    word: u32,
    dwords: u8,
    literal: Option<u32>,
    misaligned: bool,
}

impl Code<'_> {
    /// The next dword of the encoding.
    fn next(&mut self) -> Result<u32> {
        let word = self.words.get(usize::from(self.dwords)).copied().ok_or(self.truncated())?;
        self.dwords += 1;
        Ok(word)
    }

    /// The literal, of which an instruction has at most one: every operand that asks for it gets the same.
    fn literal(&mut self) -> Result<u32> {
        if let Some(literal) = self.literal {
            return Ok(literal);
        }
        let literal = self.next()?;
        self.literal = Some(literal);
        Ok(literal)
    }

    fn truncated(&self) -> DecodeError {
        DecodeError::Truncated { word: self.word, available: self.words.len() }
    }

    fn invalid(&self, reason: Reason) -> DecodeError {
        DecodeError::Invalid { word: self.word, reason }
    }

    fn opcode<const N: usize>(&self, index: &[Option<Op>; N], opcode: u32) -> Result<Op> {
        index.get(opcode as usize).copied().flatten().ok_or(self.invalid(Reason::Opcode))
    }

    /// Refuses bits of a field that the instruction does not have.
    fn zero(&self, field: u32) -> Result<()> {
        if field == 0 { Ok(()) } else { Err(self.invalid(Reason::Field)) }
    }
}

/// `len` bits of `word` from `lsb` up.
const fn bits(word: u32, lsb: u32, len: u32) -> u32 {
    word >> lsb & ((1 << len) - 1)
}

/// One bit of `word`.
const fn bit(word: u32, index: u32) -> bool {
    word >> index & 1 != 0
}
