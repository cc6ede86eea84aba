//! The shapes that lines of vector ALU instructions have.

use super::row::{Row, neg_abs_bits, row};
use super::types::*;
use crate::info::{Class, DataType, Matrix, ModBits};
use crate::{Encoding, Op};

const fn valu(encoding: Encoding, opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    let mut row = row(encoding, opcode, op, name, Class::Valu).dst(dst).src(src).reads(EXEC);
    if dst.is_float() || (!src.is_empty() && src[0].is_float()) {
        row = row.reads(MODE);
    }
    let mut used = if dst.is_float() { ModBits::CLAMP.union(ModBits::OMOD) } else { ModBits::empty() };
    let mut i = 0;
    while i < src.len() {
        if src[i].is_float() {
            used = used.union(neg_abs_bits(1 << i));
        }
        i += 1;
    }
    row.info.forms.used = used;
    row.info.forms.ignored = ModBits::OP_SEL;
    row
}

const fn has_64_bits(dst: DataType, src: &[DataType]) -> bool {
    let mut wide = dst.dwords() > 1;
    let mut i = 0;
    while i < src.len() {
        wide |= src[i].dwords() > 1;
        i += 1;
    }
    wide
}

pub(super) const fn vop1(opcode: u16, op: Op, name: &'static str, dst: DataType, src: DataType) -> Row {
    let mut row = valu(Encoding::Vop1, opcode, op, name, dst, &[src]);
    row.info.forms.vop3 = Some(0x140 + opcode);
    row.info.forms.sdwa = !has_64_bits(dst, &[src]);
    row.info.forms.dpp = true;
    row
}

pub(super) const fn vop2(opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    let mut row = valu(Encoding::Vop2, opcode, op, name, dst, src);
    row.info.forms.vop3 = Some(0x100 + opcode);
    row.info.forms.sdwa = !has_64_bits(dst, src);
    row.info.forms.dpp = true;
    row
}

pub(super) const fn cmp(opcode: u16, op: Op, name: &'static str, src0: DataType, src1: DataType) -> Row {
    let mut row = valu(Encoding::Vopc, opcode, op, name, NONE, &[src0, src1]).dst(MASK);
    row.info.forms.vop3 = Some(opcode);
    row.info.forms.sdwa = !has_64_bits(src0, &[src1]);
    if src0.is_float() {
        row.info.forms.used = row.info.forms.used.union(ModBits::CLAMP);
    }
    row
}

pub(super) const fn cmpx(opcode: u16, op: Op, name: &'static str, src0: DataType, src1: DataType) -> Row {
    cmp(opcode, op, name, src0, src1).writes(EXEC)
}

pub(super) const fn vop3(opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    let mut row = valu(Encoding::Vop3, opcode, op, name, dst, src);
    row.info.forms.single = true;
    row
}

pub(super) const fn vop3p(opcode: u16, op: Op, name: &'static str, dst: DataType, src: &[DataType]) -> Row {
    valu(Encoding::Vop3p, opcode, op, name, dst, src)
}

const fn matrix(opcode: u16, op: Op, name: &'static str, class: Class, d: DataType, src: &[DataType]) -> Row {
    row(Encoding::Mai, opcode, op, name, class).dst(d).src(src).reads(EXEC.union(MODE))
}

pub(super) const fn mfma(
    opcode: u16,
    op: Op,
    name: &'static str,
    shape: Matrix,
    d: DataType,
    a: DataType,
    b: DataType,
) -> Row {
    let Matrix { m, n, k, blocks } = shape;
    let (m, n, k, blocks) = (m as u16, n as u16, k as u16, blocks as u16);
    let (a, b, d) = (vec(a, m * k * blocks / 64), vec(b, k * n * blocks / 64), vec(d, m * n * blocks / 64));
    matrix(opcode, op, name, Class::Mfma(shape), d, &[a, b, d])
}

pub(super) const fn smfmac(
    opcode: u16,
    op: Op,
    name: &'static str,
    shape: Matrix,
    d: DataType,
    a: DataType,
    b: DataType,
) -> Row {
    let Matrix { m, n, k, blocks } = shape;
    let (m, n, k, blocks) = (m as u16, n as u16, k as u16, blocks as u16);
    let (a, b, d) = (vec(a, m * k * blocks / 128), vec(b, k * n * blocks / 64), vec(d, m * n * blocks / 64));
    matrix(opcode, op, name, Class::Smfmac(shape), d, &[a, b, B32]).keeps_dst()
}

/// The scaled matrix instruction: scales are four E8M0 bytes, of which `op_sel` chooses one.
pub(super) const fn mfma_scale(opcode: u16, op: Op, name: &'static str, shape: Matrix) -> Row {
    let mut row = mfma(opcode, op, name, shape, F32, F8F6F4, F8F6F4);
    row.info.encoding = Encoding::Vop3px2;
    row.info.src[3] = read(PK4_E8M0);
    row.info.src[4] = read(PK4_E8M0);
    row
}

pub(super) const fn accvgpr(opcode: u16, op: Op, name: &'static str) -> Row {
    row(Encoding::Mai, opcode, op, name, Class::Valu).dst(B32).src(&[B32]).reads(EXEC)
}
