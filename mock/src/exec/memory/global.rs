//! Global memory: an address in a register pair, or a base in SGPRs and a 32-bit offset in a register.

use super::space::{Place, Space};
use super::transfer::Plan;
use crate::exec::{Cx, Micro, SrcKind, WaveFault};
use crate::memory::{AccessKind, MemoryFault, MemoryFaultReason};
use crate::wave::{LANES, Vreg};

/// High dword of the addresses in the LDS aperture (KFD puts it at 1 << 48, of 4 GiB).
pub(super) const SHARED_APERTURE: u32 = 1 << 16;
/// High dword of the addresses in the scratch aperture (at 2 << 48, of 4 GiB).
pub(super) const PRIVATE_APERTURE: u32 = 2 << 16;

pub(super) struct Global;

impl Space for Global {
    #[inline(always)]
    unsafe fn plan(cx: &mut Cx<'_>, m: &Micro, exec: u64, _: usize) -> Option<Plan> {
        // SAFETY: the caller's.
        unsafe {
            if m.src[1].kind == SrcKind::None {
                pair_plan(cx, m, exec)
            } else {
                let base = scalar_base(cx, m);
                Some(Plan { base, offset: cx.vgpr.add(m.src[0].index as usize), mask: exec })
            }
        }
    }

    unsafe fn read(cx: &mut Cx<'_>, m: &Micro, lane: usize, into: &mut [u8]) -> Result<(), WaveFault> {
        // SAFETY: the caller's.
        let at = unsafe { ordinary_address(cx, m, lane, into.len(), AccessKind::Read)? };
        Ok(cx.memory.read_bytes(at, into)?)
    }

    unsafe fn write(cx: &mut Cx<'_>, m: &Micro, lane: usize, from: &[u8]) -> Result<(), WaveFault> {
        // SAFETY: the caller's.
        let at = unsafe { ordinary_address(cx, m, lane, from.len(), AccessKind::Write)? };
        Ok(cx.memory.write_bytes(at, from)?)
    }

    unsafe fn place(cx: &mut Cx<'_>, m: &Micro, lane: usize, bytes: usize) -> Result<Place, WaveFault> {
        // SAFETY: the caller's.
        Ok(Place::Memory(unsafe { ordinary_address(cx, m, lane, bytes, AccessKind::Write)? }))
    }
}

/// The plan of addresses in a register pair: if all active lanes have the same high dword, the low ones are offsets.
///
/// # Safety
/// As for [`Space::plan`].
#[inline(always)]
pub(super) unsafe fn pair_plan(cx: &Cx<'_>, m: &Micro, exec: u64) -> Option<Plan> {
    // SAFETY: the caller's.
    unsafe {
        let offset: *const Vreg = cx.vgpr.add(m.src[0].index as usize);
        let high = &(*offset.add(1)).0;
        let first = high[exec.trailing_zeros() as usize];
        let mut differences = 0;
        for lane in 0..LANES {
            differences |= if exec >> lane & 1 == 1 { high[lane] ^ first } else { 0 };
        }
        let base = (u64::from(first) << 32).wrapping_add_signed(m.imm.into());
        (differences == 0).then_some(Plan { base, offset, mask: exec })
    }
}

#[inline(always)]
fn scalar_base(cx: &mut Cx<'_>, m: &Micro) -> u64 {
    let (low, high) = cx.scalar64(m.src[1]);
    (u64::from(low) | u64::from(high) << 32).wrapping_add_signed(m.imm.into())
}

/// Address of one lane.
///
/// # Safety
/// As for [`Space::plan`].
pub(super) unsafe fn address(cx: &mut Cx<'_>, m: &Micro, lane: usize) -> u64 {
    // SAFETY: the caller's.
    unsafe {
        let register: *const Vreg = cx.vgpr.add(m.src[0].index as usize);
        let low = u64::from((*register).0[lane]);
        if m.src[1].kind == SrcKind::None {
            let high = u64::from((*register.add(1)).0[lane]);
            (low | high << 32).wrapping_add_signed(m.imm.into())
        } else {
            scalar_base(cx, m).wrapping_add(low)
        }
    }
}

/// [`address`], which may not lie in an aperture: only flat instructions reach LDS and scratch by address.
///
/// # Safety
/// As for [`Space::plan`].
unsafe fn ordinary_address(
    cx: &mut Cx<'_>,
    m: &Micro,
    lane: usize,
    bytes: usize,
    kind: AccessKind,
) -> Result<u64, WaveFault> {
    // SAFETY: the caller's.
    let at = unsafe { address(cx, m, lane) };
    if matches!((at >> 32) as u32, SHARED_APERTURE | PRIVATE_APERTURE) {
        let reason = MemoryFaultReason::Aperture;
        let (address, bytes) = (driver::address::GpuVa::new(at), driver::address::Bytes::new(bytes as u64));
        return Err(MemoryFault { address, bytes, kind, reason }.into());
    }
    Ok(at)
}
