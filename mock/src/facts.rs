//! What an instruction touches, found once for each place in the code rather than each time it is executed.

use isa::{Inst, RegRange};

/// An instruction with what it touches.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The instruction.
    pub(crate) inst: Inst,
    /// [`Inst::reads`].
    pub(crate) reads: Box<[RegRange]>,
    /// [`Inst::inputs`].
    pub(crate) inputs: Box<[RegRange]>,
    /// [`Inst::writes`].
    pub(crate) writes: Box<[RegRange]>,
}

impl Facts {
    pub(crate) fn new(inst: &Inst) -> Self {
        Self {
            inst: *inst,
            reads: inst.reads().collect(),
            inputs: inst.inputs().collect(),
            writes: inst.writes().collect(),
        }
    }
}
