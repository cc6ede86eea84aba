//! Scalar ALU instructions.

mod arithmetic;
mod bits;
mod hardware;
mod masks;
mod moves;
#[cfg(test)]
mod tests;

use isa::{Encoding, Op};

use super::translate::{Builder, Unsupported};
use super::{Cx, Micro, Src, SrcKind};

pub(super) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let op = b.inst.op;
    let run = arithmetic::flagged(op)
        .or_else(|| arithmetic::nonzero(op))
        .or_else(|| arithmetic::plain(op))
        .or_else(|| arithmetic::compared(op))
        .or_else(|| bits::nonzero(op))
        .or_else(|| bits::plain(op))
        .or_else(|| bits::compared(op))
        .or_else(|| masks::saves_exec(op))
        .or_else(|| masks::writes_exec(op))
        .or_else(|| moves::handler(op))
        .or_else(|| hardware::handler(op))
        .ok_or(Unsupported::Instruction)?;
    let mut micro = b.micro(run)?;
    micro.imm = b.inst.mods.simm16.into();
    if b.inst.encoding == Encoding::Sopk {
        place_immediate(op, &mut micro);
    }
    if op == Op::SGetpcB64 {
        micro.src[0] = constant(b.address + 4);
    }
    Ok(micro)
}

/// Makes SIMM16 a source, so that a SOPK instruction is its SOP1, SOP2 or SOPC counterpart.
fn place_immediate(op: Op, micro: &mut Micro) {
    let signed = constant(micro.imm as i16 as u64);
    let old = Src { kind: SrcKind::Sgpr, index: micro.dst, ..Src::NONE };
    match op {
        Op::SMovkI32 | Op::SCmovkI32 => micro.src[0] = signed,
        Op::SAddkI32 | Op::SMulkI32 => micro.src = [old, signed, Src::NONE],
        Op::SCmpkEqI32 | Op::SCmpkLgI32 | Op::SCmpkGtI32 | Op::SCmpkGeI32 | Op::SCmpkLtI32 | Op::SCmpkLeI32 => {
            micro.src[1] = signed;
        }
        Op::SCmpkEqU32 | Op::SCmpkLgU32 | Op::SCmpkGtU32 | Op::SCmpkGeU32 | Op::SCmpkLtU32 | Op::SCmpkLeU32 => {
            micro.src[1] = constant(micro.imm as u64);
        }
        _ => {}
    }
}

fn constant(value: u64) -> Src {
    Src { kind: SrcKind::Constant, index: 0, low: value as u32, high: (value >> 32) as u32 }
}

/// A scalar operand: one register or an aligned pair.
trait Scalar: Copy + PartialEq {
    const ZERO: Self;
    fn read(cx: &mut Cx<'_>, src: Src) -> Self;
    fn write(self, cx: &mut Cx<'_>, dst: u16);
}

macro_rules! scalar {
    ($($narrow:ty, $wide:ty;)*) => {
        $(
            impl Scalar for $narrow {
                const ZERO: Self = 0;
                #[inline(always)]
                fn read(cx: &mut Cx<'_>, src: Src) -> Self {
                    cx.scalar32(src) as Self
                }
                #[inline(always)]
                fn write(self, cx: &mut Cx<'_>, dst: u16) {
                    cx.write_sgpr32(dst, self as u32);
                }
            }

            impl Scalar for $wide {
                const ZERO: Self = 0;
                #[inline(always)]
                fn read(cx: &mut Cx<'_>, src: Src) -> Self {
                    let (low, high) = cx.scalar64(src);
                    (u64::from(low) | u64::from(high) << 32) as Self
                }
                #[inline(always)]
                fn write(self, cx: &mut Cx<'_>, dst: u16) {
                    cx.write_sgpr64(dst, self as u64);
                }
            }
        )*
    };
}

scalar! {
    u32, u64;
    i32, i64;
}

/// SCC stays as it is.
#[inline(always)]
fn plain<D: Scalar>(cx: &mut Cx<'_>, m: &Micro, value: D) {
    value.write(cx, m.dst);
}

/// SCC tells whether the result is not zero.
#[inline(always)]
fn nonzero<D: Scalar>(cx: &mut Cx<'_>, m: &Micro, value: D) {
    value.write(cx, m.dst);
    cx.w.scc = value != D::ZERO;
}

/// SCC is a second result.
#[inline(always)]
fn flagged<D: Scalar>(cx: &mut Cx<'_>, m: &Micro, (value, flag): (D, bool)) {
    value.write(cx, m.dst);
    cx.w.scc = flag;
}

/// SCC is the only result.
#[inline(always)]
fn compared(cx: &mut Cx<'_>, _: &Micro, flag: bool) {
    cx.w.scc = flag;
}

/// Declares the handlers of a group of instructions, one a line: `Op(sources) = value`. The group's kind names the
/// function above that takes the value. SCC before the instruction is `cx.w.scc`.
macro_rules! salu {
    ($name:ident($cx:ident): $kind:ident; $(
        $($op:ident)|+ ($($a:ident: $ta:ty $(, $b:ident: $tb:ty)?)?) = $value:expr;
    )*) => {
        pub(super) fn $name(op: isa::Op) -> Option<$crate::exec::Handler> {
            Some(match op {
                $($(isa::Op::$op)|+ => |$cx, m| {
                    $(
                        let $a = <$ta as $crate::exec::scalar::Scalar>::read($cx, m.src[0]);
                        $(let $b = <$tb as $crate::exec::scalar::Scalar>::read($cx, m.src[1]);)?
                    )?
                    let value = $value;
                    $crate::exec::scalar::$kind($cx, m, value);
                },)*
                _ => return None,
            })
        }
    };
}
use salu;
