//! Reads and writes of LDS.

use std::marker::PhantomData;

use crate::exec::level::Body;
use crate::exec::memory::item::{Dwords, Item};
use crate::exec::memory::transfer::{are_consecutive, bounds, destination, gather, lanes, scatter};
use crate::exec::{Cx, Micro};
use crate::observe::{AccessKind, Space};
use crate::wave::{LANES, Vreg};

/// Each lane's address: its register plus `offset`.
///
/// # Safety
/// The registers of `m` are within the wave's.
#[inline(always)]
pub(super) unsafe fn addresses(cx: &Cx<'_>, m: &Micro, offset: u32) -> Vreg {
    // SAFETY: the caller's.
    let register = unsafe { &(*cx.vgpr.add(m.src[0].index as usize)).0 };
    Vreg(std::array::from_fn(|lane| register[lane].wrapping_add(offset)))
}

/// Reads the active lanes' items; one that is not inside the LDS reads zero.
///
/// # Safety
/// `to` points to the item's registers.
#[inline(always)]
pub(super) unsafe fn read<I: Item>(cx: &mut Cx<'_>, at: &Vreg, to: *mut Vreg) {
    let exec = cx.exec();
    if exec == 0 {
        return;
    }
    saw_all(cx, AccessKind::Read, exec, at, I::BYTES);
    let lds = cx.lds.as_bytes();
    let size = lds.len();
    // SAFETY: the ranges are compared with the size of the LDS; registers are the caller's.
    unsafe {
        if exec == u64::MAX && are_consecutive(&at.0, I::BYTES as u32) && at.0[0] as usize + LANES * I::BYTES <= size {
            I::load_all(lds.as_ptr().add(at.0[0] as usize), to);
        } else if bounds(&at.0, exec).1 as usize + I::BYTES <= size {
            gather::<I>(lds.as_ptr(), at, exec, to);
        } else {
            for lane in lanes(exec) {
                let mut bytes = [0; 16];
                cx.lds.read(at.0[lane], &mut bytes[..I::BYTES]);
                I::load(bytes.as_ptr(), to, lane);
            }
        }
    }
}

/// Writes the active lanes' items; one that is not inside the LDS is dropped.
///
/// # Safety
/// `from` points to the item's registers.
#[inline(always)]
pub(in crate::exec::memory) unsafe fn write<I: Item>(cx: &mut Cx<'_>, exec: u64, at: &Vreg, from: *const Vreg) {
    if exec == 0 {
        return;
    }
    saw_all(cx, AccessKind::Write, exec, at, I::BYTES);
    let lds = cx.lds.as_bytes_mut();
    let size = lds.len();
    // SAFETY: as in `read`.
    unsafe {
        if exec == u64::MAX && are_consecutive(&at.0, I::BYTES as u32) && at.0[0] as usize + LANES * I::BYTES <= size {
            I::store_all(from, lds.as_mut_ptr().add(at.0[0] as usize));
        } else if bounds(&at.0, exec).1 as usize + I::BYTES <= size {
            scatter::<I>(from, lds.as_mut_ptr(), at, exec);
        } else {
            for lane in lanes(exec) {
                let mut bytes = [0; 16];
                I::store(from, bytes.as_mut_ptr(), lane);
                cx.lds.write(at.0[lane], &bytes[..I::BYTES]);
            }
        }
    }
}

/// Records the lanes' accesses, if somebody looks on.
#[inline(always)]
fn saw_all(cx: &mut Cx<'_>, kind: AccessKind, exec: u64, at: &Vreg, bytes: usize) {
    if cx.is_observed() {
        lanes(exec).for_each(|lane| cx.saw(Space::Lds, kind, lane, at.0[lane].into(), bytes));
    }
}

pub(super) struct Read<I>(PhantomData<I>);

impl<I: Item> Body for Read<I> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: `translate` checked the registers.
        unsafe {
            let at = addresses(cx, m, m.imm as u32);
            let to = destination(cx, m);
            read::<I>(cx, &at, to);
        }
    }
}

pub(super) struct Write<I>(PhantomData<I>);

impl<I: Item> Body for Write<I> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: as above.
        unsafe {
            let at = addresses(cx, m, m.imm as u32);
            let from = cx.vgpr.add(m.src[1].index as usize);
            write::<I>(cx, cx.exec(), &at, from);
        }
    }
}

pub(super) struct Read2<I>(PhantomData<I>);

impl<I: Item> Body for Read2<I> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: as above. Both addresses are made before the first read, which may overwrite their register.
        unsafe {
            let (first, second) = (addresses(cx, m, m.imm as u32), addresses(cx, m, m.aux));
            let to = destination(cx, m);
            read::<I>(cx, &first, to);
            read::<I>(cx, &second, to.add(I::REGISTERS));
        }
    }
}

pub(super) struct Write2<I>(PhantomData<I>);

impl<I: Item> Body for Write2<I> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: as above.
        unsafe {
            let exec = cx.exec();
            for (data, offset) in [(m.src[1], m.imm as u32), (m.src[2], m.aux)] {
                let at = addresses(cx, m, offset);
                let from = cx.vgpr.add(data.index as usize);
                write::<I>(cx, exec, &at, from);
            }
        }
    }
}

/// Swaps two items a lane with memory.
pub(super) struct Exchange2<I>(PhantomData<I>);

impl<I: Item> Body for Exchange2<I> {
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: as above.
        unsafe {
            let places = [addresses(cx, m, m.imm as u32), addresses(cx, m, m.aux)];
            let to = destination(cx, m);
            for lane in lanes(cx.exec()) {
                let (mut old, mut new) = ([[0; 8]; 2], [[0; 8]; 2]);
                for i in 0..2 {
                    I::store(cx.vgpr.add(m.src[1 + i].index as usize), new[i].as_mut_ptr(), lane);
                    cx.saw(Space::Lds, AccessKind::Atomic, lane, places[i].0[lane].into(), I::BYTES);
                    cx.lds.read(places[i].0[lane], &mut old[i][..I::BYTES]);
                }
                for i in 0..2 {
                    cx.lds.write(places[i].0[lane], &new[i][..I::BYTES]);
                    I::load(old[i].as_ptr(), to.add(i * I::REGISTERS), lane);
                }
            }
        }
    }
}

/// Addresses of the add-TID instructions: M0[15:0] plus the offset plus four bytes a lane.
fn by_lane(cx: &Cx<'_>, m: &Micro) -> Vreg {
    let base = (cx.m0() & 0xffff).wrapping_add(m.imm as u32);
    Vreg(std::array::from_fn(|lane| base + 4 * lane as u32))
}

pub(super) struct ReadByLane;

impl Body for ReadByLane {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let at = by_lane(cx, m);
        // SAFETY: as above.
        unsafe {
            let to = destination(cx, m);
            read::<Dwords<1>>(cx, &at, to);
        }
    }
}

pub(super) struct WriteByLane;

impl Body for WriteByLane {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let at = by_lane(cx, m);
        // SAFETY: as above.
        unsafe { write::<Dwords<1>>(cx, cx.exec(), &at, cx.vgpr.add(m.src[1].index as usize)) };
    }
}
