//! Atomic instructions on memory.

use std::marker::PhantomData;

use isa::{Op, Operand};

use super::combine::{self, Combine, Unit, Word};
use super::space::{Place, Space};
use super::transfer::lanes;
use crate::exec::level::{Baseline, Body};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro, WaveFault};
use crate::observe::AccessKind;

/// `Micro::aux`: the value before goes to the destination.
const RETURNS: u32 = 1;
/// `Micro::aux`: a second operand follows the first in the data registers.
const SECOND: u32 = 2;

/// Lists the atomics: names as flat, global and buffer instructions, then what they do.
macro_rules! atomics {
    ($space:ident, $b:ident; $($flat:ident $global:ident $buffer:ident => $operation:ty;)*) => {
        match $b.inst.op {
            $(Op::$flat | Op::$global | Op::$buffer => build::<$space, $operation>($b),)*
            _ => Err(Unsupported::Instruction),
        }
    };
}

pub(super) fn translate<S: Space>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    use combine::*;
    atomics! { S, b;
        FlatAtomicSwap GlobalAtomicSwap BufferAtomicSwap => Swap<u32>;
        FlatAtomicCmpswap GlobalAtomicCmpswap BufferAtomicCmpswap => CompareSwap<u32>;
        FlatAtomicAdd GlobalAtomicAdd BufferAtomicAdd => Add<u32>;
        FlatAtomicSub GlobalAtomicSub BufferAtomicSub => Sub<u32>;
        FlatAtomicSmin GlobalAtomicSmin BufferAtomicSmin => SignedMin<u32>;
        FlatAtomicUmin GlobalAtomicUmin BufferAtomicUmin => UnsignedMin<u32>;
        FlatAtomicSmax GlobalAtomicSmax BufferAtomicSmax => SignedMax<u32>;
        FlatAtomicUmax GlobalAtomicUmax BufferAtomicUmax => UnsignedMax<u32>;
        FlatAtomicAnd GlobalAtomicAnd BufferAtomicAnd => And<u32>;
        FlatAtomicOr GlobalAtomicOr BufferAtomicOr => Or<u32>;
        FlatAtomicXor GlobalAtomicXor BufferAtomicXor => Xor<u32>;
        FlatAtomicInc GlobalAtomicInc BufferAtomicInc => Increment<u32>;
        FlatAtomicDec GlobalAtomicDec BufferAtomicDec => Decrement<u32>;
        FlatAtomicSwapX2 GlobalAtomicSwapX2 BufferAtomicSwapX2 => Swap<u64>;
        FlatAtomicCmpswapX2 GlobalAtomicCmpswapX2 BufferAtomicCmpswapX2 => CompareSwap<u64>;
        FlatAtomicAddX2 GlobalAtomicAddX2 BufferAtomicAddX2 => Add<u64>;
        FlatAtomicSubX2 GlobalAtomicSubX2 BufferAtomicSubX2 => Sub<u64>;
        FlatAtomicSminX2 GlobalAtomicSminX2 BufferAtomicSminX2 => SignedMin<u64>;
        FlatAtomicUminX2 GlobalAtomicUminX2 BufferAtomicUminX2 => UnsignedMin<u64>;
        FlatAtomicSmaxX2 GlobalAtomicSmaxX2 BufferAtomicSmaxX2 => SignedMax<u64>;
        FlatAtomicUmaxX2 GlobalAtomicUmaxX2 BufferAtomicUmaxX2 => UnsignedMax<u64>;
        FlatAtomicAndX2 GlobalAtomicAndX2 BufferAtomicAndX2 => And<u64>;
        FlatAtomicOrX2 GlobalAtomicOrX2 BufferAtomicOrX2 => Or<u64>;
        FlatAtomicXorX2 GlobalAtomicXorX2 BufferAtomicXorX2 => Xor<u64>;
        FlatAtomicIncX2 GlobalAtomicIncX2 BufferAtomicIncX2 => Increment<u64>;
        FlatAtomicDecX2 GlobalAtomicDecX2 BufferAtomicDecX2 => Decrement<u64>;
        FlatAtomicAddF32 GlobalAtomicAddF32 BufferAtomicAddF32 => AddF32;
        FlatAtomicAddF64 GlobalAtomicAddF64 BufferAtomicAddF64 => AddF64;
        FlatAtomicMinF64 GlobalAtomicMinF64 BufferAtomicMinF64 => MinF64;
        FlatAtomicMaxF64 GlobalAtomicMaxF64 BufferAtomicMaxF64 => MaxF64;
        FlatAtomicPkAddF16 GlobalAtomicPkAddF16 BufferAtomicPkAddF16 => PkAddF16;
        FlatAtomicPkAddBf16 GlobalAtomicPkAddBf16 BufferAtomicPkAddBf16 => PkAddBf16;
    }
}

fn build<S: Space, C: Combine>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let mut micro = b.body::<Baseline, Atomic<S, C>>()?;
    let data = if b.info.src[3].ty.is_none() { b.info.src[2].ty } else { b.info.src[3].ty };
    micro.aux |= if b.inst.dst == Operand::None { 0 } else { RETURNS };
    micro.aux |= if usize::from(data.dwords()) * 4 > C::Word::BYTES { SECOND } else { 0 };
    Ok(micro)
}

struct Atomic<S, C>(PhantomData<(S, C)>);

impl<S: Space, C: Combine> Body for Atomic<S, C> {
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        for lane in lanes(cx.exec()) {
            // SAFETY: `translate` checked the registers.
            if let Err(fault) = unsafe { one_lane::<S, C>(cx, m, lane) } {
                return cx.fault(fault);
            }
        }
    }
}

/// # Safety
/// The registers of `m` are within the wave's.
unsafe fn one_lane<S: Space, C: Combine>(cx: &mut Cx<'_>, m: &Micro, lane: usize) -> Result<(), WaveFault> {
    let bytes = C::Word::BYTES;
    // SAFETY: the caller's.
    unsafe {
        let operand = |first: usize| {
            let dword = |i: usize| (*cx.vgpr.add(m.src[2].index as usize + i)).0[lane];
            C::Word::from_dwords(dword(first), if bytes == 8 { dword(first + 1) } else { 0 })
        };
        let a = operand(0);
        let b = if m.aux & SECOND == 0 { C::Word::ZERO } else { operand(bytes / 4) };
        let place = S::place(cx, m, lane, bytes)?;
        if let Some((space, at)) = place.seen::<S>() {
            cx.saw(space, AccessKind::Atomic, lane, at, bytes);
        }
        let old = match place {
            Place::Memory(at) => C::Word::update(&mut cx.memory, at, |old| C::combine(Unit::Memory, old, a, b))?,
            Place::Lds(at) => super::lds::update::<C>(cx, at, a, b)?,
            Place::Nowhere => C::Word::ZERO,
        };
        if m.aux & RETURNS != 0 {
            for (i, dword) in old.to_dwords().into_iter().take(bytes / 4).enumerate() {
                (*cx.vgpr.add(m.dst as usize + i)).0[lane] = dword;
            }
        }
    }
    Ok(())
}
