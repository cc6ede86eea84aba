//! The instruction set of gfx950 (CDNA4, wave64): a decoder to a structured form, and a disassembler that prints what LLVM 22
//! prints.
//!
//! ```
//! let inst = isa::decode(&[0xd100_0005, 0x0022_0501]).unwrap();
//! assert_eq!(inst.op, isa::Op::VCndmaskB32);
//! assert_eq!(inst.dst, isa::Operand::Vgpr { first: 5, count: 1 });
//! assert_eq!(inst.to_string(), "v_cndmask_b32_e64 v5, v1, v2, s[8:9]");
//! ```
//!
//! [`decode`] takes the dwords at the program counter, [`disassemble`] a whole code section. [`Op::info`] has what does not
//! depend on the encoding: operand types, implicit registers, counters, the executing unit. [`Inst::reads`] and
//! [`Inst::writes`] list the registers that one instruction touches.

mod decode;
mod info;
mod inst;
mod op;
mod operand;
mod reg_class;
mod section;
mod tables;
mod text;
mod touched;

pub use decode::{DecodeError, Reason, decode};
pub use info::{Access, Class, Counters, DataType, Implicit, Kind, Matrix, Memory, OpInfo, OperandInfo};
pub use inst::{Dpp, DstUnused, Encoding, Inst, Mods, Sdwa, SdwaSel};
pub use op::Op;
pub use operand::{InlineFloat, Operand, Special};
pub use section::{Disassembly, disassemble};
pub use touched::{RegFile, RegRange};
