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
        if m == 4 {
            product.tile::<4, 4>((0, 0), |k| k, spans, c);
        } else {
            for row in (0..m).step_by(ROWS) {
                for column in (0..m).step_by(COLUMNS) {
                    product.tile::<ROWS, COLUMNS>((row, column), |k| k, spans, c);
                }
            }
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
                product.tile::<1, { 2 * COLUMNS }>((row, column), select, spans, c);
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
    /// One tile of the result, from `(row, column)` on. Element `k` of A's rows is multiplied by row `select(k)` of B.
    ///
    /// Each product is exact in double precision, so only the sums of a chain of fused multiply-adds may err. They don't if all
    /// terms are multiples of a unit so large that no sum has more than 53 bits. Else each errs by at most half a unit in its
    /// last place, and where the result less all these errors and the result plus them round to the same single, so does the
    /// exact sum. The few others are summed exactly.
    #[inline(always)]
    fn tile<const R: usize, const C: usize>(
        &self,
        (row, column): (usize, usize),
        select: impl Fn(usize) -> usize + Copy,
        [a_spans, b_spans]: [&Spans; 2],
        c: &mut [f32],
    ) {
        let Self { model, m, a, b } = *self;
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
        // A number below 2^(e + 1) has its last bit at 2^(e - mantissa bits) or above; a product of two such is below 2^(e + 2).
        let product_unit = 2f64.powi(-(model.mantissa_bits as i32 + 2));
        let single_unit = 2f64.powi(-24);
        let half_place = 2f64.powi(-53);
        for (r, sums) in sums.iter().enumerate() {
            let out = &mut c[at(r)..][..C];
            let (a_max, a_min) = (k as f64 * a_spans.largest[row + r], product_unit * a_spans.least[row + r]);
            let mut rounded = [0f32; C];
            let mut certain = [0u32; C];
            for j in 0..C {
                let c = f64::from(out[j]).abs();
                // What no partial sum exceeds, and what all terms are multiples of.
                let bound = a_max * b_spans.largest[column + j] + c;
                let unit = a_min * b_spans.least[column + j];
                let unit = if c != 0.0 && c * single_unit < unit { c * single_unit } else { unit };
                let place = bound * half_place;
                // One rounding each for k sums, and two for this computation itself.
                let error = if place < unit { 0.0 } else { (k as f64 + 2.0) * place };
                let (low, high) = ((sums[j] - error) as f32, (sums[j] + error) as f32);
                rounded[j] = sums[j] as f32;
                let same = u32::from(low.to_bits() == high.to_bits()) | u32::from(error == 0.0);
                certain[j] = same & u32::from(rounded[j].to_bits() & 0x7fff_ffff < 0x7f80_0000);
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
