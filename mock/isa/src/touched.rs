//! The registers that an instruction reads and writes.

use crate::info::{Access, Implicit, Memory, ModBits};
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

/// `count` registers of 32 bits from `first` up. They go past the end of the file only in an instruction that is not
/// [legal](Inst::is_legal).
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
        let keeps_dst = reads(self.op.info().dst.access) || self.keeps_part_of_dst();
        self.read_with(keeps_dst.then_some(self.dst))
    }

    /// [`Inst::reads`] without a destination of which part stays as it was: what the new value is made of.
    pub fn inputs(&self) -> impl Iterator<Item = RegRange> {
        self.read_with(self.accumulates().then_some(self.dst))
    }

    fn read_with(&self, dst: Option<Operand>) -> impl Iterator<Item = RegRange> {
        let info = self.op.info();
        let sources = (0..self.src.len()).filter(move |&i| reads(info.src[i].access)).map(|i| self.src[i]);
        let lds = self.mods.lds.then_some(M0);
        dst.into_iter().chain(sources).filter_map(Operand::registers).chain(lds).chain(implicit(info.reads))
    }

    /// Whether the old value of the destination is an operand of the arithmetic, not something left in place.
    fn accumulates(&self) -> bool {
        let info = self.op.info();
        let named = ["mac", "dot", "accum", "addk", "mulk", "swap"];
        reads(info.dst.access) && named.iter().any(|part| info.name.contains(part)) && info.memory == Memory::None
    }

    /// Registers that the instruction gives a value, explicit ones first.
    ///
    /// Vector registers change only in the lanes of EXEC, less those that DPP masks leave out; single-lane instructions
    /// (`v_writelane_b32`) change one lane. Not in the list: what [`Inst::reads`] leaves out.
    pub fn writes(&self) -> impl Iterator<Item = RegRange> {
        let info = self.op.info();
        let swapped = (info.src[0].access != Access::Read).then_some(self.src[0]);
        // VOP3 compares name their destination; the shorter forms write VCC, which is the destination they carry.
        [self.dst, self.sdst].into_iter().chain(swapped).filter_map(Operand::registers).chain(implicit(info.writes))
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

impl Operand {
    /// The registers that it names, as a source or as a destination.
    pub fn registers(self) -> Option<RegRange> {
        let (file, first, count) = match self {
            Self::Sgpr { first, count } => (RegFile::Scalar, first, count),
            Self::Ttmp { first, count } => (RegFile::Scalar, 108 + first, count),
            Self::Vgpr { first, count } => (RegFile::Vector, first, count),
            Self::Acc { first, count } => (RegFile::Acc, first, count),
            Self::Special(special) => return named(special),
            Self::None | Self::Int(_) | Self::Float(_) | Self::Literal(_) => return None,
        };
        Some(RegRange { file, first, count })
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;

    const fn vector(first: u8, count: u8) -> RegRange {
        RegRange { file: RegFile::Vector, first, count }
    }

    const fn acc(first: u8, count: u8) -> RegRange {
        RegRange { file: RegFile::Acc, first, count }
    }

    /// Asserts the text, so that the words can be read, and the registers.
    fn check(words: &[u32], text: &str, reads: &[RegRange], writes: &[RegRange]) {
        let inst = decode(words).unwrap();
        assert_eq!(inst.to_string(), text);
        assert_eq!(inst.reads().collect::<Vec<_>>(), reads, "{text} reads");
        assert_eq!(inst.writes().collect::<Vec<_>>(), writes, "{text} writes");
    }

    #[test]
    fn a_vector_instruction_reads_exec() {
        check(&[0x020a_0501], "v_add_f32_e32 v5, v1, v2", &[vector(1, 1), vector(2, 1), EXEC], &[vector(5, 1)]);
    }

    #[test]
    fn an_implicit_carry_is_read_and_written() {
        let text = "v_addc_co_u32_e32 v5, vcc, v1, v2, vcc";
        check(&[0x380a_0501], text, &[vector(1, 1), vector(2, 1), VCC, EXEC], &[vector(5, 1), VCC]);
    }

    #[test]
    fn an_accumulator_is_read_and_written() {
        let text = "v_fmac_f32_e32 v5, v1, v2";
        check(&[0x760a_0501], text, &[vector(5, 1), vector(1, 1), vector(2, 1), EXEC], &[vector(5, 1)]);
    }

    #[test]
    fn a_compare_that_sets_exec_also_sets_its_destination() {
        check(&[0x7da2_0501], "v_cmpx_lt_i32_e32 vcc, v1, v2", &[vector(1, 1), vector(2, 1), EXEC], &[VCC, EXEC]);
    }

    #[test]
    fn a_swap_writes_both_registers() {
        let both = [vector(5, 1), vector(1, 1)];
        check(&[0x7e0a_a301], "v_swap_b32 v5, v1", &[both[0], both[1], EXEC], &both);
    }

    #[test]
    fn an_sdwa_destination_is_read_if_the_rest_of_it_is_preserved() {
        let text = "v_add_f32_sdwa v5, v1, v2 dst_sel:WORD_0 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:DWORD";
        let reads = [vector(5, 1), vector(1, 1), vector(2, 1), EXEC];
        check(&[0x020a_04f9, 0x0606_1401], text, &reads, &[vector(5, 1)]);
    }

    #[test]
    fn a_matrix_operand_has_the_registers_of_its_format() {
        // cbsz 4: A is FP4 in four registers; blgp 2: B is FP6 in six.
        let words = [0xd3ac_0000, 0x0002_2510, 0xd3ad_8c00, 0x4432_1104];
        let text = "v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[4:7], v[8:13], a[12:15], v16, v18 op_sel_hi:[0,0,0] cbsz:4 blgp:2";
        let reads = [vector(4, 4), vector(8, 6), acc(12, 4), vector(16, 1), vector(18, 1), EXEC];
        check(&words, text, &reads, &[acc(0, 4)]);
    }

    #[test]
    fn an_atomic_writes_registers_only_if_it_returns() {
        let reads = [vector(2, 2), vector(4, 2), EXEC];
        check(&[0xdd04_8000, 0x057f_0402], "global_atomic_cmpswap v[2:3], v[4:5], off", &reads, &[]);
        check(
            &[0xdd05_8000, 0x057f_0402],
            "global_atomic_cmpswap v5, v[2:3], v[4:5], off sc0",
            &reads,
            &[vector(5, 1)],
        );
    }

    #[test]
    fn a_load_into_lds_reads_m0_and_writes_no_register() {
        let reads = [vector(2, 1), scalar(4, 4), scalar(8, 1), M0, EXEC];
        check(&[0xe051_1000, 0x0801_0002], "buffer_load_dword v2, s[4:7], s8 offen lds", &reads, &[]);
    }

    #[test]
    fn a_16_bit_load_keeps_the_other_half() {
        let text = "global_load_short_d16_hi v5, v[2:3], off";
        check(&[0xdc94_8000, 0x057f_0002], text, &[vector(5, 1), vector(2, 2), EXEC], &[vector(5, 1)]);
    }

    #[test]
    fn scalar_registers_are_numbered_as_operands() {
        let text = "s_and_saveexec_b64 ttmp[2:3], vcc";
        check(&[0xbeee_206a], text, &[VCC, EXEC], &[scalar(110, 2), SCC, EXEC]);
    }

    #[test]
    fn what_a_load_leaves_in_place_is_no_input_but_an_accumulator_is() {
        let load = decode(&[0xdc94_8000, 0x057f_0002]).unwrap();
        assert_eq!(load.inputs().collect::<Vec<_>>(), [vector(2, 2), EXEC]);
        let fmac = decode(&[0x760a_0501]).unwrap();
        assert_eq!(fmac.inputs().collect::<Vec<_>>(), fmac.reads().collect::<Vec<_>>());
    }

    #[test]
    fn no_operand_is_longer_than_32_registers() {
        for op in crate::Op::ALL {
            let info = op.info();
            let widest = info.src.iter().chain([&info.dst, &info.sdst]).map(|operand| operand.ty.dwords()).max();
            assert!(widest <= Some(32), "{op:?}");
        }
    }
}
