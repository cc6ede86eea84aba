//! Memory instructions.

use super::operand::{Immediate, Shown};
use super::{List, flag, nonzero};
use crate::reg_class::Slot;
use crate::{Encoding, Inst, Memory, Op, Operand};
use std::fmt::{self, Formatter};

pub(super) fn smem(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let mut list = List::new(f);
    let [base, soffset, data, ..] = inst.src;
    match inst.op {
        Op::SAtcProbe | Op::SAtcProbeBuffer => list.item(Immediate(inst.mods.simm16.into()))?,
        _ if data != Operand::None => list.item(Shown(inst, Slot::Src(2)))?,
        _ if inst.dst != Operand::None => list.item(Shown(inst, Slot::Dst))?,
        _ => {}
    }
    if base != Operand::None {
        list.item(Shown(inst, Slot::Src(0)))?;
        match soffset {
            Operand::None => list.item(Offset(inst.mods.offset))?,
            _ => list.item(Shown(inst, Slot::Src(1)))?,
        }
        if soffset != Operand::None && inst.mods.imm {
            write!(f, " offset:{}", Offset(inst.mods.offset))?;
        }
    }
    flag(f, inst.mods.sc0, "glc")
}

/// A byte offset with its sign before the hexadecimal digits.
struct Offset(i32);

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{:#x}", self.0.unsigned_abs())
    }
}

pub(super) fn ds(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let mods = inst.mods;
    let mut list = List::new(f);
    if inst.dst != Operand::None {
        list.item(Shown(inst, Slot::Dst))?;
    }
    for i in (0..inst.src.len()).filter(|&i| inst.src[i] != Operand::None) {
        list.item(Shown(inst, Slot::Src(i)))?;
    }
    if inst.op == Op::DsSwizzleB32 {
        swizzle(mods.offset as u16, f)?;
    } else {
        nonzero(f, "offset", mods.offset)?;
    }
    nonzero(f, "offset0", mods.offset0)?;
    nonzero(f, "offset1", mods.offset1)?;
    flag(f, mods.gds, "gds")
}

pub(super) fn flat(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let mods = inst.mods;
    let mut list = List::new(f);
    if inst.dst != Operand::None {
        list.item(Shown(inst, Slot::Dst))?;
    }
    list.item(Shown(inst, Slot::Src(0)))?;
    if inst.src[2] != Operand::None {
        list.item(Shown(inst, Slot::Src(2)))?;
    }
    if inst.encoding != Encoding::Flat {
        list.item(Shown(inst, Slot::Src(1)))?;
    }
    nonzero(f, "offset", mods.offset)?;
    cache_policy(inst, f)
}

fn cache_policy(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    flag(f, inst.mods.sc0, "sc0")?;
    flag(f, inst.mods.nt, "nt")?;
    flag(f, inst.mods.sc1, "sc1")
}

pub(super) fn buffer(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let mods = inst.mods;
    if inst.op.info().memory != Memory::Cache {
        let mut list = List::new(f);
        if inst.src[3] != Operand::None {
            list.item(Shown(inst, Slot::Src(3)))?;
        } else if inst.dst != Operand::None {
            list.item(Shown(inst, Slot::Dst))?;
        }
        list.item(Shown(inst, Slot::Src(0)))?;
        list.item(Shown(inst, Slot::Src(1)))?;
        list.item(Shown(inst, Slot::Src(2)))?;
        if inst.encoding == Encoding::Mtbuf {
            format(mods.format, f)?;
        }
        flag(f, mods.idxen, "idxen")?;
        flag(f, mods.offen, "offen")?;
        nonzero(f, "offset", mods.offset)?;
    }
    cache_policy(inst, f)?;
    flag(f, mods.lds, "lds")
}

/// MTBUF formats; the defaults are data format 8 and number format UNORM.
fn format(format: u8, f: &mut Formatter<'_>) -> fmt::Result {
    const DATA: [&str; 16] = [
        "INVALID",
        "8",
        "16",
        "8_8",
        "32",
        "16_16",
        "10_11_11",
        "11_11_10",
        "10_10_10_2",
        "2_10_10_10",
        "8_8_8_8",
        "32_32",
        "16_16_16_16",
        "32_32_32",
        "32_32_32_32",
        "RESERVED_15",
    ];
    const NUMBER: [&str; 8] = ["UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT"];
    let (data, number) = (DATA[usize::from(format & 15)], NUMBER[usize::from(format >> 4)]);
    match (format & 15, format >> 4) {
        (1, 0) => Ok(()),
        (1, _) => write!(f, " format:[BUF_NUM_FORMAT_{number}]"),
        (_, 0) => write!(f, " format:[BUF_DATA_FORMAT_{data}]"),
        _ => write!(f, " format:[BUF_DATA_FORMAT_{data},BUF_NUM_FORMAT_{number}]"),
    }
}

/// The lane pattern of ds_swizzle (ISA, DS_SWIZZLE_B32): four lanes each for quads, or and, or, xor masks of the lane number.
fn swizzle(pattern: u16, f: &mut Formatter<'_>) -> fmt::Result {
    if pattern == 0 {
        return Ok(());
    }
    f.write_str(" offset:")?;
    if pattern >> 8 == 0x80 {
        let lane = |i: u16| pattern >> (2 * i) & 3;
        return write!(f, "swizzle(QUAD_PERM,{},{},{},{})", lane(0), lane(1), lane(2), lane(3));
    }
    if pattern >= 0xe000 {
        return write!(f, "swizzle(FFT,{})", pattern & 31);
    }
    if pattern >= 0xc000 {
        return write!(f, "swizzle(ROTATE,{},{})", pattern >> 10 & 1, pattern >> 5 & 31);
    }
    if pattern >= 0x8000 {
        return write!(f, "{pattern}");
    }
    let (and, or, xor) = (pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31);
    let group = 32 - and;
    if and == 31 && or == 0 && xor.is_power_of_two() {
        write!(f, "swizzle(SWAP,{xor})")
    } else if and == 31 && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
        write!(f, "swizzle(REVERSE,{})", xor + 1)
    } else if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
        write!(f, "swizzle(BROADCAST,{group},{or})")
    } else {
        f.write_str("swizzle(BITMASK_PERM,\"")?;
        let (zero, one) = (or ^ xor, (and | or) ^ xor);
        for bit in (0..5).rev() {
            f.write_str(match (zero >> bit & 1, one >> bit & 1) {
                (0, 0) => "0",
                (1, 1) => "1",
                (0, _) => "p",
                _ => "i",
            })?;
        }
        f.write_str("\")")
    }
}
