//! The decoded instruction.

use crate::{Op, Operand};

/// How an instruction is laid out in memory (ISA, "Microcode Formats").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encoding {
    /// Scalar, one source.
    Sop1,
    /// Scalar, two sources.
    Sop2,
    /// Scalar with a 16-bit immediate.
    Sopk,
    /// Scalar compare.
    Sopc,
    /// Program control.
    Sopp,
    /// Scalar memory.
    Smem,
    /// Vector, one source.
    Vop1,
    /// Vector, two sources.
    Vop2,
    /// Vector, up to three sources; with a scalar second destination it is AMD's VOP3B.
    Vop3,
    /// Vector, packed.
    Vop3p,
    /// Matrix and AccVGPR moves (AMD's VOP3P-MAI).
    Mai,
    /// A scaled matrix instruction: `v_mfma_ld_scale_b32` and the instruction it scales, four dwords.
    Vop3px2,
    /// Vector compare.
    Vopc,
    /// VOP1, VOP2 or VOPC with sub-dword operands.
    Sdwa,
    /// VOP1 or VOP2 with data-parallel primitives.
    Dpp,
    /// Local data share.
    Ds,
    /// Flat memory.
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

/// One decoded instruction.
///
/// # Order of `src`
///
/// | encoding | sources |
/// | --- | --- |
/// | SOP1, SOP2, SOPC, SOPK | `ssrc0`, `ssrc1`; the immediate of SOPK is [`Mods::simm16`] |
/// | SMEM | `sbase`, `soffset` if in use, `sdata` of stores and atomics |
/// | VOP* | `src0`, `src1`, `src2`; the condition or carry in (VCC when implicit) is the last; fmamk/fmaak: as printed |
/// | scaled MFMA | `src0`, `src1`, `src2`, scale of `src0`, scale of `src1` |
/// | DS | `addr`, `data0`, `data1` |
/// | FLAT, GLOBAL, SCRATCH | `addr`, `saddr`, `data` |
/// | MUBUF, MTBUF | `vaddr`, `srsrc`, `soffset`, `vdata` |
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Inst {
    /// Operation.
    pub op: Op,
    /// Layout it was found in.
    pub encoding: Encoding,
    /// Length in dwords, 1 to 5, a literal included.
    pub dwords: u8,
    /// Destination.
    pub dst: Operand,
    /// Second destination: carry out, division scale flag.
    pub sdst: Operand,
    /// Sources; the order is in the type's description.
    pub src: [Operand; 5],
    /// A scalar operand of more than one dword had a number that is no multiple of its size, at most 4. The operand here is the tuple
    /// that starts at the next lower multiple, as in LLVM; the hardware does not define which registers it uses.
    pub misaligned: bool,
    /// Everything that is not a register or constant.
    pub mods: Mods,
}

impl Inst {
    /// What decoding starts from.
    pub(crate) const BLANK: Self = Self {
        op: Op::SNop,
        encoding: Encoding::Sopp,
        dwords: 0,
        dst: Operand::None,
        sdst: Operand::None,
        src: [Operand::None; 5],
        misaligned: false,
        mods: Mods::NONE,
    };
}

/// Modifiers and immediates. A field that the encoding does not have is zero, false or `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mods {
    /// Sources to negate, bit i for `src[i]`; for packed types their low halves.
    pub neg: u8,
    /// Sources of packed type whose high half to negate.
    pub neg_hi: u8,
    /// Sources to take the absolute value of, before `neg`.
    pub abs: u8,
    /// Bit i: `src[i]` uses its high half (VOP3) or its low result comes from the high half (VOP3P). Bit 3: the
    /// destination is the high half. v_permlane16_swap and v_permlane32_swap: bit 0 fetches from inactive lanes, bit 1 is
    /// bound control.
    pub op_sel: u8,
    /// VOP3P, bit i: the high result comes from the high half of `src[i]`.
    pub op_sel_hi: u8,
    /// Clamp the result: to 0..1 for floats, saturate for integers.
    pub clamp: bool,
    /// Output multiplier: 0 none, 1 times 2, 2 times 4, 3 divided by 2.
    pub omod: u8,
    /// Matrix: log2 of the broadcast group of A; f8f6f4: type of A.
    pub cbsz: u8,
    /// Matrix: which block of A to broadcast; SMFMAC: which part of the index register.
    pub abid: u8,
    /// Matrix: lane pattern of B; f8f6f4: type of B; f64: negation of A, B, C.
    pub blgp: u8,
    /// Truth table of v_bitop3.
    pub bitop3: u8,
    /// Data-parallel primitives on `src[0]`.
    pub dpp: Option<Dpp>,
    /// Sub-dword selection.
    pub sdwa: Option<Sdwa>,
    /// Byte offset of a memory address: SMEM 21 bits signed, FLAT 13 bits unsigned (of which LLVM
    /// assembles 12), GLOBAL and SCRATCH 13 bits signed,
    /// MUBUF 12 bits unsigned, DS 16 bits unsigned.
    pub offset: i32,
    /// DS with two addresses: first offset, in elements (times 64 for st64).
    pub offset0: u8,
    /// DS with two addresses: second offset.
    pub offset1: u8,
    /// Cache scope, low bit; on atomics: return the value before. On SMEM: GLC.
    pub sc0: bool,
    /// Cache scope, high bit.
    pub sc1: bool,
    /// Non-temporal.
    pub nt: bool,
    /// Load into LDS instead of registers.
    pub lds: bool,
    /// Buffer: `vaddr` holds a byte offset.
    pub offen: bool,
    /// Buffer: `vaddr` holds an index.
    pub idxen: bool,
    /// DS: global data share.
    pub gds: bool,
    /// SMEM: `offset` is part of the address.
    pub imm: bool,
    /// SMEM: non-volatile.
    pub nv: bool,
    /// MTBUF: data format in bits 0 to 3, number format in bits 4 to 6.
    pub format: u8,
    /// Immediate of SOPK and SOPP; permissions of s_atc_probe.
    pub simm16: u16,
}

impl Mods {
    pub(crate) const NONE: Self = Self {
        neg: 0,
        neg_hi: 0,
        abs: 0,
        op_sel: 0,
        op_sel_hi: 0,
        clamp: false,
        omod: 0,
        cbsz: 0,
        abid: 0,
        blgp: 0,
        bitop3: 0,
        dpp: None,
        sdwa: None,
        offset: 0,
        offset0: 0,
        offset1: 0,
        sc0: false,
        sc1: false,
        nt: false,
        lds: false,
        offen: false,
        idxen: false,
        gds: false,
        imm: false,
        nv: false,
        format: 0,
        simm16: 0,
    };
}

/// Data-parallel primitives (ISA, "Microcode Formats", DPP): `src[0]` is read from another lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dpp {
    /// Lane pattern, 9 bits.
    pub ctrl: u16,
    /// Rows of 16 lanes that are written, bit i for row i.
    pub row_mask: u8,
    /// Banks of 4 lanes within each row that are written.
    pub bank_mask: u8,
    /// Lanes whose source is out of bounds read 0 (set) or are not written (clear).
    pub bound_ctrl: bool,
}

/// Sub-dword addressing (ISA, "Microcode Formats", SDWA).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sdwa {
    /// Part of the destination that is written.
    pub dst_sel: SdwaSel,
    /// What happens to the rest of the destination.
    pub dst_unused: DstUnused,
    /// Part of `src[0]` that is read.
    pub src0_sel: SdwaSel,
    /// Part of `src[1]` that is read.
    pub src1_sel: SdwaSel,
    /// Sources to sign-extend, bit i for `src[i]`.
    pub sext: u8,
}

/// Part of a dword.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SdwaSel {
    /// Bits 7:0.
    Byte0,
    /// Bits 15:8.
    Byte1,
    /// Bits 23:16.
    Byte2,
    /// Bits 31:24.
    Byte3,
    /// Bits 15:0.
    Word0,
    /// Bits 31:16.
    Word1,
    /// All bits.
    Dword,
}

/// The bits of an SDWA destination outside `dst_sel`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DstUnused {
    /// Zero.
    Pad,
    /// Copies of the sign bit of the result.
    Sext,
    /// Kept.
    Preserve,
}
