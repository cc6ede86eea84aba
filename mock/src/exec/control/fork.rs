//! Fork and join: both sides of a divergent branch in turn, the smaller first (CDNA4 ISA section 4.6).
//!
//! The stack lies in SGPRs, four a level: EXEC and the address of the side that waits. MODE.CSP counts its levels.

use super::branch;
use crate::exec::{Cx, Micro};
use crate::wave::Mode;

/// `s_cbranch_i_fork`: the target is relative.
pub(super) fn to_target(cx: &mut Cx<'_>, m: &Micro) {
    let target = cx.code.address(m.target);
    if fork(cx, m, target) {
        branch(cx, m, true);
    }
}

/// `s_cbranch_g_fork`: the target is an address in registers.
pub(super) fn to_address(cx: &mut Cx<'_>, m: &Micro) {
    let (low, high) = cx.scalar64(m.src[1]);
    let target = u64::from(low) | u64::from(high) << 32;
    if fork(cx, m, target) {
        cx.jump(target);
    }
}

/// Decides where to go on, and puts aside the side that waits. Says whether to branch.
fn fork(cx: &mut Cx<'_>, m: &Micro, target: u64) -> bool {
    let (low, high) = cx.scalar64(m.src[0]);
    let condition = u64::from(low) | u64::from(high) << 32;
    let exec = cx.exec();
    let (pass, fail) = (condition & exec, !condition & exec);
    let next = u64::from(m.src[2].low) | u64::from(m.src[2].high) << 32;
    if pass == exec {
        true
    } else if fail == exec {
        false
    } else if fail.count_ones() < pass.count_ones() {
        push(cx, target, pass);
        cx.set_exec(fail);
        false
    } else {
        push(cx, next, fail);
        cx.set_exec(pass);
        true
    }
}

/// `s_cbranch_join`: goes to the side that waits, or on if it was the second to come here.
pub(super) fn join(cx: &mut Cx<'_>, m: &Micro) {
    let level = cx.w.mode.branch_stack();
    if level == cx.scalar32(m.src[0]) {
        return;
    }
    let level = level.wrapping_sub(1) & 7;
    cx.w.mode = cx.w.mode.with_branch_stack(level);
    let (exec, address) = (cx.sgpr64(4 * level as u16), cx.sgpr64(4 * level as u16 + 2));
    cx.set_exec(exec);
    cx.jump(address);
}

fn push(cx: &mut Cx<'_>, address: u64, exec: u64) {
    let level: u32 = cx.w.mode.branch_stack();
    cx.write_sgpr64(4 * level as u16, exec);
    cx.write_sgpr64(4 * level as u16 + 2, address);
    cx.w.mode = Mode::with_branch_stack(cx.w.mode, (level + 1) & 7);
}
