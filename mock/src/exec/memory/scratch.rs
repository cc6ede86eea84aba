//! Scratch: each work-item's private memory. Dwords are interleaved: dword `n` of all lanes, then dword `n + 1`.

use super::global::aperture_fault;
use super::space::{Place, Space};
use super::transfer::Plan;
use crate::exec::{Cx, Micro, SrcKind, WaveFault};
use crate::memory::AccessKind;
use crate::observe;
use crate::wave::{LANES, Vreg};

pub(super) struct Scratch;

/// Distance in memory of two dwords that follow each other in a lane's scratch.
const DWORD_STRIDE: u64 = 4 * LANES as u64;

/// Offsets of the lanes within a row of dwords.
static LANE_DWORDS: Vreg = Vreg({
    let mut offsets = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        offsets[lane] = 4 * lane as u32;
        lane += 1;
    }
    offsets
});

impl Space for Scratch {
    const DWORD_STRIDE: u64 = DWORD_STRIDE;
    const SEEN: observe::Space = observe::Space::Scratch;

    #[inline(always)]
    unsafe fn plan(cx: &mut Cx<'_>, m: &Micro, exec: u64, bytes: usize) -> Option<Plan> {
        // Past this the interleaved offset needs more than 32 bits.
        const LIMIT: i64 = 1 << 26;
        let uniform = uniform_offset(cx, m);
        if m.src[0].kind == SrcKind::None && uniform % 4 == 0 && (0..LIMIT).contains(&uniform) {
            let base = cx.w.scratch_base.wrapping_add(uniform as u64 / 4 * DWORD_STRIDE);
            return Some(Plan { base, offset: &LANE_DWORDS, mask: exec });
        }
        let mut misplaced = false;
        let mut offset = Vreg::default();
        for lane in 0..LANES {
            // SAFETY: the caller's.
            let own = unsafe { lane_offset(cx, m, lane) } + uniform;
            let on = exec >> lane & 1 == 1;
            misplaced |= on & (!(0..LIMIT).contains(&own) || own as usize % 4 + bytes.min(4) > 4);
            // Wraps where the offset is misplaced, which is not used then.
            offset.0[lane] = (own as u32 / 4).wrapping_mul(DWORD_STRIDE as u32) + lane as u32 * 4 + own as u32 % 4;
        }
        cx.staging[0] = offset;
        (!misplaced).then_some(Plan { base: cx.w.scratch_base, offset: &cx.staging[0], mask: exec })
    }

    unsafe fn read(cx: &mut Cx<'_>, m: &Micro, lane: usize, into: &mut [u8]) -> Result<(), WaveFault> {
        // SAFETY: the caller's.
        let offset = uniform_offset(cx, m) + unsafe { lane_offset(cx, m, lane) };
        read(cx, offset as u64, lane, into)
    }

    unsafe fn write(cx: &mut Cx<'_>, m: &Micro, lane: usize, from: &[u8]) -> Result<(), WaveFault> {
        // SAFETY: the caller's.
        let offset = uniform_offset(cx, m) + unsafe { lane_offset(cx, m, lane) };
        write(cx, offset as u64, lane, from)
    }

    unsafe fn place(cx: &mut Cx<'_>, m: &Micro, lane: usize, bytes: usize) -> Result<Place, WaveFault> {
        // SAFETY: the caller's.
        let offset = uniform_offset(cx, m) + unsafe { lane_offset(cx, m, lane) };
        place(cx, offset as u64, lane, bytes)
    }
}

/// The part of the offset that all lanes share: the instruction's, and an SGPR's, which is unsigned.
fn uniform_offset(cx: &mut Cx<'_>, m: &Micro) -> i64 {
    let scalar = if m.src[1].kind == SrcKind::None { 0 } else { cx.scalar32(m.src[1]) };
    i64::from(m.imm) + i64::from(scalar)
}

/// # Safety
/// As for [`Space::plan`].
#[inline(always)]
unsafe fn lane_offset(cx: &Cx<'_>, m: &Micro, lane: usize) -> i64 {
    // SAFETY: the caller's.
    if m.src[0].kind == SrcKind::Vgpr { unsafe { (*cx.vgpr.add(m.src[0].index as usize)).0[lane].into() } } else { 0 }
}

/// Address of a byte of a lane's scratch.
fn address(cx: &Cx<'_>, offset: u64, lane: usize) -> u64 {
    let swizzled = (offset / 4).wrapping_mul(DWORD_STRIDE) + 4 * lane as u64 + offset % 4;
    cx.w.scratch_base.wrapping_add(swizzled)
}

/// The pieces of `bytes` bytes at `offset` that lie in one dword each: first byte and length.
fn pieces(offset: u64, bytes: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        at = (start + 4 - (offset as usize + start) % 4).min(bytes);
        (start < bytes).then(|| (start, at - start))
    })
}

/// Reads from a lane's scratch.
pub(super) fn read(cx: &mut Cx<'_>, offset: u64, lane: usize, into: &mut [u8]) -> Result<(), WaveFault> {
    for (start, length) in pieces(offset, into.len()) {
        let at = address(cx, offset.wrapping_add(start as u64), lane);
        cx.saw(observe::Space::Scratch, observe::AccessKind::Read, lane, at, length);
        cx.memory.read_bytes(at, &mut into[start..start + length])?;
    }
    Ok(())
}

/// Writes to a lane's scratch.
pub(super) fn write(cx: &mut Cx<'_>, offset: u64, lane: usize, from: &[u8]) -> Result<(), WaveFault> {
    for (start, length) in pieces(offset, from.len()) {
        let at = address(cx, offset.wrapping_add(start as u64), lane);
        cx.saw(observe::Space::Scratch, observe::AccessKind::Write, lane, at, length);
        cx.memory.write_bytes(at, &from[start..start + length])?;
    }
    Ok(())
}

/// Where an atomic operation on a lane's scratch takes place. A quadword is not in one piece there, and the hardware drops
/// such an operation (LLVM `SIISelLowering.cpp`, `flatInstrMayAccessPrivate`).
pub(super) fn place(cx: &Cx<'_>, offset: u64, lane: usize, bytes: usize) -> Result<Place, WaveFault> {
    let at = address(cx, offset, lane);
    if bytes > 4 {
        return Err(aperture_fault(at, bytes, AccessKind::Write));
    }
    Ok(Place::Memory(at))
}
