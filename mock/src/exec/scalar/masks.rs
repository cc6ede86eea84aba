//! Instructions that combine EXEC with a mask.

use isa::Op;

use super::Scalar;
use crate::exec::{Cx, Handler, Micro};

/// Declares handlers, one instruction a line: `Op(source, EXEC) = EXEC after`. SCC tells whether any lane is left on.
macro_rules! masks {
    ($name:ident: $keep:expr; $($op:ident($source:ident, $exec:ident) = $value:expr;)*) => {
        pub(super) fn $name(op: Op) -> Option<Handler> {
            Some(match op {
                $(Op::$op => |cx, m| {
                    let $source = u64::read(cx, m.src[0]);
                    let $exec = cx.exec();
                    let value: u64 = $value;
                    $keep(cx, m, $exec, value);
                },)*
                _ => return None,
            })
        }
    };
}

masks! {
    saves_exec: |cx, m, before, after| change_exec(cx, m, before, after);
    SAndSaveexecB64(s, exec) = s & exec;
    SOrSaveexecB64(s, exec) = s | exec;
    SXorSaveexecB64(s, exec) = s ^ exec;
    SAndn1SaveexecB64(s, exec) = !s & exec;
    SAndn2SaveexecB64(s, exec) = s & !exec;
    SOrn1SaveexecB64(s, exec) = !s | exec;
    SOrn2SaveexecB64(s, exec) = s | !exec;
    SNandSaveexecB64(s, exec) = !(s & exec);
    SNorSaveexecB64(s, exec) = !(s | exec);
    SXnorSaveexecB64(s, exec) = !(s ^ exec);
}

masks! {
    writes_exec: |cx, m, _, after| change_exec(cx, m, after, after);
    SAndn1WrexecB64(s, exec) = !s & exec;
    SAndn2WrexecB64(s, exec) = s & !exec;
}

/// Sets EXEC, then the destination.
#[inline(always)]
fn change_exec(cx: &mut Cx<'_>, m: &Micro, kept: u64, exec: u64) {
    cx.set_exec(exec);
    cx.write_sgpr64(m.dst, kept);
    cx.w.scc = exec != 0;
}
