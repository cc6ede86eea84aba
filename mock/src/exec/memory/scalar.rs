//! Scalar memory: loads to SGPRs, stores, atomics, clocks.

use isa::{Memory, Op, Operand};

use super::combine::{self, Combine, Unit, Word};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro, SrcKind};
use crate::memory::MemoryFault;
use crate::observe::{AccessKind, Space};
use crate::wave::sreg;

/// `Micro::aux`, bits 7:0: dwords that are moved.
const DWORDS: u32 = 0xff;
/// `Micro::aux`: the base is a buffer descriptor.
const BUFFER: u32 = 1 << 8;
/// `Micro::aux`: the scalar offset counts 64 bytes.
const SCRATCH: u32 = 1 << 9;
/// `Micro::aux`: an atomic returns the value before.
const RETURNS: u32 = 1 << 10;

/// Core clocks per tick of the 100 MHz counter, at the part's peak of 2.4 GHz.
const CORE_CLOCKS: u64 = 24;

macro_rules! atomics {
    ($b:ident; $($plain:ident $buffer:ident => $operation:ty;)*) => {
        match $b.inst.op {
            $(Op::$plain | Op::$buffer => $b.micro(|cx, m| atomic::<$operation>(cx, m)),)*
            _ => Err(Unsupported::Instruction),
        }
    };
}

pub(in crate::exec) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    use combine::*;
    let name = b.info.name;
    let mut micro = match b.info.memory {
        Memory::Load => b.micro(load),
        Memory::Store => b.micro(store),
        Memory::Cache => b.micro(|_, _| {}),
        Memory::None if b.inst.op == Op::SMemrealtime => b.micro(|cx, m| {
            let ticks = cx.outside.clock();
            cx.write_sgpr64(m.dst, ticks);
        }),
        Memory::None => b.micro(|cx, m| {
            let ticks = cx.outside.clock();
            cx.write_sgpr64(m.dst, ticks.wrapping_mul(CORE_CLOCKS));
        }),
        Memory::Atomic => atomics! { b;
            SAtomicSwap SBufferAtomicSwap => Swap<u32>;
            SAtomicCmpswap SBufferAtomicCmpswap => CompareSwap<u32>;
            SAtomicAdd SBufferAtomicAdd => Add<u32>;
            SAtomicSub SBufferAtomicSub => Sub<u32>;
            SAtomicSmin SBufferAtomicSmin => SignedMin<u32>;
            SAtomicUmin SBufferAtomicUmin => UnsignedMin<u32>;
            SAtomicSmax SBufferAtomicSmax => SignedMax<u32>;
            SAtomicUmax SBufferAtomicUmax => UnsignedMax<u32>;
            SAtomicAnd SBufferAtomicAnd => And<u32>;
            SAtomicOr SBufferAtomicOr => Or<u32>;
            SAtomicXor SBufferAtomicXor => Xor<u32>;
            SAtomicInc SBufferAtomicInc => Increment<u32>;
            SAtomicDec SBufferAtomicDec => Decrement<u32>;
            SAtomicSwapX2 SBufferAtomicSwapX2 => Swap<u64>;
            SAtomicCmpswapX2 SBufferAtomicCmpswapX2 => CompareSwap<u64>;
            SAtomicAddX2 SBufferAtomicAddX2 => Add<u64>;
            SAtomicSubX2 SBufferAtomicSubX2 => Sub<u64>;
            SAtomicSminX2 SBufferAtomicSminX2 => SignedMin<u64>;
            SAtomicUminX2 SBufferAtomicUminX2 => UnsignedMin<u64>;
            SAtomicSmaxX2 SBufferAtomicSmaxX2 => SignedMax<u64>;
            SAtomicUmaxX2 SBufferAtomicUmaxX2 => UnsignedMax<u64>;
            SAtomicAndX2 SBufferAtomicAndX2 => And<u64>;
            SAtomicOrX2 SBufferAtomicOrX2 => Or<u64>;
            SAtomicXorX2 SBufferAtomicXorX2 => Xor<u64>;
            SAtomicIncX2 SBufferAtomicIncX2 => Increment<u64>;
            SAtomicDecX2 SBufferAtomicDecX2 => Decrement<u64>;
        },
    }?;
    let data = if b.info.memory == Memory::Load { b.info.dst.ty } else { b.info.src[2].ty };
    micro.aux = data.dwords().into();
    micro.aux |= if name.contains("buffer") { BUFFER } else { 0 };
    micro.aux |= if name.contains("scratch") { SCRATCH } else { 0 };
    micro.aux |= if b.inst.dst == Operand::None { 0 } else { RETURNS };
    Ok(micro)
}

/// Where the data are.
struct Place {
    address: u64,
    /// Bytes from there to the end of the buffer.
    inside: u64,
}

/// The two lowest bits of base, offset and address are ignored (CDNA4 ISA section 8.2.1).
fn place(cx: &mut Cx<'_>, m: &Micro) -> Place {
    let scalar = if m.src[1].kind == SrcKind::None { 0 } else { u64::from(cx.scalar32(m.src[1])) };
    let scalar = if m.aux & SCRATCH != 0 { scalar * 64 } else { scalar };
    let offset = scalar.wrapping_add_signed(m.imm.into());
    let (low, high) = cx.scalar64(m.src[0]);
    let base = u64::from(low) | u64::from(high) << 32;
    if m.aux & BUFFER == 0 {
        return Place { address: base.wrapping_add(offset) & !3, inside: u64::MAX };
    }
    let (stride, records) = (base >> 48 & 0x3fff, cx.w.sgprs[(m.src[0].index as usize + 2) & (sreg::COUNT - 1)]);
    // NUM_RECORDS counts bytes, or records if there is a stride (Mesa, si_state.c: "For SMEM ...").
    let size = u64::from(records) * stride.max(1);
    let address = (base & 0xffff_ffff_ffff).wrapping_add(offset) & !3;
    Place { address, inside: size.saturating_sub(offset & !3) }
}

/// Dwords of `m` that start inside the buffer.
fn dwords_inside(m: &Micro, place: &Place) -> usize {
    (m.aux & DWORDS).min(place.inside.div_ceil(4).min(DWORDS.into()) as u32) as usize
}

fn load(cx: &mut Cx<'_>, m: &Micro) {
    let place = place(cx, m);
    let (count, inside) = ((m.aux & DWORDS) as usize, dwords_inside(m, &place));
    let mut words = [0u32; 16];
    if inside > 0 {
        cx.saw_scalar(Space::Memory, AccessKind::Read, place.address, 4 * inside);
    }
    if let Err(fault) = read(cx, place.address, &mut words[..inside]) {
        return cx.fault(fault);
    }
    for (i, word) in words.into_iter().take(count).enumerate() {
        cx.write_sgpr32(m.dst + i as u16, word);
    }
}

fn read(cx: &mut Cx<'_>, address: u64, words: &mut [u32]) -> Result<(), MemoryFault> {
    match words {
        [] => {}
        [word] => *word = cx.memory.read_u32(address)?,
        // One access, as a flag and what it announces may be read together.
        [low, high] if address.is_multiple_of(8) => {
            let value = cx.memory.read_u64(address)?;
            (*low, *high) = (value as u32, (value >> 32) as u32);
        }
        words => cx.memory.read_bytes(address, bytemuck::cast_slice_mut(words))?,
    }
    Ok(())
}

fn store(cx: &mut Cx<'_>, m: &Micro) {
    let place = place(cx, m);
    let first = m.src[2].index as usize;
    let words: [u32; 4] = std::array::from_fn(|i| cx.w.sgprs[(first + i) & (sreg::COUNT - 1)]);
    let bytes: &[u8] = bytemuck::cast_slice(&words[..dwords_inside(m, &place)]);
    if bytes.is_empty() {
        return;
    }
    cx.saw_scalar(Space::Memory, AccessKind::Write, place.address, bytes.len());
    if let Err(fault) = cx.memory.write_bytes(place.address, bytes) {
        cx.fault(fault);
    }
}

fn atomic<C: Combine>(cx: &mut Cx<'_>, m: &Micro) {
    let place = place(cx, m);
    let bytes = C::Word::BYTES;
    let operand = |cx: &Cx<'_>, i: usize| {
        let word = |k: usize| cx.w.sgprs[(m.src[2].index as usize + i * bytes / 4 + k) & (sreg::COUNT - 1)];
        C::Word::from_dwords(word(0), word(1))
    };
    let (a, b) = (operand(cx, 0), operand(cx, 1));
    let old = if place.inside >= bytes as u64 {
        cx.saw_scalar(Space::Memory, AccessKind::Atomic, place.address, bytes);
        match C::Word::update(&mut cx.memory, place.address, |old| C::combine(Unit::Memory, old, a, b)) {
            Ok(old) => old,
            Err(fault) => return cx.fault(fault),
        }
    } else {
        C::Word::ZERO
    };
    if m.aux & RETURNS != 0 {
        for (i, word) in old.to_dwords().into_iter().take(bytes / 4).enumerate() {
            cx.write_sgpr32(m.dst + i as u16, word);
        }
    }
}
