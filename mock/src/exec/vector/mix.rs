//! Fused multiply-adds of single- and half-precision operands. `op_sel_hi` says which operands are halves, `op_sel` which
//! half they are (CDNA4 ISA, V_MAD_MIX_F32).

use isa::{Op, Operand};

use super::Answer;
use crate::exec::element::{Half, Mix};
use crate::exec::lanes::{Flags, Lane, lanes};
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::softfloat::Rules;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VFmaMixF32 => mixed::<L, ToSingle>(b),
        Op::VFmaMixloF16 => mixed::<L, ToLowHalf>(b),
        Op::VFmaMixhiF16 => mixed::<L, ToHighHalf>(b),
        _ => None,
    }
}

/// [`Builder::lanes`] with half-precision constants for the operands that are halves.
fn mixed<L: Level, F: Lane>(b: &Builder<'_>) -> Answer {
    Some(b.lanes::<L, F>()?.map(|mut micro| {
        for (i, src) in micro.src.iter_mut().enumerate() {
            if let (Operand::Float(constant), 1) = (b.inst.src[i], b.inst.mods.op_sel_hi >> i & 1) {
                src.low = constant.f16_bits().into();
            }
        }
        micro
    }))
}

lanes! {
    ToSingle(a: Mix, b: Mix, c: Mix) -> f32 = a.0.mul_add(b.0, c.0), nan, mode |flags| flags.fma(a.0, b.0, c.0);
    ToLowHalf(a: Mix, b: Mix, c: Mix) -> Half = Half::nearest(a.0.mul_add(b.0, c.0)), low, rare |d| d.not_a_number(),
        mode |flags| to_half(flags, a.0, b.0, c.0);
    ToHighHalf(a: Mix, b: Mix, c: Mix) -> Half = Half::nearest(a.0.mul_add(b.0, c.0)), high, rare |d| d.not_a_number(),
        mode |flags| to_half(flags, a.0, b.0, c.0);
}

/// The single-precision result of the multiply-add, rounded again to a half (CDNA4 ISA, V_MAD_MIXLO_F16).
fn to_half(flags: Flags, a: f32, b: f32, c: f32) -> Half {
    flags.rules::<Half>().convert(Rules::USUAL, flags.fma(a, b, c))
}
