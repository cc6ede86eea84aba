//! From a decoded instruction to a [`Micro`]: picks the handler and resolves operands.

use isa::{Class, DataType, InlineFloat, Inst, Kind, OpInfo, Operand, Special};

use super::level::{Baseline, Body, Level};
use super::{Cx, Handler, HostLevel, Micro, Src, SrcKind, WaveFault, control, matrix, memory, scalar, vector};
use crate::memory::{AccessKind, MemoryFault, MemoryFaultReason};
use crate::wave::sreg;

/// Vector registers that a wave may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RegisterLimits {
    /// ArchVGPRs.
    pub(crate) arch: u16,
    /// AccVGPRs, which follow them in the wave's file.
    pub(crate) acc: u16,
}

/// A translated instruction.
pub(crate) struct Translated {
    pub(crate) micro: Micro,
    /// Address it may branch to, if that is known now.
    pub(crate) branch: Option<u64>,
    /// Execution never goes on at the next instruction.
    pub(crate) ends_run: bool,
}

/// What a family of handlers says to an instruction that is not its own, or that it can't execute.
pub(crate) enum Unsupported {
    /// An instruction this emulator does not execute.
    Instruction,
    /// A register that the wave does not have.
    Register,
}

/// An instruction on its way to a `Micro`.
pub(crate) struct Builder<'a> {
    pub(crate) inst: &'a Inst,
    pub(crate) info: &'static OpInfo,
    /// Address of the instruction.
    pub(crate) address: u64,
    pub(crate) limits: RegisterLimits,
}

impl Builder<'_> {
    /// A micro with the instruction's operands, executed by `run`.
    pub(crate) fn micro(&self, run: Handler) -> Result<Micro, Unsupported> {
        let mut src = [Src::NONE; 3];
        for (i, slot) in src.iter_mut().enumerate() {
            *slot = self.src(i)?;
        }
        Ok(Micro {
            run,
            dst: self.register(self.inst.dst)?,
            dst2: self.register(self.inst.sdst)?,
            imm: self.inst.mods.offset,
            target: 0,
            aux: 0,
            src,
        })
    }

    /// [`Self::micro`] with the handler that level `L` has for `B`.
    pub(crate) fn body<L: Level, B: Body>(&self) -> Result<Micro, Unsupported> {
        self.micro(L::handler::<B>())
    }

    /// Source `i`, constants in the format that the instruction reads.
    pub(crate) fn src(&self, i: usize) -> Result<Src, Unsupported> {
        let constant = |(low, high)| Src { kind: SrcKind::Constant, index: 0, low, high };
        let ty = self.info.src[i].ty;
        Ok(match self.inst.src[i] {
            Operand::None => Src::NONE,
            Operand::Int(value) => constant(integer(value)),
            Operand::Float(value) => constant(float(value, ty)),
            Operand::Literal(value) => constant(literal(value, ty)),
            Operand::Special(special) if special_kind(special).is_some() => {
                Src { kind: special_kind(special).unwrap_or(SrcKind::None), ..Src::NONE }
            }
            // Trap temporaries read as zero outside a trap handler (CDNA4 ISA section 3.10); so does what has no register.
            Operand::Ttmp { .. } | Operand::Special(Special::Null | Special::PopsExitingWaveId) => constant((0, 0)),
            Operand::Special(Special::SharedBase) => constant(aperture(1 << 48)),
            Operand::Special(Special::SharedLimit) => constant(aperture((1 << 48) + 0xffff_ffff)),
            Operand::Special(Special::PrivateBase) => constant(aperture(2 << 48)),
            Operand::Special(Special::PrivateLimit) => constant(aperture((2 << 48) + 0xffff_ffff)),
            operand @ (Operand::Vgpr { .. } | Operand::Acc { .. }) => {
                Src { kind: SrcKind::Vgpr, index: self.register(operand)?, ..Src::NONE }
            }
            operand => Src { kind: SrcKind::Sgpr, index: self.register(operand)?, ..Src::NONE },
        })
    }

    /// Number of a register operand in the wave's vector file or among its scalars, checked against what it has.
    pub(crate) fn register(&self, operand: Operand) -> Result<u16, Unsupported> {
        let within = |first: u8, count: u8, limit: u16| {
            let fits = u16::from(first) + u16::from(count) <= limit;
            if fits { Ok(u16::from(first)) } else { Err(Unsupported::Register) }
        };
        match operand {
            Operand::Vgpr { first, count } => within(first, count, self.limits.arch),
            Operand::Acc { first, count } => Ok(within(first, count, self.limits.acc)? + self.limits.arch),
            Operand::Sgpr { first, count } => within(first, count, sreg::FLAT_SCRATCH_LO as u16),
            Operand::Ttmp { first, count } => Ok(within(first, count, 16)? + sreg::TTMP0 as u16),
            Operand::Special(special) => Ok(special_register(special)),
            Operand::None | Operand::Int(_) | Operand::Float(_) | Operand::Literal(_) => Ok(0),
        }
    }
}

fn special_kind(special: Special) -> Option<SrcKind> {
    match special {
        Special::Scc => Some(SrcKind::Scc),
        Special::Vccz => Some(SrcKind::Vccz),
        Special::Execz => Some(SrcKind::Execz),
        Special::LdsDirect => Some(SrcKind::LdsDirect),
        _ => None,
    }
}

/// Scalar register number of a named register. What can't be written lands in a trap temporary, which nobody reads.
fn special_register(special: Special) -> u16 {
    let number = match special {
        Special::FlatScratch | Special::FlatScratchLo => sreg::FLAT_SCRATCH_LO,
        Special::FlatScratchHi => sreg::FLAT_SCRATCH_LO + 1,
        Special::XnackMask | Special::XnackMaskLo => sreg::XNACK_MASK_LO,
        Special::XnackMaskHi => sreg::XNACK_MASK_LO + 1,
        Special::Vcc | Special::VccLo => sreg::VCC_LO,
        Special::VccHi => sreg::VCC_LO + 1,
        Special::M0 => sreg::M0,
        Special::Exec | Special::ExecLo => sreg::EXEC_LO,
        Special::ExecHi => sreg::EXEC_LO + 1,
        _ => sreg::TTMP0,
    };
    number as u16
}

fn aperture(address: u64) -> (u32, u32) {
    (address as u32, (address >> 32) as u32)
}

fn integer(value: i8) -> (u32, u32) {
    // Sign-extended to the operand, packed 16-bit operands included (LLVM `getInlineEncodingV216`).
    let wide = i64::from(value) as u64;
    (wide as u32, (wide >> 32) as u32)
}

fn float(value: InlineFloat, ty: DataType) -> (u32, u32) {
    match (ty.kind, ty.bits) {
        (Kind::Bfloat, _) => (value.bf16_bits().into(), 0),
        (Kind::Float, 16) => (value.f16_bits().into(), 0),
        (_, 64) => (value.f64_bits() as u32, (value.f64_bits() >> 32) as u32),
        _ => (value.f32_bits(), 0),
    }
}

fn literal(value: u32, ty: DataType) -> (u32, u32) {
    match (ty.kind, ty.total_bits()) {
        // The literal of a double is its high half; signed integers are sign-extended, others zero-extended.
        (Kind::Float, 64) if ty.count == 1 => (0, value),
        (Kind::Sint, 64) => (value, ((value as i32) >> 31) as u32),
        _ => (value, 0),
    }
}

/// Translates `inst`, which stands at `address`.
pub(crate) fn translate(inst: &Inst, address: u64, limits: RegisterLimits, level: HostLevel) -> Translated {
    let builder = Builder { inst, info: inst.op.info(), address, limits };
    let micro = match level {
        HostLevel::Baseline => families::<Baseline>(&builder),
        #[cfg(target_arch = "x86_64")]
        HostLevel::Avx2 => families::<super::level::Avx2>(&builder),
        #[cfg(target_arch = "x86_64")]
        HostLevel::Avx512 => families::<super::level::Avx512>(&builder),
        #[cfg(not(target_arch = "x86_64"))]
        HostLevel::Avx2 | HostLevel::Avx512 => families::<Baseline>(&builder),
    };
    let ends_run = control::ends_run(inst.op);
    match micro {
        Ok(micro) => Translated { micro, branch: control::branch_target(inst, address), ends_run },
        Err(Unsupported::Instruction) => Translated { micro: refuse_unsupported(), branch: None, ends_run: true },
        Err(Unsupported::Register) => Translated { micro: refuse_register(), branch: None, ends_run: true },
    }
}

pub(super) fn families<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    match b.info.class {
        Class::Branch | Class::Control | Class::Message | Class::Debug => control::translate(b),
        Class::Salu => scalar::translate(b),
        Class::Smem => memory::scalar::translate(b),
        Class::Valu | Class::Transcendental => vector::translate::<L>(b),
        Class::Global | Class::Flat | Class::Scratch | Class::Mubuf | Class::Mtbuf => memory::translate::<L>(b),
        Class::Lds => memory::lds::translate::<L>(b),
        Class::Mfma(_) | Class::Smfmac(_) => matrix::translate::<L>(b),
        _ => Err(Unsupported::Instruction),
    }
}

fn bare(run: Handler) -> Micro {
    Micro { run, dst: 0, dst2: 0, imm: 0, target: 0, aux: 0, src: [Src::NONE; 3] }
}

/// A micro of the code's own that goes on at `target`; it is no instruction, and costs none.
pub(crate) fn join(target: u32) -> Micro {
    fn run(cx: &mut Cx<'_>, m: &Micro) {
        cx.w.pc = m.target;
        cx.budget += 1;
    }
    Micro { target, ..bare(run) }
}

fn refuse_unsupported() -> Micro {
    fn run(cx: &mut Cx<'_>, _: &Micro) {
        cx.fault(WaveFault::Instruction("this emulator does not execute the instruction".into()));
    }
    bare(run)
}

fn refuse_register() -> Micro {
    fn run(cx: &mut Cx<'_>, _: &Micro) {
        cx.fault(WaveFault::Instruction("it names a register that the kernel descriptor does not ask for".into()));
    }
    bare(run)
}

/// A micro for what does not decode.
pub(crate) fn undecodable() -> Micro {
    fn run(cx: &mut Cx<'_>, _: &Micro) {
        let address = cx.code.address(cx.w.pc - 1);
        let word = cx.memory.read_u32(address).unwrap_or(0);
        cx.fault(WaveFault::Instruction(format!("{word:#010x} is no gfx950 instruction")));
    }
    bare(run)
}

/// A micro for a kernel that is longer than the decoder goes.
pub(crate) fn too_long() -> Micro {
    fn run(cx: &mut Cx<'_>, _: &Micro) {
        cx.fault(WaveFault::Instruction("the kernel has more instructions than the emulator decodes".into()));
    }
    bare(run)
}

/// A micro for an address that instructions can't be fetched from.
pub(crate) fn unfetchable() -> Micro {
    fn run(cx: &mut Cx<'_>, _: &Micro) {
        let address = cx.code.address(cx.w.pc - 1);
        let reason = match cx.memory.resolve(address, 4, AccessKind::Execute) {
            Err(fault) => fault.reason,
            Ok(_) => MemoryFaultReason::Misaligned,
        };
        cx.fault(MemoryFault {
            address: driver::address::GpuVa::new(address),
            bytes: driver::address::Bytes::new(4),
            kind: AccessKind::Execute,
            reason,
        });
    }
    bare(run)
}
