//! Dense products of single- and double-precision matrices: a chain of fused multiply-adds for each element, in the order
//! of k, which is measured behaviour on CDNA1 to CDNA3 (MMA-Sim, arXiv 2511.10909).

use isa::Matrix;

use super::layout::{self, Shape};
use super::model::{self, MfmaOrder};
use super::{Lanes, accumulator, check_operands, load_results, permuted, store_results, unpack};
use crate::exec::level::{Body, Level};
use crate::exec::translate::{Builder, Unsupported};
use crate::exec::{Cx, Micro};
use crate::wave::{LANES, Vreg};

pub(super) fn translate_single<L: Level>(b: &Builder<'_>, shape: Matrix) -> Result<Micro, Unsupported> {
    let mut micro = match (shape.m, shape.k, shape.blocks) {
        (32, 1, 2) => b.body::<L, Single<32, 1, 2, 64, 2048>>(),
        (16, 1, 4) => b.body::<L, Single<16, 1, 4, 64, 1024>>(),
        (4, 1, 16) => b.body::<L, Single<4, 1, 16, 64, 256>>(),
        (32, 2, 1) => b.body::<L, Single<32, 2, 1, 64, 1024>>(),
        (16, 4, 1) => b.body::<L, Single<16, 4, 1, 64, 256>>(),
        _ => Err(Unsupported::Instruction),
    }?;
    check_operands(&micro)?;
    micro.aux = Lanes::of(&b.inst.mods).pack();
    Ok(micro)
}

pub(super) fn translate_double<L: Level>(b: &Builder<'_>, shape: Matrix) -> Result<Micro, Unsupported> {
    let mut micro = match (shape.m, shape.k, shape.blocks) {
        (16, 4, 1) => b.body::<L, Double<16, 4, 1, 64, 256>>(),
        (4, 4, 4) => b.body::<L, Double<4, 4, 4, 64, 64>>(),
        _ => Err(Unsupported::Instruction),
    }?;
    check_operands(&micro)?;
    // In f64 instructions BLGP negates A, B and C; CBSZ and ABID are ignored (CDNA4 ISA section 7.1.6.4).
    micro.aux = b.inst.mods.blgp.into();
    Ok(micro)
}

/// A number that matrices of its own precision are made of.
trait Number: Copy + Default {
    fn fused(self, b: Self, c: Self) -> Self;
    fn is_nan(self) -> bool;
    /// This NaN with its quiet bit set.
    fn quiet(self) -> Self;
    const NAN: Self;
}

macro_rules! number {
    ($t:ty, $quiet:literal) => {
        impl Number for $t {
            const NAN: Self = <$t>::NAN;
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            fn quiet(self) -> Self {
                Self::from_bits(self.to_bits() | 1 << $quiet)
            }
        }
    };
}
number!(f32, 22);
number!(f64, 51);

/// Replaces each element of `c` by the chain over its products.
#[inline(always)]
fn chains<T: Number>(shape: Shape, a: &[T], b: &[T], c: &mut [T]) {
    let Shape { m, k, blocks } = shape;
    for block in 0..blocks {
        let (a, b) = (&a[block * k * m..][..k * m], &b[block * k * m..][..k * m]);
        for row in 0..m {
            let out = &mut c[(block * m + row) * m..][..m];
            let mut sums = [T::default(); 32];
            sums[..m].copy_from_slice(out);
            for k in 0..k {
                for (sum, b) in sums[..m].iter_mut().zip(&b[k * m..][..m]) {
                    *sum = a[k * m + row].fused(*b, *sum);
                }
            }
            for column in 0..m {
                let sum = sums[column];
                out[column] = if sum.is_nan() { nan(m, (row, column), a, b, out[column]) } else { sum };
            }
        }
    }
}

/// The NaN that a chain gives: the first NaN that it meets, A's before B's before the sum's.
#[cold]
fn nan<T: Number>(m: usize, (row, column): (usize, usize), a: &[T], b: &[T], c: T) -> T {
    let terms = a[row..].iter().step_by(m).zip(b[column..].iter().step_by(m));
    terms.fold(c, |sum, (a, b)| {
        if a.fused(*b, sum).is_nan() {
            [*a, *b, sum].into_iter().find(|value| value.is_nan()).unwrap_or(T::NAN).quiet()
        } else {
            a.fused(*b, sum)
        }
    })
}

struct Single<const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize>;

impl<const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize> Body
    for Single<M, K, BLOCKS, AB, CD>
{
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let shape = Shape { m: M, k: K, blocks: BLOCKS };
        let lanes = Lanes::unpack(m.aux);
        let (mut a, mut b, mut c) = ([0f32; AB], [0f32; AB], [0f32; CD]);
        let mut moved = [[Vreg::default(); 1]; 2];
        // SAFETY: `translate` checked all operands against the wave's registers.
        unsafe {
            permuted(cx.vgpr.add(m.src[0].index.into()), 1, &mut moved[0], |lane| {
                shape.broadcast(lane, lanes.cbsz, lanes.abid)
            });
            permuted(cx.vgpr.add(m.src[1].index.into()), 1, &mut moved[1], |lane| {
                layout::lane_pattern(lane, lanes.blgp)
            });
            unpack::singles(shape, moved[0].as_ptr(), &mut a);
            unpack::singles(shape, moved[1].as_ptr(), &mut b);
            load_results(shape, accumulator(cx, m.src[2]), f32::from_bits, &mut c);
        }
        if !cx.w.mode.keeps_input_denormals_f32() {
            let flush = |value: &mut f32| *value = if value.is_subnormal() { 0f32.copysign(*value) } else { *value };
            a.iter_mut().chain(&mut b).for_each(flush);
        }
        let saturate = cx.w.mode.fp16_overflow();
        if saturate || cx.outside.mfma_order() == MfmaOrder::Pairwise {
            modelled(cx.outside.mfma_order(), saturate, shape, &a, &b, &mut c);
        } else {
            chains(shape, &a, &b, &mut c);
        }
        // SAFETY: as above.
        unsafe { store_results(shape, &c, f32::to_bits, cx.vgpr.add(m.dst.into())) }
    }
}

/// The chain as the model function has it, which also knows the other order and saturation.
#[cold]
#[inline(never)]
fn modelled(order: MfmaOrder, saturate: bool, shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let Shape { m, k, .. } = shape;
    let order = if order == MfmaOrder::Pairwise { order } else { MfmaOrder::Sequential };
    for (i, c) in c.iter_mut().enumerate() {
        let (block, row, column) = (i / (m * m), i / m % m, i % m);
        let at = |k: usize| (block * shape.k + k) * m;
        let terms = (0..k).map(|k| (a[at(k) + row].into(), b[at(k) + column].into()));
        *c = model::accumulate(order, terms, *c, false, saturate);
    }
}

struct Double<const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize>;

impl<const M: usize, const K: usize, const BLOCKS: usize, const AB: usize, const CD: usize> Body
    for Double<M, K, BLOCKS, AB, CD>
{
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let shape = Shape { m: M, k: K, blocks: BLOCKS };
        let sign = |i: u32| u64::from(m.aux >> i & 1) << 63;
        let double = |low: u32, high: u32, sign: u64| f64::from_bits((u64::from(high) << 32 | u64::from(low)) ^ sign);
        let (mut a, mut b, mut c) = ([0f64; AB], [0f64; AB], [0f64; CD]);
        // SAFETY: `translate` checked all operands, register pairs, against the wave's registers.
        unsafe {
            for (i, to) in [&mut a, &mut b].into_iter().enumerate() {
                let from = cx.vgpr.add(m.src[i].index.into());
                // One element a lane, in the order of the lanes.
                for lane in 0..LANES {
                    to[shape.unpacked(lane / M, 0, false) + lane % M] =
                        double((*from).0[lane], (*from.add(1)).0[lane], sign(i as u32));
                }
            }
            for (i, c) in c.iter_mut().enumerate() {
                let (register, lane) = shape.result(i / (M * M), i / M % M, 1);
                *c = match accumulator(cx, m.src[2]) {
                    super::Accumulator::Constant(low, high) => double(low, high, sign(2)),
                    super::Accumulator::Registers(from) => {
                        let [low, high] = [0, 1].map(|half| (*from.add(2 * register + half)).0[lane + i % M]);
                        double(low, high, sign(2))
                    }
                };
            }
            chains(shape, &a, &b, &mut c);
            let to = cx.vgpr.add(m.dst.into());
            for (i, c) in c.iter().enumerate() {
                let (register, lane) = shape.result(i / (M * M), i / M % M, 1);
                (*to.add(2 * register)).0[lane + i % M] = c.to_bits() as u32;
                (*to.add(2 * register + 1)).0[lane + i % M] = (c.to_bits() >> 32) as u32;
            }
        }
    }
}
