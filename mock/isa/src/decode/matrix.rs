//! Packed and matrix instructions.

use super::{Code, Reason, Result, bit, bits};
use crate::{Class, Encoding, Inst, Kind, Op, Operand, tables};

/// `v_mfma_ld_scale_b32`, the first half of a scaled matrix instruction.
const LD_SCALE: u32 = 0x2c;

/// `| 110100111 | op:7 | clamp | op_sel_hi[2] | op_sel:3 | neg_hi:3 | vdst:8 |`,
/// `| neg:3 | op_sel_hi[1:0] | src2:9 | src1:9 | src0:9 |`
pub(super) fn vop3p(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let opcode = bits(word, 16, 7);
    if opcode == LD_SCALE
        && let Some(op) = scaled_op(code.words)
    {
        let (mut pair, mut whole) =
            (Code { words: code.words, word, dwords: 4, literal: None, misaligned: false }, *inst);
        if scaled(&mut pair, &mut whole, op).is_ok() {
            (code.dwords, code.misaligned, *inst) = (pair.dwords, pair.misaligned, whole);
            return Ok(());
        }
    }
    if tables::MAI[opcode as usize].is_some() {
        return mai(code, inst);
    }
    let op = code.opcode(&tables::VOP3P, opcode)?;
    let high = code.next()?;
    let info = op.info();
    (inst.op, inst.encoding) = (op, Encoding::Vop3p);
    let vdst = bits(word, 0, 8);
    if info.dst.ty.is_none() {
        code.zero(vdst)?;
    } else {
        inst.dst = code.vgpr(vdst, info.dst.ty.dwords())?;
    }
    for (i, field) in [bits(high, 0, 9), bits(high, 9, 9), bits(high, 18, 9)].into_iter().enumerate() {
        let ty = info.src[i].ty;
        if !ty.is_none() {
            inst.src[i] = code.source(field, ty.dwords())?;
        }
    }
    inst.mods.neg_hi = bits(word, 8, 3) as u8;
    inst.mods.op_sel = bits(word, 11, 3) as u8;
    inst.mods.op_sel_hi = (bits(word, 14, 1) << 2 | bits(high, 27, 2)) as u8;
    inst.mods.clamp = bit(word, 15);
    inst.mods.neg = bits(high, 29, 3) as u8;
    if matches!(op, Op::VFmaMixF32 | Op::VFmaMixloF16 | Op::VFmaMixhiF16) {
        // These take each source whole: neg_hi is the absolute value (ISA, "Microcode Formats", VOP3P).
        inst.mods.abs = std::mem::take(&mut inst.mods.neg_hi);
    }
    if info.src[2].ty.is_none() {
        code.zero(u32::from((inst.mods.neg_hi | inst.mods.op_sel | inst.mods.neg) >> 2))?;
        inst.mods.op_sel_hi &= 0b011;
    }
    if op == Op::VMfmaLdScaleB32 {
        code.zero(inst.mods.clamp.into())?;
    }
    if matches!(op, Op::VDot4I32I8 | Op::VDot4U32U8 | Op::VDot8I32I4 | Op::VDot8U32U4) {
        // Bytes and nibbles have no halves to select: op_sel must be 0, op_sel_hi is ignored and taken for its default.
        code.zero(inst.mods.op_sel.into())?;
        inst.mods.op_sel_hi = 0b111;
    }
    Ok(())
}

/// `| 110100111 | op:7 | acc_cd | abid:4 | cbsz:3 | vdst:8 |`, `| blgp:3 | acc:2 | src2:9 | src1:9 | src0:9 |`
fn mai(code: &mut Code, inst: &mut Inst) -> Result<()> {
    let word = code.word;
    let op = code.opcode(&tables::MAI, bits(word, 16, 7))?;
    let high = code.next()?;
    (inst.op, inst.encoding) = (op, Encoding::Mai);
    match op {
        Op::VAccvgprReadB32 => {
            unused_fields(code, word, high)?;
            inst.dst = code.vgpr(bits(word, 0, 8), 1)?;
            inst.src[0] = accumulator(code, bits(high, 0, 9), 1, true)?;
        }
        Op::VAccvgprWriteB32 => {
            unused_fields(code, word, high)?;
            inst.dst = code.vector(bits(word, 0, 8), 1, true)?;
            inst.src[0] = code.source(bits(high, 0, 9), 1)?;
        }
        _ => product(code, inst, word, high)?,
    }
    Ok(())
}

/// Moves to and from AccVGPRs have neither cbsz, abid nor blgp.
fn unused_fields(code: &Code, word: u32, high: u32) -> Result<()> {
    code.zero(bits(word, 8, 6) | bits(high, 29, 3))
}

/// The scaled instruction, if `words` hold both halves; abid 1 in the second says that it uses the scales of the first.
fn scaled_op(words: &[u32]) -> Option<Op> {
    let &[_, _, word, _, ..] = words else { return None };
    let is_scaled = word >> 23 == 0b1_1010_0111 && bits(word, 11, 4) == 1;
    if is_scaled { tables::SCALED[bits(word, 16, 7) as usize] } else { None }
}

/// `| v_mfma_ld_scale_b32 with op_sel:2 at 12:11 |`, `| - | op_sel_hi:2 | - | scale1:9 | scale0:9 |`, then the matrix instruction.
fn scaled(code: &mut Code, inst: &mut Inst, op: Op) -> Result<()> {
    let &[low, scales, word, high, ..] = code.words else { return Err(code.truncated()) };
    (inst.op, inst.encoding) = (op, Encoding::Vop3px2);
    product(code, inst, word, high)?;
    inst.mods.abid = 0;
    inst.src[3] = code.source(bits(scales, 0, 9), 1)?;
    inst.src[4] = code.source(bits(scales, 9, 9), 1)?;
    inst.mods.op_sel = bits(low, 11, 2) as u8;
    inst.mods.op_sel_hi = bits(scales, 27, 2) as u8;
    // There is no room for a literal in the 16 bytes that LLVM takes for the longest instruction.
    if code.dwords == 4 { Ok(()) } else { Err(code.invalid(Reason::Operand)) }
}

/// The operands of a matrix multiply-add.
fn product(code: &mut Code, inst: &mut Inst, word: u32, high: u32) -> Result<()> {
    let info = inst.op.info();
    let acc_cd = bit(word, 15);
    inst.mods.cbsz = bits(word, 8, 3) as u8;
    inst.mods.abid = bits(word, 11, 4) as u8;
    inst.mods.blgp = bits(high, 29, 3) as u8;
    if matches!(info.class, Class::Smfmac(_)) {
        code.zero(inst.mods.blgp.into())?;
    }
    if info.src[0].ty.kind == Kind::F8F6F4 && inst.encoding == Encoding::Mai {
        code.zero(inst.mods.abid.into())?;
    }
    inst.dst = code.vector(bits(word, 0, 8), info.dst.ty.dwords(), acc_cd)?;
    for (i, format) in [inst.mods.cbsz, inst.mods.blgp].into_iter().enumerate() {
        let ty = info.src[i].ty;
        let dwords = if ty.kind == Kind::F8F6F4 { f8f6f4_dwords(format) } else { ty.dwords() };
        let (field, acc) = (bits(high, 9 * i as u32, 9), bit(high, 27 + i as u32));
        // LLVM wants room for the widest format before it looks at which one it is.
        accumulator(code, field, ty.dwords(), acc)?;
        inst.src[i] = accumulator(code, field, dwords, acc)?;
    }
    let acc_c = acc_cd && !matches!(info.class, Class::Smfmac(_));
    inst.src[2] = accumulator(code, bits(high, 18, 9), info.src[2].ty.dwords(), acc_c)?;
    Ok(())
}

/// A source that is a vector register, or with `acc` an accumulation register.
fn accumulator(code: &mut Code, field: u32, dwords: u8, acc: bool) -> Result<Operand> {
    if field >= 256 { code.vector(field - 256, dwords, acc) } else { code.scalar(field, dwords) }
}

/// Registers of 32 elements in the format that `cbsz` or `blgp` names: FP8, BF8, FP6, BF6, FP4 (ISA, "Matrix Arithmetic
/// Instructions"). LLVM reads the reserved formats 5 to 7 as FP8.
fn f8f6f4_dwords(format: u8) -> u8 {
    match format {
        2 | 3 => 6,
        4 => 4,
        _ => 8,
    }
}
