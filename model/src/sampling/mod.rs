//! From logits to a token.
//!
//! GPU kernels do it; [`greedy`] and [`sample`] say what they compute, bit by bit, and are what tests compare with.

mod draw;
mod logprobs;
mod philox;

pub use draw::{greedy, sample};
pub use logprobs::{LogProb, LogProbs, log_probs};
pub use philox::philox4x32;

/// Why no token can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SamplingError {
    /// A logit is NaN or positive infinity: something before went wrong, and any token would hide it.
    #[error("logit {index} is {value}; the forward pass has failed")]
    Compare {
        /// Token of the first such logit.
        index: usize,
        /// Its value.
        value: f32,
    },
    /// All logits are minus infinity, or there are none.
    #[error("no token has a finite logit")]
    Choose,
    /// A parameter is out of range.
    #[error("{name} is {value}; it must be {range}")]
    Configure {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f32,
        /// What it may be.
        range: &'static str,
    },
}

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingParams {
    /// Divides the logits; 0 takes the most likely token.
    pub temperature: f32,
    /// Candidates kept at most; 0 keeps all.
    pub top_k: u32,
    /// The most likely candidates are kept until their probabilities add up to this; 1 keeps all.
    pub top_p: f32,
    /// Key of the random numbers.
    pub seed: u64,
}

impl Default for SamplingParams {
    /// The most likely token.
    fn default() -> Self {
        Self { temperature: 0.0, top_k: 0, top_p: 1.0, seed: 0 }
    }
}

impl SamplingParams {
    /// Checks the parameters.
    ///
    /// # Errors
    /// One is out of range.
    pub fn check(&self) -> Result<(), SamplingError> {
        let Self { temperature, top_p, .. } = *self;
        if !(temperature.is_finite() && temperature >= 0.0) {
            return Err(SamplingError::Configure {
                name: "temperature",
                value: temperature,
                range: "finite and 0 or more",
            });
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(SamplingError::Configure { name: "top-p", value: top_p, range: "above 0 and at most 1" });
        }
        Ok(())
    }

    /// What multiplies logits to give exponents of 2: log2(e) / temperature; 0 if the most likely token is taken.
    #[must_use]
    pub fn scale(&self) -> f32 {
        if self.temperature == 0.0 {
            return 0.0;
        }
        let scale = std::f64::consts::LOG2_E / f64::from(self.temperature);
        scale.clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)) as f32
    }

    /// top-p in units of 2^-64; 0 keeps all.
    #[must_use]
    pub fn top_p_fraction(&self) -> u64 {
        // Exact: an f32 below 1 has 24 bits, and one below 2^-40 keeps a single candidate in any case.
        if self.top_p < 1.0 { ((f64::from(self.top_p) * 2f64.powi(64)) as u64).max(1) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (temperature, top_p) in
            [(-1.0, 1.0), (f32::NAN, 1.0), (f32::INFINITY, 1.0), (1.0, 0.0), (1.0, 1.1), (1.0, f32::NAN)]
        {
            let params = SamplingParams { temperature, top_p, ..SamplingParams::default() };
            assert!(matches!(params.check(), Err(SamplingError::Configure { .. })), "{temperature} {top_p}");
        }
    }

    #[test]
    fn every_temperature_above_zero_has_a_finite_scale_above_zero() {
        for temperature in [f32::from_bits(1), f32::MIN_POSITIVE, 1.0, f32::MAX] {
            let scale = SamplingParams { temperature, ..SamplingParams::default() }.scale();
            assert!(scale.is_normal() && scale > 0.0, "{temperature}: {scale}");
        }
    }
}
