//! Atomic operations on LDS. The waves of a workgroup take turns on one host thread, so plain reads and writes will do.

use std::marker::PhantomData;

use isa::{Op, Operand};

use super::access::addresses;
use crate::exec::level::{Baseline, Body};
use crate::exec::memory::combine::{self, Combine, Unit, Word};
use crate::exec::memory::transfer::lanes;
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro, SrcKind, WaveFault};
use crate::observe::{AccessKind, Space};

/// `Micro::aux`: the value before goes to the destination.
const RETURNS: u32 = 1;

/// Lists the atomics: names without and with the value before returned, then what they do.
macro_rules! atomics {
    ($b:ident; { $($plain:ident $returning:ident => $operation:ty;)* } { $($only:ident => $single:ty;)* }) => {
        match $b.inst.op {
            $(Op::$plain | Op::$returning => build::<$operation>($b),)*
            $(Op::$only => build::<$single>($b),)*
            Op::DsAppend => $b.micro(|cx, m| count(cx, m, u32::wrapping_add)),
            Op::DsConsume => $b.micro(|cx, m| count(cx, m, u32::wrapping_sub)),
            Op::DsCondxchg32RtnB64 => $b.body::<Baseline, ConditionalExchange>(),
            _ => Err(Unsupported::Instruction),
        }
    };
}

pub(super) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    use combine::*;
    atomics! { b; {
        DsAddU32 DsAddRtnU32 => Add<u32>;
        DsSubU32 DsSubRtnU32 => Sub<u32>;
        DsRsubU32 DsRsubRtnU32 => ReverseSub<u32>;
        DsIncU32 DsIncRtnU32 => Increment<u32>;
        DsDecU32 DsDecRtnU32 => Decrement<u32>;
        DsMinI32 DsMinRtnI32 => SignedMin<u32>;
        DsMaxI32 DsMaxRtnI32 => SignedMax<u32>;
        DsMinU32 DsMinRtnU32 => UnsignedMin<u32>;
        DsMaxU32 DsMaxRtnU32 => UnsignedMax<u32>;
        DsAndB32 DsAndRtnB32 => And<u32>;
        DsOrB32 DsOrRtnB32 => Or<u32>;
        DsXorB32 DsXorRtnB32 => Xor<u32>;
        DsMskorB32 DsMskorRtnB32 => MaskedOr<u32>;
        DsCmpstB32 DsCmpstRtnB32 => CompareSwap<u32>;
        DsCmpstF32 DsCmpstRtnF32 => CompareSwapF32;
        DsMinF32 DsMinRtnF32 => MinF32;
        DsMaxF32 DsMaxRtnF32 => MaxF32;
        DsAddF32 DsAddRtnF32 => AddF32;
        DsPkAddF16 DsPkAddRtnF16 => PkAddF16;
        DsPkAddBf16 DsPkAddRtnBf16 => PkAddBf16;
        DsAddU64 DsAddRtnU64 => Add<u64>;
        DsSubU64 DsSubRtnU64 => Sub<u64>;
        DsRsubU64 DsRsubRtnU64 => ReverseSub<u64>;
        DsIncU64 DsIncRtnU64 => Increment<u64>;
        DsDecU64 DsDecRtnU64 => Decrement<u64>;
        DsMinI64 DsMinRtnI64 => SignedMin<u64>;
        DsMaxI64 DsMaxRtnI64 => SignedMax<u64>;
        DsMinU64 DsMinRtnU64 => UnsignedMin<u64>;
        DsMaxU64 DsMaxRtnU64 => UnsignedMax<u64>;
        DsAndB64 DsAndRtnB64 => And<u64>;
        DsOrB64 DsOrRtnB64 => Or<u64>;
        DsXorB64 DsXorRtnB64 => Xor<u64>;
        DsMskorB64 DsMskorRtnB64 => MaskedOr<u64>;
        DsCmpstB64 DsCmpstRtnB64 => CompareSwap<u64>;
        DsCmpstF64 DsCmpstRtnF64 => CompareSwapF64;
        DsMinF64 DsMinRtnF64 => MinF64;
        DsMaxF64 DsMaxRtnF64 => MaxF64;
        DsAddF64 DsAddRtnF64 => AddF64;
    } {
        DsWrxchgRtnB32 => Swap<u32>;
        DsWrxchgRtnB64 => Swap<u64>;
        DsWrapRtnB32 => Wrap<u32>;
    }}
}

fn build<C: Combine>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let mut micro = b.body::<Baseline, Atomic<C>>()?;
    micro.aux = if b.inst.dst == Operand::None { 0 } else { RETURNS };
    if b.info.name.contains("cmpst") {
        // The comparand is the first operand here, the second of memory atomics.
        micro.src.swap(1, 2);
    }
    Ok(micro)
}

struct Atomic<C>(PhantomData<C>);

impl<C: Combine> Body for Atomic<C> {
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: `translate` checked the registers.
        unsafe {
            let at = addresses(cx, m, m.imm as u32);
            for lane in lanes(cx.exec()) {
                let operands = [m.src[1], m.src[2]].map(|src| {
                    let dword = |i: usize| (*cx.vgpr.add(src.index as usize + i)).0[lane];
                    let present = src.kind == SrcKind::Vgpr;
                    C::Word::from_dwords(
                        if present { dword(0) } else { 0 },
                        if present && C::Word::BYTES == 8 { dword(1) } else { 0 },
                    )
                });
                cx.saw(Space::Lds, AccessKind::Atomic, lane, at.0[lane].into(), C::Word::BYTES);
                match update::<C>(cx, at.0[lane], operands[0], operands[1]) {
                    Ok(old) if m.aux & RETURNS != 0 => {
                        for (i, dword) in old.to_dwords().into_iter().take(C::Word::BYTES / 4).enumerate() {
                            (*cx.vgpr.add(m.dst as usize + i)).0[lane] = dword;
                        }
                    }
                    Ok(_) => {}
                    Err(fault) => return cx.fault(fault),
                }
            }
        }
    }
}

/// Changes the value at `address` and gives the one before: zero outside the LDS, where nothing changes.
pub(in crate::exec::memory) fn update<C: Combine>(
    cx: &mut Cx<'_>,
    address: u32,
    a: C::Word,
    b: C::Word,
) -> Result<C::Word, WaveFault> {
    let bytes = C::Word::BYTES;
    if !(address as usize).is_multiple_of(bytes) {
        return Err(WaveFault::MisalignedLds { address, bytes: bytes as u32 });
    }
    let dword =
        |cx: &Cx<'_>, i: u32| if i * 4 < bytes as u32 { cx.lds.read_u32(address.wrapping_add(4 * i)) } else { 0 };
    let old = C::Word::from_dwords(dword(cx, 0), dword(cx, 1));
    let [low, high] = C::combine(Unit::Lds(cx.w.mode), old, a, b).to_dwords();
    cx.lds.write(address, &(u64::from(low) | u64::from(high) << 32).to_le_bytes()[..bytes]);
    Ok(old)
}

/// Append and consume: a counter at the instruction's offset changes by the number of active lanes. The manual and Mesa
/// take the offset alone for the address; LLVM puts the base of a pointer in M0 as well.
fn count(cx: &mut Cx<'_>, m: &Micro, change: fn(u32, u32) -> u32) {
    let (address, exec) = (m.imm as u32, cx.exec());
    cx.saw_scalar(Space::Lds, AccessKind::Atomic, address.into(), 4);
    let old = cx.lds.read_u32(address);
    cx.lds.write(address, &change(old, exec.count_ones()).to_le_bytes());
    // SAFETY: `translate` checked the destination.
    let to = unsafe { &mut (*cx.vgpr.add(m.dst as usize)).0 };
    lanes(exec).for_each(|lane| to[lane] = old);
}

/// Two dwords, each exchanged if its highest bit is set, which memory does not get.
struct ConditionalExchange;

impl Body for ConditionalExchange {
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: `translate` checked the registers.
        unsafe {
            let at = addresses(cx, m, m.imm as u32);
            for lane in lanes(cx.exec()) {
                for i in 0..2 {
                    let address = (at.0[lane] & !7) + 4 * i as u32;
                    let data = (*cx.vgpr.add(m.src[1].index as usize + i)).0[lane];
                    cx.saw(Space::Lds, AccessKind::Atomic, lane, address.into(), 4);
                    (*cx.vgpr.add(m.dst as usize + i)).0[lane] = cx.lds.read_u32(address);
                    if data >> 31 == 1 {
                        cx.lds.write(address, &(data & 0x7fff_ffff).to_le_bytes());
                    }
                }
            }
        }
    }
}
