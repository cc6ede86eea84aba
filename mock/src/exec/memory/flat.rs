//! Flat memory: the address says whether it is memory, the workgroup's LDS or the lane's scratch.

use super::global::{self, PRIVATE_APERTURE, SHARED_APERTURE};
use super::scratch;
use super::space::{Place, Space};
use super::transfer::Plan;
use crate::exec::{Cx, Micro, WaveFault};

pub(super) struct Flat;

impl Space for Flat {
    #[inline(always)]
    unsafe fn plan(cx: &mut Cx<'_>, m: &Micro, exec: u64, _: usize) -> Option<Plan> {
        // Nothing is mapped at the apertures, so their plans find no memory and lanes are taken one by one.
        // SAFETY: the caller's.
        unsafe { global::pair_plan(cx, m, exec) }
    }

    unsafe fn read(cx: &mut Cx<'_>, m: &Micro, lane: usize, into: &mut [u8]) -> Result<(), WaveFault> {
        // SAFETY: the caller's.
        let at = unsafe { global::address(cx, m, lane) };
        match (at >> 32) as u32 {
            SHARED_APERTURE => cx.lds.read(at as u32, into),
            PRIVATE_APERTURE => scratch::read(cx, u64::from(at as u32), lane, into)?,
            _ => cx.memory.read_bytes(at, into)?,
        }
        Ok(())
    }

    unsafe fn write(cx: &mut Cx<'_>, m: &Micro, lane: usize, from: &[u8]) -> Result<(), WaveFault> {
        // SAFETY: the caller's.
        let at = unsafe { global::address(cx, m, lane) };
        match (at >> 32) as u32 {
            SHARED_APERTURE => cx.lds.write(at as u32, from),
            PRIVATE_APERTURE => scratch::write(cx, u64::from(at as u32), lane, from)?,
            _ => cx.memory.write_bytes(at, from)?,
        }
        Ok(())
    }

    unsafe fn place(cx: &mut Cx<'_>, m: &Micro, lane: usize, bytes: usize) -> Result<Place, WaveFault> {
        // SAFETY: the caller's.
        let at = unsafe { global::address(cx, m, lane) };
        match (at >> 32) as u32 {
            SHARED_APERTURE => Ok(Place::Lds(at as u32)),
            PRIVATE_APERTURE => scratch::place(cx, u64::from(at as u32), lane, bytes),
            _ => Ok(Place::Memory(at)),
        }
    }
}
