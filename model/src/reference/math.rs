//! Small dense arithmetic.

/// Rows of equal length, one behind the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// All zero.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self { columns, values: vec![0.0; rows * columns] }
    }

    /// From values row by row.
    ///
    /// # Panics
    /// If they do not fill whole rows.
    pub fn new(columns: usize, values: Vec<f32>) -> Self {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "values do not fill rows of {columns}");
        Self { columns, values }
    }

    pub(super) fn from_rows<'a>(columns: usize, rows: impl Iterator<Item = &'a [f32]>) -> Self {
        Self::new(columns, rows.flatten().copied().collect())
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Length of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// One row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.columns..(index + 1) * self.columns]
    }

    pub(super) fn row_mut(&mut self, index: usize) -> &mut [f32] {
        &mut self.values[index * self.columns..(index + 1) * self.columns]
    }

    pub(super) fn push_row(&mut self, row: &[f32]) {
        debug_assert_eq!(row.len(), self.columns);
        self.values.extend_from_slice(row);
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    pub(super) fn zip(&self, other: &Self, f: impl Fn(f32, f32) -> f32) -> Self {
        debug_assert_eq!((self.columns, self.values.len()), (other.columns, other.values.len()));
        let values = self.values.iter().zip(&other.values).map(|(a, b)| f(*a, *b)).collect();
        Self { columns: self.columns, values }
    }

    pub(super) fn normed(&self, weight: &[f32], eps: f32) -> Self {
        let mut normed = self.clone();
        normed.values.chunks_exact_mut(self.columns).for_each(|row| rms_norm(row, weight, eps));
        normed
    }
}

/// `|a - b| / |b|` over all values, in the Euclidean norm.
///
/// # Panics
/// If the lengths differ.
pub fn relative_l2(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len(), "lengths differ");
    let square = |x: f32| f64::from(x) * f64::from(x);
    let difference: f64 = a.iter().zip(b).map(|(a, b)| square(a - b)).sum();
    (difference / b.iter().map(|b| square(*b)).sum::<f64>()).sqrt()
}

/// `x` times the transpose of a weight stored as `[outputs][inputs]`. Each weight row is read once for all tokens.
pub(super) fn multiply(x: &Matrix, weight: &[f32]) -> Matrix {
    let outputs = weight.len() / x.columns();
    let mut y = Matrix::zeros(x.rows(), outputs);
    for (output, row) in weight.chunks_exact(x.columns()).enumerate() {
        for token in 0..x.rows() {
            y.values[token * outputs + output] = dot(x.row(token), row);
        }
    }
    y
}

/// Sixteen sums side by side, which a compiler turns into vector instructions.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0f32; 16];
    let (a_chunks, a_rest) = a.as_chunks::<16>();
    let (b_chunks, b_rest) = b.as_chunks::<16>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for i in 0..16 {
            sums[i] += a[i] * b[i];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

pub(super) fn rms_norm(row: &mut [f32], weight: &[f32], eps: f32) {
    let scale = 1.0 / (dot(row, row) / row.len() as f32 + eps).sqrt();
    row.iter_mut().zip(weight).for_each(|(value, weight)| *value *= scale * weight);
}

pub(super) fn l2_norm(row: &mut [f32], eps: f32) {
    let scale = 1.0 / (dot(row, row) + eps).sqrt();
    row.iter_mut().for_each(|value| *value *= scale);
}

pub(super) fn softmax(scores: &mut [f32]) {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.iter_mut().for_each(|score| *score = (*score - highest).exp());
    let sum: f32 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}
