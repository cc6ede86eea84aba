//! Conversions to and from bfloat16 and the 8-bit formats, and those with stochastic rounding.
//!
//! MODE.FP16_OVFL makes an overflow to an 8-bit format or to half precision give the largest number (CDNA4 ISA
//! section 7.3).

use isa::Op;

use super::Answer;
use crate::exec::Micro;
use crate::exec::element::Half;
use crate::exec::formats::{Format, Overflow};
use crate::exec::lanes::{Flags, lanes};
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    // The byte of the destination that takes the result.
    let byte = u32::from(b.inst.mods.op_sel >> 2 & 3);
    match b.inst.op {
        Op::VCvtF32Bf16 => b.lanes::<L, SingleFromBfloat>(),
        Op::VCvtF32Fp8 => b.lanes::<L, SingleFromFp8>(),
        Op::VCvtF32Bf8 => b.lanes::<L, SingleFromBf8>(),
        Op::VCvtPkF32Fp8 => b.lanes::<L, PackedSingleFromFp8>(),
        Op::VCvtPkF32Bf8 => b.lanes::<L, PackedSingleFromBf8>(),
        Op::VCvtPkBf16F32 => b.lanes::<L, PackedBfloat>(),
        Op::VCvtPkFp8F32 => b.lanes::<L, PackedFp8>(),
        Op::VCvtPkBf8F32 => b.lanes::<L, PackedBf8>(),
        Op::VCvtSrFp8F32 => Some(b.accumulating::<L, StochasticFp8>()?.map(|micro| with_byte(micro, byte))),
        Op::VCvtSrBf8F32 => Some(b.accumulating::<L, StochasticBf8>()?.map(|micro| with_byte(micro, byte))),
        Op::VCvtSrF16F32 => b.lanes::<L, StochasticHalf>(),
        Op::VCvtSrBf16F32 => b.lanes::<L, StochasticBfloat>(),
        _ => None,
    }
}

fn with_byte(micro: Micro, byte: u32) -> Micro {
    Micro { imm: byte as i32, ..micro }
}

lanes! {
    SingleFromBfloat(a: Half) -> f32 = f32::from_bits(u32::from(a.0) << 16);
    SingleFromFp8(a: u32) -> f32 = Format::FP8.decode(a & 0xff);
    SingleFromBf8(a: u32) -> f32 = Format::BF8.decode(a & 0xff);
    PackedSingleFromFp8(a: u32) -> [f32; 2] = [Format::FP8.decode(a & 0xff), Format::FP8.decode(a >> 8 & 0xff)];
    PackedSingleFromBf8(a: u32) -> [f32; 2] = [Format::BF8.decode(a & 0xff), Format::BF8.decode(a >> 8 & 0xff)];
    PackedBfloat(a: f32, b: f32) -> u32 = u32::from(bfloat(a)) | u32::from(bfloat(b)) << 16;
    PackedFp8(a: f32, b: f32) -> u16 = pair(Format::FP8, a, b, Overflow::Special), low,
        mode |flags| pair(Format::FP8, a, b, overflow(flags));
    PackedBf8(a: f32, b: f32) -> u16 = pair(Format::BF8, a, b, Overflow::Special), low,
        mode |flags| pair(Format::BF8, a, b, overflow(flags));
    StochasticFp8[byte](a: f32, b: u32, c: u32) -> u32 = placed(byte, Format::FP8.encode_stochastic(a, b, Overflow::Special), c),
        mode |flags| placed(byte, Format::FP8.encode_stochastic(a, b, overflow(flags)), c);
    StochasticBf8[byte](a: f32, b: u32, c: u32) -> u32 = placed(byte, Format::BF8.encode_stochastic(a, b, Overflow::Special), c),
        mode |flags| placed(byte, Format::BF8.encode_stochastic(a, b, overflow(flags)), c);
    StochasticHalf(a: f32, b: u32) -> u16 = Format::F16.encode_stochastic(a, b, Overflow::Special) as u16, low,
        mode |flags| Format::F16.encode_stochastic(a, b, half_overflow(flags, a)) as u16;
    StochasticBfloat(a: f32, b: u32) -> u16 = Format::BF16.encode_stochastic(a, b, Overflow::Special) as u16, low;
}

fn overflow(flags: Flags) -> Overflow {
    if flags.mode.fp16_overflow() { Overflow::Saturate } else { Overflow::Special }
}

/// Infinities stay what they are in half precision (CDNA4 ISA, MODE.FP16_OVFL).
fn half_overflow(flags: Flags, value: f32) -> Overflow {
    if value.is_infinite() { Overflow::Special } else { overflow(flags) }
}

/// The nearest bfloat16; a NaN keeps the upper part of its payload and is quiet.
#[inline(always)]
fn bfloat(value: f32) -> u16 {
    let bits = value.to_bits();
    let nearest = (bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16;
    if value.is_nan() { (bits >> 16) as u16 | 0x40 } else { nearest }
}

#[inline(always)]
fn pair(format: Format, a: f32, b: f32, overflow: Overflow) -> u16 {
    (format.encode(a, overflow) | format.encode(b, overflow) << 8) as u16
}

#[inline(always)]
fn placed(byte: u32, code: u32, old: u32) -> u32 {
    old & !(0xff << (8 * byte)) | code << (8 * byte)
}
