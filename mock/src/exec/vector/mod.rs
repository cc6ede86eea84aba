//! Vector ALU instructions.

mod float32;
mod integer;
mod moves;
mod scale_convert;

use isa::Encoding;

use super::lanes::{Compare, Lane, Plain, PlainCompare};
use super::level::Level;
use super::modifiers::{Modified, ModifiedCompare};
use super::translate::{Builder, Unsupported};
use super::{Micro, Src, SrcKind};

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    float32::translate::<L>(b)
        .or_else(|| integer::translate::<L>(b))
        .or_else(|| moves::translate::<L>(b))
        .or_else(|| scale_convert::translate::<L>(b))
        .unwrap_or(Err(Unsupported::Instruction))
}

/// What a family answers: `None` for an instruction that is not its own.
type Answer = Option<Result<Micro, Unsupported>>;

impl Builder<'_> {
    /// Whether the instruction needs the slow form: it has modifiers other than the neutral ones.
    fn is_modified(&self) -> bool {
        let mods = &self.inst.mods;
        // VOP3P instructions read high results from high halves when nothing is said.
        let sources = self.inst.src.iter().take_while(|src| **src != isa::Operand::None).count();
        let neutral_hi = if self.inst.encoding == Encoding::Vop3p { (1u8 << sources) - 1 } else { 0 };
        mods.neg | mods.neg_hi | mods.abs | mods.op_sel != 0
            || mods.op_sel_hi & neutral_hi != neutral_hi
            || mods.clamp
            || mods.omod != 0
            || mods.dpp.is_some()
            || mods.sdwa.is_some()
    }

    /// A micro that applies `F` to each lane.
    fn lanes<L: Level, F: Lane>(&self) -> Answer {
        Some(if self.is_modified() { self.body::<L, Modified<F>>() } else { self.body::<L, Plain<F>>() })
    }

    /// [`Self::lanes`] for an instruction whose third source is the destination's old value.
    fn accumulating<L: Level, F: Lane>(&self) -> Answer {
        Some(self.lanes::<L, F>()?.map(|mut micro| {
            micro.src[2] = Src { kind: SrcKind::Vgpr, index: micro.dst, ..Src::NONE };
            micro
        }))
    }

    /// A micro that compares each lane; `v_cmpx` forms also set EXEC.
    fn compare<L: Level, P: Compare>(&self) -> Answer {
        let exec_too = self.info.writes.contains(isa::Implicit::EXEC);
        Some(match (self.is_modified(), exec_too) {
            (false, false) => self.body::<L, PlainCompare<P, false>>(),
            (false, true) => self.body::<L, PlainCompare<P, true>>(),
            (true, false) => self.body::<L, ModifiedCompare<P, false>>(),
            (true, true) => self.body::<L, ModifiedCompare<P, true>>(),
        })
    }
}
