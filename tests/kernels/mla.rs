//! Multi-head latent attention.

use kernels::mla::{MlaAbsorb, MlaAttention, MlaLatent, MlaQuery, MlaValue};
use kernels::{ErrorWord, Failure, Step};

use crate::support::{Bf16, Gpus, Job, Random, Rows, assert_rows_close, rms_norm, sigmoid, widen, widened};

const NOPE: usize = 128;
const ROPE: usize = 64;
const VALUE: usize = 128;
const LATENT: usize = 512;
const CACHED: usize = LATENT + ROPE;

#[test]
fn low_rank_norms_use_their_own_eps_and_the_latent_is_appended_at_the_position() {
    let gpus = Gpus::new(1);
    for (q_width, tokens, position, deviation) in [(128, 3, 0, 1.0), (1536, 2, 40, 1.0), (128, 20, 5, 2e-3)] {
        let mut random = Random::new(q_width as u64);
        let (q, kv) = (random.bf16s(tokens * q_width, deviation), random.bf16s(tokens * CACHED, deviation));
        let (q_weight, kv_weight) = (random.bf16s(q_width, 1.0), random.bf16s(LATENT, 1.0));
        let capacity = position + tokens;
        let cache = gpus.zeroed(0, capacity * CACHED * 2);
        let q_out = gpus.fresh(0, tokens * q_width * 2);
        let error = gpus.upload(0, &[0_u64]);
        let step = Step { position: position as u32, count: tokens as u32, ..Step::default() };
        let [q_va, kv_va, q_weight_va, kv_weight_va] = [&q, &kv, &q_weight, &kv_weight].map(|x| gpus.upload(0, x));
        let step = gpus.upload(0, &[step]);
        let launch = MlaLatent {
            step: step.va(),
            q: q_va.va(),
            kv: kv_va.va(),
            q_weight: q_weight_va.va(),
            kv_weight: kv_weight_va.va(),
            q_out: q_out.va(),
            cache: cache.va(),
            error: error.va(),
            q_width: q_width as u32,
            q_pitch: (q_width * 2) as u32,
            kv_pitch: (CACHED * 2) as u32,
            q_out_pitch: (q_width * 2) as u32,
            capacity: capacity as u32,
            rank: 0,
            tokens: 128,
            reserved: 0,
        };
        gpus.run(0, &[Job::of(&launch)]);

        let norm = |x: &[Bf16], weight: &[Bf16]| rms_norm(&widened(x), &widened(weight), 1e-6);
        let expected = q.chunks(q_width).flat_map(|row| norm(row, &q_weight)).collect();
        let found = Rows::of_bf16(q_width, &gpus.read::<Bf16>(&q_out));
        assert_rows_close("q norm", &found, &Rows::new(q_width, expected), 2.5e-3);

        let cache = gpus.read::<Bf16>(&cache);
        assert!(cache[..position * CACHED].iter().all(|&value| value == 0), "rows before the position");
        for (row, kv) in cache[position * CACHED..].chunks(CACHED).zip(kv.chunks(CACHED)) {
            let found = Rows::of_bf16(LATENT, &row[..LATENT]);
            let expected = Rows::new(LATENT, norm(&kv[..LATENT], &kv_weight));
            assert_rows_close("latent norm", &found, &expected, 2.5e-3);
            assert_eq!(row[LATENT..], kv[LATENT..], "the shared key values");
        }
        assert_eq!(gpus.read::<u64>(&error), [0]);
    }
}

#[test]
fn a_position_beyond_the_cache_is_reported_and_not_written() {
    let gpus = Gpus::new(1);
    let (weight, x) = (gpus.zeroed(0, CACHED * 2), gpus.zeroed(0, 3 * CACHED * 2));
    let (cache, q_out, error) = (gpus.zeroed(0, 4 * CACHED * 2), gpus.fresh(0, 3 * 128 * 2), gpus.upload(0, &[0_u64]));
    let step = gpus.upload(0, &[Step { position: 2, count: 3, ..Step::default() }]);
    let launch = MlaLatent {
        step: step.va(),
        q: x.va(),
        kv: x.va(),
        q_weight: weight.va(),
        kv_weight: weight.va(),
        q_out: q_out.va(),
        cache: cache.va(),
        error: error.va(),
        q_width: 128,
        q_pitch: 256,
        kv_pitch: (CACHED * 2) as u32,
        q_out_pitch: 256,
        capacity: 4,
        rank: 3,
        tokens: 3,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);
    let failure = ErrorWord(gpus.read::<u64>(&error)[0]).failure();
    assert_eq!(failure, Some(Failure::Context { rank: 3, index: 2, position: 4 }));
}

/// One token: q_b on the normed low-rank query, and the append to the cache.
fn check_query(depth: usize, rows: usize, position: usize) {
    let gpus = Gpus::new(1);
    let mut random = Random::new((depth + rows) as u64);
    let (q_low, kv) = (random.bf16s(depth, 1.0), random.bf16s(CACHED, 1.0));
    let (q_weight, kv_weight) = (random.bf16s(depth, 1.0), random.bf16s(LATENT, 1.0));
    let q_b = random.bf16s(rows * depth, 0.06);
    let cache = gpus.zeroed(0, (position + 1) * CACHED * 2);
    let (q, error) = (gpus.fresh(0, rows * 2), gpus.upload(0, &[0_u64]));
    let buffers = [&q_low, &q_weight, &q_b, &kv, &kv_weight].map(|values| gpus.upload(0, values));
    let [q_low_va, q_weight_va, q_b_va, kv_va, kv_weight_va] = [0, 1, 2, 3, 4].map(|i: usize| buffers[i].va());
    let step = gpus.upload(0, &[Step { position: position as u32, count: 1, ..Step::default() }]);
    let launch = MlaQuery {
        step: step.va(),
        q_low: q_low_va,
        q_weight: q_weight_va,
        q_b: q_b_va,
        q: q.va(),
        kv: kv_va,
        kv_weight: kv_weight_va,
        cache: cache.va(),
        error: error.va(),
        depth: depth as u32,
        q_b_pitch: (depth * 2) as u32,
        rows: rows as u32,
        capacity: (position + 1) as u32,
        rank: 0,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);
    let normed = Rows::new(depth, rms_norm(&widened(&q_low), &widened(&q_weight), 1e-6));
    let expected = Rows::new(rows, normed.times(&Rows::of_bf16(depth, &q_b)).values);
    assert_rows_close(&format!("q_b, depth {depth}"), &Rows::of_bf16(rows, &gpus.read(&q)), &expected, 4e-3);
    let row: Vec<Bf16> = gpus.read_at(&cache, position * CACHED * 2, CACHED);
    let latent = Rows::new(LATENT, rms_norm(&widened(&kv[..LATENT]), &widened(&kv_weight), 1e-6));
    assert_rows_close("latent norm", &Rows::of_bf16(LATENT, &row[..LATENT]), &latent, 2.5e-3);
    assert_eq!(row[LATENT..], kv[LATENT..], "the shared key values");
    assert_eq!(gpus.read::<u64>(&error), [0]);

    let beyond = gpus.upload(0, &[Step { position: position as u32 + 1, count: 1, ..Step::default() }]);
    gpus.run(0, &[Job::of(&MlaQuery { step: beyond.va(), rank: 3, ..launch })]);
    let failure = ErrorWord(gpus.read::<u64>(&error)[0]).failure();
    assert_eq!(failure, Some(Failure::Context { rank: 3, index: 0, position: position as u32 + 1 }));
}

#[test]
pub(crate) fn the_query_of_one_token_is_normed_and_projected_while_its_latent_is_appended() {
    for (rows, position) in [(192, 0), (384, 3), (768, 1), (1536, 2)] {
        check_query(128, rows, position); // K3-nano's
    }
    check_query(1536, 80, 5); // of official depth
}

struct Case {
    heads: usize,
    position: usize,
    tokens: usize,
    capacity: usize,
    splits: usize,
}

/// Attention as the checkpoint defines it: keys and values of every head from the latents.
fn attention(case: &Case, q: &[f64], cache: &[f64], key: &Rows, value: &Rows, gate: &[f64]) -> Vec<f64> {
    let Case { heads, position, tokens, .. } = *case;
    let latents: Vec<_> = cache.chunks(CACHED).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut out = vec![0.0; tokens * heads * VALUE];
    for head in 0..heads {
        let project =
            |w: &Rows, latent: &[f64]| (0..128).map(|i| dot(w.row(head * 128 + i), &latent[..LATENT])).collect();
        let keys: Vec<Vec<f64>> = latents.iter().map(|latent| project(key, latent)).collect();
        let values: Vec<Vec<f64>> = latents.iter().map(|latent| project(value, latent)).collect();
        for token in 0..tokens {
            let at = token * heads + head;
            let q = &q[at * (NOPE + ROPE)..][..NOPE + ROPE];
            let seen = position + token + 1;
            let scores: Vec<f64> = (0..seen)
                .map(|i| (dot(&q[..NOPE], &keys[i]) + dot(&q[NOPE..], &latents[i][LATENT..])) * 192_f64.powf(-0.5))
                .collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = scores.iter().map(|score| (score - most).exp()).sum();
            let out = &mut out[at * VALUE..][..VALUE];
            for (score, value) in scores.iter().zip(&values) {
                for (out, value) in out.iter_mut().zip(value) {
                    *out += (score - most).exp() / total * value;
                }
            }
            for (out, gate) in out.iter_mut().zip(&gate[at * VALUE..]) {
                *out *= sigmoid(*gate);
            }
        }
    }
    out
}

fn check(gpus: &Gpus, case: Case) {
    let Case { heads, position, tokens, capacity, splits } = case;
    let mut random = Random::new((heads * 1000 + position + tokens) as u64);
    let q = random.bf16s(tokens * heads * (NOPE + ROPE), 1.5);
    let cache = random.bf16s((position + tokens) * CACHED, 1.0);
    let [key, value] = [0; 2].map(|_| random.bf16s(heads * 128 * LATENT, 0.06));
    let gate = random.bf16s(tokens * heads * VALUE, 1.0);

    let [q_va, cache_va, key_va, value_va, gate_va] = [&q, &cache, &key, &value, &gate].map(|x| gpus.upload(0, x));
    let (n, h, s) = (capacity as u32, heads as u32, splits as u32);
    let absorbed = gpus.fresh(0, MlaAbsorb::out_bytes(n, h) as usize);
    let partial = gpus.fresh(0, MlaAttention::partial_bytes(n, h, s) as usize);
    let sums = gpus.fresh(0, MlaAttention::sums_bytes(n, h, s) as usize);
    let out = gpus.fresh(0, tokens * heads * VALUE * 2);
    let step = Step { position: position as u32, count: tokens as u32, ..Step::default() };
    let step = gpus.upload(0, &[step]);
    let absorb = MlaAbsorb {
        step: step.va(),
        q: q_va.va(),
        key_weight: key_va.va(),
        out: absorbed.va(),
        heads: h,
        q_pitch: h * 192 * 2,
        tokens: n,
        reserved: 0,
    };
    let attend = MlaAttention {
        step: step.va(),
        query: absorbed.va(),
        cache: cache_va.va(),
        partial: partial.va(),
        sums: sums.va(),
        heads: h,
        splits: s,
        capacity: (position + tokens) as u32,
        tokens: n,
    };
    let values = MlaValue {
        step: step.va(),
        partial: partial.va(),
        sums: sums.va(),
        value_weight: value_va.va(),
        gate: gate_va.va(),
        out: out.va(),
        heads: h,
        splits: s,
        gate_pitch: h * 128 * 2,
        out_pitch: h * 128 * 2,
        tokens: n,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&absorb), Job::of(&attend), Job::of(&values)]);

    let (key, value) = (Rows::of_bf16(LATENT, &key), Rows::of_bf16(LATENT, &value));
    let expected = attention(&case, &widened(&q), &widened(&cache), &key, &value, &widened(&gate));
    let what = format!("MLA, {heads} heads, {tokens} tokens after {position}, {splits} splits");
    assert_rows_close(&what, &Rows::of_bf16(VALUE, &gpus.read::<Bf16>(&out)), &Rows::new(VALUE, expected), 8e-3);
}

#[test]
fn all_head_counts_of_k3_nano_are_right() {
    let gpus = Gpus::new(1);
    for heads in [1, 2, 4, 8] {
        check(&gpus, Case { heads, position: 0, tokens: 37, capacity: 128, splits: 1 });
        check(&gpus, Case { heads, position: 70, tokens: 1, capacity: 1, splits: 4 });
    }
}

#[test]
pub(crate) fn every_number_of_cached_tokens_around_a_block_is_right() {
    let gpus = Gpus::new(1);
    for position in [0, 62, 63, 64, 126, 127, 128] {
        for splits in [1, 3] {
            check(&gpus, Case { heads: 2, position, tokens: 1, capacity: 1, splits });
        }
    }
}

#[test]
pub(crate) fn causal_limits_hold_where_splits_divide_a_chunk() {
    let gpus = Gpus::new(1);
    check(&gpus, Case { heads: 1, position: 30, tokens: 130, capacity: 256, splits: 3 });
    check(&gpus, Case { heads: 3, position: 0, tokens: 70, capacity: 128, splits: 2 });
}

#[test]
fn the_heads_of_a_gpu_in_the_official_model_are_right() {
    check(&Gpus::new(1), Case { heads: 12, position: 200, tokens: 1, capacity: 1, splits: 8 });
}

/// One token after `position` others, against FP64 arithmetic in the absorbed form: a key is a latent, for all heads.
fn check_long(heads: usize, position: usize, splits: usize) {
    let gpus = Gpus::new(1);
    let mut random = Random::new((heads + position) as u64);
    let cached = position + 1;
    let query = random.bf16s(heads * CACHED, 0.12);
    // A few numbers in many orders: as good as random ones, and made in no time.
    let pool = random.bf16s(1 << 14, 1.0);
    let cache: Vec<Bf16> = (0..cached)
        .flat_map(|_| {
            let start = random.below((pool.len() - CACHED) as u32) as usize;
            pool[start..start + CACHED].iter().copied()
        })
        .collect();
    let value = random.bf16s(heads * VALUE * LATENT, 0.06);
    let gate = random.bf16s(heads * VALUE, 1.0);
    let (h, s) = (heads as u32, splits as u32);
    let [query_va, cache_va, value_va, gate_va] = [&query, &cache, &value, &gate].map(|x| gpus.upload(0, x));
    let partial = gpus.fresh(0, MlaAttention::partial_bytes(1, h, s) as usize);
    let sums = gpus.fresh(0, MlaAttention::sums_bytes(1, h, s) as usize);
    let out = gpus.fresh(0, heads * VALUE * 2);
    let step = gpus.upload(0, &[Step { position: position as u32, count: 1, ..Step::default() }]);
    let attend = MlaAttention {
        step: step.va(),
        query: query_va.va(),
        cache: cache_va.va(),
        partial: partial.va(),
        sums: sums.va(),
        heads: h,
        splits: s,
        capacity: cached as u32,
        tokens: 1,
    };
    let values = MlaValue {
        step: step.va(),
        partial: partial.va(),
        sums: sums.va(),
        value_weight: value_va.va(),
        gate: gate_va.va(),
        out: out.va(),
        heads: h,
        splits: s,
        gate_pitch: h * 128 * 2,
        out_pitch: h * 128 * 2,
        tokens: 1,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&attend), Job::of(&values)]);

    let mut expected = Vec::new();
    for head in 0..heads {
        let query = widened(&query[head * CACHED..][..CACHED]);
        let dot = |latent: &[Bf16]| latent.iter().zip(&query).map(|(&x, q)| widen(x) * q).sum::<f64>();
        let scores: Vec<f64> = cache.chunks(CACHED).map(|latent| dot(latent) * 192_f64.powf(-0.5)).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - most).exp()).sum();
        let mut attended = vec![0.0; LATENT];
        for (score, latent) in scores.iter().zip(cache.chunks(CACHED)) {
            let share = (score - most).exp() / total;
            attended.iter_mut().zip(latent).for_each(|(sum, &x)| *sum += share * widen(x));
        }
        let weight = Rows::of_bf16(LATENT, &value[head * VALUE * LATENT..][..VALUE * LATENT]);
        let values = Rows::new(LATENT, attended).times(&weight).values;
        let gates = widened(&gate[head * VALUE..][..VALUE]);
        expected.extend(values.iter().zip(gates).map(|(value, gate)| value * sigmoid(gate)));
    }
    let what = format!("MLA, {heads} heads, {cached} cached tokens, {splits} splits");
    assert_rows_close(&what, &Rows::of_bf16(VALUE, &gpus.read::<Bf16>(&out)), &Rows::new(VALUE, expected), 1e-2);
}

#[test]
fn a_token_attends_to_any_number_of_cached_tokens() {
    for cached in [1, 127, 128, 129, 4096] {
        for splits in [1, 64, 256] {
            check_long(if cached == 4096 { 2 } else { 12 }, cached - 1, splits);
        }
    }
}

#[test]
#[ignore = "takes minutes; run with --ignored, as .ci/sweep does"]
fn a_token_attends_to_131_072_cached_tokens() {
    check_long(12, 131_071, 256);
}

/// A cache of 1,048,576 tokens is 1.2 GB; its last row is past 2^30 bytes, and the positions of its values past 2^29.
#[test]
fn the_last_row_of_the_longest_context_is_appended_where_it_belongs() {
    let gpus = Gpus::new(1);
    let mut random = Random::new(20);
    let kv = random.bf16s(CACHED, 1.0);
    let (depth, rows, capacity) = (128, 16, 1 << 20);
    let buffers = [random.bf16s(depth, 1.0), random.bf16s(rows * depth, 0.1), random.bf16s(LATENT, 1.0)]
        .map(|values| gpus.upload(0, &values));
    let (kv_va, cache) = (gpus.upload(0, &kv), gpus.fresh(0, capacity * CACHED * 2));
    let (q, error) = (gpus.fresh(0, rows * 2), gpus.upload(0, &[0_u64]));
    let step = gpus.upload(0, &[Step { position: capacity as u32 - 1, count: 1, ..Step::default() }]);
    let launch = MlaQuery {
        step: step.va(),
        q_low: buffers[0].va(),
        q_weight: buffers[0].va(),
        q_b: buffers[1].va(),
        q: q.va(),
        kv: kv_va.va(),
        kv_weight: buffers[2].va(),
        cache: cache.va(),
        error: error.va(),
        depth: depth as u32,
        q_b_pitch: (depth * 2) as u32,
        rows: rows as u32,
        capacity: capacity as u32,
        rank: 0,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);
    assert_eq!(gpus.read::<u64>(&error), [0]);
    let row: Vec<Bf16> = gpus.read_at(&cache, (capacity - 1) * CACHED * 2, CACHED);
    assert_eq!(row[LATENT..], kv[LATENT..]);
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_latent() {
    low_rank_norms_use_their_own_eps_and_the_latent_is_appended_at_the_position();
    a_position_beyond_the_cache_is_reported_and_not_written();
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_query() {
    check_query(128, 192, 0);
}

/// Small launches that run through the whole of the kernels.
pub(crate) fn exercise_attention() {
    let gpus = Gpus::new(1);
    check(&gpus, Case { heads: 2, position: 66, tokens: 1, capacity: 1, splits: 3 });
    check(&gpus, Case { heads: 1, position: 0, tokens: 37, capacity: 128, splits: 1 });
}
