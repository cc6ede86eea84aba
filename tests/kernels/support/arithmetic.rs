//! FP64 arithmetic and comparison.

/// The bits of a BF16 value.
pub(crate) type Bf16 = u16;

/// Rounds to BF16.
pub(crate) fn bf16s(values: &[f32]) -> Vec<Bf16> {
    values.iter().map(|&value| half::bf16::from_f32(value).to_bits()).collect()
}

pub(crate) fn widen(value: Bf16) -> f64 {
    f64::from(half::bf16::from_bits(value).to_f32())
}

pub(crate) fn widened(values: &[Bf16]) -> Vec<f64> {
    values.iter().copied().map(widen).collect()
}

pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub(crate) fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

/// SiTU with the released betas 4 and 25.
pub(crate) fn situ(gate: f64, up: f64) -> f64 {
    4.0 * (gate / 4.0).tanh() * sigmoid(gate) * 25.0 * (up / 25.0).tanh()
}

pub(crate) fn rms_norm(x: &[f64], weight: &[f64], eps: f64) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().zip(weight).map(|(x, w)| x / (mean + eps).sqrt() * w).collect()
}

/// The mix of `sources`, the attention residual: shares by the softmax of normed scores.
pub(crate) fn mix(sources: &[&[f64]], norm: &[f64], proj: &[f64], eps: f64) -> Vec<f64> {
    let scores: Vec<f64> = sources
        .iter()
        .map(|v| {
            let mean = v.iter().map(|v| v * v).sum::<f64>() / v.len() as f64;
            let dot: f64 = v.iter().zip(norm).zip(proj).map(|((v, n), p)| v * n * p).sum();
            dot / (mean + eps).sqrt()
        })
        .collect();
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = scores.iter().map(|score| (score - most).exp()).sum();
    let mut out = vec![0.0; norm.len()];
    for (v, score) in sources.iter().zip(&scores) {
        for (out, v) in out.iter_mut().zip(*v) {
            *out += (score - most).exp() / total * v;
        }
    }
    out
}

/// A row-major matrix.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) width: usize,
    pub(crate) values: Vec<f64>,
}

impl Rows {
    pub(crate) fn new(width: usize, values: Vec<f64>) -> Self {
        assert_eq!(values.len() % width, 0);
        Self { width, values }
    }

    pub(crate) fn of_bf16(width: usize, values: &[Bf16]) -> Self {
        Self::new(width, widened(values))
    }

    pub(crate) fn of_f32(width: usize, values: &[f32]) -> Self {
        Self::new(width, values.iter().copied().map(f64::from).collect())
    }

    pub(crate) fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.width..][..self.width]
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(self.width)
    }

    /// All rows as one.
    pub(crate) fn joined(self) -> Self {
        Self { width: self.values.len(), ..self }
    }

    /// `self weight'`.
    pub(crate) fn times(&self, weight: &Rows) -> Rows {
        let product = |x: &[f64], w: &[f64]| x.iter().zip(w).map(|(x, w)| x * w).sum();
        let values = self.rows().flat_map(|x| weight.rows().map(move |w| product(x, w))).collect();
        Rows::new(weight.values.len() / weight.width, values)
    }
}

/// Compares row by row in L2 and says how far off the worst row is.
pub(crate) fn assert_rows_close(what: &str, found: &Rows, expected: &Rows, tolerance: f64) {
    assert_eq!((found.width, found.values.len()), (expected.width, expected.values.len()), "{what}");
    let mut worst = (0.0, 0);
    for (index, (found, expected)) in found.rows().zip(expected.rows()).enumerate() {
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>();
        let difference = square(&mut found.iter().zip(expected).map(|(f, e)| f - e));
        let error = (difference / square(&mut expected.iter().copied()).max(f64::MIN_POSITIVE)).sqrt();
        if error > worst.0 || error.is_nan() {
            worst = (error, index);
        }
    }
    println!("{what}: row L2 error {:.2e}", worst.0);
    assert!(
        worst.0 <= tolerance,
        "{what}: row {} is off by {:.3e} in L2, {tolerance:.1e} is allowed",
        worst.1,
        worst.0
    );
}
