//! Loads and stores that convert data: MTBUF, and the FORMAT instructions of MUBUF.

use half::f16;
use isa::{Encoding, Memory};

use super::format::{Format, Number};
use super::{TYPED, descriptor, lane_address};
use crate::exec::memory::transfer::lanes;
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Handler, Micro, WaveFault};
use crate::observe::{AccessKind, Space};

/// `Micro::aux`: number of components less one.
const COMPONENTS: u32 = 3;
/// `Micro::aux`: components are 16 bits, two in a register.
const D16: u32 = 1 << 2;
/// `Micro::aux`: the one 16-bit component is in the high half.
const HIGH: u32 = 1 << 3;
/// `Micro::aux`: the format is the instruction's, in bits 16 to 22, not the descriptor's.
const OWN_FORMAT: u32 = 1 << 11;

pub(super) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let run: Handler = match b.info.memory {
        Memory::Load => |cx, m| load(cx, m),
        Memory::Store => |cx, m| store(cx, m),
        _ => return Err(Unsupported::Instruction),
    };
    let name = b.info.name;
    let components = name.rsplit('_').next().map_or(1, str::len) as u32;
    let mut micro = b.micro(run)?;
    micro.aux = (components - 1) & COMPONENTS | TYPED;
    micro.aux |= if name.contains("d16") { D16 } else { 0 };
    micro.aux |= if name.contains("d16_hi") { HIGH } else { 0 };
    if b.inst.encoding == Encoding::Mtbuf {
        micro.aux |= OWN_FORMAT | u32::from(b.inst.mods.format) << 16;
    }
    Ok(micro)
}

/// The format of an access, and where each component comes from.
fn format(cx: &mut Cx<'_>, m: &Micro) -> Option<(Format, [u8; 4])> {
    let descriptor = descriptor(cx, m);
    let (data, number, selects) = if m.aux & OWN_FORMAT != 0 {
        ((m.aux >> 16 & 0xf) as u8, (m.aux >> 20 & 7) as u8, [4, 5, 6, 7])
    } else {
        (descriptor.data_format, descriptor.number_format, descriptor.selects)
    };
    let format = Format::new(data, number);
    if format.is_none() && !(data == 0 && m.aux & OWN_FORMAT == 0) {
        let text = format!("buffer data format {data} with number format {number} does not exist");
        cx.fault(WaveFault::Instruction(text));
    }
    format.map(|format| (format, selects))
}

fn load(cx: &mut Cx<'_>, m: &Micro) {
    let format = format(cx, m);
    for lane in lanes(cx.exec()) {
        let mut components = [0; 4];
        if let Some((format, selects)) = format {
            // SAFETY: `translate` checked the registers.
            match unsafe { element(cx, m, lane, format) } {
                Ok(element) => components = selected(format, selects, element),
                Err(fault) => return cx.fault(fault),
            }
        }
        let is_float = format.is_some_and(|(format, _)| !matches!(format.number, Number::Uint | Number::Sint));
        // SAFETY: `translate` checked the destination for all components.
        unsafe { put(cx, m, lane, components, is_float) };
    }
}

/// The element of one lane, zero out of range: an element is in range as a whole or not at all.
///
/// # Safety
/// The registers of `m` are within the wave's.
unsafe fn element(cx: &mut Cx<'_>, m: &Micro, lane: usize, format: Format) -> Result<Option<u128>, WaveFault> {
    // SAFETY: the caller's.
    let at = unsafe { lane_address(cx, m, lane) };
    let Some(address) = descriptor(cx, m).locate_whole(at.index, at.offset, lane, format.bytes()) else {
        return Ok(None);
    };
    let mut bytes = [0; 16];
    cx.saw(Space::Memory, AccessKind::Read, lane, address, format.bytes());
    cx.memory.read_bytes(address, &mut bytes[..format.bytes()])?;
    Ok(Some(u128::from_le_bytes(bytes)))
}

/// The components that the descriptor selects: constants, or those of the element.
fn selected(format: Format, selects: [u8; 4], element: Option<u128>) -> [u32; 4] {
    let one = if matches!(format.number, Number::Uint | Number::Sint) { 1 } else { 1.0f32.to_bits() };
    let unpacked = element.map_or([0; 4], |element| format.unpack(element));
    selects.map(|select| match select {
        1 => one,
        4..=7 => unpacked[usize::from(select - 4)],
        _ => 0,
    })
}

/// # Safety
/// The registers of `m` are within the wave's.
unsafe fn put(cx: &mut Cx<'_>, m: &Micro, lane: usize, components: [u32; 4], is_float: bool) {
    let count = (m.aux & COMPONENTS) as usize + 1;
    for (i, value) in components.into_iter().take(count).enumerate() {
        if m.aux & D16 == 0 {
            // SAFETY: the caller's.
            unsafe { (*cx.vgpr.add(m.dst as usize + i)).0[lane] = value };
            continue;
        }
        let half = if is_float { u32::from(f16::from_f32(f32::from_bits(value)).to_bits()) } else { value & 0xffff };
        // SAFETY: the caller's.
        let register = unsafe { &mut (*cx.vgpr.add(m.dst as usize + i / 2)).0[lane] };
        let in_high_half = i % 2 == 1 || m.aux & HIGH != 0;
        *register = if in_high_half { *register & 0xffff | half << 16 } else { *register & 0xffff_0000 | half };
    }
}

fn store(cx: &mut Cx<'_>, m: &Micro) {
    let Some((format, selects)) = format(cx, m) else { return };
    for lane in lanes(cx.exec()) {
        // SAFETY: `translate` checked the registers.
        let given = unsafe { taken(cx, m, lane, format.number) };
        let mut components = [0; 4];
        for (value, select) in given.into_iter().zip(selects).take((m.aux & COMPONENTS) as usize + 1) {
            if let 4..=7 = select {
                components[usize::from(select - 4)] = value;
            }
        }
        let bytes = format.pack(components).to_le_bytes();
        // SAFETY: as above.
        let at = unsafe { lane_address(cx, m, lane) };
        let Some(address) = descriptor(cx, m).locate_whole(at.index, at.offset, lane, format.bytes()) else { continue };
        cx.saw(Space::Memory, AccessKind::Write, lane, address, format.bytes());
        if let Err(fault) = cx.memory.write_bytes(address, &bytes[..format.bytes()]) {
            return cx.fault(fault);
        }
    }
}

/// The components to store as 32-bit values.
///
/// # Safety
/// The registers of `m` are within the wave's.
unsafe fn taken(cx: &Cx<'_>, m: &Micro, lane: usize, number: Number) -> [u32; 4] {
    let count = (m.aux & COMPONENTS) as usize + 1;
    std::array::from_fn(|i| {
        if i >= count {
            return 0;
        }
        // SAFETY: the caller's, for as many components as there are.
        let register = |n: usize| unsafe { (*cx.vgpr.add(m.src[2].index as usize + n)).0[lane] };
        if m.aux & D16 == 0 {
            return register(i);
        }
        let in_high_half = i % 2 == 1 || m.aux & HIGH != 0;
        let half = if in_high_half { register(i / 2) >> 16 } else { register(i / 2) & 0xffff };
        match number {
            Number::Uint => half,
            Number::Sint => half as i16 as u32,
            _ => f16::from_bits(half as u16).to_f32().to_bits(),
        }
    })
}
