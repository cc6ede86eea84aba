//! Scalar ALU and program control: operands and the immediates with names.

use super::List;
use super::operand::{Immediate, Shown};
use crate::reg_class::Slot;
use crate::{Encoding, Inst, Op, Operand};
use std::fmt::{self, Formatter};

pub(super) fn write(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let imm = inst.mods.simm16;
    if inst.encoding == Encoding::Sopp {
        return program_control(inst.op, imm, f);
    }
    let info = inst.op.info();
    let mut list = List::new(f);
    match inst.op {
        Op::SSetregB32 => {
            list.item(HwReg(imm))?;
            list.item(Shown(inst, Slot::Src(0)))
        }
        Op::SSetregImm32B32 => {
            let Operand::Literal(value) = inst.src[0] else { return Ok(()) };
            list.item(HwReg(imm))?;
            list.item(Immediate(value))
        }
        Op::SGetregB32 => {
            list.item(Shown(inst, Slot::Dst))?;
            list.item(HwReg(imm))
        }
        _ => {
            if !info.dst.ty.is_none() {
                list.item(Shown(inst, Slot::Dst))?;
            }
            for i in (0..inst.src.len()).filter(|&i| !info.src[i].ty.is_none()) {
                list.item(Shown(inst, Slot::Src(i)))?;
            }
            match inst.op {
                Op::SSetGprIdxOn => list.item(GprIndexMode(imm)),
                Op::SCallB64 | Op::SCbranchIFork => list.item(imm),
                _ if inst.encoding == Encoding::Sopk => list.item(format_args!("{imm:#x}")),
                _ => Ok(()),
            }
        }
    }
}

fn program_control(op: Op, imm: u16, f: &mut Formatter<'_>) -> fmt::Result {
    match op {
        Op::SBarrier | Op::SWakeup | Op::SIcacheInv | Op::STtracedata | Op::SEndpgmSaved => Ok(()),
        Op::SSetGprIdxOff | Op::SEndpgmOrderedPsDone => Ok(()),
        Op::SEndpgm if imm == 0 => Ok(()),
        Op::SEndpgm => write!(f, " {imm}"),
        Op::SWaitcnt => waitcnt(imm, f),
        Op::SSendmsg | Op::SSendmsghalt => message(imm, f),
        Op::SSetGprIdxMode => write!(f, " {}", GprIndexMode(imm)),
        _ if matches!(op.info().class, crate::Class::Branch) => write!(f, " {imm}"),
        _ => write!(f, " {}", Immediate(imm.into())),
    }
}

/// Counters to wait for; one at its maximum is not waited for (ISA, S_WAITCNT).
fn waitcnt(imm: u16, f: &mut Formatter<'_>) -> fmt::Result {
    let vm = imm & 0xf | imm >> 10 & 0x30;
    let exp = imm >> 4 & 7;
    let lgkm = imm >> 8 & 15;
    let none = vm == 63 && exp == 7 && lgkm == 15;
    if vm != 63 || none {
        write!(f, " vmcnt({vm})")?;
    }
    if exp != 7 || none {
        write!(f, " expcnt({exp})")?;
    }
    if lgkm != 15 || none {
        write!(f, " lgkmcnt({lgkm})")?;
    }
    Ok(())
}

/// A message: id in bits 3:0, operation in 6:4, stream in 9:8 (LLVM `SIDefines.h`, `SendMsg`).
fn message(imm: u16, f: &mut Formatter<'_>) -> fmt::Result {
    let (id, operation, stream) = (imm & 15, imm >> 4 & 7, imm >> 8 & 3);
    let graphics = ["GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"];
    let system = ["", "SYSMSG_OP_ECC_ERR_INTERRUPT", "SYSMSG_OP_REG_RD", "", "SYSMSG_OP_TTRACE_PC"];
    let plain = |name| (operation == 0 && stream == 0).then_some(name);
    let plain = match id {
        1 => plain("MSG_INTERRUPT"),
        4 => plain("MSG_SAVEWAVE"),
        5 => plain("MSG_STALL_WAVE_GEN"),
        6 => plain("MSG_HALT_WAVES"),
        7 => plain("MSG_ORDERED_PS_DONE"),
        8 => plain("MSG_EARLY_PRIM_DEALLOC"),
        9 => plain("MSG_GS_ALLOC_REQ"),
        10 => plain("MSG_GET_DOORBELL"),
        _ => None,
    };
    if let Some(name) = plain {
        return write!(f, " sendmsg({name})");
    }
    match (id, operation) {
        (2, 1..=3) => write!(f, " sendmsg(MSG_GS, {}, {stream})", graphics[usize::from(operation)]),
        (3, 0) if stream == 0 => f.write_str(" sendmsg(MSG_GS_DONE, GS_OP_NOP)"),
        (3, 1..=3) => write!(f, " sendmsg(MSG_GS_DONE, {}, {stream})", graphics[usize::from(operation)]),
        (15, 1 | 2 | 4) if stream == 0 => write!(f, " sendmsg(MSG_SYSMSG, {})", system[usize::from(operation)]),
        _ if imm == id | operation << 4 | stream << 8 => write!(f, " sendmsg({id}, {operation}, {stream})"),
        _ => write!(f, " {imm}"),
    }
}

/// A field of a hardware register: id in bits 5:0, offset in 10:6, width - 1 in 15:11 (ISA, S_GETREG_B32).
struct HwReg(u16);

impl fmt::Display for HwReg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (id, offset, width) = (self.0 & 63, self.0 >> 6 & 31, (self.0 >> 11) + 1);
        let name = match id {
            1 => "MODE",
            2 => "STATUS",
            3 => "TRAPSTS",
            4 => "HW_ID",
            5 => "GPR_ALLOC",
            6 => "LDS_ALLOC",
            7 => "IB_STS",
            15 => "SH_MEM_BASES",
            16 => "TBA_LO",
            17 => "TBA_HI",
            18 => "TMA_LO",
            19 => "TMA_HI",
            20 => "XCC_ID",
            21 => "SQ_PERF_SNAPSHOT_DATA",
            22 => "SQ_PERF_SNAPSHOT_DATA1",
            23 => "SQ_PERF_SNAPSHOT_PC_LO",
            24 => "SQ_PERF_SNAPSHOT_PC_HI",
            _ => "",
        };
        match name {
            "" => write!(f, "hwreg({id}")?,
            name => write!(f, "hwreg(HW_REG_{name}")?,
        }
        if (offset, width) != (0, 32) {
            write!(f, ", {offset}, {width}")?;
        }
        f.write_str(")")
    }
}

/// Operands that GPR indexing applies to.
struct GprIndexMode(u16);

impl fmt::Display for GprIndexMode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 > 15 {
            return write!(f, "{:#x}", self.0);
        }
        f.write_str("gpr_idx(")?;
        let names = ["SRC0", "SRC1", "SRC2", "DST"].into_iter().enumerate().filter(|(i, _)| self.0 >> i & 1 != 0);
        for (n, (_, name)) in names.enumerate() {
            let separator = if n == 0 { "" } else { "," };
            write!(f, "{separator}{name}")?;
        }
        f.write_str(")")
    }
}
