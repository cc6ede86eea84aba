//! The text that LLVM 22 prints for an instruction (`AMDGPUInstPrinter.cpp` and the assembly strings of the `.td` files).
//!
//! Operands that the encoding can express but the instruction does not allow get LLVM's comment, as in
//! `v[1:2]/*Invalid register, operand has 'VReg_64_Align2' register class*/`.

mod memory;
mod operand;
mod scalar;
mod vector;

use crate::{Encoding, Inst};
use std::fmt::{self, Display, Formatter};

impl Display for Inst {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.op.name())?;
        match self.encoding {
            Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc | Encoding::Sopk | Encoding::Sopp => {
                scalar::write(self, f)
            }
            Encoding::Smem => memory::smem(self, f),
            Encoding::Ds => memory::ds(self, f),
            Encoding::Flat | Encoding::Global | Encoding::Scratch => memory::flat(self, f),
            Encoding::Mubuf | Encoding::Mtbuf => memory::buffer(self, f),
            Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc | Encoding::Vop3 => vector::vop(self, f),
            Encoding::Sdwa => vector::sdwa(self, f),
            Encoding::Dpp => vector::dpp(self, f),
            Encoding::Vop3p => vector::packed(self, f),
            Encoding::Mai | Encoding::Vop3px2 => vector::matrix(self, f),
        }
    }
}

/// Writes operands with the separators between them.
struct List<'a, 'b> {
    f: &'a mut Formatter<'b>,
    first: bool,
}

impl<'a, 'b> List<'a, 'b> {
    fn new(f: &'a mut Formatter<'b>) -> Self {
        Self { f, first: true }
    }

    fn item(&mut self, item: impl Display) -> fmt::Result {
        let separator = if std::mem::take(&mut self.first) { " " } else { ", " };
        write!(self.f, "{separator}{item}")
    }
}

/// ` name` if the flag is set.
fn flag(f: &mut Formatter<'_>, set: bool, name: &str) -> fmt::Result {
    if set { write!(f, " {name}") } else { Ok(()) }
}

/// ` name:value` unless the value is 0.
fn nonzero(f: &mut Formatter<'_>, name: &str, value: impl Into<i64>) -> fmt::Result {
    match value.into() {
        0 => Ok(()),
        value => write!(f, " {name}:{value}"),
    }
}
