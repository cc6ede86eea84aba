//! The second dword of DPP.

use super::{Code, Result, bit, bits};
use crate::info::ModBits;
use crate::{Dpp, Encoding, Inst};

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
        let bits = ModBits::neg_abs(i);
        if !info.forms.used.contains(bits) {
            if !info.forms.ignored.contains(bits) {
                code.zero(((inst.mods.neg | inst.mods.abs) >> i & 1).into())?;
            }
            inst.mods.neg &= !(1 << i);
            inst.mods.abs &= !(1 << i);
        }
    }
    inst.mods.dpp = Some(controls(high));
    inst.encoding = Encoding::Dpp;
    Ok(())
}

fn controls(high: u32) -> Dpp {
    Dpp {
        ctrl: bits(high, 8, 9) as u16,
        row_mask: bits(high, 28, 4) as u8,
        bank_mask: bits(high, 24, 4) as u8,
        bound_ctrl: bit(high, 19),
    }
}

/// v_nop whose source field announces a second dword. If that has bits set that v_nop does not have, the first dword is a v_nop of
/// its own, as it ignores its source.
pub(super) fn nop(code: &mut Code, inst: &mut Inst, announced: Encoding) {
    const SDWA_UNUSED: u32 = 0xbf9f_e000;
    const DPP_UNUSED: u32 = 0x00f0_0000;
    let Some(&high) = code.words.get(1) else { return };
    match announced {
        Encoding::Sdwa if high & SDWA_UNUSED == 0 => {}
        Encoding::Dpp if high & DPP_UNUSED == 0 => inst.mods.dpp = Some(controls(high)),
        _ => return,
    }
    inst.encoding = announced;
    code.dwords += 1;
}
