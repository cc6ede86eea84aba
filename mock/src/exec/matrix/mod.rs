//! Matrix instructions: MFMA and SMFMAC.
//!
//! EXEC is ignored. All operands are read before anything is written, so they may overlap in any way. MODE is ignored but
//! for FP16_OVFL, which limits results, and the input denormals of single precision (CDNA4 ISA sections 7.1.2 and 7.4).

mod chain;
mod exact;
mod integer;
mod kernel;
mod layout;
mod low_precision;
mod model;
mod sparse;
mod unpack;

use isa::{Class, Kind, Mods};

use layout::Shape;

use super::level::Level;
use super::translate::{Builder, Unsupported};
use super::{Cx, Micro, Src, SrcKind};
use crate::wave::Vreg;

pub use model::MfmaOrder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Result<Micro, Unsupported> {
    let a = b.info.src[0].ty;
    match (b.info.class, a.kind, a.bits) {
        (Class::Mfma(shape), Kind::Float | Kind::Bfloat, 16) => low_precision::translate::<L>(b, shape),
        (Class::Mfma(shape), Kind::Float, 32) => chain::translate_single::<L>(b, shape),
        (Class::Mfma(shape), Kind::Float, 64) => chain::translate_double::<L>(b, shape),
        (Class::Mfma(shape), Kind::Sint, 8) => integer::translate::<L>(b, shape),
        (Class::Mfma(shape), Kind::Fp8 | Kind::Bf8 | Kind::F8F6F4, _) => low_precision::translate::<L>(b, shape),
        (Class::Smfmac(shape), Kind::Sint, 8) => sparse::translate_integer::<L>(b, shape),
        (Class::Smfmac(shape), _, _) => sparse::translate::<L>(b, shape),
        _ => Err(Unsupported::Instruction),
    }
}

/// A and B must be vector registers, C one or a constant.
fn check_operands(micro: &Micro) -> Result<(), Unsupported> {
    let [a, b, c] = micro.src.map(|src| src.kind);
    let supported = a == SrcKind::Vgpr && b == SrcKind::Vgpr && matches!(c, SrcKind::Vgpr | SrcKind::Constant);
    if supported { Ok(()) } else { Err(Unsupported::Instruction) }
}

/// The fields that let A and B be read from other lanes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Lanes {
    cbsz: u32,
    abid: u32,
    blgp: u32,
}

impl Lanes {
    fn of(mods: &Mods) -> Self {
        Self { cbsz: mods.cbsz.into(), abid: mods.abid.into(), blgp: mods.blgp.into() }
    }

    /// As 10 bits.
    fn pack(self) -> u32 {
        self.cbsz | self.abid << 3 | self.blgp << 7
    }

    #[inline(always)]
    fn unpack(bits: u32) -> Self {
        Self { cbsz: bits & 7, abid: bits >> 3 & 15, blgp: bits >> 7 & 7 }
    }
}

/// Copies registers to `to`, each lane from the lane that `source` names.
///
/// # Safety
/// `from` points to `registers` registers.
#[inline(always)]
unsafe fn permuted(from: *const Vreg, registers: usize, to: &mut [Vreg], source: impl Fn(usize) -> usize) {
    for (i, to) in to.iter_mut().take(registers).enumerate() {
        // SAFETY: by the contract.
        let from = unsafe { &*from.add(i) };
        to.0 = std::array::from_fn(|lane| from.0[source(lane)]);
    }
}

/// Where C comes from: registers, or one value for all elements.
enum Accumulator {
    Registers(*const Vreg),
    Constant(u32, u32),
}

#[inline(always)]
fn accumulator(cx: &Cx<'_>, src: Src) -> Accumulator {
    match src.kind {
        // SAFETY: `translate` checked the operand, so the pointer stays within the wave's registers.
        SrcKind::Vgpr => Accumulator::Registers(unsafe { cx.vgpr.add(src.index.into()) }),
        _ => Accumulator::Constant(src.low, src.high),
    }
}

/// Reads C, `(block * m + row) * m + column`.
///
/// # Safety
/// Registers of `from` hold a whole matrix of this shape.
#[inline(always)]
unsafe fn load_results<T: Copy>(shape: Shape, from: Accumulator, decode: impl Fn(u32) -> T, to: &mut [T]) {
    match from {
        Accumulator::Constant(value, _) => to.fill(decode(value)),
        Accumulator::Registers(from) => {
            for (i, row) in to.chunks_exact_mut(shape.m).enumerate() {
                let (register, lane) = shape.result(i / shape.m, i % shape.m, STRIP);
                // SAFETY: by the contract.
                let lanes = unsafe { &(&(*from.add(register)).0)[lane..][..shape.m] };
                for (value, bits) in row.iter_mut().zip(lanes) {
                    *value = decode(*bits);
                }
            }
        }
    }
}

/// Writes D.
///
/// # Safety
/// As [`load_results`].
#[inline(always)]
unsafe fn store_results<T: Copy>(shape: Shape, from: &[T], encode: impl Fn(T) -> u32, to: *mut Vreg) {
    for (i, row) in from.chunks_exact(shape.m).enumerate() {
        let (register, lane) = shape.result(i / shape.m, i % shape.m, STRIP);
        // SAFETY: by the contract.
        let lanes = unsafe { &mut (&mut (*to.add(register)).0)[lane..][..shape.m] };
        for (bits, value) in lanes.iter_mut().zip(row) {
            *bits = encode(*value);
        }
    }
}

/// Rows in a strip of a 32-bit result.
const STRIP: usize = 4;

#[cfg(test)]
mod tests;
