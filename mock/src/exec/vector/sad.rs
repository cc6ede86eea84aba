//! Sums of absolute differences, averages and saturating packs of bytes.

use isa::Op;

use super::Answer;
use crate::exec::lanes::{CLAMP, lanes};
use crate::exec::level::{Body, Level};
use crate::exec::translate::Builder;
use crate::exec::{Cx, Micro, Src, SrcKind};
use crate::wave::LANES;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VSadU8 => b.lanes::<L, Sad>(),
        Op::VSadHiU8 => b.lanes::<L, SadHigh>(),
        Op::VSadU16 => b.lanes::<L, SadHalves>(),
        Op::VSadU32 => b.lanes::<L, SadDwords>(),
        Op::VMsadU8 => b.lanes::<L, MaskedSad>(),
        Op::VQsadPkU16U8 => b.lanes::<L, QuadSad>(),
        Op::VMqsadPkU16U8 => b.lanes::<L, MaskedQuadSad>(),
        Op::VMqsadU32U8 => {
            let aux = if b.inst.mods.clamp { CLAMP } else { 0 };
            Some(b.body::<L, MaskedQuadSadDwords>().map(|micro| Micro { aux, ..micro }))
        }
        Op::VLerpU8 => b.lanes::<L, Average>(),
        Op::VSatPkU8I16 => b.lanes::<L, SaturatedBytes>(),
        Op::VAshrPkI8I32 => b.lanes::<L, ShiftedSignedBytes>(),
        Op::VAshrPkU8I32 => b.lanes::<L, ShiftedBytes>(),
        _ => None,
    }
}

lanes! {
    Sad(a: u32, b: u32, c: u32) -> u32 = c.wrapping_add(sad(a, b)), clamp |_flags| c.saturating_add(sad(a, b));
    SadHigh(a: u32, b: u32, c: u32) -> u32 = c.wrapping_add(sad(a, b) << 16), clamp |_flags| c.saturating_add(sad(a, b) << 16);
    SadHalves(a: [u16; 2], b: [u16; 2], c: u32) -> u32 = c.wrapping_add(sad_halves(a, b)),
        clamp |_flags| c.saturating_add(sad_halves(a, b));
    SadDwords(a: u32, b: u32, c: u32) -> u32 = c.wrapping_add(a.abs_diff(b)), clamp |_flags| c.saturating_add(a.abs_diff(b));
    MaskedSad(a: u32, b: u32, c: u32) -> u32 = c.wrapping_add(masked_sad(a, b)),
        clamp |_flags| c.saturating_add(masked_sad(a, b));
    QuadSad(a: u64, b: u32, c: u64) -> u64 = quad(a, b, c, sad, u16::wrapping_add),
        clamp |_flags| quad(a, b, c, sad, u16::saturating_add);
    MaskedQuadSad(a: u64, b: u32, c: u64) -> u64 = quad(a, b, c, masked_sad, u16::wrapping_add),
        clamp |_flags| quad(a, b, c, masked_sad, u16::saturating_add);
    /// Halves of sums of bytes; the lowest bit of each byte of `c` rounds up.
    Average(a: u32, b: u32, c: u32) -> u32 = {
        let carry = (a ^ b) & c & 0x0101_0101;
        (a & b) + ((a ^ b) >> 1 & 0x7f7f_7f7f) + carry
    };
    SaturatedBytes(a: [i16; 2]) -> u16 = a[0].clamp(0, 255) as u16 | (a[1].clamp(0, 255) as u16) << 8;
    ShiftedBytes(a: i32, b: i32, c: u32) -> u16 =
        (a >> (c & 31)).clamp(0, 255) as u16 | ((b >> (c & 31)).clamp(0, 255) as u16) << 8, low;
    ShiftedSignedBytes(a: i32, b: i32, c: u32) -> u16 =
        (a >> (c & 31)).clamp(-128, 127) as u16 & 0xff | ((b >> (c & 31)).clamp(-128, 127) as u16) << 8, low;
}

#[inline(always)]
fn bytes(value: u32, place: u32) -> u32 {
    value >> (8 * place) & 0xff
}

#[inline(always)]
fn sad(a: u32, b: u32) -> u32 {
    (0..4).fold(0, |sum, i| sum + bytes(a, i).abs_diff(bytes(b, i)))
}

#[inline(always)]
fn sad_halves(a: [u16; 2], b: [u16; 2]) -> u32 {
    u32::from(a[0].abs_diff(b[0])) + u32::from(a[1].abs_diff(b[1]))
}

/// [`sad`] without the bytes that are zero in `b`.
#[inline(always)]
fn masked_sad(a: u32, b: u32) -> u32 {
    (0..4).fold(0, |sum, i| {
        let difference = bytes(a, i).abs_diff(bytes(b, i));
        sum + if bytes(b, i) == 0 { 0 } else { difference }
    })
}

/// Four sums: of the bytes of `a` from 0, 1, 2 and 3 on, each added to a half of a word of `c`.
#[inline(always)]
fn quad(a: u64, b: u32, c: u64, sad: impl Fn(u32, u32) -> u32, add: impl Fn(u16, u16) -> u16) -> u64 {
    (0..4).fold(0, |out, i| {
        let sum = sad((a >> (8 * i)) as u32, b);
        out | u64::from(add((c >> (16 * i)) as u16, sum as u16)) << (16 * i)
    })
}

/// `v_mqsad_u32_u8`: as [`quad`], with four dwords to add to.
struct MaskedQuadSadDwords;

impl Body for MaskedQuadSadDwords {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: passed on; `translate` checked that all dwords of the operands are in the wave's file.
        unsafe {
            let exec = cx.exec();
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
                let a = u64::from(dword(cx, m.src[0], 0, lane)) | u64::from(dword(cx, m.src[0], 1, lane)) << 32;
                let b = dword(cx, m.src[1], 0, lane);
                let sums: [u32; 4] = std::array::from_fn(|i| {
                    let (sum, c) = (masked_sad((a >> (8 * i)) as u32, b), dword(cx, m.src[2], i, lane));
                    if m.aux & CLAMP != 0 { c.saturating_add(sum) } else { c.wrapping_add(sum) }
                });
                for (i, sum) in sums.into_iter().enumerate() {
                    (*cx.vgpr.add(m.dst as usize + i)).0[lane] = sum;
                }
            }
        }
    }
}

/// A dword of an operand in one lane; a constant has two.
///
/// # Safety
/// The operand is within the wave's registers.
unsafe fn dword(cx: &mut Cx<'_>, src: Src, i: usize, lane: usize) -> u32 {
    match src.kind {
        // SAFETY: passed on.
        SrcKind::Vgpr => unsafe { (*cx.vgpr.add(src.index as usize + i)).0[lane] },
        SrcKind::Sgpr => cx.scalar32(Src { index: src.index + i as u16, ..src }),
        _ => [cx.scalar64(src).0, cx.scalar64(src).1][i.min(1)],
    }
}
