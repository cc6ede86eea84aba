//! The choice of a token.

use std::cmp::Ordering;

use super::{SamplingError, SamplingParams, philox4x32};

/// The token of the highest logit; of equals the one with the lowest id.
///
/// # Errors
/// A logit is no number, or none is finite.
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

/// The token for `position`.
///
/// 1. Candidates are ordered by falling logit, equals by rising id; the first `top_k` are kept.
/// 2. Their weights are `exp((logit - highest) / temperature)`, in whole units of 2^-40.
/// 3. Of these, candidates are kept in order until their weights add up to more than `top_p` times the sum of all; the one
///    that exceeds it is kept.
/// 4. With u uniform in [0, 1), in order of ids, the candidate is taken whose weight, added to those before it, first
///    exceeds u times the sum of the kept ones.
///
/// u has 64 bits: the first two words of [`philox4x32`], the first above. The key is the seed, low word first; the counter is
/// the position, then zeros. So a token depends on logits, seed and position, and on nothing else.
///
/// # Errors
/// As [`greedy`].
pub fn sample(logits: &[f32], params: SamplingParams, position: u32) -> Result<u32, SamplingError> {
    if params.temperature == 0.0 {
        return greedy(logits);
    }
    let mut kept = kept(logits, params)?;
    kept.sort_unstable();
    let [high, low, ..] = philox4x32([position, 0, 0, 0], [params.seed as u32, (params.seed >> 32) as u32]);
    let mut point = share(total(&kept), u64::from(high) << 32 | u64::from(low));
    let drawn = kept.iter().find(|(_, weight)| match point.checked_sub(*weight) {
        Some(left) => {
            point = left;
            false
        }
        None => true,
    });
    drawn.map(|(token, _)| *token).ok_or(SamplingError::Choose)
}

/// What may be drawn, with weights: steps 1 to 3.
fn kept(logits: &[f32], params: SamplingParams) -> Result<Vec<(u32, u64)>, SamplingError> {
    let highest = logits[greedy(logits)? as usize];
    let mut tokens: Vec<u32> = (0..logits.len() as u32).collect();
    tokens.sort_unstable_by(|a, b| by_rank(logits, *a, *b));
    if params.top_k != 0 {
        tokens.truncate(params.top_k as usize);
    }
    let weighed = |token: u32| (token, weight((logits[token as usize] - highest) * params.scale()));
    let mut kept: Vec<(u32, u64)> = tokens.into_iter().map(weighed).collect();
    let fraction = params.top_p_fraction();
    if fraction != 0 {
        let enough = share(total(&kept), fraction);
        let mut sum = 0;
        let reached = kept.iter().position(|(_, weight)| {
            sum += weight;
            sum > enough
        });
        kept.truncate(reached.map_or(usize::MAX, |index| index + 1));
    }
    Ok(kept)
}

fn total(kept: &[(u32, u64)]) -> u64 {
    kept.iter().map(|(_, weight)| weight).sum()
}

/// `fraction` / 2^64 of x.
fn share(x: u64, fraction: u64) -> u64 {
    ((u128::from(x) * u128::from(fraction)) >> 64) as u64
}

/// 2^x, x at most 0, in units of 2^-40. The arithmetic is such that it gives the same bits on a GPU.
fn weight(x: f32) -> u64 {
    if x <= -41.0 {
        return 0;
    }
    let whole = x.round_ties_even();
    let t = (x - whole) * std::f32::consts::LN_2;
    let series = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let y = series[1..].iter().fold(series[0], |y: f32, term| y.mul_add(t, *term));
    u64::from((y * (1 << 30) as f32) as u32) << 10 >> -whole as u32
}

/// By falling logit, equals by rising id. The logits hold no NaN.
pub(super) fn by_rank(logits: &[f32], a: u32, b: u32) -> Ordering {
    let by_logit = logits[b as usize].partial_cmp(&logits[a as usize]);
    by_logit.unwrap_or(Ordering::Equal).then(a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params(temperature: f32, top_k: u32, top_p: f32) -> SamplingParams {
        SamplingParams { temperature, top_k, top_p, seed: 7 }
    }

    #[test]
    fn greedy_takes_the_lowest_of_equal_ids() {
        assert_eq!(greedy(&[1.0, 3.0, 3.0, 2.0]), Ok(1));
        assert_eq!(greedy(&[f32::NEG_INFINITY, -1.0]), Ok(1));
        assert_eq!(greedy(&[0.0, -0.0]), Ok(0));
    }

    #[test]
    fn logits_that_are_no_numbers_are_errors_not_tokens() {
        for sample in [|l: &[f32]| greedy(l), |l: &[f32]| sample(l, params(1.0, 0, 1.0), 0)] {
            assert!(matches!(sample(&[0.0, f32::NAN]), Err(SamplingError::Compare { index: 1, .. })));
            assert!(matches!(sample(&[f32::INFINITY, 0.0]), Err(SamplingError::Compare { index: 0, .. })));
            assert_eq!(sample(&[f32::NEG_INFINITY; 3]), Err(SamplingError::Choose));
            assert_eq!(sample(&[]), Err(SamplingError::Choose));
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [2.0f32, 1.0, 0.0, 1.0];
        let mut counts = [0u32; 4];
        for position in 0..100_000 {
            counts[sample(&logits, params(2.0, 0, 1.0), position).unwrap() as usize] += 1;
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
        let seen = |params| {
            let mut seen: Vec<_> = (0..2000).map(|position| sample(&logits, params, position).unwrap()).collect();
            seen.sort_unstable();
            seen.dedup();
            seen
        };
        assert_eq!(seen(params(1.0, 1, 1.0)), [1]);
        assert_eq!(seen(params(1.0, 3, 1.0)), [1, 3, 4]);
        assert_eq!(seen(params(1.0, 0, 0.39)), [1]);
        assert_eq!(seen(params(1.0, 0, 0.5)), [1, 3]);
        assert_eq!(seen(params(1.0, 0, 1.0)), [0, 1, 2, 3, 4]);
        assert_eq!(seen(params(0.01, 0, 1.0)), [1, 3]);
    }

    #[test]
    fn the_lowest_temperature_there_is_takes_one_of_the_most_likely() {
        let logits = [1.0, f32::NEG_INFINITY, 1.0001, 0.0];
        assert_eq!(sample(&logits, params(f32::from_bits(1), 0, 1.0), 3), Ok(2));
    }

    proptest! {
        #[test]
        fn weights_are_powers_of_two_as_exact_as_fp32(x in -41.0f32..=0.0) {
            let exact = f64::from(x).exp2() * 2f64.powi(40);
            let relative = (weight(x) as f64 - exact).abs() / exact;
            // A half more than two units of FP32's last place, and one unit of the weight.
            prop_assert!(relative <= 1.5e-7 + 1.0 / exact, "{x}: {relative}");
        }

        #[test]
        fn what_is_kept_is_a_shortest_run_of_the_most_likely_that_suffices(
            logits in prop::collection::vec(prop_oneof![-4.0f32..4.0, Just(1.0), Just(f32::NEG_INFINITY)], 1..200),
            temperature in 0.05f32..50.0, top_k in 0u32..300, top_p in 0.001f32..1.0,
        ) {
            prop_assume!(logits.iter().any(|l| l.is_finite()));
            let of_top_k = kept(&logits, params(temperature, top_k, 1.0)).unwrap();
            let kept = kept(&logits, params(temperature, top_k, top_p)).unwrap();
            prop_assert!(top_k == 0 || of_top_k.len() <= top_k as usize);
            prop_assert_eq!(&kept[..], &of_top_k[..kept.len()]);
            let enough = total(&of_top_k) as f64 * f64::from(top_p);
            prop_assert!(total(&kept) as f64 >= enough - 1.0);
            prop_assert!(total(&kept[..kept.len() - 1]) as f64 <= enough + 1.0);
        }
    }
}
