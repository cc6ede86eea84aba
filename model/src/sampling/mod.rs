//! From logits to a token.
//!
//! [`greedy`] and [`Sampler`] define the numbers; a GPU kernel that samples must give the same tokens, so every step is
//! fixed here: the order of candidates, the arithmetic, and the random numbers ([`philox`]).

mod philox;

use std::cmp::Ordering;

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

/// The token of the highest logit; of equals the one with the lowest id.
pub fn greedy(logits: &[f32]) -> Result<u32, SamplingError> {
    check(logits)?;
    let better = |best: usize, (i, logit): (usize, &f32)| if *logit > logits[best] { i } else { best };
    Ok(logits.iter().enumerate().fold(0, better) as u32)
}

fn check(logits: &[f32]) -> Result<(), SamplingError> {
    if let Some(index) = logits.iter().position(|logit| logit.is_nan() || *logit == f32::INFINITY) {
        return Err(SamplingError::Compare { index, value: logits[index] });
    }
    if logits.iter().all(|logit| *logit == f32::NEG_INFINITY) {
        return Err(SamplingError::Choose);
    }
    Ok(())
}

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingParams {
    /// Divides the logits; 0 means greedy.
    pub temperature: f32,
    /// Candidates kept at most; 0 keeps all.
    pub top_k: usize,
    /// The most likely candidates are kept until their probabilities add up to this; 1 keeps all.
    pub top_p: f32,
    /// Key of the random numbers.
    pub seed: u64,
}

/// Draws tokens with the given parameters.
///
/// 1. Candidates are ordered by falling logit, equals by rising id; the first `top_k` are kept.
/// 2. Their weights are `exp((logit - highest) / temperature)`, in f64.
/// 3. Of these, candidates are kept in order until their weights add up to `top_p` times the sum of all; the one that
///    reaches it is kept.
/// 4. With u uniform in [0, 1), the candidate is taken whose weight, added to those before it, first exceeds u times the
///    sum of the kept ones.
///
/// u is the upper 24 bits of the first word of [`philox4x32`], over 2^24. The key is the seed, low word first. The
/// counter is the draw's number, low word first, then 0, 0: the same seed and number give the same u on any machine, in
/// any order of draws. The weights are as exact as the machine's f64 `exp`, so a draw can differ between machines only
/// if u falls within some 1e-15 of a boundary.
#[derive(Clone, Debug)]
pub struct Sampler {
    params: SamplingParams,
    /// Scratch space.
    tokens: Vec<u32>,
}

impl Sampler {
    /// Checks the parameters.
    pub fn new(params: SamplingParams) -> Result<Self, SamplingError> {
        let SamplingParams { temperature, top_p, .. } = params;
        if !(temperature.is_finite() && temperature >= 0.0) {
            return Err(SamplingError::Configure { name: "temperature", value: temperature, range: "0 or more" });
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(SamplingError::Configure { name: "top_p", value: top_p, range: "above 0 and at most 1" });
        }
        Ok(Self { params, tokens: Vec::new() })
    }

    /// Chooses the token of draw number `draw`.
    pub fn sample(&mut self, logits: &[f32], draw: u64) -> Result<u32, SamplingError> {
        let SamplingParams { temperature, top_k, top_p, seed } = self.params;
        if temperature == 0.0 {
            return greedy(logits);
        }
        check(logits)?;
        let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weight = |token: u32| {
            let below = f64::from(logits[token as usize]) - f64::from(highest);
            (below / f64::from(temperature)).exp()
        };
        let mut candidates = Candidates::new(logits, &mut self.tokens, top_k);
        let mut kept = candidates.tokens.iter().map(|token| weight(*token)).sum::<f64>();
        if top_p < 1.0 {
            let mass = kept * f64::from(top_p);
            kept = candidates.add_up(weight, |sum| sum >= mass).1;
        }
        let point = uniform(seed, draw) * kept;
        Ok(candidates.add_up(weight, |sum| sum > point).0)
    }
}

/// A number in [0, 1) with 24 random bits.
fn uniform(seed: u64, draw: u64) -> f64 {
    let words = |n: u64| [n as u32, (n >> 32) as u32];
    let ([c0, c1], key) = (words(draw), words(seed));
    f64::from(philox4x32([c0, c1, 0, 0], key)[0] >> 8) / f64::from(1 << 24)
}

/// Candidates, put in order as far as they are looked at: of 163,840 tokens a draw rarely needs more than the first few.
struct Candidates<'a> {
    logits: &'a [f32],
    tokens: &'a mut Vec<u32>,
    /// How many of `tokens` are in order, and before all others.
    ordered: usize,
}

/// Candidates that are put in order at first; each further step orders up to four times as many.
const FIRST_ORDERED: usize = 256;

impl<'a> Candidates<'a> {
    /// The `top_k` best tokens, or all if that is 0.
    fn new(logits: &'a [f32], tokens: &'a mut Vec<u32>, top_k: usize) -> Self {
        tokens.clear();
        tokens.extend(0..logits.len() as u32);
        if (1..tokens.len()).contains(&top_k) {
            tokens.select_nth_unstable_by(top_k - 1, |a, b| order(logits, *a, *b));
            tokens.truncate(top_k);
        }
        Self { logits, tokens, ordered: 0 }
    }

    fn get(&mut self, index: usize) -> Option<u32> {
        if index >= self.ordered && self.ordered < self.tokens.len() {
            let more = (self.ordered * 3).max(FIRST_ORDERED);
            let logits = self.logits;
            let mut rest = &mut self.tokens[self.ordered..];
            if more < rest.len() {
                rest = rest.select_nth_unstable_by(more, |a, b| order(logits, *a, *b)).0;
            }
            rest.sort_unstable_by(|a, b| order(logits, *a, *b));
            self.ordered += rest.len();
        }
        self.tokens.get(index).copied()
    }

    /// Adds up weights in order until `enough`; gives the token that was added last, and the sum. If rounding keeps the
    /// sum from ever being enough, the last token of any weight is taken.
    fn add_up(&mut self, weight: impl Fn(u32) -> f64, enough: impl Fn(f64) -> bool) -> (u32, f64) {
        let (mut last, mut sum, mut index) = (0, 0.0, 0);
        while let Some(token) = self.get(index) {
            let weight = weight(token);
            if weight == 0.0 {
                break;
            }
            (last, sum, index) = (token, sum + weight, index + 1);
            if enough(sum) {
                break;
            }
        }
        (last, sum)
    }
}

/// By falling logit, equals by rising id. The logits hold no NaN.
fn order(logits: &[f32], a: u32, b: u32) -> Ordering {
    let by_logit = logits[b as usize].partial_cmp(&logits[a as usize]);
    by_logit.unwrap_or(Ordering::Equal).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sampler(temperature: f32, top_k: usize, top_p: f32) -> Sampler {
        Sampler::new(SamplingParams { temperature, top_k, top_p, seed: 7 }).unwrap()
    }

    /// The four steps as they are written, on everything at once.
    fn sample_plainly(logits: &[f32], params: SamplingParams, draw: u64) -> u32 {
        let mut tokens: Vec<u32> = (0..logits.len() as u32).collect();
        tokens.sort_by(|a, b| logits[*b as usize].partial_cmp(&logits[*a as usize]).unwrap());
        tokens.truncate(if params.top_k == 0 { usize::MAX } else { params.top_k });
        let highest = f64::from(logits[tokens[0] as usize]);
        let weight = |t: &u32| ((f64::from(logits[*t as usize]) - highest) / f64::from(params.temperature)).exp();
        let mass = tokens.iter().map(weight).sum::<f64>() * f64::from(params.top_p);
        let mut sum = 0.0;
        let reached = tokens.iter().position(|t| {
            sum += weight(t);
            sum >= mass
        });
        tokens.truncate(reached.map_or(usize::MAX, |i| i + 1));
        let point = uniform(params.seed, draw) * tokens.iter().map(weight).sum::<f64>();
        let mut sum = 0.0;
        *tokens
            .iter()
            .find(|t| {
                sum += weight(t);
                sum > point
            })
            .unwrap()
    }

    #[test]
    fn greedy_takes_the_lowest_of_equal_ids() {
        assert_eq!(greedy(&[1.0, 3.0, 3.0, 2.0]), Ok(1));
        assert_eq!(greedy(&[f32::NEG_INFINITY, -1.0]), Ok(1));
        assert_eq!(greedy(&[0.0, -0.0]), Ok(0));
    }

    #[test]
    fn logits_that_are_no_numbers_are_errors_not_tokens() {
        for sample in [|l: &[f32]| greedy(l), |l: &[f32]| sampler(1.0, 0, 1.0).sample(l, 0)] {
            assert!(matches!(sample(&[0.0, f32::NAN]), Err(SamplingError::Compare { index: 1, .. })));
            assert!(matches!(sample(&[f32::INFINITY, 0.0]), Err(SamplingError::Compare { index: 0, .. })));
            assert_eq!(sample(&[f32::NEG_INFINITY; 3]), Err(SamplingError::Choose));
            assert_eq!(sample(&[]), Err(SamplingError::Choose));
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (temperature, top_p) in
            [(-1.0, 1.0), (f32::NAN, 1.0), (f32::INFINITY, 1.0), (1.0, 0.0), (1.0, 1.1), (1.0, f32::NAN)]
        {
            let params = SamplingParams { temperature, top_k: 0, top_p, seed: 0 };
            assert!(matches!(Sampler::new(params), Err(SamplingError::Configure { .. })), "{temperature} {top_p}");
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [2.0f32, 1.0, 0.0, 1.0];
        let mut sampler = sampler(2.0, 0, 1.0);
        let mut counts = [0u32; 4];
        for draw in 0..100_000 {
            counts[sampler.sample(&logits, draw).unwrap() as usize] += 1;
        }
        let weights = logits.map(|l| (f64::from(l) / 2.0).exp());
        let total: f64 = weights.iter().sum();
        for (count, weight) in counts.into_iter().zip(weights) {
            // Five standard deviations of 100,000 fair draws are below 0.008; the draws are fixed by the seed.
            assert!((f64::from(count) / 1e5 - weight / total).abs() < 0.008, "{counts:?}");
        }
    }

    #[test]
    fn top_k_and_top_p_keep_the_most_likely() {
        let logits = [0.0f32, 3.0, 1.0, 3.0, 2.0];
        let seen = |mut sampler: Sampler| {
            let mut seen: Vec<_> = (0..2000).map(|draw| sampler.sample(&logits, draw).unwrap()).collect();
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        assert_eq!(seen(sampler(1.0, 1, 1.0)), [1]);
        assert_eq!(seen(sampler(1.0, 3, 1.0)), [1, 3, 4]);
        assert_eq!(seen(sampler(1.0, 0, 0.39)), [1]);
        assert_eq!(seen(sampler(1.0, 0, 0.5)), [1, 3]);
        assert_eq!(seen(sampler(1.0, 0, 1.0)), [0, 1, 2, 3, 4]);
        assert_eq!(seen(sampler(0.01, 0, 1.0)), [1, 3]);
    }

    #[test]
    fn a_draw_depends_on_seed_and_number_alone() {
        let logits: Vec<f32> = (0..1000).map(|i| ((i * 37) % 101) as f32 / 30.0).collect();
        let mut sampler = sampler(1.0, 0, 0.95);
        let forwards: Vec<_> = (0..50).map(|draw| sampler.sample(&logits, draw).unwrap()).collect();
        let mut backwards: Vec<_> = (0..50).rev().map(|draw| sampler.sample(&logits, draw).unwrap()).collect();
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert!(forwards.iter().any(|token| *token != forwards[0]));
    }

    proptest! {
        #[test]
        fn ordering_only_what_is_looked_at_changes_no_draw(
            logits in prop::collection::vec(prop_oneof![-4.0f32..4.0, Just(1.0), Just(f32::NEG_INFINITY)], 1..1500),
            temperature in 0.05f32..50.0, top_k in 0usize..2000, top_p in prop_oneof![0.001f32..1.0, Just(1.0)], draw: u64,
        ) {
            prop_assume!(logits.iter().any(|l| l.is_finite()));
            let params = SamplingParams { temperature, top_k, top_p, seed: 3 };
            let token = Sampler::new(params).unwrap().sample(&logits, draw).unwrap();
            prop_assert_eq!(token, sample_plainly(&logits, params, draw));
        }
    }
}
