//! Matrix products with the exact model, in double precision, proven element by element to round correctly.

use super::layout::Shape;
use super::model::{self, MfmaOrder};

/// What the model function needs besides the numbers.
#[derive(Clone, Copy)]
pub(super) struct Model {
    pub(super) order: MfmaOrder,
    /// Both inputs have 8 bits or fewer.
    pub(super) narrow: bool,
    /// Mantissa bits of both inputs together.
    pub(super) mantissa_bits: u32,
    /// Overflow gives the largest number (MODE.FP16_OVFL).
    pub(super) saturate: bool,
}

/// Half a unit in the last place of one, in double precision.
const HALF_PLACE: f64 = f64::EPSILON / 2.0;
/// The last bit of a single in units of the number.
const SINGLE_UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// Columns of a tile: one AVX-512 register of doubles, two AVX2 registers.
const COLUMNS: usize = 8;

/// One block: `a` and `b` as rows of `m` for each k.
#[derive(Clone, Copy)]
struct Product<'a> {
    model: Model,
    m: usize,
    a: &'a [f64],
    b: &'a [f64],
}

/// Replaces each element of `c`, `(block * m + row) * m + column`, by itself plus the product of A and B, unpacked as
/// [`Shape`] says. Tiles have `ROWS` rows.
#[inline(always)]
pub(super) fn multiply<const ROWS: usize>(model: Model, shape: Shape, a: &[f64], b: &[f64], c: &mut [f32]) {
    let Shape { m, k, .. } = shape;
    let blocks = a.chunks_exact(k * m).zip(b.chunks_exact(k * m)).zip(c.chunks_exact_mut(m * m));
    for ((a, b), c) in blocks {
        let product = Product { model, m, a, b };
        if model.order != MfmaOrder::Exact {
            product.resolve_all(c);
            continue;
        }
        let spans = [&Spans::of(m, a), &Spans::of(m, b)];
        if product.is_exact(spans, c) {
            product.tiles::<ROWS, true>(spans, c);
        } else {
            product.tiles::<ROWS, false>(spans, c);
        }
    }
}

/// As [`multiply`], with one block and an A of which only `a.len() / m` elements of each row are there: element `k` of row
/// `row` belongs to row `selected[k * m + row]` of `b`.
#[inline(always)]
pub(super) fn multiply_sparse(model: Model, m: usize, a: &[f64], selected: &[u8], b: &[f64], c: &mut [f32]) {
    let product = Product { model, m, a, b };
    let spans = [&Spans::of(m, a), &Spans::of(m, b)];
    for row in 0..m {
        let select = |k: usize| usize::from(selected[k * m + row]);
        if model.order == MfmaOrder::Exact {
            for column in (0..m).step_by(2 * COLUMNS) {
                product.tile::<1, { 2 * COLUMNS }, false>((row, column), select, spans, c);
            }
        } else {
            for (column, c) in c[row * m..][..m].iter_mut().enumerate() {
                *c = product.resolve((row, column), select, *c);
            }
        }
    }
}

/// The largest magnitude of each row over all k, and the least other than zero (infinite if all are zero).
struct Spans {
    largest: [f64; 32],
    least: [f64; 32],
}

impl Spans {
    #[inline(always)]
    fn of(m: usize, rows: &[f64]) -> Self {
        let mut spans = Self { largest: [0.0; 32], least: [f64::INFINITY; 32] };
        for row in rows.chunks_exact(m) {
            for (i, value) in row.iter().enumerate() {
                let value = value.abs();
                let nonzero = if value == 0.0 { f64::INFINITY } else { value };
                spans.largest[i] = if value > spans.largest[i] { value } else { spans.largest[i] };
                spans.least[i] = if nonzero < spans.least[i] { nonzero } else { spans.least[i] };
            }
        }
        spans
    }
}

impl Product<'_> {
    /// Whether no sum of any element needs more than 53 bits.
    ///
    /// A number below 2^(e + 1) has its last bit at 2^(e - mantissa bits) or above, and a product of two such is below
    /// 2^(e + 2).
    #[inline(always)]
    fn is_exact(&self, [a, b]: [&Spans; 2], c: &[f32]) -> bool {
        // Magnitudes are compared as integers, which unlike floats may be compared in any order, so that loops vectorise.
        let (mut c_max, mut c_min) = (0, u32::MAX);
        for c in c {
            let magnitude = c.to_bits() & 0x7fff_ffff;
            c_max = c_max.max(magnitude);
            // Zero, less one, is the largest of all.
            c_min = c_min.min(magnitude.wrapping_sub(1));
        }
        let (c_max, c_min) = (f32::from_bits(c_max), f32::from_bits(c_min.saturating_add(1).min(0x7f80_0000)));
        let bits = |values: &[f64; 32]| values.map(f64::to_bits);
        let largest = |values: &[f64; 32]| f64::from_bits(bits(values).into_iter().fold(0, u64::max));
        let least = |values: &[f64; 32]| f64::from_bits(bits(values).into_iter().fold(u64::MAX, u64::min));
        let k = self.a.len() / self.m;
        let bound = k as f64 * largest(&a.largest) * largest(&b.largest) + f64::from(c_max);
        let unit = self.product_unit() * least(&a.least) * least(&b.least);
        bound * HALF_PLACE < unit.min(SINGLE_UNIT * f64::from(c_min))
    }

    /// The last bit of a product in units of the product.
    #[inline(always)]
    fn product_unit(&self) -> f64 {
        f64::from_bits((1023 - u64::from(self.model.mantissa_bits) - 2) << 52)
    }

    #[inline(always)]
    fn tiles<const ROWS: usize, const EXACT: bool>(&self, spans: [&Spans; 2], c: &mut [f32]) {
        if self.m == 4 {
            return self.tile::<4, 4, EXACT>((0, 0), |k| k, spans, c);
        }
        for row in (0..self.m).step_by(ROWS) {
            for column in (0..self.m).step_by(COLUMNS) {
                self.tile::<ROWS, COLUMNS, EXACT>((row, column), |k| k, spans, c);
            }
        }
    }

    /// One tile of the result, from `(row, column)` on. Element `k` of A's rows is multiplied by row `select(k)` of B.
    ///
    /// Each product is exact in double precision, so only the sums of a chain of fused multiply-adds may err. They don't if all
    /// terms are multiples of a unit so large that no sum has more than 53 bits. Else each errs by at most half a unit in its
    /// last place, and where the result less all these errors and the result plus them round to the same single, so does the
    /// exact sum. The few others are summed exactly.
    #[inline(always)]
    fn tile<const R: usize, const C: usize, const EXACT: bool>(
        &self,
        (row, column): (usize, usize),
        select: impl Fn(usize) -> usize + Copy,
        [a_spans, b_spans]: [&Spans; 2],
        c: &mut [f32],
    ) {
        let Self { m, a, b, .. } = *self;
        let k = a.len() / m;
        let at = |r: usize| (row + r) * m + column;
        let mut sums = [[0f64; C]; R];
        for (r, sums) in sums.iter_mut().enumerate() {
            for (sum, c) in sums.iter_mut().zip(&c[at(r)..][..C]) {
                *sum = f64::from(*c);
            }
        }
        for k in 0..k {
            let a_row = &a[k * m + row..][..R];
            let b_row = &b[select(k) * m + column..][..C];
            for r in 0..R {
                for j in 0..C {
                    sums[r][j] = a_row[r].mul_add(b_row[j], sums[r][j]);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            let out = &mut c[at(r)..][..C];
            let (a_max, a_min) = (k as f64 * a_spans.largest[row + r], self.product_unit() * a_spans.least[row + r]);
            let mut rounded = [0f32; C];
            let mut certain = [0u32; C];
            for j in 0..C {
                rounded[j] = sums[j] as f32;
                certain[j] = u32::from(rounded[j].to_bits() & 0x7fff_ffff < 0x7f80_0000);
                if !EXACT {
                    let c = f64::from(out[j]).abs();
                    // What no partial sum exceeds, and what all terms are multiples of.
                    let bound = a_max * b_spans.largest[column + j] + c;
                    let unit = a_min * b_spans.least[column + j];
                    let unit = if c != 0.0 && c * SINGLE_UNIT < unit { c * SINGLE_UNIT } else { unit };
                    let place = bound * HALF_PLACE;
                    // One rounding each for k sums, and two for this computation itself.
                    let error = if place < unit { 0.0 } else { (k as f64 + 2.0) * place };
                    let (low, high) = ((sums[j] - error) as f32, (sums[j] + error) as f32);
                    certain[j] &= u32::from(low.to_bits() == high.to_bits()) | u32::from(error == 0.0);
                }
            }
            if certain.iter().fold(1, |all, certain| all & certain) == 1 {
                out.copy_from_slice(&rounded);
            } else {
                for j in 0..C {
                    if certain[j] == 1 {
                        out[j] = rounded[j];
                    } else {
                        out[j] = self.resolve((row + r, column + j), select, out[j]);
                    }
                }
            }
        }
    }

    /// One element by the model function itself.
    #[cold]
    #[inline(never)]
    fn resolve(&self, (row, column): (usize, usize), select: impl Fn(usize) -> usize + Copy, c: f32) -> f32 {
        let Self { model, m, a, b } = *self;
        let terms = (0..a.len() / m).map(|k| (a[k * m + row], b[select(k) * m + column]));
        model::accumulate(model.order, terms, c, model.narrow, model.saturate)
    }

    #[cold]
    #[inline(never)]
    fn resolve_all(&self, c: &mut [f32]) {
        for (i, c) in c.iter_mut().enumerate() {
            *c = self.resolve((i / self.m, i % self.m), |k| k, *c);
        }
    }
}
