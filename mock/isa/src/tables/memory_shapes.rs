//! The shapes that lines of vector memory and LDS instructions have.

use super::row::{Row, row};
use super::types::*;
use crate::info::{Class, Counters, DataType, Implicit, Memory};
use crate::{Encoding, Op};

const fn ds(opcode: u16, op: Op, name: &'static str, memory: Memory) -> Row {
    row(Encoding::Ds, opcode, op, name, Class::Lds).memory(memory, Counters::LGKM).reads(EXEC)
}

pub(super) const fn ds_nop(opcode: u16, op: Op, name: &'static str) -> Row {
    row(Encoding::Ds, opcode, op, name, Class::Lds)
}

pub(super) const fn ds_read(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Load).dst(data).src(&[U32])
}

pub(super) const fn ds_read2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Load).dst(vec(data, 2)).src(&[U32]).two_addresses()
}

pub(super) const fn ds_write(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Store).src(&[U32, data])
}

pub(super) const fn ds_write2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Store).src(&[U32, data, data]).two_addresses()
}

/// One data operand; without [`Row::returns`] the value before is lost.
pub(super) const fn ds_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Atomic).src(&[U32, data])
}

/// Two data operands.
pub(super) const fn ds_atomic2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Atomic).src(&[U32, data, data])
}

/// Two addresses, two data operands, two results.
pub(super) const fn ds_exchange2(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    ds(opcode, op, name, Memory::Atomic).dst(vec(data, 2)).src(&[U32, data, data]).two_addresses()
}

/// Lane permutations, which pass through the LDS unit but not its memory.
pub(super) const fn ds_permute(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::None).dst(B32).src(&[U32, B32])
}

pub(super) const fn ds_swizzle(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::None).dst(B32).src(&[B32])
}

/// Append and consume: the address is in M0, the result is the count before.
pub(super) const fn ds_count(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::Atomic).dst(U32).reads(M0)
}

pub(super) const fn ds_read_addtid(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::Load).dst(B32).reads(M0)
}

pub(super) const fn ds_write_addtid(opcode: u16, op: Op, name: &'static str) -> Row {
    ds(opcode, op, name, Memory::Store).src(&[NONE, B32]).reads(M0)
}

pub(super) const fn ds_gws(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    let counters = Counters::LGKM.union(Counters::EXP);
    row(Encoding::Ds, opcode, op, name, Class::Gws).memory(Memory::None, counters).reads(EXEC.union(M0)).src(&[data])
}

const FLAT_COUNTERS: Counters = Counters::VM.union(Counters::LGKM);

const fn flat(opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let row = row(Encoding::Flat, opcode, op, name, Class::Flat).memory(memory, FLAT_COUNTERS);
    row.src(&[ADDR, NONE, data]).reads(EXEC.union(Implicit::FLAT_SCRATCH))
}

const fn global(opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let row = row(Encoding::Global, opcode, op, name, Class::Global).memory(memory, Counters::VM);
    row.src(&[ADDR, ADDR, data]).reads(EXEC)
}

const fn scratch(opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let row = row(Encoding::Scratch, opcode, op, name, Class::Scratch).memory(memory, Counters::VM);
    row.src(&[U32, U32, data]).reads(EXEC.union(Implicit::FLAT_SCRATCH))
}

pub(super) const fn flat_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn flat_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Store, data)
}

pub(super) const fn flat_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Atomic, data).dst(data)
}

/// Data is the new value, then the one to compare with.
pub(super) const fn flat_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    flat(opcode, op, name, Memory::Atomic, vec(data, 2)).dst(data)
}

pub(super) const fn global_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn global_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Store, data)
}

pub(super) const fn global_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Atomic, data).dst(data)
}

pub(super) const fn global_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    global(opcode, op, name, Memory::Atomic, vec(data, 2)).dst(data)
}

pub(super) const fn scratch_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    scratch(opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn scratch_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    scratch(opcode, op, name, Memory::Store, data)
}

const fn buffer(encoding: Encoding, opcode: u16, op: Op, name: &'static str, memory: Memory, data: DataType) -> Row {
    let class = if matches!(encoding, Encoding::Mubuf) { Class::Mubuf } else { Class::Mtbuf };
    let row = row(encoding, opcode, op, name, class).memory(memory, Counters::VM);
    row.src(&[U32, V_SHARP, U32, data]).reads(EXEC)
}

pub(super) const fn mubuf_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn mubuf_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Store, data)
}

pub(super) const fn mubuf_atomic(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Atomic, data).dst(data)
}

pub(super) const fn mubuf_cmpswap(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mubuf, opcode, op, name, Memory::Atomic, vec(data, 2)).dst(data)
}

pub(super) const fn mubuf_cache(opcode: u16, op: Op, name: &'static str) -> Row {
    row(Encoding::Mubuf, opcode, op, name, Class::Mubuf).memory(Memory::Cache, Counters::VM)
}

pub(super) const fn mtbuf_load(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mtbuf, opcode, op, name, Memory::Load, NONE).dst(data)
}

pub(super) const fn mtbuf_store(opcode: u16, op: Op, name: &'static str, data: DataType) -> Row {
    buffer(Encoding::Mtbuf, opcode, op, name, Memory::Store, data)
}
