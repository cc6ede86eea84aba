//! How well the model predicts given text.

use crate::engine::{Engine, EngineError};

/// The summed negative log-likelihood (nats) of tokens 1 and up of a document, and how many those are. Sums are in f64.
///
/// # Errors
/// The engine's.
pub fn negative_log_likelihood(engine: &mut Engine, tokens: &[u32]) -> Result<(f64, usize), EngineError> {
    let Some(predicted) = tokens.len().checked_sub(1).filter(|&n| n > 0) else { return Ok((0.0, 0)) };
    let logits = engine.logits(&tokens[..predicted])?;
    let sum = logits.iter().zip(&tokens[1..]).map(|(row, &token)| surprise(row, token)).sum();
    Ok((sum, predicted))
}

/// -log softmax(logits)[token]
fn surprise(logits: &[f32], token: u32) -> f64 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| f64::from(logit - largest).exp()).sum();
    sum.ln() + f64::from(largest) - logits.get(token as usize).map_or(f64::NEG_INFINITY, |&logit| f64::from(logit))
}

#[cfg(test)]
mod tests {
    use super::surprise;

    #[test]
    fn even_logits_are_worth_the_logarithm_of_their_number() {
        assert!((surprise(&[3.0; 8], 5) - 8f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn a_certain_token_costs_nothing_and_large_logits_do_not_overflow() {
        assert!(surprise(&[1000.0, 0.0], 0) < 1e-12);
        assert!((surprise(&[1000.0, 0.0], 1) - 1000.0).abs() < 1e-9);
    }
}
