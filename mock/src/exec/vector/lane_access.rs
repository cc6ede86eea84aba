//! Instructions that move values between lanes, or between a lane and a scalar register. They leave MODE alone.

use isa::Op;

use super::Answer;
use crate::exec::level::{Body, Level};
use crate::exec::translate::Builder;
use crate::exec::{Cx, Micro, SrcKind};
use crate::wave::{LANES, Vreg};

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    let micro = match b.inst.op {
        Op::VReadfirstlaneB32 => b.body::<L, ReadFirstLane>(),
        Op::VReadlaneB32 => b.body::<L, ReadLane>(),
        Op::VWritelaneB32 => b.body::<L, WriteLane>(),
        Op::VSwapB32 => b.body::<L, Swap>(),
        Op::VPermlane16SwapB32 => b.body::<L, SwapRows<16>>(),
        Op::VPermlane32SwapB32 => b.body::<L, SwapRows<32>>(),
        _ => return None,
    };
    Some(micro.map(|micro| Micro { aux: b.inst.mods.op_sel.into(), ..micro }))
}

/// Value of source 0 in `lane`.
///
/// # Safety
/// The registers of `m` are within the wave's.
unsafe fn source_lane(cx: &mut Cx<'_>, m: &Micro, lane: usize) -> u32 {
    match m.src[0].kind {
        // SAFETY: passed on.
        SrcKind::Vgpr => unsafe { (*cx.vgpr.add(m.src[0].index as usize)).0[lane & (LANES - 1)] },
        _ => cx.scalar32(m.src[0]),
    }
}

/// The lowest active lane's value, lane 0's if none is active, to a scalar register.
struct ReadFirstLane;

impl Body for ReadFirstLane {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let lane = cx.exec().trailing_zeros() as usize & (LANES - 1);
        // SAFETY: passed on.
        let value = unsafe { source_lane(cx, m, lane) };
        cx.write_sgpr32(m.dst, value);
    }
}

/// One lane's value to a scalar register, whatever EXEC says.
struct ReadLane;

impl Body for ReadLane {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let lane = cx.scalar32(m.src[1]) as usize;
        // SAFETY: passed on.
        let value = unsafe { source_lane(cx, m, lane) };
        cx.write_sgpr32(m.dst, value);
    }
}

/// A uniform value to one lane, whatever EXEC says.
struct WriteLane;

impl Body for WriteLane {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let value = cx.scalar32(m.src[0]);
        let lane = cx.scalar32(m.src[1]) as usize & (LANES - 1);
        // SAFETY: passed on.
        unsafe { (*cx.vgpr.add(m.dst as usize)).0[lane] = value };
    }
}

/// The destination's and the source's registers of `m`, which may be the same.
///
/// # Safety
/// The registers of `m` are within the wave's, and source 0 is one of them.
unsafe fn both(cx: &Cx<'_>, m: &Micro) -> (*mut Vreg, *mut Vreg) {
    // SAFETY: passed on.
    unsafe { (cx.vgpr.add(m.dst as usize), cx.vgpr.add(m.src[0].index as usize)) }
}

/// Exchanges two registers in the active lanes.
struct Swap;

impl Body for Swap {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        // SAFETY: the decoder lets only vector registers be swapped; both registers are read before either is written.
        unsafe {
            let (dst, src) = both(cx, m);
            let (old_dst, old_src) = (*dst, *src);
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
                (*dst).0[lane] = old_src.0[lane];
                (*src).0[lane] = old_dst.0[lane];
            }
        }
    }
}

/// Exchanges the odd groups of `GROUP` lanes of the destination with the even groups of the source.
///
/// A lane takes part if it is active. Its partner in the other register is `GROUP` lanes away; what it gets from a
/// partner that is off is that partner's value with FI, zero with BOUND_CTRL alone, and nothing without either, as for
/// the other cross-lane instructions that have these bits (LLVM `llvm.amdgcn.permlane16.swap`).
struct SwapRows<const GROUP: usize>;

impl<const GROUP: usize> Body for SwapRows<GROUP> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        const FETCH_INACTIVE: u32 = 1;
        const BOUND_CONTROL: u32 = 2;
        let exec = cx.exec();
        let on = |lane: usize| exec >> lane & 1 == 1;
        let fetched = |register: &Vreg, lane: usize| match () {
            () if on(lane) || m.aux & FETCH_INACTIVE != 0 => Some(register.0[lane]),
            () if m.aux & BOUND_CONTROL != 0 => Some(0),
            () => None,
        };
        // SAFETY: as in `Swap`.
        unsafe {
            let (dst, src) = both(cx, m);
            let (old_dst, old_src) = (*dst, *src);
            for even in (0..LANES).filter(|lane| lane & GROUP == 0) {
                let odd = even + GROUP;
                if let (true, Some(value)) = (on(even), fetched(&old_dst, odd)) {
                    (*src).0[even] = value;
                }
                if let (true, Some(value)) = (on(odd), fetched(&old_src, even)) {
                    (*dst).0[odd] = value;
                }
            }
        }
    }
}
