//! Exchange between lanes through the LDS unit; its memory is not touched.

use crate::exec::level::Body;
use crate::exec::memory::transfer::{destination, each_lane};
use crate::exec::{Cx, Micro};
use crate::wave::{LANES, Vreg};

/// Writes `values` in the active lanes of the destination.
///
/// # Safety
/// The registers of `m` are within the wave's.
#[inline(always)]
unsafe fn put(cx: &mut Cx<'_>, m: &Micro, values: &Vreg) {
    let exec = cx.exec();
    // SAFETY: the caller's.
    let to = unsafe { &mut (*destination(cx, m)).0 };
    for (lane, (to, &value)) in to.iter_mut().zip(&values.0).enumerate() {
        *to = if exec >> lane & 1 == 1 { value } else { *to };
    }
}

/// Reads each lane's value from another lane; one that is off gives zero.
#[inline(always)]
fn fetch(out: &mut Vreg, data: &[u32; LANES], exec: u64, from: impl Fn(usize) -> usize) {
    if exec == u64::MAX {
        for lane in 0..LANES {
            out.0[lane] = data[from(lane) % LANES];
        }
    } else {
        for lane in 0..LANES {
            let from = from(lane) % LANES;
            out.0[lane] = if exec >> from & 1 == 1 { data[from] } else { 0 };
        }
    }
}

/// Lane number that a byte address means.
#[inline(always)]
fn lane_of(address: u32, m: &Micro) -> usize {
    address.wrapping_add(m.imm as u32) as usize / 4 % LANES
}

/// `ds_permute`: each active lane sends its value; the highest-numbered sender wins, who gets none reads zero.
pub(super) struct Permute;

impl Body for Permute {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let mut out = Vreg::default();
        // SAFETY: `translate` checked the registers.
        unsafe {
            let address = &(*cx.vgpr.add(m.src[0].index as usize)).0;
            let data = &(*cx.vgpr.add(m.src[1].index as usize)).0;
            each_lane(cx.exec(), |lane| out.0[lane_of(address[lane], m)] = data[lane]);
            put(cx, m, &out);
        }
    }
}

/// `ds_bpermute`: each active lane fetches a value; a lane that is off gives zero.
pub(super) struct Bpermute;

impl Body for Bpermute {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        let mut out = Vreg::default();
        // SAFETY: as above.
        unsafe {
            let address = &(*cx.vgpr.add(m.src[0].index as usize)).0;
            let data = &(*cx.vgpr.add(m.src[1].index as usize)).0;
            fetch(&mut out, data, exec, |lane| lane_of(address[lane], m));
            put(cx, m, &out);
        }
    }
}

/// `ds_swizzle`: each lane fetches from the lane that the offset pattern says; a lane that is off gives zero.
pub(super) struct Swizzle;

impl Body for Swizzle {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        let mut out = Vreg::default();
        // SAFETY: as above.
        unsafe {
            let data = &(*cx.vgpr.add(m.src[0].index as usize)).0;
            let offset = m.imm as u32;
            match Pattern::of(offset) {
                Pattern::Fft => fetch(&mut out, data, exec, |lane| fft(offset, lane)),
                Pattern::Rotate => fetch(&mut out, data, exec, |lane| rotate(offset, lane)),
                Pattern::Quad => fetch(&mut out, data, exec, |lane| quad(offset, lane)),
                Pattern::Mask => fetch(&mut out, data, exec, |lane| mask(offset, lane)),
            }
            put(cx, m, &out);
        }
    }
}

/// How `ds_swizzle` finds the lane to read from (CDNA4 ISA, DS_SWIZZLE_B32).
enum Pattern {
    Fft,
    Rotate,
    /// Any lane of four.
    Quad,
    /// AND, OR, XOR of the lane number.
    Mask,
}

impl Pattern {
    fn of(offset: u32) -> Self {
        match offset {
            0xe000.. => Self::Fft,
            0xc000..0xe000 => Self::Rotate,
            0x8000..0xc000 => Self::Quad,
            _ => Self::Mask,
        }
    }
}

/// Five bits of the offset. All patterns but the four-lane one repeat every 32 lanes.
#[inline(always)]
fn field(offset: u32, low: u32) -> usize {
    (offset >> low & 0x1f) as usize
}

#[inline(always)]
fn fft(offset: u32, lane: usize) -> usize {
    let mask = field(offset, 0);
    let reversed = ((lane & 0x1f) as u32).reverse_bits() >> 27;
    reversed as usize >> mask.count_ones() | lane & mask | lane & 0x20
}

/// To the left, or by bit 10 to the right; masked bits of the lane number stay.
#[inline(always)]
fn rotate(offset: u32, lane: usize) -> usize {
    let (mask, turns) = (field(offset, 0), field(offset, 5));
    let turned = if offset >> 10 & 1 == 1 { lane.wrapping_sub(turns) } else { lane + turns };
    lane & mask | turned & !mask & 0x1f | lane & 0x20
}

#[inline(always)]
fn quad(offset: u32, lane: usize) -> usize {
    lane & !3 | (offset >> (2 * (lane & 3)) & 3) as usize
}

#[inline(always)]
fn mask(offset: u32, lane: usize) -> usize {
    (lane & field(offset, 0) | field(offset, 5)) ^ field(offset, 10) | lane & 0x20
}
