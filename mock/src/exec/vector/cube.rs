//! Coordinates on a cube map (CDNA4 ISA, V_CUBEID_F32 and its neighbours).

use isa::Op;

use super::Answer;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VCubeidF32 => b.lanes::<L, Face>(),
        Op::VCubescF32 => b.lanes::<L, S>(),
        Op::VCubetcF32 => b.lanes::<L, T>(),
        Op::VCubemaF32 => b.lanes::<L, MajorAxis>(),
        _ => None,
    }
}

lanes! {
    /// Twice the axis, plus one on its negative side.
    Face(x: f32, y: f32, z: f32) -> f32 = by_axis(x, y, z, |x, _, _| side(x), |_, y, _| 2.0 + side(y), |_, _, z| 4.0 + side(z));
    S(x: f32, y: f32, z: f32) -> f32 =
        by_axis(x, y, z, |x, _, z| if x < 0.0 { z } else { -z }, |x, _, _| x, |x, _, z| if z < 0.0 { -x } else { x });
    T(x: f32, y: f32, z: f32) -> f32 =
        by_axis(x, y, z, |_, y, _| -y, |_, y, z| if y < 0.0 { -z } else { z }, |_, y, _| -y);
    MajorAxis(x: f32, y: f32, z: f32) -> f32 = by_axis(x, y, z, |x, _, _| x, |_, y, _| y, |_, _, z| z) * 2.0, nan,
        mode |flags| flags.mul(by_axis(x, y, z, |x, _, _| x, |_, y, _| y, |_, _, z| z), 2.0);
}

#[inline(always)]
fn side(coordinate: f32) -> f32 {
    if coordinate < 0.0 { 1.0 } else { 0.0 }
}

/// What the function of the major axis gives.
#[inline(always)]
fn by_axis(
    x: f32,
    y: f32,
    z: f32,
    on_x: impl Fn(f32, f32, f32) -> f32,
    on_y: impl Fn(f32, f32, f32) -> f32,
    on_z: impl Fn(f32, f32, f32) -> f32,
) -> f32 {
    if z.abs() >= x.abs() && z.abs() >= y.abs() {
        on_z(x, y, z)
    } else if y.abs() >= x.abs() {
        on_y(x, y, z)
    } else {
        on_x(x, y, z)
    }
}
