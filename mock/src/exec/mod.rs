//! Executes gfx950 instructions.
//!
//! `translate` turns a decoded [`isa::Inst`] into a [`Micro`]: a handler and its operands, resolved as far as they can be
//! before run time. [`run`] walks pre-decoded code and calls the handlers; each works on all 64 lanes of one wave.

mod control;
#[cfg(test)]
mod coverage;
mod dpp;
mod element;
mod fidelity;
mod formats;
mod lanes;
mod level;
mod matrix;
mod memory;
mod modifiers;
mod observed;
mod outside;
mod real;
#[cfg(test)]
mod robustness;
mod scalar;
mod softfloat;
mod special_modes;
pub(crate) mod translate;
mod vector;

use crate::code::Code;
use crate::memory::{MemoryFault, View};
use crate::observe::Access;
use crate::wave::{Vreg, Wave, sreg};
use crate::workgroup::Lds;
use modifiers::Modified;

pub(crate) use control::branch_target;
pub use fidelity::{Fidelity, fidelity};
pub(crate) use level::Handler;
pub use level::HostLevel;
pub use matrix::MfmaOrder;
pub(crate) use observed::run as run_observed;
pub(crate) use outside::Outside;
pub(crate) use translate::RegisterLimits;

/// Where a source operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SrcKind {
    /// No operand.
    None,
    /// Vector register `index` of the wave's file (AccVGPRs follow the ArchVGPRs).
    Vgpr,
    /// Scalar register `index`.
    Sgpr,
    /// The constant `low`, `high`.
    Constant,
    /// SCC as 0 or 1.
    Scc,
    /// 1 if VCC is zero.
    Vccz,
    /// 1 if EXEC is zero.
    Execz,
    /// A dword of LDS at the address in M0.
    LdsDirect,
    /// Staging register `index`.
    Staging,
}

/// A source operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Src {
    pub(crate) kind: SrcKind,
    /// Register number, for registers.
    pub(crate) index: u16,
    /// Low dword, for constants.
    pub(crate) low: u32,
    /// High dword, for constants read as 64 bits.
    pub(crate) high: u32,
}

impl Src {
    pub(crate) const NONE: Self = Self { kind: SrcKind::None, index: 0, low: 0, high: 0 };
}

/// A pre-decoded instruction.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Micro {
    /// Executes it.
    pub(crate) run: Handler,
    /// First destination register: of the vector file, or scalar, as the handler knows.
    pub(crate) dst: u16,
    /// Second destination, for instructions with two (carry out).
    pub(crate) dst2: u16,
    /// Immediate: memory offset, SIMM16, or what the handler's `translate` arm put here.
    pub(crate) imm: i32,
    /// Branch target as an index into the code.
    pub(crate) target: u32,
    /// Small per-handler facts (register counts, cache bits).
    pub(crate) aux: u32,
    /// Sources in encoding order.
    pub(crate) src: [Src; 3],
}

impl Micro {
    /// A micro that does nothing.
    pub(crate) const NONE: Self =
        Self { run: do_nothing, dst: 0, dst2: 0, imm: 0, target: 0, aux: 0, src: [Src::NONE; 3] };
}

unsafe fn do_nothing(_: &mut Cx<'_>, _: &Micro) {}

/// Why a wave stopped executing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    /// `s_endpgm`.
    End,
    /// `s_barrier`.
    Barrier,
    /// `s_sleep`, `s_sethalt` or another instruction that gives the wave's turn away.
    Yield,
    /// Its instruction quantum is used up.
    Quantum,
    /// It goes on at an address whose code has not been decoded yet.
    Undecoded(u64),
    /// It can't go on.
    Fault(WaveFault),
}

/// What ends a wave abnormally.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WaveFault {
    /// A memory access was refused.
    #[error(transparent)]
    Memory(#[from] MemoryFault),
    /// An LDS atomic that is not aligned to its size.
    #[error("LDS atomic of {bytes} bytes at {address:#x}: misaligned")]
    MisalignedLds {
        /// Byte address in LDS.
        address: u32,
        /// Size of the access.
        bytes: u32,
    },
    /// `s_trap`, which `__builtin_trap` compiles to.
    #[error("trap {id}")]
    Trap {
        /// The instruction's operand: 2 for a program that aborts, 3 for a breakpoint.
        id: u8,
    },
    /// The instruction can't be executed by this emulator or does not exist on gfx950.
    #[error("{0}")]
    Instruction(String),
}

/// What a handler works on: one wave during its turn.
pub(crate) struct Cx<'a> {
    /// The wave's vector registers (`w.vgprs`).
    pub(crate) vgpr: *mut Vreg,
    /// The wave.
    pub(crate) w: &'a mut Wave,
    /// The workgroup's LDS.
    pub(crate) lds: &'a mut Lds,
    /// The GPU's memory.
    pub(crate) memory: View<'a>,
    /// The code being executed.
    pub(crate) code: &'a Code,
    /// The clock and the host.
    pub(crate) outside: &'a dyn Outside,
    /// Set by a handler that ends the wave's turn.
    pub(crate) stop: Option<Stop>,
    /// Instructions left in this turn.
    pub(crate) budget: u32,
    /// Memory accesses of the instruction, if somebody looks on.
    pub(crate) accesses: Option<Vec<Access>>,
    /// Operands that are the same in all lanes, or that modifiers changed.
    pub(crate) staging: [Vreg; 8],
    /// The vector instruction being executed, if it has modifiers.
    pub(crate) modified: Modified,
}

impl<'a> Cx<'a> {
    pub(crate) fn new(
        w: &'a mut Wave,
        lds: &'a mut Lds,
        memory: View<'a>,
        code: &'a Code,
        outside: &'a dyn Outside,
        budget: u32,
    ) -> Self {
        let vgpr = w.vgprs.as_mut_ptr();
        let (staging, modified) = ([Vreg::default(); 8], Modified::NONE);
        Self { vgpr, w, lds, memory, code, outside, stop: None, budget, accesses: None, staging, modified }
    }

    #[inline(always)]
    pub(crate) fn exec(&self) -> u64 {
        self.sgpr64(sreg::EXEC_LO as u16)
    }

    #[inline(always)]
    pub(crate) fn set_exec(&mut self, exec: u64) {
        self.write_sgpr64(sreg::EXEC_LO as u16, exec);
    }

    #[inline(always)]
    pub(crate) fn vcc(&self) -> u64 {
        self.sgpr64(sreg::VCC_LO as u16)
    }

    #[inline(always)]
    pub(crate) fn m0(&self) -> u32 {
        self.w.sgprs[sreg::M0]
    }

    #[inline(always)]
    pub(crate) fn sgpr64(&self, index: u16) -> u64 {
        let i = index as usize & (sreg::COUNT - 2);
        u64::from(self.w.sgprs[i]) | u64::from(self.w.sgprs[i + 1]) << 32
    }

    #[inline(always)]
    pub(crate) fn write_sgpr32(&mut self, index: u16, value: u32) {
        self.w.sgprs[index as usize & (sreg::COUNT - 1)] = value;
    }

    #[inline(always)]
    pub(crate) fn write_sgpr64(&mut self, index: u16, value: u64) {
        let i = index as usize & (sreg::COUNT - 2);
        self.w.sgprs[i] = value as u32;
        self.w.sgprs[i + 1] = (value >> 32) as u32;
    }

    /// A uniform source as 32 bits.
    #[inline(always)]
    pub(crate) fn scalar32(&mut self, src: Src) -> u32 {
        match src.kind {
            SrcKind::Sgpr => self.w.sgprs[src.index as usize & (sreg::COUNT - 1)],
            SrcKind::Constant => src.low,
            _ => self.rare_scalar(src),
        }
    }

    /// A uniform source as 64 bits.
    #[inline(always)]
    pub(crate) fn scalar64(&mut self, src: Src) -> (u32, u32) {
        match src.kind {
            SrcKind::Sgpr => {
                let value = self.sgpr64(src.index);
                (value as u32, (value >> 32) as u32)
            }
            SrcKind::Constant => (src.low, src.high),
            _ => (self.rare_scalar(src), 0),
        }
    }

    #[cold]
    fn rare_scalar(&mut self, src: Src) -> u32 {
        match src.kind {
            SrcKind::Scc => u32::from(self.w.scc),
            SrcKind::Vccz => u32::from(self.vcc() == 0),
            SrcKind::Execz => u32::from(self.exec() == 0),
            SrcKind::LdsDirect => self.lds.read_u32(self.m0() & 0xffff),
            SrcKind::None | SrcKind::Vgpr | SrcKind::Sgpr | SrcKind::Constant | SrcKind::Staging => 0,
        }
    }

    /// Ends the wave with a fault.
    #[cold]
    pub(crate) fn fault(&mut self, fault: impl Into<WaveFault>) {
        self.stop.get_or_insert(Stop::Fault(fault.into()));
    }

    /// Goes on at byte address `address`.
    pub(crate) fn jump(&mut self, address: u64) {
        match self.code.index_of(address) {
            Some(index) => self.w.pc = index,
            None => self.stop = Some(Stop::Undecoded(address)),
        }
    }
}

/// Executes the wave of `cx` until something stops it.
pub(crate) fn run(cx: &mut Cx<'_>) -> Stop {
    let given = cx.budget;
    special_modes::run(cx);
    let micros = cx.code.micros();
    let stop = loop {
        if let Some(stop) = cx.stop.take() {
            break stop;
        }
        if cx.budget == 0 {
            break Stop::Quantum;
        }
        // `Code` ends every run of instructions with one that jumps or stops, so the index is in range.
        let m = &micros[cx.w.pc as usize];
        cx.w.pc += 1;
        cx.budget -= 1;
        // SAFETY: `Code` holds micros translated for this wave's register limits and this host's level.
        unsafe { (m.run)(cx, m) };
    };
    cx.w.executed += u64::from(given - cx.budget);
    stop
}
