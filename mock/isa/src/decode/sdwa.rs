//! The second dword of SDWA.

use super::{Code, Reason, Result, bit, bits};
use crate::info::{DataType, Kind, ModBits};
use crate::operand::Operand;
use crate::{DstUnused, Encoding, Inst, Sdwa, SdwaSel};

/// `| s1 | - | abs | neg | sext | src1_sel:3 | s0 | - | abs | neg | sext | src0_sel:3 | omod:2 | clamp | dst_unused:2 |
/// dst_sel:3 | src0:8 |`; for compares `| sd | sdst:7 |` in place of omod to dst_sel.
pub(super) fn sdwa(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let high = code.next()?;
    let info = inst.op.info();
    let compare = inst.encoding == Encoding::Vopc;
    let mut sdwa = Sdwa {
        dst_sel: SdwaSel::Dword,
        dst_unused: DstUnused::Pad,
        src0_sel: select(code, bits(high, 16, 3))?,
        src1_sel: select(code, bits(high, 24, 3))?,
        sext: (bits(high, 19, 1) | bits(high, 27, 1) << 1) as u8,
    };
    if compare {
        // Without SD the destination is VCC and its field may hold anything.
        if bit(high, 15) {
            inst.dst = code.scalar(bits(high, 8, 7), 2)?;
        }
    } else {
        sdwa.dst_sel = select(code, bits(high, 8, 3))?;
        sdwa.dst_unused = match bits(high, 11, 2) {
            0 => DstUnused::Pad,
            1 => DstUnused::Sext,
            2 => DstUnused::Preserve,
            _ => return Err(code.invalid(Reason::Field)),
        };
        if narrow_float(info.src[0].ty) {
            // The destination is whole; its selector is fixed and what happens to the rest is ignored.
            code.zero(u32::from(sdwa.dst_sel != SdwaSel::Dword))?;
            sdwa.dst_unused = DstUnused::Pad;
        }
        inst.mods.clamp = bit(high, 13);
        inst.mods.omod = bits(high, 14, 2) as u8;
        if !info.dst.ty.is_float() {
            code.zero(inst.mods.omod.into())?;
        }
    }
    inst.mods.neg = (bits(high, 20, 1) | bits(high, 28, 1) << 1) as u8;
    inst.mods.abs = (bits(high, 21, 1) | bits(high, 29, 1) << 1) as u8;
    for i in 0..2 {
        source_modifiers(code, inst, &sdwa, i)?;
    }
    if !info.src[0].ty.is_none() {
        inst.src[0] = source(code, bits(high, 0, 8), bit(high, 23))?;
    }
    if info.src[1].ty.is_none() {
        code.zero(bits(high, 24, 3) | bits(high, 31, 1))?;
    } else {
        inst.src[1] = source(code, bits(code.word, 9, 8), bit(high, 31))?;
    }
    inst.encoding = Encoding::Sdwa;
    inst.mods.sdwa = Some(sdwa);
    Ok(())
}

/// Numbers are negated or made absolute, integers are extended; packed numbers ignore the former.
fn source_modifiers(code: &Code, inst: &mut Inst, sdwa: &Sdwa, i: usize) -> Result<()> {
    let (sext, float) = (sdwa.sext >> i & 1, (inst.mods.neg | inst.mods.abs) >> i & 1);
    let ty = inst.op.info().src[i].ty;
    let is_float = inst.op.info().forms.used.contains(ModBits::neg_abs(i));
    let forbidden = match (ty.is_none(), is_float) {
        (true, _) => sext | float,
        (false, true) => sext,
        (false, false) => float,
    };
    code.zero(forbidden.into())?;
    if ty.count == 2 {
        inst.mods.neg &= !(1 << i);
        inst.mods.abs &= !(1 << i);
    }
    Ok(())
}

/// Conversions from these have no destination selector.
pub(crate) fn narrow_float(ty: DataType) -> bool {
    matches!(ty.kind, Kind::Fp8 | Kind::Bf8)
}

fn select(code: &Code, field: u32) -> Result<SdwaSel> {
    Ok(match field {
        0 => SdwaSel::Byte0,
        1 => SdwaSel::Byte1,
        2 => SdwaSel::Byte2,
        3 => SdwaSel::Byte3,
        4 => SdwaSel::Word0,
        5 => SdwaSel::Word1,
        6 => SdwaSel::Dword,
        _ => return Err(code.invalid(Reason::Field)),
    })
}

fn source(code: &mut Code, field: u32, scalar: bool) -> Result<Operand> {
    const LITERAL: u32 = 255;
    match (scalar, field) {
        (true, LITERAL) => Err(code.invalid(Reason::Operand)),
        (true, _) => code.scalar(field, 1),
        (false, _) => code.vgpr(field, 1),
    }
}
