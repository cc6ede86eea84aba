//! Routed experts.

use kernels::collective::AllReduce;
use kernels::moe::{MoeDown, MoeGroup, MoeRoute, MoeUp, RouterTopk, TILE, max_tiles};
use kernels::{GpuVa, Step};

use crate::support::{Bf16, Buffer, Gpus, Job, Random, Rows, assert_rows_close, sigmoid, situ, widened};

/// The top k of sigmoid + bias, ties to the lower id, with their weights.
pub(crate) fn choose(logits: &[f32], bias: &[f32], top_k: usize) -> Vec<(u32, f64)> {
    let scores: Vec<f64> = logits.iter().map(|&x| sigmoid(f64::from(x))).collect();
    let choice = |e: u32| scores[e as usize] + f64::from(bias[e as usize]);
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    order.sort_by(|&a, &b| choice(b).total_cmp(&choice(a)).then(a.cmp(&b)));
    order.truncate(top_k);
    let total: f64 = order.iter().map(|&e| scores[e as usize]).sum();
    order.into_iter().map(|e| (e, scores[e as usize] / total)).collect()
}

struct Routing {
    ids: Vec<u32>,
    weights: Vec<f32>,
}

fn route(gpus: &Gpus, logits: &[f32], bias: &[f32], top_k: usize, capacity: usize) -> Routing {
    let (experts, tokens) = (bias.len(), logits.len() / bias.len());
    let step = gpus.upload(0, &[Step { count: tokens as u32, ..Step::default() }]);
    let (logits, bias) = (gpus.upload(0, logits), gpus.upload(0, bias));
    let [ids, weights] = [0; 2].map(|_| gpus.fresh(0, tokens * top_k * 4));
    let launch = RouterTopk {
        step: step.va(),
        logits: logits.va(),
        bias: bias.va(),
        ids: ids.va(),
        weights: weights.va(),
        logit_pitch: (experts * 4) as u32,
        experts: experts as u32,
        top_k: top_k as u32,
        scale: 1.0,
        tokens: capacity as u32,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);
    Routing { ids: gpus.read(&ids), weights: gpus.read(&weights) }
}

#[test]
fn the_top_experts_are_chosen_with_the_bias_and_weighted_without_it() {
    let gpus = Gpus::new(1);
    for (experts, top_k, tokens) in [(16, 4, 9), (896, 16, 3), (1024, 64, 1), (65, 1, 2)] {
        let mut random = Random::new(experts as u64);
        // Multiples of 1/64 are far apart after the sigmoid, so no order depends on its last bits.
        let spread = |random: &mut Random, count: usize| -> Vec<f32> {
            (0..count).map(|_| (random.normal(1.0) * 64.0).round() / 64.0).collect()
        };
        let (logits, bias) = (spread(&mut random, tokens * experts), vec![0.0; experts]);
        let mut biased = bias.clone();
        biased[experts - 1] = 1.0;
        for bias in [bias, biased] {
            let found = route(&gpus, &logits, &bias, top_k, 128);
            for (token, logits) in logits.chunks(experts).enumerate() {
                let expected = choose(logits, &bias, top_k);
                let ids: Vec<u32> = expected.iter().map(|(id, _)| *id).collect();
                assert_eq!(found.ids[token * top_k..][..top_k], ids, "{experts} experts");
                for (weight, (_, expected)) in found.weights[token * top_k..].iter().zip(&expected) {
                    assert!((f64::from(*weight) - expected).abs() < 1e-6, "{weight} and {expected}");
                }
            }
        }
    }
}

#[test]
pub(crate) fn ties_go_to_the_lower_expert() {
    let found = route(&Gpus::new(1), &[0.5; 130], &[0.0; 130], 3, 1);
    assert_eq!(found.ids, [0, 1, 2]);
}

#[test]
pub(crate) fn logits_that_are_nan_still_choose_experts_that_exist() {
    let found = route(&Gpus::new(1), &[f32::NAN; 16], &[0.0; 16], 4, 1);
    assert_eq!(found.ids, [0, 1, 2, 3]);
}

/// Assignments by expert as the device grouped them: expert, then its list.
fn group(gpus: &Gpus, ids: &[u32], experts: usize, top_k: usize, capacity: usize) -> Vec<(u32, Vec<u32>)> {
    let tokens = ids.len() / top_k;
    let (e, k, n) = (experts as u32, top_k as u32, capacity as u32);
    let step = gpus.upload(0, &[Step { count: tokens as u32, ..Step::default() }]);
    let ids = gpus.upload(0, ids);
    let list = gpus.fresh(0, tokens * top_k * 4);
    let (tiles, count) = (gpus.fresh(0, MoeGroup::tiles_bytes(n, e, k) as usize), gpus.fresh(0, 4));
    let launch = MoeGroup {
        step: step.va(),
        ids: ids.va(),
        list: list.va(),
        tiles: tiles.va(),
        tile_count: count.va(),
        experts: e,
        top_k: k,
        tokens: n,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);
    let groups = groups(gpus, &list, &tiles, &count);
    assert!(groups.len() <= max_tiles(n, e, k) as usize);
    groups
}

/// What the list, the tiles and their number say.
fn groups(gpus: &Gpus, list: &Buffer, tiles: &Buffer, count: &Buffer) -> Vec<(u32, Vec<u32>)> {
    let (list, count) = (gpus.read::<u32>(list), gpus.read::<u32>(count)[0]);
    let tiles: Vec<[u32; 4]> = gpus.read_at(tiles, 0, count as usize);
    tiles.iter().map(|&[expert, first, count, _]| (expert, list[first as usize..][..count as usize].to_vec())).collect()
}

#[test]
pub(crate) fn assignments_are_listed_by_expert_in_token_order_and_cut_into_tiles() {
    let gpus = Gpus::new(1);
    for (experts, top_k, tokens, capacity) in [(16, 4, 1, 1), (16, 4, 128, 128), (896, 16, 40, 128), (3, 2, 300, 512)] {
        let mut random = Random::new(tokens as u64);
        let mut ids = Vec::new();
        for _ in 0..tokens {
            let mut chosen: Vec<u32> = (0..experts as u32).collect();
            for i in 0..top_k {
                chosen.swap(i, i + random.below((experts - i) as u32) as usize);
            }
            ids.extend_from_slice(&chosen[..top_k]);
        }
        let mut expected = Vec::new();
        for expert in 0..experts as u32 {
            let all: Vec<u32> = (0..ids.len() as u32).filter(|&a| ids[a as usize] == expert).collect();
            expected.extend(all.chunks(TILE as usize).map(|part| (expert, part.to_vec())));
        }
        assert_eq!(group(&gpus, &ids, experts, top_k, capacity), expected, "{experts} experts, {tokens} tokens");
    }
}

#[test]
fn one_launch_for_few_tokens_routes_as_two_launches_do() {
    let gpus = Gpus::new(1);
    for (experts, top_k, tokens) in [(16, 4, 1), (896, 16, 1), (896, 16, 7)] {
        let mut random = Random::new(tokens as u64);
        let (logits, bias) = (random.normals(tokens * experts, 1.0), random.normals(experts, 0.1));
        let expected = route(&gpus, &logits, &bias, top_k, 8);
        let expected_groups = group(&gpus, &expected.ids, experts, top_k, 8);

        let (e, k) = (experts as u32, top_k as u32);
        let step = gpus.upload(0, &[Step { count: tokens as u32, ..Step::default() }]);
        let (logits, bias) = (gpus.upload(0, &logits), gpus.upload(0, &bias));
        let [ids, weights, list] = [0; 3].map(|_| gpus.fresh(0, tokens * top_k * 4));
        let (tiles, count) = (gpus.fresh(0, MoeGroup::tiles_bytes(8, e, k) as usize), gpus.fresh(0, 4));
        let launch = MoeRoute {
            step: step.va(),
            logits: logits.va(),
            bias: bias.va(),
            ids: ids.va(),
            weights: weights.va(),
            list: list.va(),
            tiles: tiles.va(),
            tile_count: count.va(),
            logit_pitch: e * 4,
            experts: e,
            top_k: k,
            scale: 1.0,
            tokens: 8,
            reserved: 0,
        };
        gpus.run(0, &[Job::of(&launch)]);
        assert_eq!(gpus.read::<u32>(&ids), expected.ids);
        assert_eq!(gpus.read::<f32>(&weights), expected.weights);
        assert_eq!(groups(&gpus, &list, &tiles, &count), expected_groups);
    }
}

/// MXFP4 values `[rows][depth]` and what they mean. Rows of scales are a multiple of 4 bytes apart.
pub(crate) struct Mxfp4 {
    pub(crate) packed: Vec<u8>,
    pub(crate) scales: Vec<u8>,
    pub(crate) scale_pitch: usize,
    pub(crate) values: Rows,
}

impl Mxfp4 {
    pub(crate) fn random(random: &mut Random, rows: usize, depth: usize) -> Self {
        const E2M1: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        let scale_pitch = (depth / 32).next_multiple_of(4);
        let packed = random.bytes(rows * depth / 2);
        let scales: Vec<u8> = (0..rows * scale_pitch).map(|_| 120 + random.below(6) as u8).collect();
        let value = |row: usize, k: usize| {
            let nibble = packed[(row * depth + k) / 2] >> (k % 2 * 4) & 15;
            let sign = if nibble & 8 == 0 { 1.0 } else { -1.0 };
            let scale = f64::from(scales[row * scale_pitch + k / 32]) - 127.0;
            sign * E2M1[usize::from(nibble & 7)] * scale.exp2()
        };
        let values = (0..rows * depth).map(|i| value(i / depth, i % depth)).collect();
        Self { packed, scales, scale_pitch, values: Rows::new(depth, values) }
    }
}

/// Six matrices of an expert, one after the other at multiples of 256 bytes.
pub(crate) fn place(matrices: [&Mxfp4; 3]) -> (Vec<u8>, [u32; 6]) {
    let mut bytes = Vec::new();
    let mut offsets = Vec::new();
    for part in matrices.iter().flat_map(|matrix| [&matrix.packed, &matrix.scales]) {
        bytes.resize(bytes.len().next_multiple_of(256), 0);
        offsets.push(bytes.len() as u32);
        bytes.extend_from_slice(part);
    }
    bytes.resize(bytes.len().next_multiple_of(256), 0);
    (bytes, offsets.try_into().unwrap())
}

struct Case {
    experts: usize,
    top_k: usize,
    latent: usize,
    columns: usize,
    tokens: usize,
    capacity: usize,
}

/// From routing to the weighted sum over experts, for one rank.
fn check(gpus: &Gpus, case: Case) {
    let Case { experts, top_k, latent, columns, tokens, capacity } = case;
    let mut random = Random::new((latent + columns + tokens) as u64);
    let [w1, w3] =
        [0; 2].map(|_| (0..experts).map(|_| Mxfp4::random(&mut random, columns, latent)).collect::<Vec<_>>());
    let w2: Vec<_> = (0..experts).map(|_| Mxfp4::random(&mut random, latent, columns)).collect();
    let mut arena = Vec::new();
    let (mut offsets, mut stride) = ([0; 6], 0);
    for e in 0..experts {
        let (bytes, at) = place([&w1[e], &w2[e], &w3[e]]);
        (offsets, stride) = (at, bytes.len());
        arena.extend(bytes);
    }
    let [w1_packed, w1_scale, w2_packed, w2_scale, w3_packed, w3_scale] = offsets;
    let z = random.bf16s(tokens * latent, 0.5);
    let logits = random.normals(tokens * experts, 1.0);
    let Routing { ids, weights } = route(gpus, &logits, &vec![0.0; experts], top_k, capacity);

    let (n, e, k) = (capacity as u32, experts as u32, top_k as u32);
    let step = gpus.upload(0, &[Step { count: tokens as u32, epoch: 1, ..Step::default() }]);
    let (ids_va, weights_va, z_va, arena) =
        (gpus.upload(0, &ids), gpus.upload(0, &weights), gpus.upload(0, &z), gpus.upload(0, &arena));
    let list = gpus.fresh(0, tokens * top_k * 4);
    let (tiles, tile_count) = (gpus.fresh(0, MoeGroup::tiles_bytes(n, e, k) as usize), gpus.fresh(0, 4));
    let h = gpus.fresh(0, tokens * top_k * columns * 2);
    let y = gpus.fresh(0, tokens * top_k * latent * 4);
    let out = gpus.fresh(0, tokens * latent * 2);
    let error = gpus.upload(0, &[0_u64]);
    let group = MoeGroup {
        step: step.va(),
        ids: ids_va.va(),
        list: list.va(),
        tiles: tiles.va(),
        tile_count: tile_count.va(),
        experts: e,
        top_k: k,
        tokens: n,
        reserved: 0,
    };
    let up = MoeUp {
        list: list.va(),
        tiles: tiles.va(),
        tile_count: tile_count.va(),
        experts: arena.va(),
        z: z_va.va(),
        h: h.va(),
        stride: stride as u64,
        w1_packed,
        w1_scale,
        w3_packed,
        w3_scale,
        packed_pitch: (latent / 2) as u32,
        scale_pitch: w1[0].scale_pitch as u32,
        z_pitch: (latent * 2) as u32,
        h_pitch: (columns * 2) as u32,
        depth: latent as u32,
        columns: columns as u32,
        top_k: k,
        situ_beta: 4.0,
        situ_linear_beta: 25.0,
        max_tiles: max_tiles(n, e, k),
    };
    let down = MoeDown {
        list: list.va(),
        tiles: tiles.va(),
        tile_count: tile_count.va(),
        experts: arena.va(),
        h: h.va(),
        y: y.va(),
        stride: stride as u64,
        w2_packed,
        w2_scale,
        packed_pitch: (columns / 2) as u32,
        scale_pitch: w2[0].scale_pitch as u32,
        h_pitch: (columns * 2) as u32,
        y_pitch: (latent * 4) as u32,
        depth: columns as u32,
        rows: latent as u32,
        max_tiles: max_tiles(n, e, k),
        reserved: 0,
    };
    let sum = AllReduce {
        step: step.va(),
        partial: y.va(),
        weights: weights_va.va(),
        residual: GpuVa::NULL,
        out: out.va(),
        mailboxes: [GpuVa::NULL; 8],
        error: error.va(),
        words: 0,
        timeout: 0,
        partial_pitch: (latent * 4) as u32,
        terms: k,
        width: latent as u32,
        rank: 0,
        ranks: 1,
        collective: 0,
        tokens: n,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&group), Job::of(&up), Job::of(&down), Job::of(&sum)]);

    let z = Rows::of_bf16(latent, &z);
    let mut expected = vec![0.0; tokens * latent];
    for token in 0..tokens {
        let input = Rows::new(latent, z.row(token).to_vec());
        for (expert, weight) in (0..top_k).map(|j| (ids[token * top_k + j] as usize, weights[token * top_k + j])) {
            let (gate, up) = (input.times(&w1[expert].values), input.times(&w3[expert].values));
            let hidden = gate.values.iter().zip(&up.values).map(|(&gate, &up)| situ(gate, up)).collect();
            let part = Rows::new(columns, hidden).times(&w2[expert].values);
            for (sum, part) in expected[token * latent..].iter_mut().zip(&part.values) {
                *sum += f64::from(weight) * part;
            }
        }
    }
    let what = format!("MoE, latent {latent}, {columns} columns, {experts} experts, {tokens} tokens");
    let found = widened(&gpus.read::<Bf16>(&out));
    assert_rows_close(&what, &Rows::new(latent, found), &Rows::new(latent, expected), 5e-3);
    assert_eq!(gpus.read::<u64>(&error), [0]);
}

#[test]
fn experts_of_k3_nano_are_right_at_every_tensor_parallel_degree() {
    let gpus = Gpus::new(1);
    for ranks in [1, 2, 4, 8] {
        for (tokens, capacity) in [(1, 1), (30, 128)] {
            check(&gpus, Case { experts: 16, top_k: 4, latent: 128, columns: 256 / ranks, tokens, capacity });
        }
    }
}

#[test]
fn an_expert_of_official_width_is_right() {
    let gpus = Gpus::new(1);
    check(&gpus, Case { experts: 1, top_k: 1, latent: 3584, columns: 384, tokens: 1, capacity: 1 });
}

#[test]
pub(crate) fn an_expert_that_more_tokens_chose_than_a_tile_holds_is_right() {
    check(&Gpus::new(1), Case { experts: 2, top_k: 1, latent: 128, columns: 32, tokens: 150, capacity: 256 });
    check(&Gpus::new(1), Case { experts: 1, top_k: 1, latent: 160, columns: 96, tokens: 70, capacity: 128 });
}

/// Small launches that run through the whole of the kernels.
pub(crate) fn exercise() {
    one_launch_for_few_tokens_routes_as_two_launches_do();
    let gpus = Gpus::new(1);
    for (tokens, capacity) in [(1, 1), (9, 128)] {
        check(&gpus, Case { experts: 4, top_k: 2, latent: 128, columns: 64, tokens, capacity });
    }
}
