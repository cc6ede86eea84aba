//! Vector ALU.

use super::operand::Shown;
use super::{List, flag, nonzero};
use crate::decode::narrow_float;
use crate::info::ModBits;
use crate::reg_class::Slot;
use crate::{Class, DstUnused, Encoding, InlineFloat, Inst, Op, Operand, SdwaSel};
use std::fmt::{self, Display, Formatter};

pub(super) fn vop(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let info = inst.op.info();
    let forms = &info.forms;
    if !forms.single {
        f.write_str(if inst.encoding == Encoding::Vop3 { "_e64" } else { "_e32" })?;
    }
    operands(inst, f)?;
    let mods = inst.mods;
    if matches!(inst.op, Op::VBitop3B16 | Op::VBitop3B32) && mods.bitop3 != 0 {
        match mods.bitop3 {
            table @ 0..=10 => write!(f, " bitop3:{table}")?,
            table => write!(f, " bitop3:{table:#x}")?,
        }
    }
    if matches!(inst.op, Op::VPermlane16SwapB32 | Op::VPermlane32SwapB32) {
        if mods.op_sel & 2 != 0 {
            f.write_str(" bound_ctrl:1")?;
        }
        if mods.op_sel & 1 != 0 {
            f.write_str(" fi:1")?;
        }
    } else if forms.used.intersects(ModBits::OP_SEL) && mods.op_sel != 0 {
        op_sel(inst, f)?;
    }
    flag(f, mods.clamp, "clamp")?;
    output_multiplier(inst, f)
}

fn op_sel(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let info = inst.op.info();
    let third = !info.src[2].ty.is_none() || info.forms.used.contains(ModBits::OP_SEL2);
    let sources = if third { 3 } else { 2 };
    f.write_str(" op_sel:[")?;
    for i in 0..sources {
        write!(f, "{},", inst.mods.op_sel >> i & 1)?;
    }
    write!(f, "{}]", inst.mods.op_sel >> 3 & 1)
}

fn output_multiplier(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_str(["", " mul:2", " mul:4", " div:2"][usize::from(inst.mods.omod)])
}

fn operands(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let mut list = List::new(f);
    if inst.dst != Operand::None {
        list.item(Shown(inst, Slot::Dst))?;
    }
    if inst.sdst != Operand::None {
        list.item(Shown(inst, Slot::Sdst))?;
    }
    let k = match inst.op {
        Op::VFmamkF32 | Op::VMadmkF16 => Some(1),
        Op::VFmaakF32 | Op::VMadakF16 => Some(2),
        _ => None,
    };
    for i in (0..3).filter(|&i| inst.src[i] != Operand::None) {
        match inst.src[i] {
            Operand::Literal(value) if k == Some(i) => list.item(K(value, inst.op.info().dst.ty.bits))?,
            _ => list.item(Source(inst, i))?,
        }
    }
    Ok(())
}

/// The constant of v_fmamk and its like, and the width of the number it is.
///
/// LLVM takes one whose value is the number of an inline constant operand for that constant and prints its bits.
struct K(u32, u16);

impl Display for K {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = match self.0 {
            128..=192 => self.0 - 128,
            193..=208 if self.1 == 16 => (192 - self.0 as i32) as u16 as u32,
            193..=208 => (192 - self.0 as i32) as u32,
            240..=248 => InlineFloat::ALL[self.0 as usize - 240].f32_bits(),
            value => value,
        };
        write!(f, "{value:#x}")
    }
}

/// A source with its modifiers.
struct Source<'a>(&'a Inst, usize);

impl Display for Source<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Source(inst, i) = *self;
        let operand = Shown(inst, Slot::Src(i));
        let mods = inst.mods;
        if mods.sdwa.is_some_and(|sdwa| sdwa.sext >> i & 1 != 0) {
            return write!(f, "sext({operand})");
        }
        match (mods.neg >> i & 1 != 0, mods.abs >> i & 1 != 0) {
            (false, false) => write!(f, "{operand}"),
            (true, false) if operand.is_number() => write!(f, "neg({operand})"),
            (true, false) => write!(f, "-{operand}"),
            (false, true) => write!(f, "|{operand}|"),
            (true, true) => write!(f, "-|{operand}|"),
        }
    }
}

pub(super) fn sdwa(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    if inst.op == Op::VNop {
        return Ok(());
    }
    f.write_str("_sdwa")?;
    operands(inst, f)?;
    let Some(sdwa) = inst.mods.sdwa else { return Ok(()) };
    flag(f, inst.mods.clamp, "clamp")?;
    output_multiplier(inst, f)?;
    let info = inst.op.info();
    if info.encoding != Encoding::Vopc && !narrow_float(info.src[0].ty) {
        write!(f, " dst_sel:{} dst_unused:{}", select(sdwa.dst_sel), unused(sdwa.dst_unused))?;
    }
    write!(f, " src0_sel:{}", select(sdwa.src0_sel))?;
    if !info.src[1].ty.is_none() {
        write!(f, " src1_sel:{}", select(sdwa.src1_sel))?;
    }
    Ok(())
}

fn select(sel: SdwaSel) -> &'static str {
    match sel {
        SdwaSel::Byte0 => "BYTE_0",
        SdwaSel::Byte1 => "BYTE_1",
        SdwaSel::Byte2 => "BYTE_2",
        SdwaSel::Byte3 => "BYTE_3",
        SdwaSel::Word0 => "WORD_0",
        SdwaSel::Word1 => "WORD_1",
        SdwaSel::Dword => "DWORD",
    }
}

fn unused(unused: DstUnused) -> &'static str {
    match unused {
        DstUnused::Pad => "UNUSED_PAD",
        DstUnused::Sext => "UNUSED_SEXT",
        DstUnused::Preserve => "UNUSED_PRESERVE",
    }
}

pub(super) fn dpp(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    if !inst.op.info().forms.single || inst.op == Op::VPkFmacF16 {
        f.write_str("_dpp")?;
    }
    operands(inst, f)?;
    let Some(dpp) = inst.mods.dpp else { return Ok(()) };
    let info = inst.op.info();
    let wide = info.dst.ty.dwords() == 2 || info.src[0].ty.dwords() == 2;
    f.write_str(" ")?;
    // ISA, "Microcode Formats", DPP, table "DPP_CTRL".
    let ctrl = dpp.ctrl;
    match ctrl {
        _ if wide && ctrl & 0x1f0 != 0x150 => f.write_str(" /* DP ALU dpp only supports row_newbcast */")?,
        0x000..=0x0ff => {
            let lane = |i: u16| ctrl >> (2 * i) & 3;
            write!(f, "quad_perm:[{},{},{},{}]", lane(0), lane(1), lane(2), lane(3))?;
        }
        0x101..=0x10f => write!(f, "row_shl:{}", ctrl & 15)?,
        0x111..=0x11f => write!(f, "row_shr:{}", ctrl & 15)?,
        0x121..=0x12f => write!(f, "row_ror:{}", ctrl & 15)?,
        0x130 => f.write_str("wave_shl:1")?,
        0x134 => f.write_str("wave_rol:1")?,
        0x138 => f.write_str("wave_shr:1")?,
        0x13c => f.write_str("wave_ror:1")?,
        0x140 => f.write_str("row_mirror")?,
        0x141 => f.write_str("row_half_mirror")?,
        0x142 => f.write_str("row_bcast:15")?,
        0x143 => f.write_str("row_bcast:31")?,
        0x150..=0x15f => write!(f, "row_newbcast:{}", ctrl & 15)?,
        0x160..=0x16f => f.write_str("/* row_xmask is not supported on ASICs earlier than GFX10 */")?,
        _ => f.write_str("/* Invalid dpp_ctrl value */")?,
    }
    write!(f, " row_mask:{:#x} bank_mask:{:#x}", dpp.row_mask, dpp.bank_mask)?;
    flag(f, dpp.bound_ctrl, "bound_ctrl:1")
}

pub(super) fn packed(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let info = inst.op.info();
    let mods = inst.mods;
    let mut list = List::new(f);
    if inst.dst != Operand::None {
        list.item(Shown(inst, Slot::Dst))?;
    }
    let sources = info.src.iter().filter(|src| !src.ty.is_none()).count();
    let mixed = matches!(inst.op, Op::VFmaMixF32 | Op::VFmaMixloF16 | Op::VFmaMixhiF16);
    for i in 0..sources {
        if mixed {
            list.item(Source(inst, i))?;
        } else {
            list.item(Shown(inst, Slot::Src(i)))?;
        }
    }
    let all = (1 << sources) - 1;
    per_source(f, "op_sel", mods.op_sel & all, sources, 0)?;
    per_source(f, "op_sel_hi", mods.op_sel_hi & all, sources, if mixed { 0 } else { all })?;
    if !mixed && inst.op != Op::VMfmaLdScaleB32 {
        per_source(f, "neg_lo", mods.neg & all, sources, 0)?;
        per_source(f, "neg_hi", mods.neg_hi & all, sources, 0)?;
    }
    flag(f, mods.clamp, "clamp")
}

/// ` name:[0,1,..]` unless all sources have the default.
fn per_source(f: &mut Formatter<'_>, name: &str, value: u8, sources: usize, default: u8) -> fmt::Result {
    if value == default {
        return Ok(());
    }
    write!(f, " {name}:[{}", value & 1)?;
    for i in 1..sources {
        write!(f, ",{}", value >> i & 1)?;
    }
    f.write_str("]")
}

pub(super) fn matrix(inst: &Inst, f: &mut Formatter<'_>) -> fmt::Result {
    let info = inst.op.info();
    let mods = inst.mods;
    let mut list = List::new(f);
    list.item(Shown(inst, Slot::Dst))?;
    for i in (0..inst.src.len()).filter(|&i| inst.src[i] != Operand::None) {
        list.item(Shown(inst, Slot::Src(i)))?;
    }
    if inst.encoding == Encoding::Vop3px2 {
        per_source(f, "op_sel", mods.op_sel, 3, 0)?;
        per_source(f, "op_sel_hi", mods.op_sel_hi, 3, 7)?;
    }
    nonzero(f, "cbsz", mods.cbsz)?;
    nonzero(f, "abid", mods.abid)?;
    if matches!(info.class, Class::Mfma(_)) && info.src[0].ty.bits == 64 {
        return match mods.blgp {
            0 => Ok(()),
            neg => write!(f, " neg:[{},{},{}]", neg & 1, neg >> 1 & 1, neg >> 2 & 1),
        };
    }
    nonzero(f, "blgp", mods.blgp)
}
