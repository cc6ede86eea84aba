//! Global memory.

use isa::{Op, Operand};

use crate::exec::level::{Body, Level};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro, SrcKind};
use crate::memory::AccessKind;
use crate::wave::LANES;

pub(in crate::exec) fn translate<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    match b.inst.op {
        Op::GlobalLoadDword => b.body::<L, Load<1>>(),
        Op::GlobalLoadDwordx2 => b.body::<L, Load<2>>(),
        Op::GlobalLoadDwordx3 => b.body::<L, Load<3>>(),
        Op::GlobalLoadDwordx4 => b.body::<L, Load<4>>(),
        Op::GlobalStoreDword => b.body::<L, Store<1>>(),
        Op::GlobalStoreDwordx2 => b.body::<L, Store<2>>(),
        Op::GlobalStoreDwordx3 => b.body::<L, Store<3>>(),
        Op::GlobalStoreDwordx4 => b.body::<L, Store<4>>(),
        _ => Err(Unsupported::Instruction),
    }
}

/// The address of each lane: a 64-bit VGPR pair, or an SGPR pair plus a 32-bit VGPR; plus the instruction's offset.
///
/// # Safety
/// The registers of `m` are within the wave's.
#[inline(always)]
unsafe fn addresses(cx: &mut Cx<'_>, m: &Micro) -> [u64; LANES] {
    let mut out = [0; LANES];
    // SAFETY: passed on.
    unsafe {
        let low = &(*cx.vgpr.add(m.src[0].index as usize)).0;
        if m.src[1].kind == SrcKind::None {
            let high = &(*cx.vgpr.add(m.src[0].index as usize + 1)).0;
            for lane in 0..LANES {
                let base = u64::from(low[lane]) | u64::from(high[lane]) << 32;
                out[lane] = base.wrapping_add_signed(m.imm.into());
            }
        } else {
            let base = cx.sgpr64(m.src[1].index).wrapping_add_signed(m.imm.into());
            for lane in 0..LANES {
                out[lane] = base.wrapping_add(low[lane].into());
            }
        }
    }
    out
}

struct Load<const DWORDS: usize>;

impl<const DWORDS: usize> Body for Load<DWORDS> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        // SAFETY: `translate` checked the registers.
        let at = unsafe { addresses(cx, m) };
        for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
            match cx.memory.resolve(at[lane], 4 * DWORDS as u64, AccessKind::Read) {
                Ok(host) => {
                    for dword in 0..DWORDS {
                        // SAFETY: `resolve` gave `DWORDS` mapped dwords; the register is within the wave's.
                        unsafe {
                            let value = host.cast::<u32>().add(dword).read_unaligned();
                            (*cx.vgpr.add(m.dst as usize + dword)).0[lane] = value;
                        }
                    }
                }
                Err(fault) => return cx.fault(fault),
            }
        }
    }
}

struct Store<const DWORDS: usize>;

impl<const DWORDS: usize> Body for Store<DWORDS> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        // SAFETY: `translate` checked the registers.
        let at = unsafe { addresses(cx, m) };
        for lane in (0..LANES).filter(|lane| exec >> lane & 1 == 1) {
            match cx.memory.resolve(at[lane], 4 * DWORDS as u64, AccessKind::Write) {
                Ok(host) => {
                    for dword in 0..DWORDS {
                        // SAFETY: as in `Load`.
                        unsafe {
                            let value = (*cx.vgpr.add(m.src[2].index as usize + dword)).0[lane];
                            host.cast::<u32>().add(dword).write_unaligned(value);
                        }
                    }
                }
                Err(fault) => return cx.fault(fault),
            }
        }
    }
}
