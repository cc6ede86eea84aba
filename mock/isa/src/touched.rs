//! The registers that an instruction reads and writes.

use crate::info::{Access, Implicit, ModBits};
use crate::{DstUnused, Encoding, Inst, Operand, Special};

/// A register file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RegFile {
    /// Scalar registers by their operand number: s0 to s101, FLAT_SCRATCH at 102, XNACK_MASK at 104, VCC at 106, ttmp0 at 108,
    /// M0 at 124, EXEC at 126.
    Scalar,
    /// Vector registers v0 to v255, one dword a lane.
    Vector,
    /// Accumulation registers a0 to a255, one dword a lane.
    Acc,
    /// The scalar condition code, number 0.
    Scc,
}

/// `count` registers of 32 bits from `first` up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RegRange {
    /// Register file.
    pub file: RegFile,
    /// Number of the first.
    pub first: u8,
    /// How many.
    pub count: u8,
}

const fn scalar(first: u8, count: u8) -> RegRange {
    RegRange { file: RegFile::Scalar, first, count }
}

const FLAT_SCRATCH: RegRange = scalar(102, 2);
const VCC: RegRange = scalar(106, 2);
const M0: RegRange = scalar(124, 1);
const EXEC: RegRange = scalar(126, 2);
const SCC: RegRange = RegRange { file: RegFile::Scc, first: 0, count: 1 };

impl Inst {
    /// Registers whose value the instruction uses, explicit ones first; a register may come twice.
    ///
    /// Not in the list: MODE, the program counter and hardware registers (see [`crate::OpInfo::reads`]), registers that M0 or
    /// the GPR index selects at run time ([`Implicit::INDEXED`]), and the old value of lanes that are not written.
    pub fn reads(&self) -> impl Iterator<Item = RegRange> {
        let info = self.op.info();
        let dst = (reads(info.dst.access) || self.keeps_part_of_dst()).then_some(self.dst);
        let sources = (0..self.src.len()).filter(move |&i| reads(info.src[i].access)).map(|i| self.src[i]);
        let lds = self.mods.lds.then_some(M0);
        dst.into_iter().chain(sources).filter_map(range).chain(lds).chain(implicit(info.reads))
    }

    /// Registers that the instruction gives a value, explicit ones first.
    ///
    /// Vector registers change only in the lanes of EXEC, less those that DPP masks leave out; single-lane instructions
    /// (`v_writelane_b32`) change one lane. Not in the list: what [`Inst::reads`] leaves out.
    pub fn writes(&self) -> impl Iterator<Item = RegRange> {
        let info = self.op.info();
        let swapped = (info.src[0].access != Access::Read).then_some(self.src[0]);
        // VOP3 compares name their destination; the shorter forms write VCC, which is the destination they carry.
        [self.dst, self.sdst].into_iter().chain(swapped).filter_map(range).chain(implicit(info.writes))
    }

    /// Whether the encoding, not the operation, leaves part of the destination's dwords as they were.
    fn keeps_part_of_dst(&self) -> bool {
        let info = self.op.info();
        let preserved = self.mods.sdwa.is_some_and(|sdwa| sdwa.dst_unused == DstUnused::Preserve);
        let half = info.dst.ty.total_bits() <= 16 && info.forms.used.contains(ModBits::OP_SEL_DST);
        preserved || half && self.encoding == Encoding::Vop3
    }
}

fn reads(access: Access) -> bool {
    access != Access::Write
}

/// The range that an operand names, as a source or as a destination.
fn range(operand: Operand) -> Option<RegRange> {
    let (file, first, count) = match operand {
        Operand::Sgpr { first, count } => (RegFile::Scalar, first, count),
        Operand::Ttmp { first, count } => (RegFile::Scalar, 108 + first, count),
        Operand::Vgpr { first, count } => (RegFile::Vector, first, count),
        Operand::Acc { first, count } => (RegFile::Acc, first, count),
        Operand::Special(special) => return named(special),
        Operand::None | Operand::Int(_) | Operand::Float(_) | Operand::Literal(_) => return None,
    };
    Some(RegRange { file, first, count })
}

fn named(special: Special) -> Option<RegRange> {
    Some(match special {
        Special::FlatScratch => FLAT_SCRATCH,
        Special::FlatScratchLo => scalar(102, 1),
        Special::FlatScratchHi => scalar(103, 1),
        Special::XnackMask => scalar(104, 2),
        Special::XnackMaskLo => scalar(104, 1),
        Special::XnackMaskHi => scalar(105, 1),
        Special::Vcc | Special::Vccz => VCC,
        Special::VccLo => scalar(106, 1),
        Special::VccHi => scalar(107, 1),
        Special::M0 | Special::LdsDirect => M0,
        Special::Exec | Special::Execz => EXEC,
        Special::ExecLo => scalar(126, 1),
        Special::ExecHi => scalar(127, 1),
        Special::Scc => SCC,
        Special::FlatScratchBaseLo | Special::FlatScratchBaseHi => return None,
        Special::Null | Special::SharedBase | Special::SharedLimit => return None,
        Special::PrivateBase | Special::PrivateLimit | Special::PopsExitingWaveId => return None,
    })
}

fn implicit(registers: Implicit) -> impl Iterator<Item = RegRange> {
    [
        (Implicit::VCC, VCC),
        (Implicit::SCC, SCC),
        (Implicit::EXEC, EXEC),
        (Implicit::M0, M0),
        (Implicit::FLAT_SCRATCH, FLAT_SCRATCH),
    ]
    .into_iter()
    .filter(move |&(register, _)| registers.contains(register))
    .map(|(_, range)| range)
}
