//! Double-precision arithmetic.

use isa::Op;

use super::Answer;
use super::select::{maximum, minimum, numeric_max, numeric_min};
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VAddF64 => b.lanes::<L, Add>(),
        Op::VMulF64 => b.lanes::<L, Mul>(),
        Op::VFmaF64 => b.lanes::<L, Fma>(),
        Op::VFmacF64 => b.accumulating::<L, Fma>(),
        Op::VMinF64 => b.lanes::<L, Min>(),
        Op::VMaxF64 => b.lanes::<L, Max>(),
        _ => None,
    }
}

lanes! {
    Add(a: f64, b: f64) -> f64 = a + b, nan, mode |flags| flags.add(a, b);
    Mul(a: f64, b: f64) -> f64 = a * b, nan, mode |flags| flags.mul(a, b);
    Fma(a: f64, b: f64, c: f64) -> f64 = a.mul_add(b, c), nan, mode |flags| flags.fma(a, b, c);
    Min(a: f64, b: f64) -> f64 = numeric_min(a, b), rare |d| a.is_nan() | b.is_nan(), ieee |flags| minimum(flags, a, b);
    Max(a: f64, b: f64) -> f64 = numeric_max(a, b), rare |d| a.is_nan() | b.is_nan(), ieee |flags| maximum(flags, a, b);
}
