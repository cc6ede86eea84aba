//! Operands: registers, inline constants and literals.

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

/// Registers with names. A 64-bit one is named by its whole, a half by `Lo` or `Hi`.
///
/// Numbers are those of the scalar source operand (ISA section 5.1, LLVM `AMDGPU::EncValues`).
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
