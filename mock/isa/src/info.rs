//! What an instruction does to its operands, as static tables: data types, access, implicit registers, counters.
//!
//! Sources: "AMD Instinct CDNA4 Instruction Set Architecture" for the meaning of operands, LLVM 22
//! `llvm/lib/Target/AMDGPU/*Instructions.td` for register widths and implicit uses and definitions.

use crate::{Encoding, Op};
use bitflags::bitflags;
use std::fmt;

/// How the bits of one element are understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No operand.
    None,
    /// Bits without arithmetic meaning: moves, logic, addresses, resource descriptors.
    Bits,
    /// Unsigned integer.
    Uint,
    /// Two's complement integer.
    Sint,
    /// IEEE 754 binary16, binary32 or binary64.
    Float,
    /// bfloat16.
    Bfloat,
    /// OCP E4M3.
    Fp8,
    /// OCP E5M2.
    Bf8,
    /// OCP E2M3.
    Fp6,
    /// OCP E3M2.
    Bf6,
    /// OCP E2M1.
    Fp4,
    /// OCP E8M0 scale.
    E8M0,
    /// Fp8, Bf8, Fp6, Bf6 or Fp4: the instruction's `cbsz` (first source) or `blgp` (second) says which.
    F8F6F4,
}

/// The type of an operand: `count` elements of `bits` bits, packed from the lowest bit up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataType {
    /// Meaning of one element.
    pub kind: Kind,
    /// Width of one element in bits.
    pub bits: u16,
    /// Number of elements.
    pub count: u8,
}

impl DataType {
    /// The type of an operand that does not exist.
    pub const NONE: Self = Self { kind: Kind::None, bits: 0, count: 0 };

    pub(crate) const fn new(kind: Kind, bits: u16, count: u8) -> Self {
        Self { kind, bits, count }
    }

    /// Whether there is no such operand.
    pub const fn is_none(self) -> bool {
        matches!(self.kind, Kind::None)
    }

    /// Width of the whole operand in bits.
    pub const fn total_bits(self) -> u16 {
        self.bits * self.count as u16
    }

    /// Registers of 32 bits that hold the operand.
    pub const fn dwords(self) -> u8 {
        self.total_bits().div_ceil(32) as u8
    }

    /// Whether elements are floating point numbers to which `neg` and `abs` apply.
    pub const fn is_float(self) -> bool {
        matches!(self.kind, Kind::Float | Kind::Bfloat)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count > 1 {
            write!(f, "{}x", self.count)?;
        }
        match self.kind {
            Kind::None => f.write_str("-"),
            Kind::Bits => write!(f, "b{}", self.bits),
            Kind::Uint => write!(f, "u{}", self.bits),
            Kind::Sint => write!(f, "i{}", self.bits),
            Kind::Float => write!(f, "f{}", self.bits),
            Kind::Bfloat => write!(f, "bf{}", self.bits),
            Kind::Fp8 => f.write_str("fp8"),
            Kind::Bf8 => f.write_str("bf8"),
            Kind::Fp6 => f.write_str("fp6"),
            Kind::Bf6 => f.write_str("bf6"),
            Kind::Fp4 => f.write_str("fp4"),
            Kind::E8M0 => f.write_str("e8m0"),
            Kind::F8F6F4 => f.write_str("f8f6f4"),
        }
    }
}

/// What an instruction does with the register that an operand names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Only reads it.
    Read,
    /// Only writes it. Lanes that EXEC (or DPP masks) leave out keep their value, which is no read.
    Write,
    /// Reads it and then writes it: accumulators, swaps, partial writes that keep the other half.
    ReadWrite,
}

/// One explicit operand of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandInfo {
    /// Data type as the instruction interprets it.
    pub ty: DataType,
    /// Whether it is read, written or both.
    pub access: Access,
}

impl OperandInfo {
    /// An operand that does not exist.
    pub const NONE: Self = Self { ty: DataType::NONE, access: Access::Read };
}

bitflags! {
    /// Registers that an instruction uses without naming them in its encoding.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Implicit: u16 {
        /// VCC, the 64-bit vector condition code.
        const VCC = 1 << 0;
        /// The scalar condition code.
        const SCC = 1 << 1;
        /// EXEC, the 64-bit lane mask.
        const EXEC = 1 << 2;
        /// M0.
        const M0 = 1 << 3;
        /// The MODE register: rounding, denormals, DX10 clamp, IEEE, GPR indexing.
        const MODE = 1 << 4;
        /// FLAT_SCRATCH, the 64-bit base of a wave's scratch.
        const FLAT_SCRATCH = 1 << 5;
        /// The program counter, other than stepping over the instruction itself.
        const PC = 1 << 6;
        /// VSKIP state.
        const VSKIP = 1 << 7;
        /// A register whose number is only known at run time (relative to M0 or the GPR index).
        const INDEXED = 1 << 8;
        /// Hardware registers reached by s_getreg and s_setreg.
        const HWREG = 1 << 9;
    }
}

bitflags! {
    /// Outstanding-operation counters that an instruction increments at issue and decrements when done.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Counters: u8 {
        /// Vector memory.
        const VM = 1 << 0;
        /// LDS, GWS, scalar memory, messages.
        const LGKM = 1 << 1;
        /// GDS and GWS data reads.
        const EXP = 1 << 2;
    }
}

/// The shape of a matrix instruction: `blocks` products of M x K by K x N.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matrix {
    /// Rows of A and of the result.
    pub m: u8,
    /// Columns of B and of the result.
    pub n: u8,
    /// Columns of A and rows of B, zeros of a sparse A included.
    pub k: u8,
    /// Independent products.
    pub blocks: u8,
}

/// What a memory instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    /// Nothing.
    None,
    /// Reads it.
    Load,
    /// Writes it.
    Store,
    /// Reads, changes and writes it in one step.
    Atomic,
    /// Acts on caches only.
    Cache,
}

/// Which part of the machine executes an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Scalar ALU.
    Salu,
    /// Changes the program counter, or may.
    Branch,
    /// Wave control that has no result: waits, barriers, priority, end of program.
    Control,
    /// Sends a message to the host or to another block.
    Message,
    /// Traps, traces and performance counters.
    Debug,
    /// Vector ALU.
    Valu,
    /// Vector ALU, the quarter-rate transcendental unit.
    Transcendental,
    /// Dense matrix multiply-add.
    Mfma(Matrix),
    /// Matrix multiply-add with a 4:2 sparse A.
    Smfmac(Matrix),
    /// Scalar memory.
    Smem,
    /// Local data share.
    Lds,
    /// Global wave sync.
    Gws,
    /// Flat memory: global, LDS or scratch by address.
    Flat,
    /// Global memory.
    Global,
    /// Scratch memory.
    Scratch,
    /// Untyped buffer.
    Mubuf,
    /// Typed buffer.
    Mtbuf,
}

/// Everything that does not change between two encodings of one instruction.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// LLVM's mnemonic without an encoding suffix.
    pub name: &'static str,
    /// Executing unit.
    pub class: Class,
    /// First destination.
    pub dst: OperandInfo,
    /// Second destination: carry out, division scale flag.
    pub sdst: OperandInfo,
    /// Sources in AMD's field order; see [`crate::Inst::src`].
    pub src: [OperandInfo; 5],
    /// Registers read though not named.
    pub reads: Implicit,
    /// Registers written though not named.
    pub writes: Implicit,
    /// Counters of the outstanding operation.
    pub counters: Counters,
    /// Effect on memory.
    pub memory: Memory,
    /// The encoding the instruction is defined in.
    pub encoding: Encoding,
    /// Opcode within [`OpInfo::encoding`].
    pub opcode: u16,
    pub(crate) forms: Forms,
}

/// Further encodings of a vector ALU instruction and what its VOP3 form does with each modifier bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forms {
    /// VOP3 opcode, for an instruction of VOP1, VOP2 or VOPC that has one.
    pub(crate) vop3: Option<u16>,
    /// An LDS instruction with two 8-bit offsets.
    pub(crate) two_addresses: bool,
    /// A buffer load that can go to LDS.
    pub(crate) lds: bool,
    pub(crate) sdwa: bool,
    pub(crate) dpp: bool,
    /// LLVM prints no `_e32` or `_e64`.
    pub(crate) single: bool,
    /// Modifier bits with a meaning.
    pub(crate) used: ModBits,
    /// Modifier bits that may be set but have no meaning.
    pub(crate) ignored: ModBits,
}

bitflags! {
    /// The modifier bits of a VOP3 instruction that have a meaning for it or not.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub(crate) struct ModBits: u16 {
        const ABS0 = 1 << 0;
        const ABS1 = 1 << 1;
        const ABS2 = 1 << 2;
        const OP_SEL0 = 1 << 3;
        const OP_SEL1 = 1 << 4;
        const OP_SEL2 = 1 << 5;
        const OP_SEL_DST = 1 << 6;
        const CLAMP = 1 << 7;
        const OMOD = 3 << 8;
        const NEG0 = 1 << 10;
        const NEG1 = 1 << 11;
        const NEG2 = 1 << 12;
        const OP_SEL = 15 << 3;
    }
}

impl ModBits {
    /// `neg` and `abs` of source `i`, 0 or 1.
    pub(crate) fn neg_abs(i: usize) -> Self {
        if i == 0 { Self::NEG0 | Self::ABS0 } else { Self::NEG1 | Self::ABS1 }
    }
}

impl OpInfo {
    /// Every encoding of the instruction with its opcode there. SDWA and DPP keep the opcode of VOP1, VOP2 or VOPC.
    pub fn encodings(&self) -> impl Iterator<Item = (Encoding, u16)> {
        let forms = self.forms;
        [
            Some((self.encoding, self.opcode)),
            forms.vop3.map(|opcode| (Encoding::Vop3, opcode)),
            forms.sdwa.then_some((Encoding::Sdwa, self.opcode)),
            forms.dpp.then_some((Encoding::Dpp, self.opcode)),
        ]
        .into_iter()
        .flatten()
    }
}

impl Op {
    /// Static facts about the instruction.
    pub fn info(self) -> &'static OpInfo {
        &crate::tables::INFO[self as usize]
    }

    /// LLVM's mnemonic without an encoding suffix, as in `v_add_f32`.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}
