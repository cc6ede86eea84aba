//! SMFMAC: A has two of every four neighbouring k; an index register says which.
//!
//! The k of A's elements and their indices run through the lanes without a break; B of eight registers lies as two halves.
//! The ISA's tables (sections 7.5.1.1 to 7.5.1.3) give B's layout and the place of each index; A's layout in the shapes new
//! in gfx950 is the ordinary one of a matrix with half the k, which AMD's emulator (rocm-systems, rocjitsu) has too.

use isa::Matrix;

use super::kernel::{self, Model};
use super::layout::Shape;
use super::low_precision::element;
use super::unpack::{self, Element};
use super::{Accumulator, check_operands, load_results, store_results};
use crate::exec::level::{Body, Level};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro, SrcKind};
use crate::wave::{LANES, Vreg};

pub(super) fn translate<L: Level>(b: &Builder<'_>, shape: Matrix) -> Result<Micro, Unsupported> {
    let micro = match (shape.m, shape.k) {
        (16, 32) => b.body::<L, Floats<16, 32, 256, 512, 256>>(),
        (32, 16) => b.body::<L, Floats<32, 16, 256, 512, 1024>>(),
        (16, 64) => b.body::<L, Floats<16, 64, 512, 1024, 256>>(),
        (32, 32) => b.body::<L, Floats<32, 32, 512, 1024, 1024>>(),
        (16, 128) => b.body::<L, Floats<16, 128, 1024, 2048, 256>>(),
        (32, 64) => b.body::<L, Floats<32, 64, 1024, 2048, 1024>>(),
        _ => Err(Unsupported::Instruction),
    }?;
    let elements = [0, 1].map(|i| element(b.info.src[i].ty.kind, 0));
    let [Some(a), Some(b_element)] = elements else { return Err(Unsupported::Instruction) };
    with_index(b, micro, shape, a as u32 | (b_element as u32) << 3)
}

pub(super) fn translate_integer<L: Level>(b: &Builder<'_>, shape: Matrix) -> Result<Micro, Unsupported> {
    let micro = match (shape.m, shape.k) {
        (16, 64) => b.body::<L, Bytes<16, 64, 512, 1024, 256>>(),
        (32, 32) => b.body::<L, Bytes<32, 32, 512, 1024, 1024>>(),
        (16, 128) => b.body::<L, Bytes<16, 128, 1024, 2048, 256>>(),
        (32, 64) => b.body::<L, Bytes<32, 64, 1024, 2048, 1024>>(),
        _ => Err(Unsupported::Instruction),
    }?;
    with_index(b, micro, shape, 0)
}

/// Adds the first bit of the indices in their register: with CBSZ 0, ABID names one of as many sets as the register holds.
fn with_index(b: &Builder<'_>, mut micro: Micro, shape: Matrix, elements: u32) -> Result<Micro, Unsupported> {
    check_operands(&micro)?;
    if micro.src[2].kind != SrcKind::Vgpr {
        return Err(Unsupported::Instruction);
    }
    let bits = 2 * compressed(shape.m.into(), shape.k.into()).items() as u32;
    let mods = &b.inst.mods;
    let set = if mods.cbsz & 3 == 0 { u32::from(mods.abid) % (32 / bits) } else { 0 };
    micro.aux = elements | (set * bits) << 6;
    Ok(micro)
}

/// The shape of A as it is stored.
#[inline(always)]
const fn compressed(m: usize, k: usize) -> Shape {
    Shape { m, k: k / 2, blocks: 1 }
}

/// The k of each element of A, `element * m + row`.
///
/// # Safety
/// `index` points to the index register.
#[inline(always)]
unsafe fn positions(shape: Shape, index: *const Vreg, first_bit: u32, to: &mut [u8]) {
    // SAFETY: by the contract.
    let index = unsafe { &(*index).0 };
    for lane in 0..LANES {
        for item in 0..shape.items() {
            let at = shape.unpacked(lane / shape.m, item, false);
            let element = at / shape.m;
            to[at + lane % shape.m] =
                (element / 2 * 4) as u8 + (index[lane] >> (first_bit + 2 * item as u32) & 3) as u8;
        }
    }
}

/// `D += A * B` for a K by M matrix B, with `A` elements stored of A, `B` of B and `D` results.
struct Floats<const M: usize, const K: usize, const A: usize, const B: usize, const D: usize>;

impl<const M: usize, const K: usize, const A: usize, const B: usize, const D: usize> Body for Floats<M, K, A, B, D> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let (stored, shape) = (compressed(M, K), Shape { m: M, k: K, blocks: 1 });
        let elements = (Element::from_code(m.aux & 7), Element::from_code(m.aux >> 3 & 7));
        let (Some(a_element), Some(b_element)) = elements else { return };
        let (mut a, mut b, mut d) = ([0f64; A], [0f64; B], [0f32; D]);
        let mut selected = [0u8; A];
        // SAFETY: `translate` checked all operands against the wave's registers.
        unsafe {
            let register = |index: u16| cx.vgpr.add(index.into());
            unpack::floats(a_element, stored, register(m.src[0].index), None, &mut a);
            unpack::floats(b_element, shape, register(m.src[1].index), None, &mut b);
            positions(stored, register(m.src[2].index), m.aux >> 6, &mut selected);
            load_results(shape, Accumulator::Registers(register(m.dst)), f32::from_bits, &mut d);
        }
        let model = Model {
            order: cx.outside.mfma_order(),
            narrow: a_element.is_narrow(),
            mantissa_bits: a_element.mantissa_bits() + b_element.mantissa_bits(),
            saturate: cx.w.mode.fp16_overflow(),
        };
        kernel::multiply_sparse(model, M, &a, &selected, &b, &mut d);
        // SAFETY: as above.
        unsafe { store_results(shape, &d, f32::to_bits, cx.vgpr.add(m.dst.into())) }
    }
}

struct Bytes<const M: usize, const K: usize, const A: usize, const B: usize, const D: usize>;

impl<const M: usize, const K: usize, const A: usize, const B: usize, const D: usize> Body for Bytes<M, K, A, B, D> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let (stored, shape) = (compressed(M, K), Shape { m: M, k: K, blocks: 1 });
        let (mut a, mut b, mut d) = ([0i32; A], [0i32; B], [0i32; D]);
        let mut selected = [0u8; A];
        // SAFETY: `translate` checked all operands against the wave's registers.
        unsafe {
            let register = |index: u16| cx.vgpr.add(index.into());
            unpack::bytes(stored, register(m.src[0].index), &mut a);
            unpack::bytes(shape, register(m.src[1].index), &mut b);
            positions(stored, register(m.src[2].index), m.aux >> 6, &mut selected);
            load_results(shape, Accumulator::Registers(register(m.dst)), |bits| bits as i32, &mut d);
        }
        let saturate = cx.w.mode.fp16_overflow();
        for (row, out) in d.chunks_exact_mut(M).enumerate() {
            let mut sums = [0i32; M];
            for k in 0..K / 2 {
                let a = a[k * M + row];
                for (sum, b) in sums.iter_mut().zip(&b[usize::from(selected[k * M + row]) * M..][..M]) {
                    *sum += a * b;
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = if saturate { out.saturating_add(sum) } else { out.wrapping_add(sum) };
            }
        }
        // SAFETY: as above.
        unsafe { store_results(shape, &d, |value| value as u32, cx.vgpr.add(m.dst.into())) }
    }
}
