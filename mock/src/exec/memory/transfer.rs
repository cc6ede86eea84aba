//! Moves the items of all lanes between registers and memory, in as few steps as the lanes' addresses allow.

use super::item::Item;
use crate::exec::{Cx, Micro};
use crate::memory::AccessKind;
use crate::wave::{LANES, Vreg};

/// Where the items of an instruction's lanes are.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Address that `offset` counts from.
    pub(super) base: u64,
    /// Each lane's offset: a register, or a value that outlives the transfer.
    pub(super) offset: *const Vreg,
    /// Lanes to move.
    pub(super) mask: u64,
}

/// Loads the lanes of `plan` to the registers at `to`. `false`, and nothing done, if they do not lie in one mapping.
///
/// # Safety
/// `to` points to the item's registers, `plan.offset` to a register.
#[inline(always)]
pub(super) unsafe fn load<I: Item>(cx: &mut Cx<'_>, plan: Plan, to: *mut Vreg) -> bool {
    // SAFETY: `find` gives memory that is mapped for all lanes of the mask; registers are the caller's.
    unsafe {
        match find::<I>(cx, plan, AccessKind::Read) {
            Found::Consecutive(host) => I::load_all(host, to),
            Found::Scattered(host) => gather::<I>(host, plan.offset, plan.mask, to),
            Found::Nowhere => return false,
        }
    }
    true
}

/// Stores the lanes of `plan` from the registers at `from`. `false`, and nothing done, if they do not lie in one mapping.
///
/// # Safety
/// `from` points to the item's registers, `plan.offset` to a register.
#[inline(always)]
pub(super) unsafe fn store<I: Item>(cx: &mut Cx<'_>, plan: Plan, from: *const Vreg) -> bool {
    // SAFETY: as in `load`.
    unsafe {
        match find::<I>(cx, plan, AccessKind::Write) {
            Found::Consecutive(host) => I::store_all(from, host),
            Found::Scattered(host) => scatter::<I>(from, host, plan.offset, plan.mask),
            Found::Nowhere => return false,
        }
    }
    true
}

enum Found {
    /// All 64 lanes one after the other, from here on.
    Consecutive(*mut u8),
    /// Each lane at its offset from here.
    Scattered(*mut u8),
    /// Not in one mapping.
    Nowhere,
}

#[inline(always)]
unsafe fn find<I: Item>(cx: &mut Cx<'_>, plan: Plan, kind: AccessKind) -> Found {
    // SAFETY: the caller's.
    let offset = unsafe { &(*plan.offset).0 };
    let bytes = I::BYTES as u64;
    if plan.mask == u64::MAX && are_consecutive(offset, I::BYTES as u32) {
        let start = plan.base.wrapping_add(offset[0].into());
        return match cx.memory.resolve(start, bytes * LANES as u64, kind) {
            Ok(host) => Found::Consecutive(host),
            Err(_) => Found::Nowhere,
        };
    }
    if plan.mask == 0 {
        return Found::Scattered(std::ptr::null_mut());
    }
    let (least, most) = bounds(offset, plan.mask);
    let start = plan.base.wrapping_add(least.into());
    match cx.memory.resolve(start, u64::from(most - least) + bytes, kind) {
        Ok(host) => Found::Scattered(host.wrapping_sub(least as usize)),
        Err(_) => Found::Nowhere,
    }
}

/// Whether each lane's offset is `bytes` past the one of the lane before.
#[inline(always)]
pub(super) fn are_consecutive(offset: &[u32; LANES], bytes: u32) -> bool {
    let first = offset[0];
    let mut differences = 0;
    for (lane, offset) in offset.iter().enumerate() {
        differences |= offset.wrapping_sub(first) ^ (lane as u32 * bytes);
    }
    differences == 0 && first <= u32::MAX - bytes * LANES as u32
}

/// Least and greatest offset of the lanes in `mask`, which is not empty.
#[inline(always)]
pub(super) fn bounds(offset: &[u32; LANES], mask: u64) -> (u32, u32) {
    let (mut least, mut most) = (u32::MAX, 0);
    if mask == u64::MAX {
        for &offset in offset {
            least = least.min(offset);
            most = most.max(offset);
        }
    } else {
        for (lane, &offset) in offset.iter().enumerate() {
            let on = mask >> lane & 1 == 1;
            least = least.min(if on { offset } else { u32::MAX });
            most = most.max(if on { offset } else { 0 });
        }
    }
    (least, most)
}

/// Loads lanes from `host` plus their offset.
///
/// # Safety
/// That memory is readable; the other pointers are to registers.
#[inline(always)]
pub(super) unsafe fn gather<I: Item>(host: *const u8, offset: *const Vreg, mask: u64, to: *mut Vreg) {
    // SAFETY: the caller's. A lane's offset is read before the lane is written, in case they share a register.
    unsafe {
        let at = |lane: usize| host.wrapping_add((&(*offset).0)[lane] as usize);
        if mask == u64::MAX {
            for lane in (0..LANES).step_by(4) {
                I::load_four(std::array::from_fn(|i| at(lane + i)), to, lane);
            }
        } else {
            each_lane(mask, |lane| I::load(at(lane), to, lane));
        }
    }
}

/// Stores lanes to `host` plus their offset; of two lanes with one address, the higher is stored last.
///
/// # Safety
/// That memory is writable; the other pointers are to registers.
#[inline(always)]
pub(super) unsafe fn scatter<I: Item>(from: *const Vreg, host: *mut u8, offset: *const Vreg, mask: u64) {
    // SAFETY: the caller's.
    unsafe {
        let at = |lane: usize| host.wrapping_add((&(*offset).0)[lane] as usize);
        if mask == u64::MAX {
            for lane in (0..LANES).step_by(4) {
                I::store_four(from, std::array::from_fn(|i| at(lane + i)), lane);
            }
        } else {
            each_lane(mask, |lane| I::store(from, at(lane), lane));
        }
    }
}

/// Calls `f` for each lane of `mask`, in order.
#[inline(always)]
pub(super) fn each_lane(mut mask: u64, mut f: impl FnMut(usize)) {
    if mask == u64::MAX {
        (0..LANES).for_each(f);
    } else {
        while mask != 0 {
            f(mask.trailing_zeros() as usize);
            mask &= mask - 1;
        }
    }
}

/// The lanes of `mask`, in order.
pub(super) fn lanes(mask: u64) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask >> lane & 1 == 1)
}

/// Sets the lanes of `mask` to zero in `registers` registers.
///
/// # Safety
/// `to` points to that many registers.
pub(super) unsafe fn clear(to: *mut Vreg, registers: usize, mask: u64) {
    for register in 0..registers {
        // SAFETY: the caller's.
        let lanes_of = unsafe { &mut (*to.add(register)).0 };
        each_lane(mask, |lane| lanes_of[lane] = 0);
    }
}

/// First register of the destination.
///
/// # Safety
/// `translate` checked it against the wave's file.
#[inline(always)]
pub(super) unsafe fn destination(cx: &Cx<'_>, m: &Micro) -> *mut Vreg {
    // SAFETY: the caller's.
    unsafe { cx.vgpr.add(m.dst as usize) }
}
