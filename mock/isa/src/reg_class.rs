//! Which registers and constants an instruction allows as operands, which is less than its encoding can express.
//!
//! The classes are LLVM's (`SIRegisterInfo.td` and the operands in the `.td` file of each encoding); gfx90a and later want tuples of
//! vector registers to start at an even number (`_Align2`).

use crate::{Class, DataType, Encoding, Inst, Kind, Memory, Op, Operand, Special};
use std::fmt::{self, Formatter};

/// The place of an operand in its instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Dst,
    Sdst,
    Src(usize),
}

impl Slot {
    /// The type of the operand.
    pub(crate) fn ty(self, inst: &Inst) -> DataType {
        let info = inst.op.info();
        match self {
            Self::Dst => info.dst.ty,
            Self::Sdst => info.sdst.ty,
            Self::Src(i) => info.src[i].ty,
        }
    }
}

/// What an operand may be.
#[derive(Clone, Copy)]
enum RegClass {
    /// Vector registers.
    Vgpr {
        aligned: bool,
    },
    /// Accumulation registers.
    Agpr {
        aligned: bool,
    },
    /// Either of the two.
    Av {
        aligned: bool,
    },
    /// As before, or a constant.
    VgprOrConstant,
    AgprOrConstant,
    /// Vector registers, scalar registers or constants.
    Vs,
    /// A vector register or LDS_DIRECT.
    VgprOrLds,
    /// Any register; no constant.
    NoConstant,
    /// Scalar registers or constants, less those of the other flags.
    Scalar {
        name: &'static str,
        m0: bool,
        exec: bool,
        constant: bool,
    },
}

const VGPR: RegClass = RegClass::Vgpr { aligned: true };
const AV: RegClass = RegClass::Av { aligned: true };

const fn scalar(name: &'static str) -> RegClass {
    RegClass::Scalar { name, m0: true, exec: true, constant: true }
}

impl Inst {
    /// Whether every operand is one that the instruction allows.
    ///
    /// LLVM decodes more than the hardware defines: operands in the wrong register file, odd tuples of vector registers, tuples that end
    /// past the last register or start at no multiple of their size, constants where only registers are allowed, literals in encodings
    /// of two dwords. Such an instruction decodes, LLVM's text may carry a comment, and this function returns false.
    pub fn is_legal(&self) -> bool {
        let sources = (0..self.src.len()).map(|i| (Slot::Src(i), self.src[i]));
        let mut operands = [(Slot::Dst, self.dst), (Slot::Sdst, self.sdst)].into_iter().chain(sources);
        !self.misaligned && operands.all(|(slot, operand)| self.allows(slot, operand))
    }

    fn allows(&self, slot: Slot, operand: Operand) -> bool {
        let class = RegClass::of(self, slot);
        match operand {
            Operand::Literal(_) => class.allows_constant() && self.encoding.has_literal(),
            Operand::Int(_) | Operand::Float(_) => class.allows_constant(),
            // s102 and up are FLAT_SCRATCH, XNACK_MASK and VCC.
            Operand::Sgpr { first, count } if first + count > 102 => false,
            Operand::Vgpr { first, count } if u16::from(first) + u16::from(count) > 256 => false,
            Operand::Special(Special::Null | Special::FlatScratchBaseLo | Special::FlatScratchBaseHi) => false,
            _ => class.allows(operand),
        }
    }
}

impl Encoding {
    /// Whether a literal can follow (ISA, "Literal Constants": not after encodings of 64 bits).
    fn has_literal(self) -> bool {
        matches!(self, Self::Sop1 | Self::Sop2 | Self::Sopc | Self::Sopk | Self::Vop1 | Self::Vop2 | Self::Vopc)
    }
}

/// Whether the instruction allows a constant in `slot`.
pub(crate) fn allows_constant(inst: &Inst, slot: Slot) -> bool {
    RegClass::of(inst, slot).allows_constant()
}

/// Writes LLVM's comment if the instruction does not allow its operand in `slot`.
pub(crate) fn write_objection(inst: &Inst, slot: Slot, operand: Operand, f: &mut Formatter<'_>) -> fmt::Result {
    let class = RegClass::of(inst, slot);
    match operand {
        Operand::Int(_) | Operand::Float(_) | Operand::Literal(_) if !class.allows_constant() => {
            f.write_str("/*Invalid immediate*/")
        }
        _ if class.allows(operand) => Ok(()),
        _ => {
            let ty = slot.ty(inst);
            let is_vector = matches!(operand, Operand::Vgpr { .. } | Operand::Acc { .. });
            let dwords = if is_vector || ty.kind == Kind::F8F6F4 { count(operand) } else { ty.dwords() };
            f.write_str("/*Invalid register, operand has '")?;
            class.write_name(dwords, f)?;
            f.write_str("' register class*/")
        }
    }
}

fn count(operand: Operand) -> u8 {
    match operand {
        Operand::Sgpr { count, .. } | Operand::Ttmp { count, .. } => count,
        Operand::Vgpr { count, .. } | Operand::Acc { count, .. } => count,
        Operand::Special(Special::Vcc | Special::Exec | Special::FlatScratch | Special::XnackMask) => 2,
        _ => 1,
    }
}

impl RegClass {
    fn of(inst: &Inst, slot: Slot) -> Self {
        class(inst, slot, slot.ty(inst))
    }

    fn allows_constant(self) -> bool {
        match self {
            Self::Scalar { constant, .. } => constant,
            Self::VgprOrConstant | Self::AgprOrConstant | Self::Vs => true,
            Self::Vgpr { .. } | Self::Agpr { .. } | Self::Av { .. } => false,
            Self::VgprOrLds | Self::NoConstant => false,
        }
    }

    fn allows(self, operand: Operand) -> bool {
        let even = |first: u8, count: u8, aligned: bool| count == 1 || !aligned || first.is_multiple_of(2);
        match operand {
            Operand::None | Operand::Int(_) | Operand::Float(_) | Operand::Literal(_) => true,
            Operand::Vgpr { first, count } => match self {
                Self::Vgpr { aligned } | Self::Av { aligned } => even(first, count, aligned),
                Self::Vs | Self::VgprOrConstant => even(first, count, true),
                Self::VgprOrLds | Self::NoConstant => true,
                Self::Agpr { .. } | Self::AgprOrConstant | Self::Scalar { .. } => false,
            },
            Operand::Acc { first, count } => match self {
                Self::Agpr { aligned } | Self::Av { aligned } => even(first, count, aligned),
                Self::AgprOrConstant => even(first, count, true),
                _ => false,
            },
            Operand::Sgpr { .. } | Operand::Ttmp { .. } => {
                matches!(self, Self::Vs | Self::NoConstant | Self::Scalar { .. })
            }
            Operand::Special(special) => self.allows_special(special),
        }
    }

    fn allows_special(self, special: Special) -> bool {
        match (special, self) {
            // Constants of the wave and `null` pass for inline values everywhere.
            (Special::Null | Special::SharedBase | Special::SharedLimit | Special::PrivateBase, _) => true,
            (Special::PrivateLimit | Special::PopsExitingWaveId | Special::Vccz | Special::Execz | Special::Scc, _) => {
                true
            }
            (Special::FlatScratchBaseLo | Special::FlatScratchBaseHi, _) => true,
            (Special::LdsDirect, _) => matches!(self, Self::Vs | Self::VgprOrLds | Self::NoConstant),
            (Special::M0, Self::Scalar { m0, .. }) => m0,
            (Special::Exec | Special::ExecLo | Special::ExecHi, Self::Scalar { exec, .. }) => exec,
            _ => matches!(self, Self::Vs | Self::NoConstant | Self::Scalar { .. }),
        }
    }

    fn write_name(self, dwords: u8, f: &mut Formatter<'_>) -> fmt::Result {
        let (single, tuple, aligned) = match self {
            Self::Vgpr { aligned } => ("VGPR", "VReg", aligned),
            Self::Agpr { aligned } => ("AGPR", "AReg", aligned),
            Self::Av { aligned } => ("AV", "AV", aligned),
            Self::VgprOrConstant => ("VGPR", "VReg", true),
            Self::AgprOrConstant => ("AGPR", "AReg", true),
            Self::Vs => ("VS", "VS", true),
            Self::VgprOrLds => return f.write_str("VRegOrLds_32"),
            Self::NoConstant => return Ok(()),
            Self::Scalar { name, .. } => return f.write_str(name),
        };
        match dwords {
            1 => write!(f, "{single}_32"),
            _ => write!(f, "{tuple}_{}{}", 32 * u16::from(dwords), if aligned { "_Align2" } else { "" }),
        }
    }
}

fn class(inst: &Inst, slot: Slot, ty: DataType) -> RegClass {
    match inst.encoding {
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Sopp => match inst.op {
            Op::SSetpcB64 | Op::SRfeB64 | Op::SMovrelsB32 | Op::SMovrelsB64 | Op::SCbranchJoin if slot != Slot::Dst => {
                RegClass::Scalar { name: "SReg_32", m0: true, exec: true, constant: false }
            }
            _ => scalar("SReg_32"),
        },
        Encoding::Smem => smem(slot, ty),
        Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Vop3 | Encoding::Sdwa | Encoding::Dpp => {
            vop(inst, slot, ty)
        }
        Encoding::Vop3p => {
            if slot == Slot::Dst {
                VGPR
            } else {
                RegClass::Vs
            }
        }
        Encoding::Mai | Encoding::Vop3px2 => matrix(inst, slot),
        Encoding::Ds => ds(inst, slot),
        Encoding::Flat | Encoding::Global | Encoding::Scratch => flat(inst, slot),
        Encoding::Mubuf | Encoding::Mtbuf => match slot {
            Slot::Src(0) => RegClass::Vgpr { aligned: inst.encoding == Encoding::Mubuf },
            Slot::Src(1) => scalar("SReg_128_XNULL"),
            Slot::Src(2) => scalar("SReg_32"),
            _ => AV,
        },
    }
}

fn smem(slot: Slot, ty: DataType) -> RegClass {
    match (slot, ty.dwords()) {
        (Slot::Dst | Slot::Src(2), 1) => {
            RegClass::Scalar { name: "SReg_32_XM0_XEXEC", m0: false, exec: false, constant: true }
        }
        (Slot::Dst | Slot::Src(2), 2) => {
            RegClass::Scalar { name: "SReg_64_XEXEC", m0: true, exec: false, constant: true }
        }
        _ => scalar("SReg_32"),
    }
}

fn vop(inst: &Inst, slot: Slot, ty: DataType) -> RegClass {
    match (slot, inst.op) {
        (Slot::Dst, Op::VReadfirstlaneB32 | Op::VReadlaneB32) => {
            RegClass::Scalar { name: "SReg_32_XM0", m0: false, exec: true, constant: false }
        }
        (Slot::Dst, Op::VAccvgprMovB32) | (Slot::Src(0), Op::VAccvgprMovB32) => RegClass::Agpr { aligned: true },
        (Slot::Dst, _) if inst.op.info().encoding == Encoding::Vopc => {
            RegClass::Scalar { name: "SReg_64", m0: true, exec: true, constant: false }
        }
        (Slot::Sdst, _) => scalar("SReg_64"),
        (Slot::Dst, _) => VGPR,
        (Slot::Src(0), Op::VReadfirstlaneB32 | Op::VReadlaneB32) => RegClass::VgprOrLds,
        (Slot::Src(_), Op::VReadlaneB32 | Op::VWritelaneB32) => scalar("SReg_32"),
        (Slot::Src(2), Op::VCndmaskB32 | Op::VAddcCoU32 | Op::VSubbCoU32 | Op::VSubbrevCoU32) => RegClass::NoConstant,
        (Slot::Src(_), Op::VSwapB32 | Op::VPermlane16SwapB32 | Op::VPermlane32SwapB32) => VGPR,
        (Slot::Src(0), Op::VCvtScalef32SrPkFp4F32) => VGPR,
        (Slot::Src(1), Op::VFmamkF32 | Op::VMadmkF16) | (Slot::Src(2), Op::VFmaakF32 | Op::VMadakF16) => RegClass::Vs,
        (Slot::Src(2), Op::VFmamkF32 | Op::VMadmkF16) => VGPR,
        (Slot::Src(1), _) if matches!(inst.encoding, Encoding::Vop2 | Encoding::Vopc) => VGPR,
        _ if inst.encoding == Encoding::Dpp => VGPR,
        _ if ty.dwords() > 2 => VGPR,
        _ => RegClass::Vs,
    }
}

fn matrix(inst: &Inst, slot: Slot) -> RegClass {
    let acc_cd = matches!(inst.dst, Operand::Acc { .. });
    match (slot, inst.op, inst.op.info().class) {
        (Slot::Dst, Op::VAccvgprReadB32, _) | (Slot::Src(3 | 4), ..) => VGPR,
        (Slot::Dst, Op::VAccvgprWriteB32, _) | (_, Op::VAccvgprReadB32, _) => RegClass::Agpr { aligned: true },
        (_, Op::VAccvgprWriteB32, _) => RegClass::Vs,
        (Slot::Src(2), _, Class::Smfmac(_)) => VGPR,
        (Slot::Dst, _, Class::Smfmac(_)) | (Slot::Src(0 | 1), ..) => AV,
        (Slot::Src(_), ..) if acc_cd => RegClass::AgprOrConstant,
        (Slot::Src(_), ..) => RegClass::VgprOrConstant,
        _ if acc_cd => RegClass::Agpr { aligned: true },
        _ => VGPR,
    }
}

/// Data of an instruction that has more than one data operand must all be in one register file.
fn tied(operand: Operand) -> RegClass {
    match operand {
        Operand::Acc { .. } => RegClass::Agpr { aligned: false },
        _ => VGPR,
    }
}

fn ds(inst: &Inst, slot: Slot) -> RegClass {
    let info = inst.op.info();
    let data = info.src[1..].iter().filter(|src| !src.ty.is_none()).count() + usize::from(!info.dst.ty.is_none());
    let operand = if slot == Slot::Dst { inst.dst } else { inst.src[1] };
    match slot {
        Slot::Src(0) if info.class == Class::Gws => AV,
        Slot::Src(0) => VGPR,
        _ if inst.op == Op::DsReadB96TrB6 => RegClass::Av { aligned: false },
        _ if data > 1 => tied(operand),
        _ => AV,
    }
}

fn flat(inst: &Inst, slot: Slot) -> RegClass {
    let returns = inst.op.info().memory == Memory::Atomic && inst.dst != Operand::None;
    match slot {
        Slot::Src(0) => VGPR,
        Slot::Src(1) if inst.encoding == Encoding::Scratch => scalar("SReg_32_XEXEC_HI"),
        Slot::Src(1) if inst.dst == Operand::None && inst.src[2] == Operand::None => scalar("SReg_64"),
        Slot::Src(1) => RegClass::Scalar { name: "SReg_64_XEXEC_XNULL", m0: true, exec: false, constant: true },
        _ if returns => tied(inst.dst),
        _ => AV,
    }
}
