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
    for lane in 0..LANES {
        to[lane] = if exec >> lane & 1 == 1 { values.0[lane] } else { to[lane] };
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
            for lane in 0..LANES {
                let from = lane_of(address[lane], m);
                out.0[lane] = if exec >> from & 1 == 1 { data[from] } else { 0 };
            }
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
            for lane in 0..LANES {
                let from = swizzle_source(m.imm as u32, lane as u32) as usize;
                out.0[lane] = if exec >> from & 1 == 1 { data[from] } else { 0 };
            }
            put(cx, m, &out);
        }
    }
}

/// The lane that `lane` reads (CDNA4 ISA, DS_SWIZZLE_B32). All patterns but the four-lane one repeat every 32 lanes.
fn swizzle_source(offset: u32, lane: u32) -> u32 {
    let field = |low: u32| offset >> low & 0x1f;
    let in_half = lane & 0x1f;
    let source = match offset {
        // FFT decomposition
        0xe000.. => {
            let mask = field(0);
            in_half.reverse_bits() >> 27 >> mask.count_ones() | in_half & mask
        }
        // Rotation, to the left or by bit 10 to the right; masked bits of the lane number stay
        0xc000..0xe000 => {
            let (mask, turns) = (field(0), field(5));
            let turned = if offset >> 10 & 1 == 1 { in_half.wrapping_sub(turns) } else { in_half + turns };
            in_half & mask | turned & !mask & 0x1f
        }
        // Any lane of four
        0x8000..0xc000 => in_half & !3 | offset >> (2 * (in_half & 3)) & 3,
        // AND, OR, XOR of the lane number
        _ => (in_half & field(0) | field(5)) ^ field(10),
    };
    source | lane & 0x20
}
