//! Loads and stores of a kind of memory: what differs between global, flat, scratch and buffer instructions.

use std::marker::PhantomData;

use super::item::{Dwords, Item};
use super::transfer::{self, Plan, clear, lanes};
use crate::exec::level::Body;
use crate::exec::{Cx, Micro, WaveFault};
use crate::observe;
use crate::wave::Vreg;

/// A kind of memory instruction. Address operands are in `Micro::src[0..2]`, data to store or combine at `Micro::src[2]`.
pub(super) trait Space {
    /// Distance in memory of the dwords of one item.
    const DWORD_STRIDE: u64 = 4;
    /// What observers call it.
    const SEEN: observe::Space = observe::Space::Memory;

    /// Where the active lanes' items of `bytes` bytes are, if each is one piece of ordinary memory. Lanes of `exec` that
    /// are not in the plan are out of range: they load zero and store nothing.
    ///
    /// # Safety
    /// The registers of `m` are within the wave's, and `exec` is not zero.
    unsafe fn plan(cx: &mut Cx<'_>, m: &Micro, exec: u64, bytes: usize) -> Option<Plan>;

    /// Reads the item of one lane, whatever its address.
    ///
    /// # Safety
    /// As for [`Self::plan`].
    unsafe fn read(cx: &mut Cx<'_>, m: &Micro, lane: usize, into: &mut [u8]) -> Result<(), WaveFault>;

    /// Writes the item of one lane, whatever its address.
    ///
    /// # Safety
    /// As for [`Self::plan`].
    unsafe fn write(cx: &mut Cx<'_>, m: &Micro, lane: usize, from: &[u8]) -> Result<(), WaveFault>;

    /// Where an atomic operation on the item of one lane takes place.
    ///
    /// # Safety
    /// As for [`Self::plan`].
    unsafe fn place(cx: &mut Cx<'_>, m: &Micro, lane: usize, bytes: usize) -> Result<Place, WaveFault>;
}

/// Where an atomic operation takes place.
pub(super) enum Place {
    /// Memory at a virtual address.
    Memory(u64),
    /// The workgroup's LDS.
    Lds(u32),
    /// Out of a buffer's range: nothing happens, and zero is returned.
    Nowhere,
}

impl Place {
    /// What an observer is told of it.
    pub(super) fn seen<S: Space>(&self) -> Option<(observe::Space, u64)> {
        match *self {
            Self::Memory(at) => Some((S::SEEN, at)),
            Self::Lds(at) => Some((observe::Space::Lds, at.into())),
            Self::Nowhere => None,
        }
    }
}

/// A load.
pub(super) struct Load<S, I>(PhantomData<(S, I)>);

impl<S: Space, I: Item> Body for Load<S, I> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: `translate` checked the registers.
        unsafe {
            let to = transfer::destination(cx, m);
            load_to::<S, I>(cx, m, cx.exec(), to);
        }
    }
}

/// Loads the items of the lanes in `exec` to the registers at `to`.
///
/// # Safety
/// `to` points to the item's registers; the registers of `m` are within the wave's.
#[inline(always)]
pub(super) unsafe fn load_to<S: Space, I: Item>(cx: &mut Cx<'_>, m: &Micro, exec: u64, to: *mut Vreg) {
    if exec == 0 {
        return;
    }
    // SAFETY: the caller's.
    unsafe {
        match plan::<S>(cx, m, exec, I::BYTES) {
            Some(plan) if load_plan::<S, I>(cx, plan, to) => {
                if plan.mask != exec {
                    clear(to, I::REGISTERS, exec & !plan.mask);
                }
            }
            _ => load_lane_by_lane::<S, I>(cx, m, exec, to),
        }
    }
}

/// [`Space::plan`], but none if somebody looks on, who wants to see each lane's access.
///
/// # Safety
/// As for [`Space::plan`].
#[inline(always)]
unsafe fn plan<S: Space>(cx: &mut Cx<'_>, m: &Micro, exec: u64, bytes: usize) -> Option<Plan> {
    // SAFETY: the caller's.
    if cx.is_observed() { None } else { unsafe { S::plan(cx, m, exec, bytes) } }
}

/// # Safety
/// As for [`load_to`].
#[inline(always)]
unsafe fn load_plan<S: Space, I: Item>(cx: &mut Cx<'_>, plan: Plan, to: *mut Vreg) -> bool {
    // SAFETY: the caller's.
    unsafe {
        if S::DWORD_STRIDE == 4 || I::REGISTERS == 1 {
            return transfer::load::<I>(cx, plan, to);
        }
        (0..I::REGISTERS).all(|i| {
            let plan = Plan { base: plan.base.wrapping_add(S::DWORD_STRIDE * i as u64), ..plan };
            transfer::load::<Dwords<1>>(cx, plan, to.add(i))
        })
    }
}

/// # Safety
/// As for [`load_to`].
#[cold]
#[inline(never)]
unsafe fn load_lane_by_lane<S: Space, I: Item>(cx: &mut Cx<'_>, m: &Micro, exec: u64, to: *mut Vreg) {
    for lane in lanes(exec) {
        let mut bytes = [0; 16];
        // SAFETY: the caller's.
        unsafe {
            match S::read(cx, m, lane, &mut bytes[..I::BYTES]) {
                Ok(()) => I::load(bytes.as_ptr(), to, lane),
                Err(fault) => return cx.fault(fault),
            }
        }
    }
}

/// A store.
pub(super) struct Store<S, I>(PhantomData<(S, I)>);

impl<S: Space, I: Item> Body for Store<S, I> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        if exec == 0 {
            return;
        }
        // SAFETY: `translate` checked the registers.
        unsafe {
            let from = cx.vgpr.add(m.src[2].index as usize);
            match plan::<S>(cx, m, exec, I::BYTES) {
                Some(plan) if store_plan::<S, I>(cx, plan, from) => {}
                _ => store_lane_by_lane::<S, I>(cx, m, exec, from),
            }
        }
    }
}

/// # Safety
/// `from` points to the item's registers.
#[inline(always)]
unsafe fn store_plan<S: Space, I: Item>(cx: &mut Cx<'_>, plan: Plan, from: *const Vreg) -> bool {
    // SAFETY: the caller's.
    unsafe {
        if S::DWORD_STRIDE == 4 || I::REGISTERS == 1 {
            return transfer::store::<I>(cx, plan, from);
        }
        (0..I::REGISTERS).all(|i| {
            let plan = Plan { base: plan.base.wrapping_add(S::DWORD_STRIDE * i as u64), ..plan };
            transfer::store::<Dwords<1>>(cx, plan, from.add(i))
        })
    }
}

/// # Safety
/// `from` points to the item's registers; the registers of `m` are within the wave's.
#[cold]
#[inline(never)]
unsafe fn store_lane_by_lane<S: Space, I: Item>(cx: &mut Cx<'_>, m: &Micro, exec: u64, from: *const Vreg) {
    for lane in lanes(exec) {
        let mut bytes = [0; 16];
        // SAFETY: the caller's; the array holds the longest item.
        let written = unsafe {
            I::store(from, bytes.as_mut_ptr(), lane);
            S::write(cx, m, lane, &bytes[..I::BYTES])
        };
        if let Err(fault) = written {
            return cx.fault(fault);
        }
    }
}
