//! Dense products of 16-bit and narrower floating-point matrices, block-scaled ones included.

use std::marker::PhantomData;

use isa::{Kind, Matrix, Operand};

use super::kernel::{self, Model};
use super::layout::Shape;
use super::unpack::{self, Element};
use super::{Lanes, accumulator, check_operands, load_results, permuted, store_results};
use crate::exec::level::{Body, Level};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro};
use crate::wave::{LANES, Vreg};

pub(super) fn translate<L: Level>(b: &Builder<'_>, shape: Matrix) -> Result<Micro, Unsupported> {
    let mut micro = match (shape.m, shape.k, shape.blocks) {
        (32, 4, 2) => b.body::<L, Dense<L, 32, 4, 2, 256, 2048>>(),
        (16, 4, 4) => b.body::<L, Dense<L, 16, 4, 4, 256, 1024>>(),
        (4, 4, 16) => b.body::<L, Dense<L, 4, 4, 16, 256, 256>>(),
        (32, 8, 1) => b.body::<L, Dense<L, 32, 8, 1, 256, 1024>>(),
        (16, 16, 1) => b.body::<L, Dense<L, 16, 16, 1, 256, 256>>(),
        (16, 32, 1) => b.body::<L, Dense<L, 16, 32, 1, 512, 256>>(),
        (32, 16, 1) => b.body::<L, Dense<L, 32, 16, 1, 512, 1024>>(),
        (16, 128, 1) => b.body::<L, Dense<L, 16, 128, 1, 2048, 256>>(),
        (32, 64, 1) => b.body::<L, Dense<L, 32, 64, 1, 2048, 1024>>(),
        _ => Err(Unsupported::Instruction),
    }?;
    check_operands(&micro)?;
    let mods = &b.inst.mods;
    let formats = [(0, mods.cbsz), (1, mods.blgp)].map(|(i, code)| element(b.info.src[i].ty.kind, code));
    let [Some(a), Some(b_format)] = formats else { return Err(Unsupported::Instruction) };
    let is_f8f6f4 = b.info.src[0].ty.kind == Kind::F8F6F4;
    let lanes = if is_f8f6f4 { Lanes::default() } else { Lanes::of(mods) };
    let scaled = b.inst.src[3] != Operand::None;
    micro.aux = a as u32 | (b_format as u32) << 3 | lanes.pack() << 6 | u32::from(scaled) << 16;
    if scaled {
        micro.imm = scale_source(b, 3)? as i32;
        micro.target = scale_source(b, 4)?;
    }
    Ok(micro)
}

pub(super) fn element(kind: Kind, code: u8) -> Option<Element> {
    Some(match kind {
        Kind::F8F6F4 if code < 5 => return Element::from_code(code.into()),
        Kind::Fp8 => Element::Fp8,
        Kind::Bf8 => Element::Bf8,
        Kind::Float => Element::F16,
        Kind::Bfloat => Element::Bf16,
        _ => return None,
    })
}

/// Bit of a packed scale source that says it is a constant.
const CONSTANT: u32 = 1 << 31;

/// Where scales come from: `CONSTANT` and an E8M0 code, or a vector register and, from bit 16 on, the byte of it.
fn scale_source(b: &Builder<'_>, source: usize) -> Result<u32, Unsupported> {
    let mods = &b.inst.mods;
    let bit = |bits: u8| u32::from(bits >> (source - 3) & 1);
    let byte = bit(mods.op_sel) | bit(mods.op_sel_hi) << 1;
    match b.inst.src[source] {
        operand @ (Operand::Vgpr { .. } | Operand::Acc { .. }) => Ok(u32::from(b.register(operand)?) | byte << 16),
        // Of an inline float the exponent counts (CDNA4 ISA section 7.2.1).
        Operand::Float(value) => Ok(CONSTANT | value.f32_bits() >> 23 & 0xff),
        Operand::Int(value) => Ok(CONSTANT | i32::from(value) as u32 >> (8 * byte) & 0xff),
        _ => Err(Unsupported::Instruction),
    }
}

/// The scales of the 64 blocks of an operand as factors, in lane order: lane `k / 32 * m + row`.
///
/// # Safety
/// `source` is what `scale_source` made for this wave.
#[inline(always)]
unsafe fn scales(cx: &Cx<'_>, source: u32) -> [f64; LANES] {
    let factor = |code: u32| {
        let code = code & 0xff;
        // The bits of 2^(code - 127); code 255 is NaN.
        let bits = u64::from(code + 1023 - 127) << 52;
        f64::from_bits(if code == 255 { 0x7ff8 << 48 } else { bits })
    };
    if source & CONSTANT != 0 {
        return [factor(source); LANES];
    }
    // SAFETY: a register of this wave, by the contract.
    let register = unsafe { &(*cx.vgpr.add((source & 0xffff) as usize)).0 };
    std::array::from_fn(|lane| factor(register[lane] >> (8 * (source >> 16))))
}

/// `D = C + A * B` with `AB` elements in each operand and `CD` in the result.
struct Dense<L, const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize>(PhantomData<L>);

impl<L: Level, const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize> Body
    for Dense<L, M, K, BLOCKS, AB, CD>
{
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let shape = Shape { m: M, k: K, blocks: BLOCKS };
        let elements = (Element::from_code(m.aux & 7), Element::from_code(m.aux >> 3 & 7));
        let (Some(a_element), Some(b_element)) = elements else { return };
        let lanes = Lanes::unpack(m.aux >> 6);
        let (mut a, mut b, mut c) = ([0f64; AB], [0f64; AB], [0f32; CD]);
        // SAFETY: `translate` checked all operands against the wave's registers.
        unsafe {
            let mut from = [cx.vgpr.add(m.src[0].index.into()).cast_const(), cx.vgpr.add(m.src[1].index.into())];
            let mut moved = [[Vreg::default(); 4]; 2];
            if lanes != Lanes::default() {
                let registers = shape.items().div_ceil(2);
                permuted(from[0], registers, &mut moved[0], |lane| shape.broadcast(lane, lanes.cbsz, lanes.abid));
                permuted(from[1], registers, &mut moved[1], |lane| super::layout::lane_pattern(lane, lanes.blgp));
                from = [moved[0].as_ptr(), moved[1].as_ptr()];
            }
            let scales =
                if m.aux >> 16 & 1 == 1 { Some([scales(cx, m.imm as u32), scales(cx, m.target)]) } else { None };
            let [a_scales, b_scales] = scales.as_ref().map_or([None, None], |[a, b]| [Some(a), Some(b)]);
            unpack::floats(a_element, shape, from[0], a_scales, &mut a);
            unpack::floats(b_element, shape, from[1], b_scales, &mut b);
            load_results(shape, accumulator(cx, m.src[2]), f32::from_bits, &mut c);
        }
        let model = Model {
            order: cx.outside.mfma_order(),
            narrow: a_element.is_narrow() && b_element.is_narrow(),
            mantissa_bits: a_element.mantissa_bits() + b_element.mantissa_bits(),
            saturate: cx.w.mode.fp16_overflow(),
        };
        if L::REGISTERS >= 32 {
            kernel::multiply::<8>(model, shape, &a, &b, &mut c);
        } else {
            kernel::multiply::<4>(model, shape, &a, &b, &mut c);
        }
        // SAFETY: as above.
        unsafe { store_results(shape, &c, f32::to_bits, cx.vgpr.add(m.dst.into())) }
    }
}
