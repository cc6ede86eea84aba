//! Scalar ALU instructions.

use isa::Op;

use super::translate::{Builder, Unsupported};
use super::{Handler, Micro};

pub(super) fn translate(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let run: Handler = match b.inst.op {
        Op::SMovB32 => |cx, m| {
            let value = cx.scalar32(m.src[0]);
            cx.write_sgpr32(m.dst, value);
        },
        Op::SLshlB32 => |cx, m| {
            let (a, b) = (cx.scalar32(m.src[0]), cx.scalar32(m.src[1]));
            let value = a << (b & 31);
            cx.write_sgpr32(m.dst, value);
            cx.w.scc = value != 0;
        },
        Op::SAndSaveexecB64 => |cx, m| {
            let (low, high) = cx.scalar64(m.src[0]);
            let source = u64::from(low) | u64::from(high) << 32;
            let old = cx.exec();
            cx.write_sgpr64(m.dst, old);
            cx.set_exec(source & old);
            cx.w.scc = source & old != 0;
        },
        _ => return Err(Unsupported::Instruction),
    };
    b.micro(run)
}
