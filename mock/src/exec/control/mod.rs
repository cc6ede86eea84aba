//! Program control: branches, calls, barriers, sleep, messages, end of program, waits.

mod fork;
#[cfg(test)]
mod tests;

use std::sync::atomic::{Ordering, fence};

use isa::{Inst, Op};

use super::translate::{Builder, Unsupported};
use super::{Cx, Handler, Micro, Src, SrcKind, Stop, WaveFault, scalar};

/// Where a direct branch goes: SIMM16 dwords past the next instruction.
pub(crate) fn branch_target(inst: &Inst, address: u64) -> Option<u64> {
    let direct = matches!(
        inst.op,
        Op::SBranch
            | Op::SCbranchScc0
            | Op::SCbranchScc1
            | Op::SCbranchVccz
            | Op::SCbranchVccnz
            | Op::SCbranchExecz
            | Op::SCbranchExecnz
            | Op::SCbranchIFork
            | Op::SCallB64
    );
    direct.then(|| {
        let next = address + 4 * u64::from(inst.dwords);
        next.wrapping_add_signed(4 * i64::from(inst.mods.simm16 as i16))
    })
}

/// Whether execution never goes on at the next instruction.
pub(super) fn ends_run(op: Op) -> bool {
    matches!(op, Op::SEndpgm | Op::SEndpgmSaved | Op::SBranch | Op::SSetpcB64 | Op::SSwappcB64 | Op::SCallB64)
}

pub(super) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let run: Handler = match b.inst.op {
        Op::SSetGprIdxOff | Op::SSetGprIdxMode => return scalar::translate(b),
        Op::SNop | Op::SIcacheInv | Op::SWakeup => |_, _| {},
        // Performance counters and thread trace: nobody listens, and no result depends on them.
        Op::SIncperflevel | Op::SDecperflevel | Op::STtracedata => |_, _| {},
        Op::SWaitcnt if waits_for_vector_memory(b.inst.mods.simm16) => |_, _| fence(Ordering::SeqCst),
        Op::SWaitcnt => |_, _| {},
        Op::SSetprio => |cx, m| cx.w.status = cx.w.status & !(3 << 3) | (m.imm as u32 & 3) << 3,
        Op::SEndpgm | Op::SEndpgmSaved => |cx, _| cx.stop = Some(Stop::End),
        Op::SSetkill => |cx, m| {
            if m.imm & 1 == 1 {
                cx.stop = Some(Stop::End);
            }
        },
        Op::SBarrier => |cx, _| cx.stop = Some(Stop::Barrier),
        Op::SSleep => |cx, _| cx.stop = Some(Stop::Yield),
        Op::SSethalt => |cx, m| {
            if m.imm & 1 == 1 {
                halt(cx);
            }
        },
        Op::SSendmsg => send_message,
        Op::SSendmsghalt => |cx, m| {
            // Comes here again each turn, but sends once.
            if cx.w.status & HALT == 0 {
                send_message(cx, m);
            }
            cx.w.status |= HALT;
            halt(cx);
        },
        Op::STrap => |cx, m| cx.fault(WaveFault::Trap { id: (m.imm & 0xff) as u8 }),
        Op::SBranch => |cx, m| branch(cx, m, true),
        Op::SCbranchScc0 => |cx, m| branch(cx, m, !cx.w.scc),
        Op::SCbranchScc1 => |cx, m| branch(cx, m, cx.w.scc),
        Op::SCbranchVccz => |cx, m| branch(cx, m, cx.vcc() == 0),
        Op::SCbranchVccnz => |cx, m| branch(cx, m, cx.vcc() != 0),
        Op::SCbranchExecz => |cx, m| branch(cx, m, cx.exec() == 0),
        Op::SCbranchExecnz => |cx, m| branch(cx, m, cx.exec() != 0),
        // STATUS.COND_DBG_SYS and COND_DBG_USER are set by a debugger, and there is none.
        Op::SCbranchCdbgsys | Op::SCbranchCdbguser => |_, _| {},
        Op::SCbranchCdbgsysOrUser | Op::SCbranchCdbgsysAndUser => |_, _| {},
        Op::SSetpcB64 => |cx, m| {
            let (low, high) = cx.scalar64(m.src[0]);
            cx.jump(u64::from(low) | u64::from(high) << 32);
        },
        Op::SSwappcB64 => |cx, m| {
            let (low, high) = cx.scalar64(m.src[0]);
            save_return_address(cx, m);
            cx.jump(u64::from(low) | u64::from(high) << 32);
        },
        Op::SCallB64 => |cx, m| {
            save_return_address(cx, m);
            branch(cx, m, true);
        },
        Op::SCbranchGFork => fork::to_address,
        Op::SCbranchIFork => fork::to_target,
        Op::SCbranchJoin => fork::join,
        _ => return Err(Unsupported::Instruction),
    };
    let mut micro = b.micro(run)?;
    micro.imm = b.inst.mods.simm16.into();
    let next = b.address + 4 * u64::from(b.inst.dwords);
    micro.src[2] = Src { kind: SrcKind::Constant, index: 0, low: next as u32, high: (next >> 32) as u32 };
    Ok(micro)
}

/// STATUS.HALT.
const HALT: u32 = 1 << 13;

/// Whether SIMM16 of `s_waitcnt` waits for all vector memory operations (VM_CNT in bits 15:14 and 3:0 is zero).
///
/// They have all been performed, but the host may still hold stores back from other threads; the fence ends that, as
/// the wait does on the GPU.
fn waits_for_vector_memory(simm16: u16) -> bool {
    simm16 & 0xc00f == 0
}

#[inline(always)]
fn branch(cx: &mut Cx<'_>, m: &Micro, taken: bool) {
    if taken {
        cx.w.pc = m.target;
    }
}

/// Writes the address of the next instruction, which `translate` put beside the sources.
fn save_return_address(cx: &mut Cx<'_>, m: &Micro) {
    let next = u64::from(m.src[2].low) | u64::from(m.src[2].high) << 32;
    cx.write_sgpr64(m.dst, next);
}

/// A halted wave stays where it is for good: only the host can set it going, through a debugger.
fn halt(cx: &mut Cx<'_>) {
    cx.w.pc -= 1;
    cx.stop.get_or_insert(Stop::Yield);
}

fn send_message(cx: &mut Cx<'_>, m: &Micro) {
    /// MSG_INTERRUPT (CDNA4 ISA section 12.5.1): tells the host, M0[23:0] is the payload.
    const INTERRUPT: i32 = 1;
    match m.imm & 0xf {
        INTERRUPT => cx.outside.interrupt(cx.m0() & 0xff_ffff),
        number => {
            let text = format!("message {number} is for trap handlers or graphics, a kernel can't send it");
            cx.fault(WaveFault::Instruction(text));
        }
    }
}
