//! Conversions between integers and floating-point numbers of 16, 32 and 64 bits.
//!
//! To integers they truncate and saturate, with NaN giving zero, which is what the host's `as` does. Clamp only lets them
//! signal inexact results (CDNA4 ISA, V_CVT_I32_F32), so it is not looked at.

use isa::Op;

use super::Answer;
use crate::exec::element::Half;
use crate::exec::lanes::{Flags, lanes};
use crate::exec::level::Level;
use crate::exec::softfloat::Rules;
use crate::exec::translate::Builder;
use crate::wave::Rounding;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VCvtI32F32 => b.lanes::<L, SignedFromSingle>(),
        Op::VCvtU32F32 => b.lanes::<L, UnsignedFromSingle>(),
        Op::VCvtI32F64 => b.lanes::<L, SignedFromDouble>(),
        Op::VCvtU32F64 => b.lanes::<L, UnsignedFromDouble>(),
        Op::VCvtI16F16 => b.lanes::<L, SignedFromHalf>(),
        Op::VCvtU16F16 => b.lanes::<L, UnsignedFromHalf>(),
        Op::VCvtRpiI32F32 => b.lanes::<L, NearestUp>(),
        Op::VCvtFlrI32F32 => b.lanes::<L, FloorFromSingle>(),
        Op::VCvtF32I32 => b.lanes::<L, SingleFromSigned>(),
        Op::VCvtF32U32 => b.lanes::<L, SingleFromUnsigned>(),
        Op::VCvtF64I32 => b.lanes::<L, DoubleFromSigned>(),
        Op::VCvtF64U32 => b.lanes::<L, DoubleFromUnsigned>(),
        Op::VCvtF16I16 => b.lanes::<L, HalfFromSigned>(),
        Op::VCvtF16U16 => b.lanes::<L, HalfFromUnsigned>(),
        Op::VCvtF32Ubyte0 => b.lanes_with::<L, SingleFromByte>(0),
        Op::VCvtF32Ubyte1 => b.lanes_with::<L, SingleFromByte>(1),
        Op::VCvtF32Ubyte2 => b.lanes_with::<L, SingleFromByte>(2),
        Op::VCvtF32Ubyte3 => b.lanes_with::<L, SingleFromByte>(3),
        Op::VCvtOffF32I4 => b.lanes::<L, Offset>(),
        Op::VCvtF16F32 => b.lanes::<L, HalfFromSingle>(),
        Op::VCvtF32F16 => b.lanes::<L, SingleFromHalf>(),
        Op::VCvtF32F64 => b.lanes::<L, SingleFromDouble>(),
        Op::VCvtF64F32 => b.lanes::<L, DoubleFromSingle>(),
        Op::VCvtPkF16F32 => b.lanes::<L, PackedHalves>(),
        Op::VCvtPkrtzF16F32 => b.lanes::<L, PackedHalvesTowardsZero>(),
        Op::VCvtPkI16I32 => b.lanes::<L, PackedSigned>(),
        Op::VCvtPkU16U32 => b.lanes::<L, PackedUnsigned>(),
        Op::VCvtNormI16F16 => b.lanes::<L, SignedNorm>(),
        Op::VCvtNormU16F16 => b.lanes::<L, UnsignedNorm>(),
        Op::VCvtPknormI16F16 => b.lanes::<L, PackedSignedNormFromHalf>(),
        Op::VCvtPknormU16F16 => b.lanes::<L, PackedUnsignedNormFromHalf>(),
        Op::VCvtPknormI16F32 => b.lanes::<L, PackedSignedNorm>(),
        Op::VCvtPknormU16F32 => b.lanes::<L, PackedUnsignedNorm>(),
        Op::VCvtPkU8F32 => b.lanes::<L, InsertedByte>(),
        Op::VCvtPkaccumU8F32 => b.accumulating::<L, InsertedByte>(),
        _ => None,
    }
}

lanes! {
    SignedFromSingle(a: f32) -> i32 = a as i32;
    UnsignedFromSingle(a: f32) -> u32 = a as u32;
    SignedFromDouble(a: f64) -> i32 = a as i32;
    UnsignedFromDouble(a: f64) -> u32 = a as u32;
    SignedFromHalf(a: Half) -> i16 = a.single() as i16;
    UnsignedFromHalf(a: Half) -> u16 = a.single() as u16;
    /// floor(a + 0.5), the sum not rounded.
    NearestUp(a: f32) -> i32 = {
        let floor = a.floor();
        (if a - floor >= 0.5 { floor + 1.0 } else { floor }) as i32
    };
    FloorFromSingle(a: f32) -> i32 = a.floor() as i32;
    SingleFromSigned(a: i32) -> f32 = a as f32, mode |flags| flags.integer(a.into());
    SingleFromUnsigned(a: u32) -> f32 = a as f32, mode |flags| flags.integer(a.into());
    DoubleFromSigned(a: i32) -> f64 = a.into();
    DoubleFromUnsigned(a: u32) -> f64 = a.into();
    HalfFromSigned(a: i16) -> Half = Half::nearest(a.into()), mode |flags| flags.integer(a.into());
    HalfFromUnsigned(a: u16) -> Half = Half::nearest(a.into()), mode |flags| flags.integer(a.into());
    SingleFromByte[byte](a: u32) -> f32 = (a >> (8 * byte) & 0xff) as i32 as f32;
    /// A four-bit integer in sixteenths.
    Offset(a: u32) -> f32 = ((a << 28) as i32 >> 28) as f32 / 16.0;
    HalfFromSingle(a: f32) -> Half = Half::nearest(a), rare |d| a.is_nan(), mode |flags| narrowed(flags, a);
    SingleFromHalf(a: Half) -> f32 = a.single(), nan, mode |flags| widened(flags, a);
    SingleFromDouble(a: f64) -> f32 = a as f32, nan, mode |flags| Rules::of::<f32>(flags.mode).convert(Rules::USUAL, a);
    DoubleFromSingle(a: f32) -> f64 = a.into(), nan, mode |flags| Rules::USUAL.convert(flags.rules::<f32>(), a);
    /// Rounds to nearest whatever MODE says.
    PackedHalves(a: f32, b: f32) -> [Half; 2] = [Half::nearest(a), Half::nearest(b)], rare |d| a.is_nan() | b.is_nan(),
        mode |flags| rounding(flags, Rounding::NearestEven, a, b);
    /// Rounds towards zero whatever MODE says.
    PackedHalvesTowardsZero(a: f32, b: f32) -> [Half; 2] = [half_towards_zero(a), half_towards_zero(b)],
        rare |d| a.is_nan() | b.is_nan(), mode |flags| rounding(flags, Rounding::Zero, a, b);
    PackedSigned(a: i32, b: i32) -> [i16; 2] = [saturated(a), saturated(b)];
    PackedUnsigned(a: u32, b: u32) -> [u16; 2] = [a.min(0xffff) as u16, b.min(0xffff) as u16];
    SignedNorm(a: Half) -> i16 = signed_norm(a.single());
    UnsignedNorm(a: Half) -> u16 = unsigned_norm(a.single());
    PackedSignedNormFromHalf(a: Half, b: Half) -> [i16; 2] = [signed_norm(a.single()), signed_norm(b.single())];
    PackedUnsignedNormFromHalf(a: Half, b: Half) -> [u16; 2] = [unsigned_norm(a.single()), unsigned_norm(b.single())];
    PackedSignedNorm(a: f32, b: f32) -> [i16; 2] = [signed_norm(a), signed_norm(b)];
    PackedUnsignedNorm(a: f32, b: f32) -> [u16; 2] = [unsigned_norm(a), unsigned_norm(b)];
    /// `c` with `a` as a byte in place `b`.
    InsertedByte(a: f32, b: u32, c: u32) -> u32 = {
        let place = 8 * (b & 3);
        c & !(0xff << place) | u32::from(a as u8) << place
    };
}

/// A half under MODE: rounding and denormals are those of half precision, denormal operands are kept.
fn narrowed(flags: Flags, a: f32) -> Half {
    flags.rules::<Half>().convert(Rules::USUAL, a)
}

/// The mode for half precision says whether denormal operands are kept.
fn widened(flags: Flags, a: Half) -> f32 {
    Rules::USUAL.convert(flags.rules::<Half>(), a)
}

fn rounding(flags: Flags, rounding: Rounding, a: f32, b: f32) -> [Half; 2] {
    let rules = Rules { rounding, ..flags.rules::<Half>() };
    [rules.convert(Rules::USUAL, a), rules.convert(Rules::USUAL, b)]
}

/// The half next to `value` on the side of zero.
#[inline(always)]
fn half_towards_zero(value: f32) -> Half {
    const LEAST_NORMAL: f32 = 1.0 / 16384.0;
    const STEPS_TO_ONE: f32 = 16_777_216.0;
    let magnitude = value.abs();
    // Without the bits that a half lacks, a normal number is a half already; a denormal one is a count of steps.
    let normal = Half::nearest(f32::from_bits(magnitude.to_bits() & 0xffff_e000)).0;
    let normal = if normal == 0x7c00 && magnitude < f32::INFINITY { 0x7bff } else { normal };
    let denormal = (magnitude * STEPS_TO_ONE) as i32 as u16;
    let sign = (value.to_bits() >> 16) as u16 & 0x8000;
    Half(sign | if magnitude < LEAST_NORMAL { denormal } else { normal })
}

#[inline(always)]
fn saturated(value: i32) -> i16 {
    value.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// `value`, limited to -1 to 1, in 32767ths: the product is exact in double precision.
#[inline(always)]
fn signed_norm(value: f32) -> i16 {
    (f64::from(value) * 32767.0).clamp(-32767.0, 32767.0).round_ties_even() as i16
}

/// `value`, limited to 0 to 1, in 65535ths.
#[inline(always)]
fn unsigned_norm(value: f32) -> u16 {
    (f64::from(value) * 65535.0).clamp(0.0, 65535.0).round_ties_even() as u16
}
