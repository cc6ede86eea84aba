//! Execution while MODE changes what vector instructions do: VGPR indexing and VSKIP (CDNA4 ISA section 6.6, S_SETVSKIP).
//!
//! Both are rare, so the usual loop knows nothing of them: whoever sets the mode enters this one, which ends with the
//! mode. The observed loop takes single steps.

use isa::{Class, Inst, Operand};

use super::{Cx, Micro, SrcKind};

/// Executes instructions until neither mode is on, or the wave's turn ends.
pub(super) fn run(cx: &mut Cx<'_>) {
    while is_on(cx) && cx.stop.is_none() && cx.budget > 0 && !cx.is_observed() {
        step(cx);
    }
}

fn is_on(cx: &Cx<'_>) -> bool {
    cx.w.mode.indexes_vgprs() || cx.w.mode.skips_vector()
}

/// Executes one instruction under whatever mode is on.
pub(super) fn step(cx: &mut Cx<'_>) {
    let code = cx.code;
    let at = cx.w.pc;
    let m = &code.micros()[at as usize];
    cx.w.pc += 1;
    cx.budget -= 1;
    let inst = code.inst(at);
    let class = inst.map(|inst| inst.op.info().class);
    if cx.w.mode.skips_vector() && class.is_some_and(is_vector) {
        return;
    }
    let indexed = match (inst, class) {
        (Some(inst), Some(Class::Valu | Class::Transcendental)) if cx.w.mode.indexes_vgprs() => indexed(cx, m, inst),
        _ => Some(*m),
    };
    if let Some(m) = indexed {
        // SAFETY: as in `exec::run`; an indexed micro names registers within the same limits.
        unsafe { (m.run)(cx, &m) };
    }
}

fn is_vector(class: Class) -> bool {
    match class {
        Class::Valu | Class::Transcendental | Class::Mfma(_) | Class::Smfmac(_) => true,
        Class::Lds | Class::Gws | Class::Flat | Class::Global | Class::Scratch | Class::Mubuf | Class::Mtbuf => true,
        Class::Salu | Class::Branch | Class::Control | Class::Message | Class::Debug | Class::Smem => false,
    }
}

/// `m` with the index in M0[7:0] added to the vector registers that M0[15:12] selects: `src0`, `src1`, `src2`,
/// destination. A source out of range becomes v0; with a destination out of range nothing is executed.
fn indexed(cx: &Cx<'_>, m: &Micro, inst: &Inst) -> Option<Micro> {
    let m0 = cx.m0();
    let index = (m0 & 0xff) as u16;
    let selected = |bit: usize| m0 >> (12 + bit) & 1 == 1;
    let limit = cx.code.limits().arch;
    let moved = |operand: Operand| match operand {
        Operand::Vgpr { first, count } => {
            let first = u16::from(first) + index;
            Some((first + u16::from(count) <= limit).then_some(first))
        }
        _ => None,
    };
    let mut out = *m;
    for (i, src) in out.src.iter_mut().enumerate() {
        // An instruction that accumulates reads its destination as a third source, and indexes it as the destination.
        let accumulator = inst.src[i] == Operand::None && src.kind == SrcKind::Vgpr;
        let (operand, bit) = if accumulator { (inst.dst, 3) } else { (inst.src[i], i) };
        if let Some(first) = moved(operand).filter(|_| selected(bit)) {
            src.index = first.unwrap_or(0);
        }
    }
    if let Some(first) = moved(inst.dst).filter(|_| selected(3)) {
        out.dst = first?;
    }
    Some(out)
}
