//! Operand fields: scalar registers, vector registers, constants.

use super::{Code, Reason, Result};
use crate::operand::{InlineFloat, Operand, Special};

impl Code<'_> {
    /// A scalar register, constant or literal: the 8-bit source field, or the low half of the 9-bit one (ISA, "Scalar Operands").
    ///
    /// Tuples have 1, 2, 4, 8 or 16 registers and start at a multiple of their size, at most 4; low bits that say otherwise are
    /// dropped, as LLVM does.
    pub(super) fn scalar(&mut self, field: u32, dwords: u8) -> Result<Operand> {
        Ok(match field {
            0..=101 => Operand::Sgpr { first: self.aligned(field as u8, dwords, 105)?, count: dwords },
            108..=123 => Operand::Ttmp { first: self.aligned(field as u8 - 108, dwords, 16)?, count: dwords },
            128..=192 => Operand::Int((field - 128) as i8),
            193..=208 => Operand::Int((192 - field as i32) as i8),
            240..=248 => Operand::Float(InlineFloat::ALL[field as usize - 240]),
            255 => Operand::Literal(self.literal()?),
            _ => Operand::Special(special(field, dwords).ok_or(self.invalid(Reason::Operand))?),
        })
    }

    fn aligned(&mut self, number: u8, dwords: u8, end: u8) -> Result<u8> {
        let first = match dwords {
            1 => number,
            2 => number & !1,
            4 | 8 | 16 => number & !3,
            _ => return Err(self.invalid(Reason::Operand)),
        };
        self.misaligned |= first != number;
        if first + dwords <= end { Ok(first) } else { Err(self.invalid(Reason::Operand)) }
    }

    /// The 9-bit source field.
    pub(super) fn source(&mut self, field: u32, dwords: u8) -> Result<Operand> {
        if field >= 256 { self.vgpr(field - 256, dwords) } else { self.scalar(field, dwords) }
    }

    /// A vector register tuple that starts at `first`.
    pub(super) fn vgpr(&self, first: u32, dwords: u8) -> Result<Operand> {
        self.vector(first, dwords, false)
    }

    /// A vector or, if `acc`, accumulation register tuple that starts at `first`.
    ///
    /// LLVM refuses accumulation registers past the last but not vector registers, as later machines have more.
    pub(super) fn vector(&self, first: u32, dwords: u8, acc: bool) -> Result<Operand> {
        if acc && first + u32::from(dwords) > 256 {
            return Err(self.invalid(Reason::Operand));
        }
        let (first, count) = (first as u8, dwords);
        Ok(if acc { Operand::Acc { first, count } } else { Operand::Vgpr { first, count } })
    }
}

const fn special(field: u32, dwords: u8) -> Option<Special> {
    use Special::*;
    Some(match (dwords, field) {
        (1 | 2, 230) => FlatScratchBaseLo,
        (1, 231) => FlatScratchBaseHi,
        (1 | 2, 235) => SharedBase,
        (1 | 2, 236) => SharedLimit,
        (1 | 2, 237) => PrivateBase,
        (1 | 2, 238) => PrivateLimit,
        (1 | 2, 239) => PopsExitingWaveId,
        (1 | 2, 251) => Vccz,
        (1 | 2, 252) => Execz,
        (1 | 2, 253) => Scc,
        (1, 254) => LdsDirect,
        (1, 102) => FlatScratchLo,
        (1, 103) => FlatScratchHi,
        (1, 104) => XnackMaskLo,
        (1, 105) => XnackMaskHi,
        (1, 106) => VccLo,
        (1, 107) => VccHi,
        (1, 124) => M0,
        (_, 125) => Null,
        (1, 126) => ExecLo,
        (1, 127) => ExecHi,
        (2, 102) => FlatScratch,
        (2, 104) => XnackMask,
        (2, 106) => Vcc,
        (2, 126) => Exec,
        _ => return None,
    })
}
