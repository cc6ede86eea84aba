//! Conversions with a block scale (`v_cvt_scalef32_*`), to and from the formats of 4, 6 and 8 bits.
//!
//! The scale is the exponent of a single-precision operand, an E8M0 number. Results of conversions are rounded to nearest
//! even whatever MODE says, or stochastically. Sources: CDNA4 ISA section 7.3 and the instructions' pseudo-code; for NaN in
//! formats without NaN, AMD's HIP header `amd_hip_ocp_host.hpp`.

use std::marker::PhantomData;

use isa::Op;

use super::Answer;
use crate::exec::formats::{Format, Overflow, e8m0, e8m0_reciprocal};
use crate::exec::lanes::{CHUNK, CHUNKS, load_chunk, registers, store_masked};
use crate::exec::level::{Body, Level};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro, SrcKind};
use crate::wave::Vreg;

#[rustfmt::skip]
pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    Some(match b.inst.op {
        Op::VCvtScalef32PkFp8F32 => encode::<L, Single, Fp8, 2, false>(b),
        Op::VCvtScalef32PkBf8F32 => encode::<L, Single, Bf8, 2, false>(b),
        Op::VCvtScalef32PkFp4F32 => encode::<L, Single, Fp4, 2, false>(b),
        Op::VCvtScalef32PkFp8F16 => encode::<L, Half, Fp8, 2, false>(b),
        Op::VCvtScalef32PkBf8F16 => encode::<L, Half, Bf8, 2, false>(b),
        Op::VCvtScalef32PkFp4F16 => encode::<L, Half, Fp4, 2, false>(b),
        Op::VCvtScalef32PkFp8Bf16 => encode::<L, Brain, Fp8, 2, false>(b),
        Op::VCvtScalef32PkBf8Bf16 => encode::<L, Brain, Bf8, 2, false>(b),
        Op::VCvtScalef32PkFp4Bf16 => encode::<L, Brain, Fp4, 2, false>(b),
        Op::VCvtScalef32SrFp8F32 => encode::<L, Single, Fp8, 1, true>(b),
        Op::VCvtScalef32SrBf8F32 => encode::<L, Single, Bf8, 1, true>(b),
        Op::VCvtScalef32SrFp8F16 => encode::<L, Half, Fp8, 1, true>(b),
        Op::VCvtScalef32SrBf8F16 => encode::<L, Half, Bf8, 1, true>(b),
        Op::VCvtScalef32SrFp8Bf16 => encode::<L, Brain, Fp8, 1, true>(b),
        Op::VCvtScalef32SrBf8Bf16 => encode::<L, Brain, Bf8, 1, true>(b),
        Op::VCvtScalef32SrPkFp4F32 => encode::<L, Single, Fp4, 2, true>(b),
        Op::VCvtScalef32SrPkFp4F16 => encode::<L, Half, Fp4, 2, true>(b),
        Op::VCvtScalef32SrPkFp4Bf16 => encode::<L, Brain, Fp4, 2, true>(b),
        Op::VCvtScalef32_2xpk16Fp6F32 => encode::<L, Single, Fp6, 32, false>(b),
        Op::VCvtScalef32_2xpk16Bf6F32 => encode::<L, Single, Bf6, 32, false>(b),
        Op::VCvtScalef32Pk32Fp6F16 => encode::<L, Half, Fp6, 32, false>(b),
        Op::VCvtScalef32Pk32Bf6F16 => encode::<L, Half, Bf6, 32, false>(b),
        Op::VCvtScalef32Pk32Fp6Bf16 => encode::<L, Brain, Fp6, 32, false>(b),
        Op::VCvtScalef32Pk32Bf6Bf16 => encode::<L, Brain, Bf6, 32, false>(b),
        Op::VCvtScalef32SrPk32Fp6F32 => encode::<L, Single, Fp6, 32, true>(b),
        Op::VCvtScalef32SrPk32Bf6F32 => encode::<L, Single, Bf6, 32, true>(b),
        Op::VCvtScalef32SrPk32Fp6F16 => encode::<L, Half, Fp6, 32, true>(b),
        Op::VCvtScalef32SrPk32Bf6F16 => encode::<L, Half, Bf6, 32, true>(b),
        Op::VCvtScalef32SrPk32Fp6Bf16 => encode::<L, Brain, Fp6, 32, true>(b),
        Op::VCvtScalef32SrPk32Bf6Bf16 => encode::<L, Brain, Bf6, 32, true>(b),
        Op::VCvtScalef32F32Fp8 => decode::<L, Single, Fp8, 1>(b),
        Op::VCvtScalef32F32Bf8 => decode::<L, Single, Bf8, 1>(b),
        Op::VCvtScalef32F16Fp8 => decode::<L, Half, Fp8, 1>(b),
        Op::VCvtScalef32F16Bf8 => decode::<L, Half, Bf8, 1>(b),
        Op::VCvtScalef32PkF32Fp8 => decode::<L, Single, Fp8, 2>(b),
        Op::VCvtScalef32PkF32Bf8 => decode::<L, Single, Bf8, 2>(b),
        Op::VCvtScalef32PkF32Fp4 => decode::<L, Single, Fp4, 2>(b),
        Op::VCvtScalef32PkF16Fp8 => decode::<L, Half, Fp8, 2>(b),
        Op::VCvtScalef32PkF16Bf8 => decode::<L, Half, Bf8, 2>(b),
        Op::VCvtScalef32PkF16Fp4 => decode::<L, Half, Fp4, 2>(b),
        Op::VCvtScalef32PkBf16Fp8 => decode::<L, Brain, Fp8, 2>(b),
        Op::VCvtScalef32PkBf16Bf8 => decode::<L, Brain, Bf8, 2>(b),
        Op::VCvtScalef32PkBf16Fp4 => decode::<L, Brain, Fp4, 2>(b),
        Op::VCvtScalef32Pk32F32Fp6 => decode::<L, Single, Fp6, 32>(b),
        Op::VCvtScalef32Pk32F32Bf6 => decode::<L, Single, Bf6, 32>(b),
        Op::VCvtScalef32Pk32F16Fp6 => decode::<L, Half, Fp6, 32>(b),
        Op::VCvtScalef32Pk32F16Bf6 => decode::<L, Half, Bf6, 32>(b),
        Op::VCvtScalef32Pk32Bf16Fp6 => decode::<L, Brain, Fp6, 32>(b),
        Op::VCvtScalef32Pk32Bf16Bf6 => decode::<L, Brain, Bf6, 32>(b),
        _ => return None,
    })
}

/// The narrow side of a conversion.
trait Narrow {
    const FORMAT: Format;
    const BITS: u32 = Self::FORMAT.bits();
}

/// The wide side of a conversion.
trait Wide {
    const BITS: u32;
    /// Whether MODE's single-precision denormal control applies.
    const IS_SINGLE: bool = Self::BITS == 32;
    fn widen(bits: u32) -> f32;
    fn narrow(value: f32, overflow: Overflow) -> u32;
}

macro_rules! narrow {
    ($($name:ident = $format:ident),*) => {
        $(struct $name;
        impl Narrow for $name {
            const FORMAT: Format = Format::$format;
        })*
    };
}
narrow!(Fp8 = FP8, Bf8 = BF8, Fp6 = FP6, Bf6 = BF6, Fp4 = FP4);

struct Single;
struct Half;
struct Brain;

impl Wide for Single {
    const BITS: u32 = 32;
    #[inline(always)]
    fn widen(bits: u32) -> f32 {
        f32::from_bits(bits)
    }
    #[inline(always)]
    fn narrow(value: f32, _: Overflow) -> u32 {
        value.to_bits()
    }
}

impl Wide for Half {
    const BITS: u32 = 16;
    #[inline(always)]
    fn widen(bits: u32) -> f32 {
        Format::F16.decode(bits)
    }
    #[inline(always)]
    fn narrow(value: f32, overflow: Overflow) -> u32 {
        Format::F16.encode(value, overflow)
    }
}

impl Wide for Brain {
    const BITS: u32 = 16;
    #[inline(always)]
    fn widen(bits: u32) -> f32 {
        Format::BF16.decode(bits)
    }
    #[inline(always)]
    fn narrow(value: f32, _: Overflow) -> u32 {
        Format::BF16.encode(value, Overflow::Special)
    }
}

fn encode<L: Level, W: Wide, N: Narrow, const COUNT: usize, const STOCHASTIC: bool>(
    b: &Builder<'_>,
) -> Result<Micro, Unsupported> {
    convert(b, b.body::<L, Encode<W, N, COUNT, STOCHASTIC>>()?)
}

fn decode<L: Level, W: Wide, N: Narrow, const COUNT: usize>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    convert(b, b.body::<L, Decode<W, N, COUNT>>()?)
}

/// Adds `neg`, `abs` and `op_sel`, from bits 0, 3 and 6 on.
fn convert(b: &Builder<'_>, mut micro: Micro) -> Result<Micro, Unsupported> {
    // Operands of more registers than one pair can't be constants; the second of two such has 16.
    let wide = b.info.src.map(|operand| operand.ty.dwords() > 2);
    if (0..3).any(|i| wide[i] && micro.src[i].kind != SrcKind::Vgpr) {
        return Err(Unsupported::Instruction);
    }
    let mods = &b.inst.mods;
    micro.aux = u32::from(mods.neg & 7) | u32::from(mods.abs & 7) << 3 | u32::from(mods.op_sel) << 6;
    Ok(micro)
}

type Lanes<T> = [T; CHUNK];

#[inline(always)]
fn scales(bits: Lanes<u32>, factor: impl Fn(u32) -> f32) -> Lanes<f32> {
    std::array::from_fn(|i| factor(bits[i] >> 23 & 0xff))
}

/// `magnitude(value) * factor` with the sign of `value`, even if it is NaN.
#[inline(always)]
fn scaled(value: f32, factor: f32) -> f32 {
    let product = (value * factor).to_bits() & 0x7fff_ffff;
    f32::from_bits(product | value.to_bits() & 0x8000_0000)
}

/// From wide to narrow. Two single-precision numbers come from two sources (from one if there is a seed), thirty-two from
/// two sources in turn (likewise); all others are packed in one source. Fewer than 32 results go to one byte or word of the
/// destination, which keeps the rest.
struct Encode<W, N, const COUNT: usize, const STOCHASTIC: bool>(PhantomData<(W, N)>);

impl<W: Wide, N: Narrow, const COUNT: usize, const STOCHASTIC: bool> Body for Encode<W, N, COUNT, STOCHASTIC> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let two_sources = W::IS_SINGLE && COUNT > 1 && !STOCHASTIC;
        let scale_at = if two_sources || STOCHASTIC { 2 } else { 1 };
        let exec = cx.exec();
        let mode = cx.w.mode;
        let overflow = if mode.fp16_overflow() { Overflow::Saturate } else { Overflow::Special };
        let flush = W::IS_SINGLE && !mode.keeps_input_denormals_f32();
        let op_sel = m.aux >> 6;
        let at = match (COUNT, N::BITS) {
            (32, _) => 0,
            (2, 8) => 16 * (op_sel >> 3),
            _ => 8 * (op_sel >> 2),
        };
        // SAFETY: `translate` checked all operands against the wave's registers.
        unsafe {
            // Only two stochastic singles are a register pair that may also be a constant.
            let first = if W::IS_SINGLE && COUNT == 2 && STOCHASTIC {
                registers(cx, m.src[0], 2, 0)
            } else {
                registers(cx, m.src[0], 1, 0)
            };
            let second = registers(cx, m.src[1], 1, 2);
            let scale = registers(cx, m.src[scale_at], 1, 4);
            let to = cx.vgpr.add(m.dst.into());
            for chunk in 0..CHUNKS {
                let factors = scales(load_chunk(scale, chunk), e8m0_reciprocal);
                let mut random = if STOCHASTIC { load_chunk(second, chunk) } else { [0; CHUNK] };
                let mut packed = [[0u32; CHUNK]; 6];
                for i in 0..COUNT {
                    let (from, shift, operand) = if two_sources {
                        (if i % 2 == 0 { first.add(i / 2) } else { second.add(i / 2) }, 0, i % 2)
                    } else {
                        let half = if COUNT == 1 { op_sel as usize & 1 } else { i };
                        let bit = if W::IS_SINGLE { 32 * i } else { 16 * half };
                        (first.add(bit / 32), bit as u32 % 32, 0)
                    };
                    let (keep, flip) =
                        (!(m.aux >> (3 + operand) & 1) << 31 | 0x7fff_ffff, (m.aux >> operand & 1) << 31);
                    let bits = load_chunk(from, chunk);
                    let place = i as u32 * N::BITS;
                    let (register, place) = ((place / 32) as usize, place % 32);
                    let mut codes = [0u32; CHUNK];
                    for lane in 0..CHUNK {
                        let value = f32::from_bits(W::widen(bits[lane] >> shift).to_bits() & keep ^ flip);
                        let value = if flush && value.is_subnormal() { 0f32.copysign(value) } else { value };
                        let value = scaled(value, factors[lane]);
                        codes[lane] = if STOCHASTIC {
                            N::FORMAT.encode_stochastic(value, random[lane], overflow)
                        } else {
                            N::FORMAT.encode(value, overflow)
                        };
                        packed[register][lane] |= codes[lane] << place;
                        random[lane] = next_random(random[lane]);
                    }
                    if place + N::BITS > 32 {
                        for lane in 0..CHUNK {
                            packed[register + 1][lane] |= codes[lane] >> (32 - place);
                        }
                    }
                }
                let mask = (exec >> (CHUNK * chunk)) as u16;
                if COUNT == 32 {
                    for (register, packed) in packed.iter().enumerate() {
                        store_masked(to.add(register), chunk, mask, packed);
                    }
                } else {
                    let field = ((1u32 << (COUNT as u32 * N::BITS)) - 1) << at;
                    let old = load_chunk(to, chunk);
                    let new = std::array::from_fn(|lane| old[lane] & !field | packed[0][lane] << at);
                    store_masked(to, chunk, mask, &new);
                }
            }
        }
    }
}

/// `v_prng_b32`: the random number of the next element.
#[inline(always)]
fn next_random(random: u32) -> u32 {
    random << 1 ^ if random >> 31 == 1 { 197 } else { 0 }
}

/// From narrow to wide. One or two numbers come from the byte or word of the source that `op_sel` names; a single
/// half-precision result goes to the half that its bit 3 names, and the other half is kept.
struct Decode<W, N, const COUNT: usize>(PhantomData<(W, N)>);

impl<W: Wide, N: Narrow, const COUNT: usize> Body for Decode<W, N, COUNT> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        let overflow = if cx.w.mode.fp16_overflow() { Overflow::Saturate } else { Overflow::Special };
        let op_sel = m.aux >> 6;
        let at = match (COUNT, N::BITS) {
            (32, _) => 0,
            (2, 8) => 16 * (op_sel & 1),
            _ => 8 * (op_sel & 3),
        };
        // SAFETY: `translate` checked all operands against the wave's registers.
        unsafe {
            let from = registers(cx, m.src[0], 1, 0);
            let scale = registers(cx, m.src[1], 1, 2);
            let to: *mut Vreg = cx.vgpr.add(m.dst.into());
            for chunk in 0..CHUNKS {
                let factors = scales(load_chunk(scale, chunk), e8m0);
                let mut packed = [[0u32; CHUNK]; 6];
                for (register, packed) in packed.iter_mut().take(if COUNT == 32 { 6 } else { 1 }).enumerate() {
                    *packed = load_chunk(from.add(register), chunk);
                }
                let mask = (exec >> (CHUNK * chunk)) as u16;
                let mut pair = [0u32; CHUNK];
                for i in 0..COUNT {
                    let place = at + i as u32 * N::BITS;
                    let (register, shift) = ((place / 32) as usize, place % 32);
                    let mut bits = [0u32; CHUNK];
                    for lane in 0..CHUNK {
                        let mut code = packed[register][lane] >> shift;
                        if shift + N::BITS > 32 {
                            code |= packed[register + 1][lane] << (32 - shift);
                        }
                        let value = N::FORMAT.decode(code);
                        // An infinity is no overflow.
                        let overflow = if value.is_infinite() { Overflow::Special } else { overflow };
                        bits[lane] = W::narrow(scaled(value, factors[lane]), overflow);
                    }
                    if W::IS_SINGLE {
                        store_masked(to.add(i), chunk, mask, &bits);
                    } else if COUNT == 1 {
                        let half = 16 * (op_sel >> 3);
                        let old = load_chunk(to, chunk);
                        let new = std::array::from_fn(|lane| old[lane] & !(0xffff << half) | bits[lane] << half);
                        store_masked(to, chunk, mask, &new);
                    } else {
                        pair = std::array::from_fn(|lane| {
                            bits[lane] << (16 * (i % 2)) | if i % 2 == 0 { 0 } else { pair[lane] }
                        });
                        if i % 2 == 1 {
                            store_masked(to.add(i / 2), chunk, mask, &pair);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
