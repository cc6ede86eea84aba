//! The shapes that lines of scalar instructions have.

use super::row::{Row, row};
use super::types::*;
use crate::info::{Class, Counters, DataType, Memory};
use crate::{Encoding, Op};

pub(super) const fn sop1(opcode: u16, op: Op, name: &'static str, dst: DataType, src: DataType) -> Row {
    row(Encoding::Sop1, opcode, op, name, Class::Salu).dst(dst).src(&[src])
}

pub(super) const fn sop2(opcode: u16, op: Op, name: &'static str, dst: DataType, src: [DataType; 2]) -> Row {
    row(Encoding::Sop2, opcode, op, name, Class::Salu).dst(dst).src(&src)
}

pub(super) const fn sopk(opcode: u16, op: Op, name: &'static str, dst: DataType, src: DataType) -> Row {
    row(Encoding::Sopk, opcode, op, name, Class::Salu).dst(dst).src(&[src])
}

pub(super) const fn sopc(opcode: u16, op: Op, name: &'static str, src: [DataType; 2]) -> Row {
    row(Encoding::Sopc, opcode, op, name, Class::Salu).src(&src).writes(SCC)
}

pub(super) const fn sopp(opcode: u16, op: Op, name: &'static str, class: Class) -> Row {
    row(Encoding::Sopp, opcode, op, name, class)
}

const fn smem(opcode: u16, op: Op, name: &'static str, memory: Memory, base: DataType) -> Row {
    row(Encoding::Smem, opcode, op, name, Class::Smem).memory(memory, Counters::LGKM).src(&[base, B32])
}

pub(super) const fn smem_load(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Load, base).dst(data)
}

pub(super) const fn smem_store(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Store, base).src(&[base, B32, data])
}

pub(super) const fn smem_atomic(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Atomic, base).dst(data).src(&[base, B32, data])
}

pub(super) const fn smem_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType, base: DataType) -> Row {
    smem(opcode, op, name, Memory::Atomic, base).dst(data).src(&[base, B32, vec(data, 2)])
}

pub(super) const fn smem_time(opcode: u16, op: Op, name: &'static str) -> Row {
    smem(opcode, op, name, Memory::None, NONE).dst(U64).src(&[])
}

pub(super) const fn smem_cache(opcode: u16, op: Op, name: &'static str, base: DataType) -> Row {
    let row = smem(opcode, op, name, Memory::Cache, base);
    if base.is_none() { row.src(&[]) } else { row }
}
