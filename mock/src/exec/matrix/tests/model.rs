use super::*;
use crate::exec::MfmaOrder;

const ORDERS: [MfmaOrder; 4] = [MfmaOrder::Exact, MfmaOrder::Sequential, MfmaOrder::Pairwise, MfmaOrder::Cdna3];
const TEXT: &str = "v_mfma_f32_16x16x32_bf16 v[128:131], v[4:7], v[16:19], v[64:67]";

fn bench(random: &mut Random, value: impl Fn(&mut Random) -> f32) -> Bench {
    let mut bench = Bench::new();
    for first in [A, B] {
        fill(&mut bench, first..first + 4, || {
            let [low, high] = [0; 2].map(|_| half::bf16::from_f32(value(random)).to_bits());
            u32::from(low) | u32::from(high) << 16
        });
    }
    fill(&mut bench, C..C + 4, || value(random).to_bits());
    bench
}

#[test]
fn what_every_partial_sum_represents_is_the_same_in_all_orders() {
    let mut bench = bench(&mut Random::new(41), |random| random.below(33) as f32 - 16.0);
    let mut results = Vec::new();
    for order in ORDERS {
        bench.outside.mfma_order = order;
        if !bench.run(TEXT) {
            return;
        }
        results.push([0, 1, 2, 3].map(|i| *bench.v(D + i)));
    }
    assert!(results.iter().all(|result| *result == results[0]));
}

/// Element `[i][j]`: its terms, C and result.
fn terms(bench: &mut Bench, i: usize, j: usize) -> (Vec<(f32, f32)>, f32, f32) {
    let dims = Dims { m: 16, k: 32, blocks: 1 };
    let mut value = |first, row, k| f32::from_bits(code(bench, first, dims.element(row, k, 0, 16), 16) << 16);
    let terms = (0..32).map(|k| (value(A, i, k), value(B, j, k))).collect();
    let (register, lane) = dims.result(i, j, 0);
    (terms, f32::from_bits(bench.v(C + register)[lane]), f32::from_bits(bench.v(D + register)[lane]))
}

#[test]
fn sequential_is_a_chain_of_fused_multiply_adds_and_pairwise_a_tree() {
    let mut bench = bench(&mut Random::new(42), moderate);
    let mut differ = 0;
    for order in [MfmaOrder::Sequential, MfmaOrder::Pairwise] {
        bench.outside.mfma_order = order;
        if !bench.run(TEXT) {
            return;
        }
        for (i, j) in (0..256).map(|n| (n / 16, n % 16)) {
            let (terms, c, result) = terms(&mut bench, i, j);
            let chain = terms.iter().fold(c, |sum, (a, b)| a.mul_add(*b, sum));
            let mut tree: Vec<f32> = terms.iter().map(|(a, b)| a * b).collect();
            while tree.len() > 1 {
                tree = tree.chunks(2).map(|pair| pair[0] + pair[1]).collect();
            }
            let expected = if order == MfmaOrder::Sequential { chain } else { tree[0] + c };
            assert_eq!(result, expected, "{order:?} [{i}][{j}]");
            differ += u32::from(chain != tree[0] + c);
        }
    }
    assert!(differ > 100, "the data tells the orders apart");
}

#[test]
fn cdna3_truncates_products_far_below_the_largest_of_their_eight() {
    let result = |a: &[f32], c: f32| {
        let mut bench = Bench::new();
        bench.outside.mfma_order = MfmaOrder::Cdna3;
        for (k, value) in a.iter().enumerate() {
            bench.v(A + k % 8 / 2)[k / 8 * 16] |= value.to_bits() >> 16 << (16 * (k % 2));
            bench.v(B + k % 8 / 2)[k / 8 * 16] |= 1f32.to_bits() >> 16 << (16 * (k % 2));
        }
        bench.v(C)[0] = c.to_bits();
        bench.run(TEXT).then(|| f32::from_bits(bench.v(D)[0]))
    };
    let tiny = 2f32.powi(-25);
    // The exact sum of the first eight is 1 + 7 * 2^-25, whose nearest single is 1 + 2^-22 (8 * 2^-25 rounded to even).
    let Some(truncated) = result(&[1.0, tiny, tiny, tiny, tiny, tiny, tiny, tiny], 0.0) else { return };
    assert_eq!(truncated, 1.0);
    // In a group of their own they are kept: 8 * 2^-25 = 2^-22.
    assert_eq!(
        result(&[1.0, 0., 0., 0., 0., 0., 0., 0., tiny, tiny, tiny, tiny, tiny, tiny, tiny, tiny], 0.0),
        Some(1.0 + 2f32.powi(-22))
    );
    // C keeps 24 fraction bits under the largest exponent and is rounded down, even if negative.
    assert_eq!(result(&[2.0], -2f32.powi(-25)), Some(2.0 - 2f32.powi(-23)));
    assert_eq!(result(&[2.0], 2f32.powi(-25)), Some(2.0));
}

#[test]
fn orders_go_by_the_names_that_the_configuration_uses() {
    for (word, order) in ["default", "sequential", "pairwise", "cdna3"].into_iter().zip(ORDERS) {
        assert_eq!(word.parse(), Ok(order));
    }
    assert!("random".parse::<MfmaOrder>().is_err());
}
