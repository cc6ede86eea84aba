//! Dense products of signed bytes, accumulated in 32 bits.

use isa::Matrix;

use super::layout::{self, Shape};
use super::{Lanes, accumulator, check_operands, load_results, permuted, store_results, unpack};
use crate::exec::level::{Body, Level};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro};
use crate::wave::Vreg;

pub(super) fn translate<L: Level>(b: &Builder<'_>, shape: Matrix) -> Result<Micro, Unsupported> {
    let mut micro = match (shape.m, shape.k, shape.blocks) {
        (32, 4, 2) => b.body::<L, Bytes<32, 4, 2, 256, 2048>>(),
        (16, 4, 4) => b.body::<L, Bytes<16, 4, 4, 256, 1024>>(),
        (4, 4, 16) => b.body::<L, Bytes<4, 4, 16, 256, 256>>(),
        (32, 16, 1) => b.body::<L, Bytes<32, 16, 1, 512, 1024>>(),
        (16, 32, 1) => b.body::<L, Bytes<16, 32, 1, 512, 256>>(),
        (16, 64, 1) => b.body::<L, Bytes<16, 64, 1, 1024, 256>>(),
        (32, 32, 1) => b.body::<L, Bytes<32, 32, 1, 1024, 1024>>(),
        _ => Err(Unsupported::Instruction),
    }?;
    check_operands(&micro)?;
    micro.aux = Lanes::of(&b.inst.mods).pack();
    Ok(micro)
}

struct Bytes<const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize>;

impl<const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize> Body
    for Bytes<M, K, BLOCKS, AB, CD>
{
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let shape = Shape { m: M, k: K, blocks: BLOCKS };
        let lanes = Lanes::unpack(m.aux);
        let (mut a, mut b, mut c) = ([0i32; AB], [0i32; AB], [0i32; CD]);
        let mut moved = [[Vreg::default(); 4]; 2];
        let registers = shape.items().div_ceil(4);
        // SAFETY: `translate` checked all operands against the wave's registers.
        unsafe {
            let mut from = [cx.vgpr.add(m.src[0].index.into()).cast_const(), cx.vgpr.add(m.src[1].index.into())];
            if lanes != Lanes::default() {
                permuted(from[0], registers, &mut moved[0], |lane| shape.broadcast(lane, lanes.cbsz, lanes.abid));
                permuted(from[1], registers, &mut moved[1], |lane| layout::lane_pattern(lane, lanes.blgp));
                from = [moved[0].as_ptr(), moved[1].as_ptr()];
            }
            unpack::bytes(shape, from[0], &mut a);
            unpack::bytes(shape, from[1], &mut b);
            load_results(shape, accumulator(cx, m.src[2]), |bits| bits as i32, &mut c);
        }
        // Sums wrap, or with MODE.FP16_OVFL are clamped at the end.
        let saturate = cx.w.mode.fp16_overflow();
        for (i, out) in c.chunks_exact_mut(M).enumerate() {
            let (block, row) = (i / M, i % M);
            let row_of = |k: usize| (block * K + k) * M;
            let mut sums = [0i32; M];
            for k in 0..K {
                let a = a[row_of(k) + row];
                for (sum, b) in sums.iter_mut().zip(&b[row_of(k)..][..M]) {
                    *sum += a * b;
                }
            }
            // The products of 64 bytes can't overflow 32 bits, adding C can.
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = if saturate { out.saturating_add(sum) } else { out.wrapping_add(sum) };
            }
        }
        // SAFETY: as above.
        unsafe { store_results(shape, &c, |value| value as u32, cx.vgpr.add(m.dst.into())) }
    }
}
