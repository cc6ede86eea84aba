//! The instruction set as tables: one file a family of encodings, one line an instruction.
//!
//! "ISA" in these files is AMD's "AMD Instinct CDNA4 Instruction Set Architecture Reference Guide"; LLVM files are those of
//! `llvm/lib/Target/AMDGPU` in release 22. Where the two differ, what LLVM decodes for gfx950 is what is here.
//!
//! A line has the opcode, the operation, LLVM's mnemonic, the type of the destination and those of the sources (`types.rs`); the
//! function it calls is its shape (`*_shapes.rs`) and says what follows from that: encodings, implicit registers, modifiers. What
//! differs is added behind it (`row.rs`), as in `.keeps_dst()` for an accumulator. A new instruction is one line and one name in
//! `op.rs`; the compiler refuses one without the other, and two for one opcode.

mod buffer;
mod ds;
mod flat;
mod mai;
mod memory_shapes;
mod row;
mod scalar_shapes;
mod smem;
mod sop;
mod types;
mod vector_shapes;
mod vop1;
mod vop2;
mod vop3;
mod vop3p;
mod vopc;

use crate::Op;
use crate::info::OpInfo;
use row::Row;

const FAMILIES: &[&[Row]] = &[
    sop::SOP1,
    sop::SOP2,
    sop::SOPK,
    sop::SOPC,
    sop::SOPP,
    smem::SMEM,
    vop1::VOP1,
    vop2::VOP2,
    vopc::VOPC,
    vop3::VOP3,
    vop3p::VOP3P,
    mai::MAI,
    mai::SCALED,
    ds::DS,
    flat::FLAT,
    flat::GLOBAL,
    flat::SCRATCH,
    buffer::MUBUF,
    buffer::MTBUF,
];

/// Facts by `Op as usize`. Evaluating it proves that every `Op` has exactly one line.
pub(crate) static INFO: [OpInfo; Op::ALL.len()] = {
    let mut info: [Option<OpInfo>; Op::ALL.len()] = [None; Op::ALL.len()];
    let mut family = 0;
    while family < FAMILIES.len() {
        let rows = FAMILIES[family];
        let mut i = 0;
        while i < rows.len() {
            let slot = &mut info[rows[i].op as usize];
            assert!(slot.is_none(), "an operation has two lines");
            *slot = Some(rows[i].info);
            i += 1;
        }
        family += 1;
    }
    let mut all = [sop::SOPP[0].info; Op::ALL.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = info[i].expect("an operation has no line");
        i += 1;
    }
    all
};

/// Operations by the opcode field of one encoding.
pub(crate) type Index<const N: usize> = [Option<Op>; N];

const fn index<const N: usize>(rows: &[Row]) -> Index<N> {
    let mut index = [None; N];
    let mut i = 0;
    while i < rows.len() {
        let slot = &mut index[rows[i].info.opcode as usize];
        assert!(slot.is_none(), "two operations share an opcode");
        *slot = Some(rows[i].op);
        i += 1;
    }
    index
}

pub(crate) static SOP1: Index<256> = index(sop::SOP1);
pub(crate) static SOP2: Index<128> = index(sop::SOP2);
pub(crate) static SOPK: Index<32> = index(sop::SOPK);
pub(crate) static SOPC: Index<128> = index(sop::SOPC);
pub(crate) static SOPP: Index<128> = index(sop::SOPP);
pub(crate) static SMEM: Index<256> = index(smem::SMEM);
pub(crate) static VOP1: Index<256> = index(vop1::VOP1);
pub(crate) static VOP2: Index<64> = index(vop2::VOP2);
pub(crate) static VOPC: Index<256> = index(vopc::VOPC);
pub(crate) static VOP3P: Index<128> = index(vop3p::VOP3P);
pub(crate) static MAI: Index<128> = index(mai::MAI);
pub(crate) static SCALED: Index<128> = index(mai::SCALED);
pub(crate) static DS: Index<256> = index(ds::DS);
pub(crate) static FLAT: Index<128> = index(flat::FLAT);
pub(crate) static GLOBAL: Index<128> = index(flat::GLOBAL);
pub(crate) static SCRATCH: Index<128> = index(flat::SCRATCH);
pub(crate) static MUBUF: Index<128> = index(buffer::MUBUF);
pub(crate) static MTBUF: Index<16> = index(buffer::MTBUF);

/// VOP3 holds its own instructions and those of VOP1, VOP2 and VOPC in their 64-bit form.
pub(crate) static VOP3: Index<1024> = {
    let mut all = index(vop3::VOP3);
    let families = [vop1::VOP1, vop2::VOP2, vopc::VOPC];
    let mut family = 0;
    while family < families.len() {
        let rows = families[family];
        let mut i = 0;
        while i < rows.len() {
            if let Some(opcode) = rows[i].info.forms.vop3 {
                assert!(all[opcode as usize].is_none(), "two operations share an opcode");
                all[opcode as usize] = Some(rows[i].op);
            }
            i += 1;
        }
        family += 1;
    }
    all
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoding;
    use std::collections::HashSet;

    #[test]
    fn a_variant_is_its_mnemonic_in_camel_case() {
        for op in Op::ALL {
            let mnemonic = op.name().replace('_', "");
            assert_eq!(format!("{op:?}").replace('_', "").to_lowercase(), mnemonic);
        }
    }

    #[test]
    fn no_two_operations_have_one_mnemonic() {
        let names: HashSet<_> = Op::ALL.iter().map(|op| op.name()).collect();
        assert_eq!(names.len(), Op::ALL.len());
    }

    #[test]
    fn every_encoding_of_an_operation_leads_back_to_it() {
        for &op in Op::ALL {
            for (encoding, opcode) in op.info().encodings() {
                let opcode = usize::from(opcode);
                let found = match encoding {
                    Encoding::Sop1 => SOP1[opcode],
                    Encoding::Sop2 => SOP2[opcode],
                    Encoding::Sopk => SOPK[opcode],
                    Encoding::Sopc => SOPC[opcode],
                    Encoding::Sopp => SOPP[opcode],
                    Encoding::Smem => SMEM[opcode],
                    Encoding::Vop1 => VOP1[opcode],
                    Encoding::Vop2 => VOP2[opcode],
                    Encoding::Vopc => VOPC[opcode],
                    Encoding::Vop3 => VOP3[opcode],
                    Encoding::Vop3p => VOP3P[opcode],
                    Encoding::Mai => MAI[opcode],
                    Encoding::Vop3px2 => SCALED[opcode],
                    Encoding::Ds => DS[opcode],
                    Encoding::Flat => FLAT[opcode],
                    Encoding::Global => GLOBAL[opcode],
                    Encoding::Scratch => SCRATCH[opcode],
                    Encoding::Mubuf => MUBUF[opcode],
                    Encoding::Mtbuf => MTBUF[opcode],
                    // These keep the opcode of the encoding they extend.
                    Encoding::Sdwa | Encoding::Dpp => Some(op),
                };
                assert_eq!(found, Some(op), "{encoding:?} {opcode:#x}");
            }
        }
    }

    #[test]
    fn memory_instructions_and_only_those_have_a_counter() {
        for op in Op::ALL {
            let info = op.info();
            let is_memory = matches!(info.encoding, Encoding::Smem | Encoding::Ds | Encoding::Mubuf | Encoding::Mtbuf)
                || matches!(info.encoding, Encoding::Flat | Encoding::Global | Encoding::Scratch)
                || matches!(op, Op::SSendmsg | Op::SSendmsghalt);
            assert_eq!(!info.counters.is_empty(), is_memory && *op != Op::DsNop, "{op:?}");
        }
    }
}
