//! Moves two or four registers of four lanes at once: the lanes' quadwords or 16-byte words are rearranged in SSE2 registers,
//! which every x86-64 has. Each lane is still one access.

use crate::wave::Vreg;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_loadl_epi64, _mm_loadu_si128, _mm_storel_epi64, _mm_storeu_si128, _mm_unpackhi_epi32,
        _mm_unpackhi_epi64, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
    };

    use super::Vreg;

    /// Four lanes of register `i`.
    #[inline(always)]
    unsafe fn part(registers: *const Vreg, i: usize, lane: usize) -> *const __m128i {
        // SAFETY: the caller's.
        unsafe { registers.add(i).cast::<u32>().add(lane).cast() }
    }

    /// Columns of the matrix whose rows are given.
    #[inline(always)]
    fn transposed(rows: [__m128i; 4]) -> [__m128i; 4] {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let [a, b, c, d] = rows;
            let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
            [
                _mm_unpacklo_epi64(ab, cd),
                _mm_unpackhi_epi64(ab, cd),
                _mm_unpacklo_epi64(ab_high, cd_high),
                _mm_unpackhi_epi64(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    pub(in super::super) unsafe fn load_quads(from: [*const u8; 4], to: *mut Vreg, lane: usize) {
        // SAFETY: 16 readable bytes at each pointer, four registers of which four lanes are written.
        unsafe {
            let registers = transposed(from.map(|from| _mm_loadu_si128(from.cast())));
            for (i, register) in registers.into_iter().enumerate() {
                _mm_storeu_si128(part(to, i, lane).cast_mut(), register);
            }
        }
    }

    #[inline(always)]
    pub(in super::super) unsafe fn store_quads(from: *const Vreg, to: [*mut u8; 4], lane: usize) {
        // SAFETY: 16 writable bytes at each pointer, four registers of which four lanes are read.
        unsafe {
            let lanes = transposed(std::array::from_fn(|i| _mm_loadu_si128(part(from, i, lane))));
            for (to, value) in to.into_iter().zip(lanes) {
                _mm_storeu_si128(to.cast(), value);
            }
        }
    }

    #[inline(always)]
    pub(in super::super) unsafe fn load_pairs(from: [*const u8; 4], to: *mut Vreg, lane: usize) {
        // SAFETY: eight readable bytes at each pointer, two registers of which four lanes are written.
        unsafe {
            let [a, b, c, d] = from.map(|from| _mm_loadl_epi64(from.cast()));
            let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            _mm_storeu_si128(part(to, 0, lane).cast_mut(), _mm_unpacklo_epi64(ab, cd));
            _mm_storeu_si128(part(to, 1, lane).cast_mut(), _mm_unpackhi_epi64(ab, cd));
        }
    }

    #[inline(always)]
    pub(in super::super) unsafe fn store_pairs(from: *const Vreg, to: [*mut u8; 4], lane: usize) {
        // SAFETY: eight writable bytes at each pointer, two registers of which four lanes are read.
        unsafe {
            let (low, high) = (_mm_loadu_si128(part(from, 0, lane)), _mm_loadu_si128(part(from, 1, lane)));
            let (ab, cd) = (_mm_unpacklo_epi32(low, high), _mm_unpackhi_epi32(low, high));
            _mm_storel_epi64(to[0].cast(), ab);
            _mm_storel_epi64(to[1].cast(), _mm_unpackhi_epi64(ab, ab));
            _mm_storel_epi64(to[2].cast(), cd);
            _mm_storel_epi64(to[3].cast(), _mm_unpackhi_epi64(cd, cd));
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    use super::Vreg;
    use crate::exec::memory::item::{Dwords, Item};

    pub(in super::super) unsafe fn load_quads(from: [*const u8; 4], to: *mut Vreg, lane: usize) {
        // SAFETY: the caller's.
        (0..4).for_each(|i| unsafe { Dwords::<4>::load(from[i], to, lane + i) });
    }

    pub(in super::super) unsafe fn store_quads(from: *const Vreg, to: [*mut u8; 4], lane: usize) {
        // SAFETY: the caller's.
        (0..4).for_each(|i| unsafe { Dwords::<4>::store(from, to[i], lane + i) });
    }

    pub(in super::super) unsafe fn load_pairs(from: [*const u8; 4], to: *mut Vreg, lane: usize) {
        // SAFETY: the caller's.
        (0..4).for_each(|i| unsafe { Dwords::<2>::load(from[i], to, lane + i) });
    }

    pub(in super::super) unsafe fn store_pairs(from: *const Vreg, to: [*mut u8; 4], lane: usize) {
        // SAFETY: the caller's.
        (0..4).for_each(|i| unsafe { Dwords::<2>::store(from, to[i], lane + i) });
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable::{load_pairs, load_quads, store_pairs, store_quads};
#[cfg(target_arch = "x86_64")]
pub(super) use sse2::{load_pairs, load_quads, store_pairs, store_quads};
