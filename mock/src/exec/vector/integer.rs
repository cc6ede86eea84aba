//! Integer arithmetic of 32 and 64 bits.

use isa::Op;

use super::Answer;
use crate::exec::element::WithBit;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VAddU32 => b.lanes::<L, Add>(),
        Op::VSubU32 => b.lanes::<L, Sub>(),
        Op::VSubrevU32 => b.lanes::<L, SubReversed>(),
        Op::VAddI32 => b.lanes::<L, AddSigned>(),
        Op::VSubI32 => b.lanes::<L, SubSigned>(),
        Op::VAddCoU32 => b.lanes::<L, AddCarry>(),
        Op::VSubCoU32 => b.lanes::<L, SubBorrow>(),
        Op::VSubrevCoU32 => b.lanes::<L, SubReversedBorrow>(),
        Op::VAddcCoU32 => b.lanes::<L, AddWithCarry>(),
        Op::VSubbCoU32 => b.lanes::<L, SubWithBorrow>(),
        Op::VSubbrevCoU32 => b.lanes::<L, SubReversedWithBorrow>(),
        Op::VMinU32 => b.lanes::<L, Min>(),
        Op::VMaxU32 => b.lanes::<L, Max>(),
        Op::VMinI32 => b.lanes::<L, MinSigned>(),
        Op::VMaxI32 => b.lanes::<L, MaxSigned>(),
        Op::VMin3U32 => b.lanes::<L, Min3>(),
        Op::VMax3U32 => b.lanes::<L, Max3>(),
        Op::VMed3U32 => b.lanes::<L, Med3>(),
        Op::VMin3I32 => b.lanes::<L, Min3Signed>(),
        Op::VMax3I32 => b.lanes::<L, Max3Signed>(),
        Op::VMed3I32 => b.lanes::<L, Med3Signed>(),
        Op::VAdd3U32 => b.lanes::<L, Add3>(),
        Op::VLshlAddU32 => b.lanes::<L, ShiftLeftAdd>(),
        Op::VAddLshlU32 => b.lanes::<L, AddShiftLeft>(),
        Op::VXadU32 => b.lanes::<L, XorAdd>(),
        Op::VLshlAddU64 => b.lanes::<L, ShiftLeftAdd64>(),
        Op::VMulLoU32 => b.lanes::<L, MulLow>(),
        Op::VMulHiU32 => b.lanes::<L, MulHigh>(),
        Op::VMulHiI32 => b.lanes::<L, MulHighSigned>(),
        Op::VMulU32U24 => b.lanes::<L, Mul24>(),
        Op::VMulHiU32U24 => b.lanes::<L, MulHigh24>(),
        Op::VMulI32I24 => b.lanes::<L, Mul24Signed>(),
        Op::VMulHiI32I24 => b.lanes::<L, MulHigh24Signed>(),
        Op::VMadU32U24 => b.lanes::<L, Mad24>(),
        Op::VMadI32I24 => b.lanes::<L, Mad24Signed>(),
        Op::VMadU32U16 => b.lanes::<L, MadHalves>(),
        Op::VMadI32I16 => b.lanes::<L, MadHalvesSigned>(),
        Op::VMadU64U32 => b.lanes::<L, MadWide>(),
        Op::VMadI64I32 => b.lanes::<L, MadWideSigned>(),
        _ => None,
    }
}

lanes! {
    Add(a: u32, b: u32) -> u32 = a.wrapping_add(b), clamp |_flags| a.saturating_add(b);
    Sub(a: u32, b: u32) -> u32 = a.wrapping_sub(b), clamp |_flags| a.saturating_sub(b);
    SubReversed(a: u32, b: u32) -> u32 = b.wrapping_sub(a), clamp |_flags| b.saturating_sub(a);
    AddSigned(a: i32, b: i32) -> i32 = a.wrapping_add(b), clamp |_flags| a.saturating_add(b);
    SubSigned(a: i32, b: i32) -> i32 = a.wrapping_sub(b), clamp |_flags| a.saturating_sub(b);
    AddCarry(a: u32, b: u32) -> WithBit<u32> = sum(a, b, false), clamp |_flags| saturated(sum(a, b, false), u32::MAX);
    SubBorrow(a: u32, b: u32) -> WithBit<u32> = difference(a, b, false),
        clamp |_flags| saturated(difference(a, b, false), 0);
    SubReversedBorrow(a: u32, b: u32) -> WithBit<u32> = difference(b, a, false),
        clamp |_flags| saturated(difference(b, a, false), 0);
    AddWithCarry(a: u32, b: u32, c: bool) -> WithBit<u32> = sum(a, b, c), clamp |_flags| saturated(sum(a, b, c), u32::MAX);
    SubWithBorrow(a: u32, b: u32, c: bool) -> WithBit<u32> = difference(a, b, c),
        clamp |_flags| saturated(difference(a, b, c), 0);
    SubReversedWithBorrow(a: u32, b: u32, c: bool) -> WithBit<u32> = difference(b, a, c),
        clamp |_flags| saturated(difference(b, a, c), 0);
    Min(a: u32, b: u32) -> u32 = a.min(b);
    Max(a: u32, b: u32) -> u32 = a.max(b);
    MinSigned(a: i32, b: i32) -> i32 = a.min(b);
    MaxSigned(a: i32, b: i32) -> i32 = a.max(b);
    Min3(a: u32, b: u32, c: u32) -> u32 = a.min(b).min(c);
    Max3(a: u32, b: u32, c: u32) -> u32 = a.max(b).max(c);
    Med3(a: u32, b: u32, c: u32) -> u32 = a.min(b).max(a.max(b).min(c));
    Min3Signed(a: i32, b: i32, c: i32) -> i32 = a.min(b).min(c);
    Max3Signed(a: i32, b: i32, c: i32) -> i32 = a.max(b).max(c);
    Med3Signed(a: i32, b: i32, c: i32) -> i32 = a.min(b).max(a.max(b).min(c));
    Add3(a: u32, b: u32, c: u32) -> u32 = a.wrapping_add(b).wrapping_add(c);
    ShiftLeftAdd(a: u32, b: u32, c: u32) -> u32 = (a << (b & 31)).wrapping_add(c);
    AddShiftLeft(a: u32, b: u32, c: u32) -> u32 = a.wrapping_add(b) << (c & 31);
    XorAdd(a: u32, b: u32, c: u32) -> u32 = (a ^ b).wrapping_add(c);
    /// Counts of 5 to 7 count as zero (CDNA4 ISA, V_LSHL_ADD_U64).
    ShiftLeftAdd64(a: u64, b: u32, c: u64) -> u64 = (a << if b & 7 > 4 { 0 } else { b & 7 }).wrapping_add(c);
    MulLow(a: u32, b: u32) -> u32 = a.wrapping_mul(b);
    MulHigh(a: u32, b: u32) -> u32 = ((u64::from(a) * u64::from(b)) >> 32) as u32;
    MulHighSigned(a: i32, b: i32) -> i32 = ((i64::from(a) * i64::from(b)) >> 32) as i32;
    Mul24(a: u32, b: u32) -> u32 = low24(a).wrapping_mul(low24(b)),
        clamp |_flags| clamped(product24(a, b));
    MulHigh24(a: u32, b: u32) -> u32 = (product24(a, b) >> 32) as u32;
    Mul24Signed(a: i32, b: i32) -> i32 = low24_signed(a).wrapping_mul(low24_signed(b)),
        clamp |_flags| clamped_signed(product24_signed(a, b));
    MulHigh24Signed(a: i32, b: i32) -> i32 = (product24_signed(a, b) >> 32) as i32;
    Mad24(a: u32, b: u32, c: u32) -> u32 = low24(a).wrapping_mul(low24(b)).wrapping_add(c),
        clamp |_flags| clamped(product24(a, b) + u64::from(c));
    Mad24Signed(a: i32, b: i32, c: i32) -> i32 = low24_signed(a).wrapping_mul(low24_signed(b)).wrapping_add(c),
        clamp |_flags| clamped_signed(product24_signed(a, b) + i64::from(c));
    MadHalves(a: u16, b: u16, c: u32) -> u32 = (u32::from(a) * u32::from(b)).wrapping_add(c),
        clamp |_flags| (u32::from(a) * u32::from(b)).saturating_add(c);
    MadHalvesSigned(a: i16, b: i16, c: i32) -> i32 = (i32::from(a) * i32::from(b)).wrapping_add(c),
        clamp |_flags| (i32::from(a) * i32::from(b)).saturating_add(c);
    MadWide(a: u32, b: u32, c: u64) -> WithBit<u64> = wide_sum(u64::from(a) * u64::from(b), c),
        clamp |_flags| saturated(wide_sum(u64::from(a) * u64::from(b), c), u64::MAX);
    /// The bit is the highest of the sum's 65.
    MadWideSigned(a: i32, b: i32, c: i64) -> WithBit<i64> = wide_sum_signed(i64::from(a) * i64::from(b), c),
        clamp |_flags| WithBit(
            (i64::from(a) * i64::from(b)).saturating_add(c),
            wide_sum_signed(i64::from(a) * i64::from(b), c).1,
        );
}

#[inline(always)]
fn sum(a: u32, b: u32, carry: bool) -> WithBit<u32> {
    let (sum, first) = a.overflowing_add(b);
    let (sum, second) = sum.overflowing_add(carry.into());
    WithBit(sum, first | second)
}

#[inline(always)]
fn difference(a: u32, b: u32, borrow: bool) -> WithBit<u32> {
    let (difference, first) = a.overflowing_sub(b);
    let (difference, second) = difference.overflowing_sub(borrow.into());
    WithBit(difference, first | second)
}

#[inline(always)]
fn saturated<T>(result: WithBit<T>, limit: T) -> WithBit<T> {
    WithBit(if result.1 { limit } else { result.0 }, result.1)
}

#[inline(always)]
fn wide_sum(a: u64, b: u64) -> WithBit<u64> {
    let (sum, carry) = a.overflowing_add(b);
    WithBit(sum, carry)
}

#[inline(always)]
fn wide_sum_signed(a: i64, b: i64) -> WithBit<i64> {
    let (sum, overflow) = a.overflowing_add(b);
    WithBit(sum, (sum < 0) != overflow)
}

#[inline(always)]
fn low24(value: u32) -> u32 {
    value & 0xff_ffff
}

#[inline(always)]
fn low24_signed(value: i32) -> i32 {
    value << 8 >> 8
}

#[inline(always)]
fn product24(a: u32, b: u32) -> u64 {
    u64::from(low24(a)) * u64::from(low24(b))
}

#[inline(always)]
fn product24_signed(a: i32, b: i32) -> i64 {
    i64::from(low24_signed(a)) * i64::from(low24_signed(b))
}

#[inline(always)]
fn clamped(value: u64) -> u32 {
    value.min(u32::MAX.into()) as u32
}

#[inline(always)]
fn clamped_signed(value: i64) -> i32 {
    value.clamp(i32::MIN.into(), i32::MAX.into()) as i32
}
