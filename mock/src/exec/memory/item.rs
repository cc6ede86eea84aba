//! What a memory instruction moves for one lane: how many bytes, and how registers hold them.

use super::four;
use crate::wave::{LANES, Vreg};

/// One lane's share of a load or store.
pub(super) trait Item {
    /// Bytes in memory.
    const BYTES: usize;
    /// Registers that hold it.
    const REGISTERS: usize;

    /// Loads lane `lane`.
    ///
    /// # Safety
    /// `from` points to [`Self::BYTES`] readable bytes, `to` to [`Self::REGISTERS`] registers.
    unsafe fn load(from: *const u8, to: *mut Vreg, lane: usize);

    /// Stores lane `lane`.
    ///
    /// # Safety
    /// `to` points to [`Self::BYTES`] writable bytes, `from` to [`Self::REGISTERS`] registers.
    unsafe fn store(from: *const Vreg, to: *mut u8, lane: usize);

    /// Loads the four lanes from `lane` on.
    ///
    /// # Safety
    /// As for [`Self::load`], for each pointer.
    #[inline(always)]
    unsafe fn load_four(from: [*const u8; 4], to: *mut Vreg, lane: usize) {
        // SAFETY: the caller's.
        (0..4).for_each(|i| unsafe { Self::load(from[i], to, lane + i) });
    }

    /// Stores the four lanes from `lane` on, in order.
    ///
    /// # Safety
    /// As for [`Self::store`], for each pointer.
    #[inline(always)]
    unsafe fn store_four(from: *const Vreg, to: [*mut u8; 4], lane: usize) {
        // SAFETY: the caller's.
        (0..4).for_each(|i| unsafe { Self::store(from, to[i], lane + i) });
    }

    /// Loads all lanes from consecutive memory.
    ///
    /// # Safety
    /// As for [`Self::load`], with `from` good for all lanes.
    #[inline(always)]
    unsafe fn load_all(from: *const u8, to: *mut Vreg) {
        for lane in (0..LANES).step_by(4) {
            // SAFETY: the lanes' part of what the caller vouches for.
            unsafe { Self::load_four(std::array::from_fn(|i| from.add((lane + i) * Self::BYTES)), to, lane) };
        }
    }

    /// Stores all lanes to consecutive memory.
    ///
    /// # Safety
    /// As for [`Self::store`], with `to` good for all lanes.
    #[inline(always)]
    unsafe fn store_all(from: *const Vreg, to: *mut u8) {
        for lane in (0..LANES).step_by(4) {
            // SAFETY: the lanes' part of what the caller vouches for.
            unsafe { Self::store_four(from, std::array::from_fn(|i| to.add((lane + i) * Self::BYTES)), lane) };
        }
    }
}

/// One to four whole registers.
///
/// Two are moved as one quadword and four as one 16-byte word, which x86-64 does in one access where they are aligned:
/// kernels put data and the flag that announces it in one such store.
pub(super) struct Dwords<const N: usize>;

impl<const N: usize> Item for Dwords<N> {
    const BYTES: usize = 4 * N;
    const REGISTERS: usize = N;

    #[inline(always)]
    unsafe fn load(from: *const u8, to: *mut Vreg, lane: usize) {
        // SAFETY: the caller's.
        unsafe {
            let put = |register: usize, value: u32| (&mut (*to.add(register)).0)[lane] = value;
            match N {
                1 => put(0, from.cast::<u32>().read_unaligned()),
                2 => {
                    let value = from.cast::<u64>().read_unaligned();
                    put(0, value as u32);
                    put(1, (value >> 32) as u32);
                }
                4 => {
                    let value = from.cast::<u128>().read_unaligned();
                    (0..4).for_each(|i| put(i, (value >> (32 * i)) as u32));
                }
                _ => (0..N).for_each(|i| put(i, from.cast::<u32>().add(i).read_unaligned())),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(from: *const Vreg, to: *mut u8, lane: usize) {
        // SAFETY: the caller's.
        unsafe {
            let get = |register: usize| (&(*from.add(register)).0)[lane];
            match N {
                1 => to.cast::<u32>().write_unaligned(get(0)),
                2 => to.cast::<u64>().write_unaligned(u64::from(get(0)) | u64::from(get(1)) << 32),
                4 => {
                    let value = (0..4).fold(0, |value, i| value | u128::from(get(i)) << (32 * i));
                    to.cast::<u128>().write_unaligned(value);
                }
                _ => (0..N).for_each(|i| to.cast::<u32>().add(i).write_unaligned(get(i))),
            }
        }
    }

    #[inline(always)]
    unsafe fn load_all(from: *const u8, to: *mut Vreg) {
        // SAFETY: the caller's; one register is copied as it lies in memory.
        unsafe {
            if N == 1 {
                return to.cast::<[u32; LANES]>().write(from.cast::<[u32; LANES]>().read_unaligned());
            }
            for lane in (0..LANES).step_by(4) {
                Self::load_four(std::array::from_fn(|i| from.add((lane + i) * Self::BYTES)), to, lane);
            }
        }
    }

    #[inline(always)]
    unsafe fn store_all(from: *const Vreg, to: *mut u8) {
        // SAFETY: as in `load_all`.
        unsafe {
            if N == 1 {
                return to.cast::<[u32; LANES]>().write_unaligned(from.cast::<[u32; LANES]>().read());
            }
            for lane in (0..LANES).step_by(4) {
                Self::store_four(from, std::array::from_fn(|i| to.add((lane + i) * Self::BYTES)), lane);
            }
        }
    }

    #[inline(always)]
    unsafe fn load_four(from: [*const u8; 4], to: *mut Vreg, lane: usize) {
        // SAFETY: the caller's.
        unsafe {
            match N {
                2 => four::load_pairs(from, to, lane),
                4 => four::load_quads(from, to, lane),
                _ => (0..4).for_each(|i| Self::load(from[i], to, lane + i)),
            }
        }
    }

    #[inline(always)]
    unsafe fn store_four(from: *const Vreg, to: [*mut u8; 4], lane: usize) {
        // SAFETY: the caller's.
        unsafe {
            match N {
                2 => four::store_pairs(from, to, lane),
                4 => four::store_quads(from, to, lane),
                _ => (0..4).for_each(|i| Self::store(from, to[i], lane + i)),
            }
        }
    }
}

/// [`Narrow`] fills the register.
pub(super) const WHOLE: u8 = 0;
/// [`Narrow`] is the low half of the register, the high half is kept.
pub(super) const LOW: u8 = 1;
/// [`Narrow`] is the high half of the register, the low half is kept.
pub(super) const HIGH: u8 = 2;

/// One byte or two; loads extend it to the place it takes in its register.
pub(super) struct Narrow<const BYTES: usize, const SIGNED: bool, const PLACE: u8>;

/// An unsigned byte in a whole register.
pub(super) type U8 = Narrow<1, false, WHOLE>;
/// A signed byte in a whole register.
pub(super) type I8 = Narrow<1, true, WHOLE>;
/// Two bytes, unsigned, in a whole register.
pub(super) type U16 = Narrow<2, false, WHOLE>;
/// Two bytes, signed, in a whole register.
pub(super) type I16 = Narrow<2, true, WHOLE>;

impl<const BYTES: usize, const SIGNED: bool, const PLACE: u8> Item for Narrow<BYTES, SIGNED, PLACE> {
    const BYTES: usize = BYTES;
    const REGISTERS: usize = 1;

    #[inline(always)]
    unsafe fn load(from: *const u8, to: *mut Vreg, lane: usize) {
        // SAFETY: the caller's.
        let (value, register) = unsafe {
            let value = match (BYTES, SIGNED) {
                (1, false) => u32::from(from.read()),
                (1, true) => from.cast::<i8>().read() as u32,
                (_, false) => u32::from(from.cast::<u16>().read_unaligned()),
                (_, true) => from.cast::<i16>().read_unaligned() as u32,
            };
            (value, &mut (&mut (*to).0)[lane])
        };
        *register = match PLACE {
            LOW => *register & 0xffff_0000 | value & 0xffff,
            HIGH => *register & 0xffff | value << 16,
            _ => value,
        };
    }

    #[inline(always)]
    unsafe fn store(from: *const Vreg, to: *mut u8, lane: usize) {
        // SAFETY: the caller's.
        unsafe {
            let register = (&(*from).0)[lane];
            let value = if PLACE == HIGH { register >> 16 } else { register };
            if BYTES == 1 { to.write(value as u8) } else { to.cast::<u16>().write_unaligned(value as u16) }
        }
    }
}
