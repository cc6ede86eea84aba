//! Vector ALU instructions: one file a family, each a table from operations to lane functions.

mod bits;
mod compare;
mod convert;
mod cube;
mod division;
mod dot;
mod float16;
mod float32;
mod float64;
mod integer;
mod integer16;
mod lane_access;
mod mix;
mod moves;
mod narrow;
mod parts;
mod sad;
mod scale_convert;
mod select;
#[cfg(test)]
mod tests;
mod transcendental;
mod trig_preop;

use super::element::Element;
use super::lanes::{self, Lane, Lanes, Modified, Shape};
use super::level::Level;
use super::modifiers;
use super::translate::{Builder, Unsupported};
use super::{Micro, Src, SrcKind};

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let families = [
        moves::translate::<L>,
        float32::translate::<L>,
        integer::translate::<L>,
        bits::translate::<L>,
        compare::translate::<L>,
        lane_access::translate::<L>,
        transcendental::translate::<L>,
        convert::translate::<L>,
        parts::translate::<L>,
        narrow::translate::<L>,
        float16::translate::<L>,
        integer16::translate::<L>,
        float64::translate::<L>,
        dot::translate::<L>,
        mix::translate::<L>,
        division::translate::<L>,
        sad::translate::<L>,
        cube::translate::<L>,
        trig_preop::translate::<L>,
        scale_convert::translate::<L>,
    ];
    families.into_iter().find_map(|family| family(b)).unwrap_or(Err(Unsupported::Instruction))
}

/// What a family answers: `None` for an instruction that is not its own.
type Answer = Option<Result<Micro, Unsupported>>;

impl Builder<'_> {
    /// A micro that applies `F` to each lane.
    fn lanes<L: Level, F: Lane>(&self) -> Answer {
        let shape = Shape::of::<F>();
        let mods = &self.inst.mods;
        let mut aux = modifiers::summary(mods, self.inst.encoding, &shape);
        let modified = aux != 0;
        if mods.clamp && shape.clamps {
            aux |= lanes::CLAMP;
        }
        if self.info.writes.contains(isa::Implicit::EXEC) {
            aux |= lanes::EXEC_TOO;
        }
        let micro = if modified { self.body::<L, Modified<L, F>>() } else { self.body::<L, Lanes<L, F>>() };
        Some(micro.map(|micro| {
            // The mask of a comparison is its only destination.
            let dst2 = if F::D::DWORDS == 0 { micro.dst } else { micro.dst2 };
            Micro { aux, dst2, ..micro }
        }))
    }

    /// [`Self::lanes`] with `imm` for the lane function.
    fn lanes_with<L: Level, F: Lane>(&self, imm: u32) -> Answer {
        Some(self.lanes::<L, F>()?.map(|micro| Micro { imm: imm as i32, ..micro }))
    }

    /// [`Self::lanes`] for an instruction whose third source is the destination's old value.
    fn accumulating<L: Level, F: Lane>(&self) -> Answer {
        Some(self.lanes::<L, F>()?.map(|mut micro| {
            micro.src[2] = Src { kind: SrcKind::Vgpr, index: micro.dst, ..Src::NONE };
            micro
        }))
    }
}
