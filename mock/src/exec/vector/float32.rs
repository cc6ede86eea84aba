//! Single-precision arithmetic.

use isa::Op;

use super::Answer;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VAddF32 => b.lanes::<L, Add>(),
        Op::VSubF32 => b.lanes::<L, Sub>(),
        Op::VSubrevF32 => b.lanes::<L, SubReversed>(),
        Op::VMulF32 => b.lanes::<L, Mul>(),
        Op::VFmaF32 => b.lanes::<L, Fma>(),
        Op::VFmacF32 => b.accumulating::<L, Fma>(),
        _ => None,
    }
}

lanes! {
    Add(a: f32, b: f32) -> f32 [F32] = a + b;
    Sub(a: f32, b: f32) -> f32 [F32] = a - b;
    SubReversed(a: f32, b: f32) -> f32 [F32] = b - a;
    Mul(a: f32, b: f32) -> f32 [F32] = a * b;
    Fma(a: f32, b: f32, c: f32) -> f32 [F32] = a.mul_add(b, c);
}
