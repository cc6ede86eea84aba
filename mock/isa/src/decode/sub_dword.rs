//! The second dword of SDWA and DPP.

use super::{Code, Reason, Result, bit, bits};
use crate::info::{DataType, Kind, ModBits};
use crate::operand::Operand;
use crate::{Dpp, DstUnused, Encoding, Inst, Sdwa, SdwaSel};

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
    let is_float = inst.op.info().forms.used.contains(neg_abs(i));
    code.zero(
        if ty.is_none() {
            sext | float
        } else if is_float {
            sext
        } else {
            float
        }
        .into(),
    )?;
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

fn neg_abs(i: usize) -> ModBits {
    [ModBits::NEG0 | ModBits::ABS0, ModBits::NEG1 | ModBits::ABS1][i]
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

/// v_nop with SDWA; when bits are set that it does not have, the first dword is a v_nop of its own.
pub(super) fn sdwa_nop(code: &mut Code, inst: &mut Inst) {
    const IGNORED: u32 = 0x4060_1fff;
    if code.words.get(1).is_some_and(|high| high & !IGNORED == 0) {
        code.dwords += 1;
        inst.encoding = Encoding::Sdwa;
    }
}

fn source(code: &mut Code, field: u32, scalar: bool) -> Result<Operand> {
    const LITERAL: u32 = 255;
    match (scalar, field) {
        (true, LITERAL) => Err(code.invalid(Reason::Operand)),
        (true, _) => code.scalar(field, 1),
        (false, _) => code.vgpr(field, 1),
    }
}

/// `| row_mask:4 | bank_mask:4 | abs1 | neg1 | abs0 | neg0 | bound_ctrl | - | dpp_ctrl:9 | src0:8 |`
pub(super) fn dpp(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let high = code.next()?;
    let info = inst.op.info();
    if !info.src[0].ty.is_none() {
        inst.src[0] = code.vgpr(bits(high, 0, 8), info.src[0].ty.dwords())?;
    }
    inst.mods.neg = (bits(high, 20, 1) | bits(high, 22, 1) << 1) as u8;
    inst.mods.abs = (bits(high, 21, 1) | bits(high, 23, 1) << 1) as u8;
    for i in 0..2 {
        let forms = &info.forms;
        if !forms.used.contains(neg_abs(i)) {
            if !forms.ignored.contains(neg_abs(i)) {
                code.zero(((inst.mods.neg | inst.mods.abs) >> i & 1).into())?;
            }
            inst.mods.neg &= !(1 << i);
            inst.mods.abs &= !(1 << i);
        }
    }
    inst.mods.dpp = Some(Dpp {
        ctrl: bits(high, 8, 9) as u16,
        row_mask: bits(high, 28, 4) as u8,
        bank_mask: bits(high, 24, 4) as u8,
        bound_ctrl: bit(high, 19),
    });
    inst.encoding = Encoding::Dpp;
    Ok(())
}
