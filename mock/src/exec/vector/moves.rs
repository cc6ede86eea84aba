//! Moves.

use isa::Op;

use super::Answer;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VMovB32 => b.lanes::<L, Move>(),
        _ => None,
    }
}

lanes! {
    Move(a: u32) -> u32 [Bits] = a;
}
