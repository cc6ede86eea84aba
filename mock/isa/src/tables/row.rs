//! One line of a table and what can be added to it.

use super::types::{EXEC, M0, MASK, MODE, SCC, read, write};
use crate::info::*;
use crate::{Encoding, Op};

/// One line of a table.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(super) op: Op,
    pub(super) info: OpInfo,
}

pub(super) const fn row(encoding: Encoding, opcode: u16, op: Op, name: &'static str, class: Class) -> Row {
    let forms = Forms {
        vop3: None,
        two_addresses: false,
        lds: false,
        sdwa: false,
        dpp: false,
        single: false,
        used: ModBits::empty(),
        ignored: ModBits::empty(),
    };
    let info = OpInfo {
        name,
        class,
        dst: OperandInfo::NONE,
        sdst: OperandInfo::NONE,
        src: [OperandInfo::NONE; 5],
        reads: Implicit::empty(),
        writes: Implicit::empty(),
        counters: Counters::empty(),
        memory: Memory::None,
        encoding,
        opcode,
        forms,
    };
    Row { op, info }
}

pub(super) const fn neg_abs_bits(sources: u16) -> ModBits {
    ModBits::from_bits_retain(sources | sources << 10)
}

/// Refinements.
impl Row {
    pub(super) const fn dst(mut self, ty: DataType) -> Self {
        self.info.dst = write(ty);
        self
    }

    pub(super) const fn src(mut self, types: &[DataType]) -> Self {
        let mut i = 0;
        while i < types.len() {
            self.info.src[i] = read(types[i]);
            i += 1;
        }
        self
    }

    pub(super) const fn memory(mut self, memory: Memory, counters: Counters) -> Self {
        self.info.memory = memory;
        self.counts(counters)
    }

    pub(super) const fn counts(mut self, counters: Counters) -> Self {
        self.info.counters = counters;
        self
    }

    pub(super) const fn reads(mut self, implicit: Implicit) -> Self {
        self.info.reads = self.info.reads.union(implicit);
        self
    }

    pub(super) const fn writes(mut self, implicit: Implicit) -> Self {
        self.info.writes = self.info.writes.union(implicit);
        self
    }

    pub(super) const fn class(mut self, class: Class) -> Self {
        self.info.class = class;
        self
    }

    /// The destination is an input too, or part of it stays as it was.
    pub(super) const fn keeps_dst(mut self) -> Self {
        self.info.dst.access = Access::ReadWrite;
        self
    }

    /// A compare that leaves SCC alone.
    pub(super) const fn no_scc(mut self) -> Self {
        self.info.writes = self.info.writes.difference(SCC);
        self
    }

    pub(super) const fn no_mode(mut self) -> Self {
        self.info.reads = self.info.reads.difference(MODE);
        self
    }

    /// Acts on one lane whatever EXEC says.
    pub(super) const fn lane(mut self) -> Self {
        self.info.reads = self.info.reads.difference(EXEC);
        self
    }

    /// Exchanges destination and source.
    pub(super) const fn swaps(mut self) -> Self {
        self.info.dst.access = Access::ReadWrite;
        self.info.src[0].access = Access::ReadWrite;
        self
    }

    /// A lane mask (carry in, condition) as the source after the last: VCC unless the encoding names it.
    pub(super) const fn mask_in(mut self) -> Self {
        self.info.src[2] = read(MASK);
        self
    }

    /// A lane mask (carry out, scale flag) as the second destination: VCC unless the encoding names it.
    pub(super) const fn mask_out(mut self) -> Self {
        self.info.sdst = write(MASK);
        self
    }

    /// A 16-bit load that keeps the other half of its destination.
    pub(super) const fn d16(self) -> Self {
        self.keeps_dst()
    }

    /// A load into LDS at M0; no destination register.
    pub(super) const fn to_lds(mut self) -> Self {
        self.info.dst = OperandInfo::NONE;
        self.reads(M0)
    }

    pub(super) const fn two_addresses(mut self) -> Self {
        self.info.forms.two_addresses = true;
        self
    }

    /// A buffer load that can go to LDS.
    pub(super) const fn lds(mut self) -> Self {
        self.info.forms.lds = true;
        self
    }

    /// An LDS atomic that returns the value before.
    pub(super) const fn returns(self) -> Self {
        let data = self.info.src[1].ty;
        self.dst(data)
    }

    /// The only VOP3 modifiers on sources: bit i of `used`: `neg` and `abs` of source i; of `ignored`: they may be set.
    pub(super) const fn neg_abs(mut self, used: u16, ignored: u16) -> Self {
        let all = neg_abs_bits(0b111);
        self.info.forms.used = self.info.forms.used.difference(all).union(neg_abs_bits(used));
        self.info.forms.ignored = self.info.forms.ignored.difference(all).union(neg_abs_bits(ignored));
        self
    }

    /// VOP3 `op_sel` has a meaning for these sources, and bit 3 for the destination; other bits must be 0.
    pub(super) const fn op_sel(mut self, used: u16) -> Self {
        self.info.forms.used = self.info.forms.used.union(ModBits::from_bits_retain(used << 3));
        self.info.forms.ignored = self.info.forms.ignored.difference(ModBits::OP_SEL);
        self
    }

    pub(super) const fn op_sel_ignored(mut self, ignored: u16) -> Self {
        self.info.forms.ignored = self.info.forms.ignored.union(ModBits::from_bits_retain(ignored << 3));
        self
    }

    pub(super) const fn clamps(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.union(ModBits::CLAMP);
        self
    }

    pub(super) const fn no_clamp(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.difference(ModBits::CLAMP);
        self
    }

    /// VOP3 has `omod`.
    pub(super) const fn scales(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.union(ModBits::OMOD);
        self
    }

    pub(super) const fn no_omod(mut self) -> Self {
        self.info.forms.used = self.info.forms.used.difference(ModBits::OMOD);
        self
    }

    pub(super) const fn no_vop3(mut self) -> Self {
        self.info.forms.vop3 = None;
        self.info.forms.single = true;
        self
    }

    /// LLVM prints the mnemonic without `_e32` or `_e64`.
    pub(super) const fn single(mut self) -> Self {
        self.info.forms.single = true;
        self
    }

    pub(super) const fn no_sdwa(mut self) -> Self {
        self.info.forms.sdwa = false;
        self
    }

    pub(super) const fn has_sdwa(mut self) -> Self {
        self.info.forms.sdwa = true;
        self
    }

    pub(super) const fn no_dpp(mut self) -> Self {
        self.info.forms.dpp = false;
        self
    }
}
