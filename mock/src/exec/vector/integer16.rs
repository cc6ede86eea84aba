//! Integer arithmetic of 16 bits, one number or two to a register.

use isa::Op;

use super::Answer;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VAddU16 => b.lanes::<L, Add>(),
        Op::VSubU16 => b.lanes::<L, Sub>(),
        Op::VSubrevU16 => b.lanes::<L, SubReversed>(),
        Op::VAddI16 => b.lanes::<L, AddSigned>(),
        Op::VSubI16 => b.lanes::<L, SubSigned>(),
        Op::VMulLoU16 => b.lanes::<L, Mul>(),
        Op::VMinU16 => b.lanes::<L, Min>(),
        Op::VMaxU16 => b.lanes::<L, Max>(),
        Op::VMinI16 => b.lanes::<L, MinSigned>(),
        Op::VMaxI16 => b.lanes::<L, MaxSigned>(),
        Op::VMin3U16 => b.lanes::<L, Min3>(),
        Op::VMax3U16 => b.lanes::<L, Max3>(),
        Op::VMed3U16 => b.lanes::<L, Med3>(),
        Op::VMin3I16 => b.lanes::<L, Min3Signed>(),
        Op::VMax3I16 => b.lanes::<L, Max3Signed>(),
        Op::VMed3I16 => b.lanes::<L, Med3Signed>(),
        Op::VMadU16 => b.lanes::<L, Mad>(),
        Op::VMadI16 => b.lanes::<L, MadSigned>(),
        Op::VMadLegacyU16 => b.lanes::<L, MadLegacy>(),
        Op::VMadLegacyI16 => b.lanes::<L, MadSignedLegacy>(),
        Op::VPkAddU16 => b.lanes::<L, PackedAdd>(),
        Op::VPkSubU16 => b.lanes::<L, PackedSub>(),
        Op::VPkAddI16 => b.lanes::<L, PackedAddSigned>(),
        Op::VPkSubI16 => b.lanes::<L, PackedSubSigned>(),
        Op::VPkMulLoU16 => b.lanes::<L, PackedMul>(),
        Op::VPkMadU16 => b.lanes::<L, PackedMad>(),
        Op::VPkMadI16 => b.lanes::<L, PackedMadSigned>(),
        Op::VPkMinU16 => b.lanes::<L, PackedMin>(),
        Op::VPkMaxU16 => b.lanes::<L, PackedMax>(),
        Op::VPkMinI16 => b.lanes::<L, PackedMinSigned>(),
        Op::VPkMaxI16 => b.lanes::<L, PackedMaxSigned>(),
        Op::VPkLshlrevB16 => b.lanes::<L, PackedShiftLeft>(),
        Op::VPkLshrrevB16 => b.lanes::<L, PackedShiftRight>(),
        Op::VPkAshrrevI16 => b.lanes::<L, PackedShiftRightSigned>(),
        _ => None,
    }
}

lanes! {
    Add(a: u16, b: u16) -> u16 = a.wrapping_add(b), clamp |_flags| a.saturating_add(b);
    Sub(a: u16, b: u16) -> u16 = a.wrapping_sub(b), clamp |_flags| a.saturating_sub(b);
    SubReversed(a: u16, b: u16) -> u16 = b.wrapping_sub(a), clamp |_flags| b.saturating_sub(a);
    AddSigned(a: i16, b: i16) -> i16 = a.wrapping_add(b), clamp |_flags| a.saturating_add(b);
    SubSigned(a: i16, b: i16) -> i16 = a.wrapping_sub(b), clamp |_flags| a.saturating_sub(b);
    Mul(a: u16, b: u16) -> u16 = a.wrapping_mul(b);
    Min(a: u16, b: u16) -> u16 = a.min(b);
    Max(a: u16, b: u16) -> u16 = a.max(b);
    MinSigned(a: i16, b: i16) -> i16 = a.min(b);
    MaxSigned(a: i16, b: i16) -> i16 = a.max(b);
    Min3(a: u16, b: u16, c: u16) -> u16 = a.min(b).min(c);
    Max3(a: u16, b: u16, c: u16) -> u16 = a.max(b).max(c);
    Med3(a: u16, b: u16, c: u16) -> u16 = a.min(b).max(a.max(b).min(c));
    Min3Signed(a: i16, b: i16, c: i16) -> i16 = a.min(b).min(c);
    Max3Signed(a: i16, b: i16, c: i16) -> i16 = a.max(b).max(c);
    Med3Signed(a: i16, b: i16, c: i16) -> i16 = a.min(b).max(a.max(b).min(c));
    Mad(a: u16, b: u16, c: u16) -> u16 = a.wrapping_mul(b).wrapping_add(c), low, clamp |_flags| mad_clamped(a, b, c);
    MadSigned(a: i16, b: i16, c: i16) -> i16 = a.wrapping_mul(b).wrapping_add(c), low,
        clamp |_flags| mad_signed_clamped(a, b, c);
    MadLegacy(a: u16, b: u16, c: u16) -> u16 = a.wrapping_mul(b).wrapping_add(c), clamp |_flags| mad_clamped(a, b, c);
    MadSignedLegacy(a: i16, b: i16, c: i16) -> i16 = a.wrapping_mul(b).wrapping_add(c),
        clamp |_flags| mad_signed_clamped(a, b, c);
    PackedAdd(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = both(a, b, u16::wrapping_add),
        clamp |_flags| both(a, b, u16::saturating_add);
    PackedSub(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = both(a, b, u16::wrapping_sub),
        clamp |_flags| both(a, b, u16::saturating_sub);
    PackedAddSigned(a: [i16; 2], b: [i16; 2]) -> [i16; 2] = both(a, b, i16::wrapping_add),
        clamp |_flags| both(a, b, i16::saturating_add);
    PackedSubSigned(a: [i16; 2], b: [i16; 2]) -> [i16; 2] = both(a, b, i16::wrapping_sub),
        clamp |_flags| both(a, b, i16::saturating_sub);
    PackedMul(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = both(a, b, u16::wrapping_mul);
    PackedMad(a: [u16; 2], b: [u16; 2], c: [u16; 2]) -> [u16; 2] = both(both(a, b, u16::wrapping_mul), c, u16::wrapping_add),
        clamp |_flags| [mad_clamped(a[0], b[0], c[0]), mad_clamped(a[1], b[1], c[1])];
    PackedMadSigned(a: [i16; 2], b: [i16; 2], c: [i16; 2]) -> [i16; 2] =
        both(both(a, b, i16::wrapping_mul), c, i16::wrapping_add),
        clamp |_flags| [mad_signed_clamped(a[0], b[0], c[0]), mad_signed_clamped(a[1], b[1], c[1])];
    PackedMin(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = both(a, b, u16::min);
    PackedMax(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = both(a, b, u16::max);
    PackedMinSigned(a: [i16; 2], b: [i16; 2]) -> [i16; 2] = both(a, b, i16::min);
    PackedMaxSigned(a: [i16; 2], b: [i16; 2]) -> [i16; 2] = both(a, b, i16::max);
    PackedShiftLeft(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = [b[0] << (a[0] & 15), b[1] << (a[1] & 15)];
    PackedShiftRight(a: [u16; 2], b: [u16; 2]) -> [u16; 2] = [b[0] >> (a[0] & 15), b[1] >> (a[1] & 15)];
    PackedShiftRightSigned(a: [u16; 2], b: [i16; 2]) -> [i16; 2] = [b[0] >> (a[0] & 15), b[1] >> (a[1] & 15)];
}

#[inline(always)]
fn both<T: Copy>(a: [T; 2], b: [T; 2], f: impl Fn(T, T) -> T) -> [T; 2] {
    [f(a[0], b[0]), f(a[1], b[1])]
}

#[inline(always)]
fn mad_clamped(a: u16, b: u16, c: u16) -> u16 {
    (u32::from(a) * u32::from(b)).saturating_add(c.into()).min(u16::MAX.into()) as u16
}

#[inline(always)]
fn mad_signed_clamped(a: i16, b: i16, c: i16) -> i16 {
    (i32::from(a) * i32::from(b)).saturating_add(c.into()).clamp(i16::MIN.into(), i16::MAX.into()) as i16
}
