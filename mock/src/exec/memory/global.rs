//! Global and flat memory: an address in a register pair, or (global only) a base in SGPRs and a 32-bit offset in a register.

use driver::address::{Bytes, GpuVa};

use super::scratch;
use super::space::{Place, Space};
use super::transfer::{Plan, lanes};
use crate::exec::{Cx, Micro, SrcKind, WaveFault};
use crate::memory::{AccessKind, MemoryFault, MemoryFaultReason};
use crate::observe;
use crate::wave::Vreg;

/// High dword of the addresses in the LDS aperture (KFD puts it at 1 << 48, of 4 GiB).
const SHARED_APERTURE: u32 = 1 << 16;
/// High dword of the addresses in the scratch aperture (at 2 << 48, of 4 GiB).
const PRIVATE_APERTURE: u32 = 2 << 16;

/// `Micro::aux` of a flat instruction: addresses in the apertures are the workgroup's LDS and the lane's scratch. Global
/// instructions must not go there.
pub(super) const FLAT: u32 = 1 << 8;

/// Global and flat instructions, which differ at the apertures only.
pub(super) struct Global;

/// What an address means.
enum Meaning {
    Memory(u64),
    /// Byte address in the workgroup's LDS.
    Lds(u32),
    /// Offset in the lane's scratch.
    Scratch(u64),
}

impl Space for Global {
    #[inline(always)]
    unsafe fn plan(cx: &mut Cx<'_>, m: &Micro, exec: u64, _: usize) -> Option<Plan> {
        // Nothing is mapped at the apertures, so plans to there find no memory, and lanes are taken one by one.
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
        match unsafe { meaning(cx, m, lane, into.len(), AccessKind::Read)? } {
            Meaning::Memory(at) => {
                cx.saw(observe::Space::Memory, observe::AccessKind::Read, lane, at, into.len());
                cx.memory.read_bytes(at, into)?;
            }
            Meaning::Lds(at) => {
                cx.saw(observe::Space::Lds, observe::AccessKind::Read, lane, at.into(), into.len());
                cx.lds.read(at, into);
            }
            Meaning::Scratch(offset) => scratch::read(cx, offset, lane, into)?,
        }
        Ok(())
    }

    unsafe fn write(cx: &mut Cx<'_>, m: &Micro, lane: usize, from: &[u8]) -> Result<(), WaveFault> {
        // SAFETY: the caller's.
        match unsafe { meaning(cx, m, lane, from.len(), AccessKind::Write)? } {
            Meaning::Memory(at) => {
                cx.saw(observe::Space::Memory, observe::AccessKind::Write, lane, at, from.len());
                cx.memory.write_bytes(at, from)?;
            }
            Meaning::Lds(at) => {
                cx.saw(observe::Space::Lds, observe::AccessKind::Write, lane, at.into(), from.len());
                cx.lds.write(at, from);
            }
            Meaning::Scratch(offset) => scratch::write(cx, offset, lane, from)?,
        }
        Ok(())
    }

    unsafe fn place(cx: &mut Cx<'_>, m: &Micro, lane: usize, bytes: usize) -> Result<Place, WaveFault> {
        // SAFETY: the caller's.
        match unsafe { meaning(cx, m, lane, bytes, AccessKind::Write)? } {
            Meaning::Memory(at) => Ok(Place::Memory(at)),
            Meaning::Lds(at) => Ok(Place::Lds(at)),
            Meaning::Scratch(offset) => scratch::place(cx, offset, lane, bytes),
        }
    }
}

/// The plan of addresses in a register pair: if all active lanes have the same high dword, the low ones are offsets.
///
/// # Safety
/// As for [`Space::plan`].
#[inline(always)]
unsafe fn pair_plan(cx: &Cx<'_>, m: &Micro, exec: u64) -> Option<Plan> {
    // SAFETY: the caller's.
    unsafe {
        let offset: *const Vreg = cx.vgpr.add(m.src[0].index as usize);
        let high = &(*offset.add(1)).0;
        let first = high[exec.trailing_zeros() as usize];
        let mut differences = 0;
        if exec == u64::MAX {
            high.iter().for_each(|high| differences |= high ^ first);
        } else {
            lanes(exec).for_each(|lane| differences |= high[lane] ^ first);
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
unsafe fn address(cx: &mut Cx<'_>, m: &Micro, lane: usize) -> u64 {
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

/// What the address of one lane means.
///
/// # Safety
/// As for [`Space::plan`].
unsafe fn meaning(
    cx: &mut Cx<'_>,
    m: &Micro,
    lane: usize,
    bytes: usize,
    kind: AccessKind,
) -> Result<Meaning, WaveFault> {
    // SAFETY: the caller's.
    let at = unsafe { address(cx, m, lane) };
    match (at >> 32) as u32 {
        SHARED_APERTURE if m.aux & FLAT != 0 => Ok(Meaning::Lds(at as u32)),
        PRIVATE_APERTURE if m.aux & FLAT != 0 => Ok(Meaning::Scratch(u64::from(at as u32))),
        SHARED_APERTURE | PRIVATE_APERTURE => Err(aperture_fault(at, bytes, kind)),
        _ => Ok(Meaning::Memory(at)),
    }
}

/// An access that can't be made through the aperture that its address lies in.
pub(super) fn aperture_fault(at: u64, bytes: usize, kind: AccessKind) -> WaveFault {
    let reason = MemoryFaultReason::Aperture;
    MemoryFault { address: GpuVa::new(at), bytes: Bytes::new(bytes as u64), kind, reason }.into()
}
