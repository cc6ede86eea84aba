//! The architectural state of one wave.

use std::fmt;

/// Work-items per wave.
pub(crate) const LANES: usize = 64;

/// One vector register: a dword for each lane.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Vreg(pub [u32; LANES]);

impl Default for Vreg {
    fn default() -> Self {
        Self([0; LANES])
    }
}

/// Scalar operand numbers with a meaning of their own (CDNA4 ISA, table "SGPR and special operand encodings").
pub(crate) mod sreg {
    /// FLAT_SCRATCH, low half.
    pub(crate) const FLAT_SCRATCH_LO: usize = 102;
    /// XNACK_MASK, low half.
    pub(crate) const XNACK_MASK_LO: usize = 104;
    /// VCC, low half.
    pub(crate) const VCC_LO: usize = 106;
    /// First trap temporary.
    pub(crate) const TTMP0: usize = 108;
    /// M0.
    pub(crate) const M0: usize = 124;
    /// EXEC, low half.
    pub(crate) const EXEC_LO: usize = 126;
    /// Scalar registers kept, specials included.
    pub(crate) const COUNT: usize = 128;
}

/// The MODE register (CDNA4 ISA section "MODE register").
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode(pub u32);

/// How results are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To nearest, ties to even.
    NearestEven,
    /// Towards plus infinity.
    Up,
    /// Towards minus infinity.
    Down,
    /// Towards zero.
    Zero,
}

impl Mode {
    const FP16_OVERFLOW: u32 = 1 << 23;
    /// Rounding, denormals and half-precision overflow.
    pub(crate) const USUAL_BITS: u32 = 0xff | Self::FP16_OVERFLOW;
    /// Round to nearest even, keep denormals, overflow to infinity: the mode that plain handlers are compiled for.
    pub(crate) const USUAL: u32 = 0xf0;
    /// IEEE handling of signalling NaNs.
    pub(crate) const IEEE: u32 = 1 << 9;
    /// GPR_IDX_EN: vector registers are indexed by M0.
    pub(crate) const GPR_IDX_EN: u32 = 1 << 27;
    /// VSKIP: vector instructions are skipped.
    pub(crate) const VSKIP: u32 = 1 << 28;

    /// MODE at wave start, from COMPUTE_PGM_RSRC1 (FLOAT_MODE 12-19, DX10_CLAMP 21, IEEE_MODE 23, FP16_OVFL 26).
    #[must_use]
    pub(crate) fn from_rsrc1(rsrc1: u32) -> Self {
        let float = rsrc1 >> 12 & 0xff;
        let dx10_clamp = rsrc1 >> 21 & 1;
        let ieee = rsrc1 >> 23 & 1;
        let fp16_overflow = rsrc1 >> 26 & 1;
        Self(float | dx10_clamp << 8 | ieee << 9 | fp16_overflow << 23)
    }

    fn rounding(bits: u32) -> Rounding {
        match bits & 3 {
            0 => Rounding::NearestEven,
            1 => Rounding::Up,
            2 => Rounding::Down,
            _ => Rounding::Zero,
        }
    }

    /// Rounding of single precision.
    #[must_use]
    pub(crate) fn round_f32(self) -> Rounding {
        Self::rounding(self.0)
    }

    /// Rounding of half and double precision.
    #[must_use]
    pub(crate) fn round_f16_f64(self) -> Rounding {
        Self::rounding(self.0 >> 2)
    }

    /// Single-precision denormal inputs are kept (not read as zero).
    #[must_use]
    pub(crate) fn keeps_input_denormals_f32(self) -> bool {
        self.0 >> 4 & 1 == 1
    }

    /// Single-precision denormal results are kept (not flushed to zero).
    #[must_use]
    pub(crate) fn keeps_output_denormals_f32(self) -> bool {
        self.0 >> 5 & 1 == 1
    }

    /// Half- and double-precision denormal inputs are kept.
    #[must_use]
    pub(crate) fn keeps_input_denormals_f16_f64(self) -> bool {
        self.0 >> 6 & 1 == 1
    }

    /// Half- and double-precision denormal results are kept.
    #[must_use]
    pub(crate) fn keeps_output_denormals_f16_f64(self) -> bool {
        self.0 >> 7 & 1 == 1
    }

    /// Clamp turns NaN into zero.
    #[must_use]
    pub(crate) fn dx10_clamp(self) -> bool {
        self.0 >> 8 & 1 == 1
    }

    /// Signalling NaNs are quieted by min and max, and omod is ignored.
    #[must_use]
    pub(crate) fn ieee(self) -> bool {
        self.0 & Self::IEEE != 0
    }

    /// Operands of vector ALU instructions are indexed by M0.
    #[must_use]
    pub(crate) fn indexes_vgprs(self) -> bool {
        self.0 & Self::GPR_IDX_EN != 0
    }

    /// Vector instructions are skipped.
    #[must_use]
    pub(crate) fn skips_vector(self) -> bool {
        self.0 & Self::VSKIP != 0
    }

    /// CSP: levels in use of the stack of `s_cbranch_*_fork`.
    #[must_use]
    pub(crate) fn branch_stack(self) -> u32 {
        self.0 >> 29
    }

    /// The mode with another CSP.
    #[must_use]
    pub(crate) fn with_branch_stack(self, level: u32) -> Self {
        Self(self.0 & !(7 << 29) | level << 29)
    }

    /// Half-precision overflow gives the largest finite value instead of infinity.
    #[must_use]
    pub(crate) fn fp16_overflow(self) -> bool {
        self.0 & Self::FP16_OVERFLOW != 0
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MODE({:#x})", self.0)
    }
}

/// The registers of one wave.
pub(crate) struct Wave {
    /// ArchVGPRs, then AccVGPRs, as many as the kernel descriptor asks for.
    pub vgprs: Box<[Vreg]>,
    /// SGPRs 0 to 101 and the specials by their operand number ([`sreg`]).
    pub sgprs: [u32; sreg::COUNT],
    /// The scalar condition code.
    pub scc: bool,
    /// MODE.
    pub mode: Mode,
    /// The bits of STATUS that instructions other than `s_setprio` do not change.
    pub status: u32,
    /// Index of the next pre-decoded instruction in the wave's code.
    pub pc: u32,
    /// This wave's number in its workgroup.
    pub index: u32,
    /// Bits of the HW_ID register that name where the wave runs.
    pub hw_id: u32,
    /// XCC the wave runs on.
    pub xcc: u32,
    /// First address of the wave's private (scratch) memory, zero if it has none.
    pub scratch_base: u64,
    /// Instructions executed so far.
    pub executed: u64,
}

impl Wave {
    /// EXEC: the lanes that are on.
    pub(crate) fn exec(&self) -> u64 {
        u64::from(self.sgprs[sreg::EXEC_LO]) | u64::from(self.sgprs[sreg::EXEC_LO + 1]) << 32
    }
}
