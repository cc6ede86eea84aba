//! Buffer instructions: memory through a resource descriptor, with range checks.

mod descriptor;
mod format;
mod typed;

use isa::{Memory, Op, Operand};

use super::atomic;
use super::item::{Dwords, HIGH, I8, I16, LOW, Narrow, U8, U16};
use super::space::{Load, Place, Space, Store};
use super::to_lds::LoadToLds;
use super::transfer::{Plan, bounds};
use crate::exec::level::Level;
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro, Src, SrcKind, WaveFault};
use crate::observe::{self, AccessKind};
use crate::wave::{LANES, Vreg, sreg};
use descriptor::{Descriptor, Range};

/// `Micro::aux`: `vaddr` holds a byte offset (after the index, if there is one).
const OFFEN: u32 = 1 << 8;
/// `Micro::aux`: `vaddr` holds an index.
const IDXEN: u32 = 1 << 9;
/// `Micro::aux`: data are converted, so the descriptor's format field is a format.
const TYPED: u32 = 1 << 10;
/// `Micro::dst2` of an instruction whose `soffset` is the constant in `Micro::target`.
const CONSTANT: u16 = u16::MAX;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    if b.info.memory == Memory::Cache {
        // Caches are not modelled, but other host threads shall see what the wave has written, and it what they have.
        return b.micro(|_, _| std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst));
    }
    let mut micro = match family::<L>(b) {
        Err(Unsupported::Instruction) if !b.inst.mods.lds => typed::translate(b)?,
        other => other?,
    };
    micro.aux |= if b.inst.mods.offen { OFFEN } else { 0 };
    micro.aux |= if b.inst.mods.idxen { IDXEN } else { 0 };
    let soffset = micro.src[2];
    (micro.dst2, micro.target) = match soffset.kind {
        SrcKind::Sgpr => (soffset.index, 0),
        _ => (CONSTANT, soffset.low),
    };
    micro.src[2] = match b.inst.src[3] {
        Operand::None => Src::NONE,
        data => Src { kind: SrcKind::Vgpr, index: b.register(data)?, ..Src::NONE },
    };
    Ok(micro)
}

fn family<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    use Op::*;
    match b.inst.op {
        BufferLoadUbyte if b.inst.mods.lds => b.body::<L, LoadToLds<Buffer, U8>>(),
        BufferLoadSbyte if b.inst.mods.lds => b.body::<L, LoadToLds<Buffer, I8>>(),
        BufferLoadUshort if b.inst.mods.lds => b.body::<L, LoadToLds<Buffer, U16>>(),
        BufferLoadSshort if b.inst.mods.lds => b.body::<L, LoadToLds<Buffer, I16>>(),
        BufferLoadDword if b.inst.mods.lds => b.body::<L, LoadToLds<Buffer, Dwords<1>>>(),
        BufferLoadDwordx3 if b.inst.mods.lds => b.body::<L, LoadToLds<Buffer, Dwords<3>>>(),
        BufferLoadDwordx4 if b.inst.mods.lds => b.body::<L, LoadToLds<Buffer, Dwords<4>>>(),
        _ if b.inst.mods.lds => Err(Unsupported::Instruction),
        BufferLoadUbyte => b.body::<L, Load<Buffer, U8>>(),
        BufferLoadSbyte => b.body::<L, Load<Buffer, I8>>(),
        BufferLoadUshort => b.body::<L, Load<Buffer, U16>>(),
        BufferLoadSshort => b.body::<L, Load<Buffer, I16>>(),
        BufferLoadDword => b.body::<L, Load<Buffer, Dwords<1>>>(),
        BufferLoadDwordx2 => b.body::<L, Load<Buffer, Dwords<2>>>(),
        BufferLoadDwordx3 => b.body::<L, Load<Buffer, Dwords<3>>>(),
        BufferLoadDwordx4 => b.body::<L, Load<Buffer, Dwords<4>>>(),
        BufferLoadUbyteD16 => b.body::<L, Load<Buffer, Narrow<1, false, LOW>>>(),
        BufferLoadUbyteD16Hi => b.body::<L, Load<Buffer, Narrow<1, false, HIGH>>>(),
        BufferLoadSbyteD16 => b.body::<L, Load<Buffer, Narrow<1, true, LOW>>>(),
        BufferLoadSbyteD16Hi => b.body::<L, Load<Buffer, Narrow<1, true, HIGH>>>(),
        BufferLoadShortD16 => b.body::<L, Load<Buffer, Narrow<2, false, LOW>>>(),
        BufferLoadShortD16Hi => b.body::<L, Load<Buffer, Narrow<2, false, HIGH>>>(),
        BufferStoreByte => b.body::<L, Store<Buffer, U8>>(),
        BufferStoreByteD16Hi => b.body::<L, Store<Buffer, Narrow<1, false, HIGH>>>(),
        BufferStoreShort => b.body::<L, Store<Buffer, U16>>(),
        BufferStoreShortD16Hi => b.body::<L, Store<Buffer, Narrow<2, false, HIGH>>>(),
        BufferStoreDword => b.body::<L, Store<Buffer, Dwords<1>>>(),
        BufferStoreDwordx2 => b.body::<L, Store<Buffer, Dwords<2>>>(),
        BufferStoreDwordx3 => b.body::<L, Store<Buffer, Dwords<3>>>(),
        BufferStoreDwordx4 => b.body::<L, Store<Buffer, Dwords<4>>>(),
        _ => atomic::translate::<Buffer>(b),
    }
}

pub(super) struct Buffer;

/// What a lane adds to the address.
#[derive(Clone, Copy)]
struct LaneAddress {
    /// Index of the record, as the register has it.
    index: u32,
    /// Byte in the record: the lane's offset and the instruction's.
    offset: u64,
}

static NO_OFFSETS: Vreg = Vreg([0; LANES]);

/// The registers with the lanes' indices and offsets.
///
/// # Safety
/// The registers of `m` are within the wave's.
#[inline(always)]
unsafe fn address_registers<'a>(cx: &Cx<'_>, m: &Micro) -> (&'a [u32; LANES], &'a [u32; LANES]) {
    // SAFETY: the caller's; the references are used before the registers are written.
    unsafe {
        let first = cx.vgpr.add(m.src[0].index as usize);
        let index = if m.aux & IDXEN != 0 { &(*first).0 } else { &NO_OFFSETS.0 };
        let offset = match (m.aux & OFFEN != 0, m.aux & IDXEN != 0) {
            (false, _) => &NO_OFFSETS.0,
            (true, false) => &(*first).0,
            (true, true) => &(*first.add(1)).0,
        };
        (index, offset)
    }
}

/// # Safety
/// The registers of `m` are within the wave's.
unsafe fn lane_address(cx: &Cx<'_>, m: &Micro, lane: usize) -> LaneAddress {
    // SAFETY: the caller's.
    let (index, offset) = unsafe { address_registers(cx, m) };
    LaneAddress { index: index[lane], offset: u64::from(offset[lane]) + m.imm as u64 }
}

fn descriptor(cx: &Cx<'_>, m: &Micro) -> Descriptor {
    let first = m.src[1].index as usize & (sreg::COUNT - 4);
    let words = std::array::from_fn(|i| cx.w.sgprs[first + i]);
    let soffset = if m.dst2 == CONSTANT { m.target } else { cx.w.sgprs[m.dst2 as usize & (sreg::COUNT - 1)] };
    Descriptor::new(words, soffset, m.aux & IDXEN != 0, m.aux & TYPED != 0)
}

/// Offset of the last dword of an item.
fn last_dword(bytes: usize) -> u64 {
    (bytes as u64 - 1) & !3
}

/// The plan of lanes that are not all in range, or that have indices.
///
/// # Safety
/// As for [`Space::plan`].
#[inline(never)]
unsafe fn plan_lanes(cx: &mut Cx<'_>, m: &Micro, descriptor: &Descriptor, exec: u64, bytes: usize) -> Option<Plan> {
    if !descriptor.is_linear() {
        return None;
    }
    // SAFETY: the caller's.
    let (index, offset) = unsafe { address_registers(cx, m) };
    let last = last_dword(bytes);
    let (stride, records) = (u64::from(descriptor.stride), u64::from(descriptor.records));
    let mut places = Vreg::default();
    let (mut mask, mut awkward) = (0u64, false);
    for lane in 0..LANES {
        let within = u64::from(offset[lane]) + m.imm as u64;
        let place = u64::from(index[lane]) * stride + within;
        // Dwords are checked one by one; an item that is partly in range is left to `read` and `write`.
        let (first_in, last_in) = match descriptor.range {
            Range::Nothing => (false, false),
            Range::Everything => (true, true),
            Range::Records => (u64::from(index[lane]) < records, u64::from(index[lane]) < records),
            Range::Bytes => (within < records, within + last < records),
        };
        places.0[lane] = place as u32;
        mask |= u64::from(last_in) << lane;
        awkward |= (exec >> lane & 1 == 1) & (first_in != last_in || last_in && place >> 32 != 0);
    }
    cx.staging[0] = places;
    let plan = Plan { base: descriptor.base, offset: &cx.staging[0], mask: mask & exec };
    (!awkward).then_some(plan)
}

impl Space for Buffer {
    #[inline(always)]
    unsafe fn plan(cx: &mut Cx<'_>, m: &Micro, exec: u64, bytes: usize) -> Option<Plan> {
        let descriptor = descriptor(cx, m);
        // SAFETY: the caller's.
        unsafe {
            if descriptor.is_linear() && descriptor.range == Range::Bytes && m.aux & (IDXEN | OFFEN) == OFFEN {
                let offset: *const Vreg = cx.vgpr.add(m.src[0].index as usize);
                let most = u64::from(bounds(&(*offset).0, exec).1) + m.imm as u64;
                if most + last_dword(bytes) < u64::from(descriptor.records) {
                    return Some(Plan { base: descriptor.base.wrapping_add(m.imm as u64), offset, mask: exec });
                }
            }
            plan_lanes(cx, m, &descriptor, exec, bytes)
        }
    }

    unsafe fn read(cx: &mut Cx<'_>, m: &Micro, lane: usize, into: &mut [u8]) -> Result<(), WaveFault> {
        let descriptor = descriptor(cx, m);
        // SAFETY: the caller's.
        let at = unsafe { lane_address(cx, m, lane) };
        for (i, piece) in into.chunks_mut(4).enumerate() {
            match descriptor.locate(at.index, at.offset + 4 * i as u64, lane) {
                Some(address) => {
                    cx.saw(observe::Space::Memory, AccessKind::Read, lane, address, piece.len());
                    cx.memory.read_bytes(address, piece)?;
                }
                None => piece.fill(0),
            }
        }
        Ok(())
    }

    unsafe fn write(cx: &mut Cx<'_>, m: &Micro, lane: usize, from: &[u8]) -> Result<(), WaveFault> {
        let descriptor = descriptor(cx, m);
        // SAFETY: the caller's.
        let at = unsafe { lane_address(cx, m, lane) };
        for (i, piece) in from.chunks(4).enumerate() {
            if let Some(address) = descriptor.locate(at.index, at.offset + 4 * i as u64, lane) {
                cx.saw(observe::Space::Memory, AccessKind::Write, lane, address, piece.len());
                cx.memory.write_bytes(address, piece)?;
            }
        }
        Ok(())
    }

    unsafe fn place(cx: &mut Cx<'_>, m: &Micro, lane: usize, bytes: usize) -> Result<Place, WaveFault> {
        let descriptor = descriptor(cx, m);
        // SAFETY: the caller's.
        let at = unsafe { lane_address(cx, m, lane) };
        Ok(descriptor.locate_whole(at.index, at.offset, lane, bytes).map_or(Place::Nowhere, Place::Memory))
    }
}
