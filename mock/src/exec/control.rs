//! Program control: branches, barriers, sleep, end of program, waits.

use isa::{Inst, Op};

use super::translate::{Builder, Unsupported};
use super::{Cx, Handler, Micro, Stop};

/// Where a direct branch goes: SIMM16 dwords past the next instruction.
pub(super) fn branch_target(inst: &Inst, address: u64) -> Option<u64> {
    let direct = matches!(
        inst.op,
        Op::SBranch
            | Op::SCbranchScc0
            | Op::SCbranchScc1
            | Op::SCbranchVccz
            | Op::SCbranchVccnz
            | Op::SCbranchExecz
            | Op::SCbranchExecnz
            | Op::SCallB64
    );
    direct.then(|| {
        let next = address + 4 * u64::from(inst.dwords);
        next.wrapping_add_signed(4 * i64::from(inst.mods.simm16 as i16))
    })
}

pub(super) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let run: Handler = match b.inst.op {
        Op::SNop | Op::SWaitcnt | Op::SSetprio | Op::SIcacheInv => |_, _| {},
        Op::SEndpgm => |cx, _| cx.stop = Some(Stop::End),
        Op::SBarrier => |cx, _| cx.stop = Some(Stop::Barrier),
        Op::SSleep => |cx, _| cx.stop = Some(Stop::Yield),
        Op::SBranch => |cx, m| branch(cx, m, true),
        Op::SCbranchScc0 => |cx, m| branch(cx, m, !cx.w.scc),
        Op::SCbranchScc1 => |cx, m| branch(cx, m, cx.w.scc),
        Op::SCbranchVccz => |cx, m| branch(cx, m, cx.vcc() == 0),
        Op::SCbranchVccnz => |cx, m| branch(cx, m, cx.vcc() != 0),
        Op::SCbranchExecz => |cx, m| branch(cx, m, cx.exec() == 0),
        Op::SCbranchExecnz => |cx, m| branch(cx, m, cx.exec() != 0),
        _ => return Err(Unsupported::Instruction),
    };
    b.micro(run)
}

#[inline(always)]
fn branch(cx: &mut Cx<'_>, m: &Micro, taken: bool) {
    if taken {
        cx.w.pc = m.target;
    }
}
