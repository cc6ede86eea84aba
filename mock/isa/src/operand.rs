//! Operands: registers, inline constants and literals.

use crate::info::{DataType, Kind};

/// One operand of a decoded instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Operand {
    /// The instruction has no such operand, or its encoding switches it off.
    #[default]
    None,
    /// Scalar registers `s[first .. first + count]`.
    Sgpr {
        /// First register.
        first: u8,
        /// Registers of 32 bits.
        count: u8,
    },
    /// Trap temporaries `ttmp[first .. first + count]`.
    Ttmp {
        /// First register.
        first: u8,
        /// Registers of 32 bits.
        count: u8,
    },
    /// Vector registers `v[first .. first + count]`. `first + count` may exceed 256 in an illegal encoding.
    Vgpr {
        /// First register.
        first: u8,
        /// Registers of 32 bits.
        count: u8,
    },
    /// Accumulation registers `a[first .. first + count]`. `first + count` may exceed 256 in an illegal encoding.
    Acc {
        /// First register.
        first: u8,
        /// Registers of 32 bits.
        count: u8,
    },
    /// A register with a name instead of a number.
    Special(Special),
    /// Inline integer, -16 to 64, sign-extended to the operand's width.
    Int(i8),
    /// Inline floating point number, in the operand's own format.
    Float(InlineFloat),
    /// The 32-bit literal that follows the instruction.
    Literal(u32),
}

impl Operand {
    /// The bits of a constant as an instruction reads it, if the operand is a constant; the rest of a wider operand is 0.
    ///
    /// Inline integers are extended to the operand's width. Inline floats have the format of the operand; where that is an integer they
    /// are binary16 for 16 bits, binary64 for 64, binary32 otherwise (packed 16-bit integers included, as in LLVM). A packed operand has
    /// its constant in the low element only, which is why compilers clear `op_sel_hi` with it. A literal is the low 16 bits of a 16-bit
    /// operand, the high half of a binary64, and sign- or zero-extended to other operands of 64 bits.
    pub fn constant(self, ty: DataType) -> Option<u64> {
        let width = if matches!(ty.kind, Kind::Float | Kind::Bfloat) { ty.bits } else { ty.total_bits() };
        let mask = if width < 64 { (1 << width.max(16)) - 1 } else { u64::MAX };
        Some(match self {
            Self::Int(value) if width < 64 && ty.count > 1 => u64::from(i32::from(value) as u32),
            Self::Int(value) => i64::from(value) as u64 & mask,
            Self::Float(value) => match (ty.kind, width) {
                (Kind::Bfloat, _) => value.bf16_bits().into(),
                (_, ..=16) => value.f16_bits().into(),
                (_, 64) => value.f64_bits(),
                _ => value.f32_bits().into(),
            },
            Self::Literal(value) => match (ty.kind, width) {
                (Kind::Float, 64) => u64::from(value) << 32,
                (Kind::Sint, 64) => i64::from(value as i32) as u64,
                _ if ty.count > 1 => value.into(),
                _ => u64::from(value) & mask,
            },
            _ => return None,
        })
    }
}

/// Registers with names. A 64-bit one is named by its whole, a half by `Lo` or `Hi`.
///
/// Numbers are those of the scalar source operand (ISA, "Scalar Operands", LLVM `AMDGPU::EncValues`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Special {
    FlatScratch,
    FlatScratchLo,
    FlatScratchHi,
    XnackMask,
    XnackMaskLo,
    XnackMaskHi,
    Vcc,
    VccLo,
    VccHi,
    M0,
    /// Number 125, which LLVM calls `null`; this machine has no null register.
    Null,
    Exec,
    ExecLo,
    ExecHi,
    /// Number 230, which LLVM names though this machine does not have it.
    FlatScratchBaseLo,
    /// Number 231, likewise.
    FlatScratchBaseHi,
    SharedBase,
    SharedLimit,
    PrivateBase,
    PrivateLimit,
    PopsExitingWaveId,
    Vccz,
    Execz,
    Scc,
    /// The LDS dword that M0 addresses.
    LdsDirect,
}

/// The inline floating point constants (source operands 240 to 248).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InlineFloat {
    /// 0.5
    Half,
    /// -0.5
    NegHalf,
    /// 1.0
    One,
    /// -1.0
    NegOne,
    /// 2.0
    Two,
    /// -2.0
    NegTwo,
    /// 4.0
    Four,
    /// -4.0
    NegFour,
    /// 1 / (2 pi)
    InvTwoPi,
}

impl InlineFloat {
    pub(crate) const ALL: [Self; 9] = [
        Self::Half,
        Self::NegHalf,
        Self::One,
        Self::NegOne,
        Self::Two,
        Self::NegTwo,
        Self::Four,
        Self::NegFour,
        Self::InvTwoPi,
    ];

    /// The bits as binary16.
    pub const fn f16_bits(self) -> u16 {
        [0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118][self as usize]
    }

    /// The bits as bfloat16.
    pub const fn bf16_bits(self) -> u16 {
        (self.f32_bits() >> 16) as u16
    }

    /// The bits as binary32.
    pub const fn f32_bits(self) -> u32 {
        match self {
            Self::Half => 0.5f32.to_bits(),
            Self::NegHalf => (-0.5f32).to_bits(),
            Self::One => 1.0f32.to_bits(),
            Self::NegOne => (-1.0f32).to_bits(),
            Self::Two => 2.0f32.to_bits(),
            Self::NegTwo => (-2.0f32).to_bits(),
            Self::Four => 4.0f32.to_bits(),
            Self::NegFour => (-4.0f32).to_bits(),
            Self::InvTwoPi => 0x3e22_f983,
        }
    }

    /// The bits as binary64.
    pub const fn f64_bits(self) -> u64 {
        match self {
            Self::Half => 0.5f64.to_bits(),
            Self::NegHalf => (-0.5f64).to_bits(),
            Self::One => 1.0f64.to_bits(),
            Self::NegOne => (-1.0f64).to_bits(),
            Self::Two => 2.0f64.to_bits(),
            Self::NegTwo => (-2.0f64).to_bits(),
            Self::Four => 4.0f64.to_bits(),
            Self::NegFour => (-4.0f64).to_bits(),
            Self::InvTwoPi => 0x3fc4_5f30_6dc9_c882,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Kind::{Bfloat, Bits, Float, Sint, Uint};

    const fn ty(kind: Kind, bits: u16, count: u8) -> DataType {
        DataType::new(kind, bits, count)
    }

    #[test]
    fn an_inline_float_has_the_format_of_its_operand() {
        let half = Operand::Float(InlineFloat::Half);
        assert_eq!(half.constant(ty(Float, 16, 1)), Some(0x3800));
        assert_eq!(half.constant(ty(Bfloat, 16, 1)), Some(0x3f00));
        assert_eq!(half.constant(ty(Float, 32, 1)), Some(0x3f00_0000));
        assert_eq!(half.constant(ty(Float, 64, 1)), Some(0x3fe0_0000_0000_0000));
        assert_eq!(half.constant(ty(Uint, 16, 1)), Some(0x3800));
        assert_eq!(half.constant(ty(Bits, 64, 1)), Some(0x3fe0_0000_0000_0000));
    }

    #[test]
    fn an_inline_float_of_a_packed_operand_is_in_the_low_element() {
        let one = Operand::Float(InlineFloat::One);
        assert_eq!(one.constant(ty(Float, 16, 2)), Some(0x3c00));
        assert_eq!(one.constant(ty(Float, 32, 2)), Some(0x3f80_0000));
        assert_eq!(one.constant(ty(Uint, 16, 2)), Some(0x3f80_0000));
    }

    #[test]
    fn an_inline_integer_is_extended_to_the_operand() {
        let minus_one = Operand::Int(-1);
        assert_eq!(minus_one.constant(ty(Sint, 16, 1)), Some(0xffff));
        assert_eq!(minus_one.constant(ty(Uint, 32, 1)), Some(0xffff_ffff));
        assert_eq!(minus_one.constant(ty(Sint, 16, 2)), Some(0xffff_ffff));
        assert_eq!(minus_one.constant(ty(Bits, 64, 1)), Some(u64::MAX));
    }

    #[test]
    fn a_literal_of_64_bits_is_extended_by_the_type() {
        let literal = Operand::Literal(0x8000_0001);
        assert_eq!(literal.constant(ty(Float, 64, 1)), Some(0x8000_0001_0000_0000));
        assert_eq!(literal.constant(ty(Sint, 64, 1)), Some(0xffff_ffff_8000_0001));
        assert_eq!(literal.constant(ty(Bits, 64, 1)), Some(0x8000_0001));
        assert_eq!(literal.constant(ty(Float, 16, 1)), Some(1));
        assert_eq!(literal.constant(ty(Float, 16, 2)), Some(0x8000_0001));
    }

    #[test]
    fn a_register_is_no_constant() {
        assert_eq!(Operand::Vgpr { first: 1, count: 1 }.constant(ty(Uint, 32, 1)), None);
        assert_eq!(Operand::Special(Special::Scc).constant(ty(Uint, 32, 1)), None);
    }
}
