//! Moves and selection.

use isa::Op;

use super::Answer;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;
use crate::exec::{Micro, Src, SrcKind};

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VNop | Op::VClrexcp => Some(b.micro(|_, _| {})),
        Op::VMovB32 => b.lanes::<L, Move>(),
        Op::VMovB64 => b.lanes::<L, Move64>(),
        Op::VCndmaskB32 => b.lanes::<L, Select>(),
        Op::VAccvgprReadB32 | Op::VAccvgprWriteB32 | Op::VAccvgprMovB32 => b.lanes::<L, MoveBits>(),
        Op::VPkMovB32 => Some(b.lanes::<L, Pair>()?.map(|micro| choose_dwords(b, micro))),
        _ => None,
    }
}

lanes! {
    /// `neg` and `abs` apply to moved single-precision numbers (CDNA4 ISA, V_MOV_B32).
    Move(a: f32) -> u32 = a.to_bits();
    Move64(a: f64) -> u64 = a.to_bits();
    MoveBits(a: u32) -> u32 = a;
    Select(a: f32, b: f32, c: bool) -> u32 = if c { b.to_bits() } else { a.to_bits() };
    Pair(a: u32, b: u32) -> u64 = u64::from(a) | u64::from(b) << 32;
}

/// `v_pk_mov_b32`: bit i of `op_sel` chooses the dword of source i.
fn choose_dwords(b: &Builder<'_>, micro: Micro) -> Micro {
    let chosen = |i: usize| {
        let src = micro.src[i];
        match (b.inst.mods.op_sel >> i & 1 == 1, src.kind) {
            (false, _) => src,
            (true, SrcKind::Vgpr | SrcKind::Sgpr) => Src { index: src.index + 1, ..src },
            (true, _) => Src { low: src.high, ..src },
        }
    };
    Micro { src: [chosen(0), chosen(1), Src::NONE], ..micro }
}
