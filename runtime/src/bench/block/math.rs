//! FP32 arithmetic of the host, for measurements of blocks alone: plain loops, weights widened row by row, all cores.

use half::bf16;
use model::config::MXFP4_GROUP;

/// Activations, a row a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    pub(super) fn new(columns: usize, values: Vec<f32>) -> Self {
        debug_assert_eq!(values.len() % columns, 0);
        Self { columns, values }
    }

    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        Self { columns, values: vec![0.0; rows * columns] }
    }

    pub(super) fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.columns..(row + 1) * self.columns]
    }

    pub(super) fn each_row(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.columns)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.values.iter_mut().zip(&other.values).for_each(|(sum, value)| *sum += value);
    }

    pub(super) fn scaled(mut self, factor: f32) -> Self {
        self.values.iter_mut().for_each(|value| *value *= factor);
        self
    }

    /// Element by element with another matrix of the same shape.
    pub(super) fn zip(&self, other: &Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let values = self.values.iter().zip(&other.values).map(|(a, b)| f(*a, *b)).collect();
        Self { columns: self.columns, values }
    }

    /// Each row normed and multiplied by `weight`.
    pub(super) fn normed(&self, weight: &[f32], eps: f32) -> Self {
        let mut normed = self.clone();
        normed.values.chunks_exact_mut(self.columns).for_each(|row| rms_norm(row, weight, eps));
        normed
    }

    /// The largest error of a row: L2 of the difference over L2 of this row.
    pub(super) fn worst_row_error(&self, other: &Self) -> f64 {
        let error = |(own, other): (&[f32], &[f32])| {
            let square = |value: f32| f64::from(value) * f64::from(value);
            let difference: f64 = own.iter().zip(other).map(|(a, b)| square(a - b)).sum();
            let size: f64 = own.iter().map(|a| square(*a)).sum();
            (difference / size.max(f64::MIN_POSITIVE)).sqrt()
        };
        // A NaN is larger than anything, and stays.
        let errors = self.each_row().zip(other.each_row()).map(error);
        errors.fold(0.0, |worst: f64, error| if worst.is_nan() || error <= worst { worst } else { error })
    }
}

/// How the elements of a weight are stored.
enum Stored {
    Bf16(Vec<u8>),
    F32(Vec<u8>),
    Mxfp4 { packed: Vec<u8>, scales: Vec<u8> },
}

/// A weight matrix as it is stored, rows packed.
pub(super) struct Weight {
    columns: usize,
    rows: usize,
    stored: Stored,
}

impl Weight {
    pub(super) fn bf16(columns: usize, bytes: Vec<u8>) -> Self {
        Self { columns, rows: bytes.len() / 2 / columns, stored: Stored::Bf16(bytes) }
    }

    pub(super) fn f32(columns: usize, bytes: Vec<u8>) -> Self {
        Self { columns, rows: bytes.len() / 4 / columns, stored: Stored::F32(bytes) }
    }

    pub(super) fn mxfp4(columns: usize, packed: Vec<u8>, scales: Vec<u8>) -> Self {
        Self { columns, rows: packed.len() * 2 / columns, stored: Stored::Mxfp4 { packed, scales } }
    }

    pub(super) fn row(&self, row: usize, into: &mut Vec<f32>) {
        into.clear();
        let range = |elements_in: usize, bytes: usize| {
            let length = self.columns / elements_in * bytes;
            row * length..(row + 1) * length
        };
        match &self.stored {
            Stored::Bf16(bytes) => {
                into.extend(bytes[range(1, 2)].as_chunks().0.iter().map(|value| bf16::from_le_bytes(*value).to_f32()));
            }
            Stored::F32(bytes) => into.extend(bytes[range(1, 4)].as_chunks().0.iter().map(|v| f32::from_le_bytes(*v))),
            Stored::Mxfp4 { packed, scales } => {
                let (packed, scales) = (&packed[range(2, 1)], &scales[range(MXFP4_GROUP, 1)]);
                for (group, scale) in packed.chunks_exact(MXFP4_GROUP / 2).zip(scales) {
                    let scale = (f32::from(*scale) - 127.0).exp2();
                    into.extend(group.iter().flat_map(|byte| [e2m1(byte & 15) * scale, e2m1(byte >> 4) * scale]));
                }
            }
        }
    }

    /// All elements.
    pub(super) fn values(&self) -> Vec<f32> {
        let mut row = Vec::new();
        let mut values = Vec::with_capacity(self.rows * self.columns);
        for index in 0..self.rows {
            self.row(index, &mut row);
            values.extend_from_slice(&row);
        }
        values
    }

    /// `x w'`: a column for each row of the weight.
    pub(super) fn project(&self, x: &Matrix) -> Matrix {
        assert_eq!(self.columns, x.columns(), "a weight takes inputs of its own width");
        let mut out = Matrix::zeros(x.rows(), self.rows);
        let cores = super::super::load::cores();
        let part = self.rows.div_ceil(cores);
        let parts: Vec<Vec<f32>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..cores)
                .map(|core| {
                    let rows = (core * part).min(self.rows)..((core + 1) * part).min(self.rows);
                    scope.spawn(move || self.project_rows(rows, x))
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().expect("the arithmetic does not panic")).collect()
        });
        let by_row = parts.into_iter().flatten();
        let mut by_row = by_row;
        for row in 0..self.rows {
            for token in 0..x.rows() {
                out.values[token * self.rows + row] = by_row.next().unwrap_or(f32::NAN);
            }
        }
        out
    }

    /// For each of the rows, the products with every token.
    fn project_rows(&self, rows: std::ops::Range<usize>, x: &Matrix) -> Vec<f32> {
        let mut weight = Vec::with_capacity(self.columns);
        let mut products = Vec::with_capacity(rows.len() * x.rows());
        for row in rows {
            self.row(row, &mut weight);
            products.extend(x.each_row().map(|token| dot(token, &weight)));
        }
        products
    }
}

/// An element of MXFP4: E2M1.
fn e2m1(nibble: u8) -> f32 {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let magnitude = MAGNITUDES[usize::from(nibble & 7)];
    if nibble & 8 == 0 { magnitude } else { -magnitude }
}

/// Sum of products, in sixteen sums side by side that the compiler keeps in vector registers.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; 16];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f32>() + a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum::<f32>()
}

pub(super) fn rms_norm(row: &mut [f32], weight: &[f32], eps: f32) {
    let factor = (dot(row, row) / row.len() as f32 + eps).sqrt().recip();
    row.iter_mut().zip(weight).for_each(|(value, weight)| *value *= factor * weight);
}

pub(super) fn softmax(values: &mut [f32]) {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter_mut().for_each(|value| *value = (*value - most).exp());
    let sum: f32 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= sum);
}

pub(super) fn sigmoid(value: f32) -> f32 {
    (1.0 + (-value).exp()).recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projection_has_a_column_for_each_row_of_the_weight() {
        let bytes = [1.0f32, 2.0, 3.0, 0.5, -1.0, 4.0].iter().flat_map(|v| bf16::from_f32(*v).to_le_bytes()).collect();
        let weight = Weight::bf16(3, bytes);
        let x = Matrix::new(3, vec![1.0, 1.0, 1.0, 2.0, 0.0, -1.0]);
        assert_eq!(weight.project(&x), Matrix::new(2, vec![6.0, 3.5, -1.0, -3.0]));
    }

    #[test]
    fn mxfp4_has_the_even_element_low_and_a_scale_for_32() {
        let mut packed = vec![0; 32];
        (packed[0], packed[16]) = (0x92, 0x0f);
        let weight = Weight::mxfp4(32, packed, vec![127, 129]);
        assert_eq!(weight.values()[..3], [1.0, -0.5, 0.0]);
        assert_eq!(weight.values()[32..34], [-24.0, 0.0]);
    }

    #[test]
    fn an_error_is_that_of_the_worst_row_and_a_nan_is_no_small_one() {
        let exact = Matrix::new(2, vec![3.0, 4.0, 1.0, 0.0]);
        let near = Matrix::new(2, vec![3.0, 4.5, 1.0, 0.0]);
        assert!((exact.worst_row_error(&near) - 0.1).abs() < 1e-9);
        let broken = Matrix::new(2, vec![3.0, f32::NAN, 1.0, 0.0]);
        assert!(exact.worst_row_error(&broken).is_nan());
    }
}
