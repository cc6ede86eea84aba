//! How likely the model holds a token for.

use super::draw::by_rank;

/// A token and the logarithm of its probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogProb {
    /// The token.
    pub token: u32,
    /// ln softmax(logits) there.
    pub log_prob: f64,
}

/// The log probabilities at one place of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct LogProbs {
    /// Of the token that was chosen.
    pub chosen: LogProb,
    /// Of the most likely ones, best first, equals by rising token.
    pub most_likely: Vec<LogProb>,
}

/// The log probabilities of `token` and of the `count` most likely ones. They are the model's own: of no temperature, and of
/// all tokens.
#[must_use]
pub fn log_probs(logits: &[f32], token: u32, count: usize) -> LogProbs {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&logit| (f64::from(logit) - f64::from(highest)).exp()).sum();
    let normalizer = f64::from(highest) + sum.ln();
    let of = |token: u32| LogProb { token, log_prob: f64::from(logits[token as usize]) - normalizer };
    let mut tokens: Vec<u32> = (0..logits.len() as u32).collect();
    let count = count.min(tokens.len());
    if count < tokens.len() {
        tokens.select_nth_unstable_by(count, |a, b| by_rank(logits, *a, *b));
    }
    tokens.truncate(count);
    tokens.sort_unstable_by(|a, b| by_rank(logits, *a, *b));
    LogProbs { chosen: of(token), most_likely: tokens.into_iter().map(of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_all_tokens_add_up_to_one_whatever_the_logits_size() {
        let LogProbs { chosen, most_likely: all } = log_probs(&[1000.0, 999.0, 1001.0, f32::NEG_INFINITY, 999.0], 1, 9);
        assert_eq!(all.iter().map(|entry| entry.token).collect::<Vec<_>>(), [2, 0, 1, 4, 3]);
        assert!((all.iter().map(|entry| entry.log_prob.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(chosen, all[2]);
        assert_eq!(all[4].log_prob, f64::NEG_INFINITY);
    }

    #[test]
    fn the_most_likely_come_first_and_no_more_than_asked_for() {
        let even = log_probs(&[0.5; 8], 7, 2);
        assert_eq!(even.most_likely.iter().map(|entry| entry.token).collect::<Vec<_>>(), [0, 1]);
        assert!((even.chosen.log_prob + 8f64.ln()).abs() < 1e-12);
        assert!(log_probs(&[0.5; 8], 7, 0).most_likely.is_empty());
    }
}
