//! The second dword of SDWA and DPP.

use super::{Code, Reason, Result, bit, bits};
use crate::operand::{Operand, Special};
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
        inst.dst = if bit(high, 15) {
            code.scalar(bits(high, 8, 7), 2)?
        } else {
            code.zero(bits(high, 8, 7))?;
            Operand::Special(Special::Vcc)
        };
    } else {
        sdwa.dst_sel = select(code, bits(high, 8, 3))?;
        sdwa.dst_unused = match bits(high, 11, 2) {
            0 => DstUnused::Pad,
            1 => DstUnused::Sext,
            2 => DstUnused::Preserve,
            _ => return Err(code.invalid(Reason::Field)),
        };
        inst.mods.clamp = bit(high, 13);
        inst.mods.omod = bits(high, 14, 2) as u8;
    }
    inst.mods.neg = (bits(high, 20, 1) | bits(high, 28, 1) << 1) as u8;
    inst.mods.abs = (bits(high, 21, 1) | bits(high, 29, 1) << 1) as u8;
    if !info.src[0].ty.is_none() {
        inst.src[0] = source(code, bits(high, 0, 8), bit(high, 23))?;
    }
    if !info.src[1].ty.is_none() {
        inst.src[1] = source(code, bits(code.word, 9, 8), bit(high, 31))?;
    }
    inst.encoding = Encoding::Sdwa;
    inst.mods.sdwa = Some(sdwa);
    Ok(())
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
    if scalar { code.scalar(field, 1) } else { code.vgpr(field, 1) }
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
    inst.mods.dpp = Some(Dpp {
        ctrl: bits(high, 8, 9) as u16,
        row_mask: bits(high, 28, 4) as u8,
        bank_mask: bits(high, 24, 4) as u8,
        bound_ctrl: bit(high, 19),
    });
    inst.encoding = Encoding::Dpp;
    Ok(())
}
