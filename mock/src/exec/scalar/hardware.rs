//! Hardware registers: `s_getreg`, `s_setreg`, and the MODE bits that change how vector instructions run.

use isa::Op;

use crate::exec::{Cx, Handler, Micro, WaveFault, special_modes};
use crate::machine::launch::LDS_GRANULE;
use crate::wave::{Mode, sreg};

/// Hardware register numbers (CDNA4 ISA table 19; SH_MEM_BASES: LLVM `SIDefines.h`, `Hwreg`).
mod id {
    pub(super) const MODE: u32 = 1;
    pub(super) const STATUS: u32 = 2;
    pub(super) const TRAPSTS: u32 = 3;
    pub(super) const HW_ID: u32 = 4;
    pub(super) const GPR_ALLOC: u32 = 5;
    pub(super) const LDS_ALLOC: u32 = 6;
    pub(super) const IB_STS: u32 = 7;
    pub(super) const SH_MEM_BASES: u32 = 15;
    pub(super) const XCC_ID: u32 = 20;
}

/// TRAPSTS: the sticky floating-point exception flags.
const EXCEPTION_FLAGS: u32 = 0x1ff;
/// MODE: exceptions that trap.
const EXCEPTION_ENABLES: u32 = 0x1ff << 12;
/// MODE: bits that exist and that a kernel may set.
const WRITABLE_MODE: u32 = 0x3ff | EXCEPTION_ENABLES | 1 << 23 | 0x3f << 26;

pub(super) fn handler(op: Op) -> Option<Handler> {
    Some(match op {
        Op::SGetregB32 => get,
        Op::SSetregB32 | Op::SSetregImm32B32 => set,
        Op::SSetvskip => |cx, m| {
            let (bits, index) = (cx.scalar32(m.src[0]), cx.scalar32(m.src[1]));
            change_mode(cx, Mode::VSKIP, if bits >> (index & 31) & 1 == 1 { Mode::VSKIP } else { 0 });
        },
        Op::SSetGprIdxOn => |cx, m| {
            let index = cx.scalar32(m.src[0]);
            let kept = cx.m0() & !0xf0ff;
            cx.write_sgpr32(sreg::M0 as u16, kept | index & 0xff | (m.imm as u32 & 0xf) << 12);
            change_mode(cx, Mode::GPR_IDX_EN, Mode::GPR_IDX_EN);
        },
        Op::SSetGprIdxIdx => |cx, m| {
            let index = cx.scalar32(m.src[0]);
            let kept = cx.m0() & !0xff;
            cx.write_sgpr32(sreg::M0 as u16, kept | index & 0xff);
        },
        Op::SSetGprIdxMode => |cx, m| {
            let kept = cx.m0() & !0xf000;
            cx.write_sgpr32(sreg::M0 as u16, kept | (m.imm as u32 & 0xf) << 12);
        },
        Op::SSetGprIdxOff => |cx, _| change_mode(cx, Mode::GPR_IDX_EN, 0),
        _ => return None,
    })
}

/// The part of a hardware register that SIMM16 names: its number, lowest bit, and a mask of the part's width.
fn part(m: &Micro) -> (u32, u32, u32) {
    let simm16 = m.imm as u32;
    let size = (simm16 >> 11 & 0x1f) + 1;
    (simm16 & 0x3f, simm16 >> 6 & 0x1f, u32::MAX >> (32 - size))
}

fn get(cx: &mut Cx<'_>, m: &Micro) {
    let (register, offset, mask) = part(m);
    let value = match register {
        id::MODE => cx.w.mode.0,
        id::STATUS => status(cx),
        // The flags of exceptions that occurred are not kept, so nothing may depend on them.
        id::TRAPSTS if mask << offset & EXCEPTION_FLAGS == 0 => 0,
        id::HW_ID => cx.w.hw_id,
        id::GPR_ALLOC => register_allocation(cx),
        id::LDS_ALLOC => lds_allocation(cx),
        // Every operation is done before the next instruction: all counters are zero.
        id::IB_STS => 0,
        // The upper 16 address bits of the private (low half) and shared (high half) apertures.
        id::SH_MEM_BASES => 0x0001_0002,
        id::XCC_ID => cx.w.xcc & 0xf,
        _ => return refuse(cx, "reading", register),
    };
    cx.write_sgpr32(m.dst, value >> offset & mask);
}

fn set(cx: &mut Cx<'_>, m: &Micro) {
    let (register, offset, mask) = part(m);
    let (changed, value) = (mask << offset, cx.scalar32(m.src[0]) << offset);
    match register {
        id::MODE => change_mode(cx, changed, value),
        // Nothing reads the flags, see `get`.
        id::TRAPSTS if changed & !EXCEPTION_FLAGS == 0 => {}
        // Read-only to kernels: the write is ignored.
        id::STATUS | id::HW_ID | id::GPR_ALLOC | id::LDS_ALLOC | id::IB_STS | id::SH_MEM_BASES | id::XCC_ID => {}
        _ => refuse(cx, "writing", register),
    }
}

#[cold]
fn refuse(cx: &mut Cx<'_>, verb: &str, register: u32) {
    let name = match register {
        id::TRAPSTS => "TRAPSTS: exceptions are not recorded".into(),
        number => format!("number {number}"),
    };
    cx.fault(WaveFault::Instruction(format!("{verb} hardware register {name} is not emulated")));
}

fn change_mode(cx: &mut Cx<'_>, changed: u32, value: u32) {
    let changed = changed & WRITABLE_MODE;
    let mode = cx.w.mode.0 & !changed | value & changed;
    if mode & EXCEPTION_ENABLES != 0 {
        let text = "floating-point exceptions that trap (MODE.EXCP_EN) are not emulated";
        return cx.fault(WaveFault::Instruction(text.into()));
    }
    cx.w.mode = Mode(mode);
    special_modes::run(cx);
}

/// STATUS: what was set at the start and by `s_setprio`, and the conditions of this moment.
fn status(cx: &Cx<'_>) -> u32 {
    let bit = |set: bool, at: u32| u32::from(set) << at;
    cx.w.status | bit(cx.w.scc, 0) | bit(cx.exec() == 0, 9) | bit(cx.vcc() == 0, 10)
}

/// GPR_ALLOC with all bases zero: vector registers in granules of eight, ArchVGPRs of them in granules of four, and the
/// 128 SGPRs of every wave in granules of 16 (CDNA4 ISA table 21; KFD `cwsr_trap_handler_gfx9.asm` reads it so).
fn register_allocation(cx: &Cx<'_>) -> u32 {
    let limits = cx.code.limits();
    let granules = |registers: u16, each: u16| u32::from(registers / each).saturating_sub(1) & 0x3f;
    granules(limits.arch + limits.acc, 8) << 6 | granules(limits.arch, 4) << 12 | 7 << 24
}

/// LDS_ALLOC with base zero: the size in units of 64 dwords (CDNA4 ISA table 22).
fn lds_allocation(cx: &Cx<'_>) -> u32 {
    (cx.lds.bytes().next_multiple_of(LDS_GRANULE) / 256) << 12
}
