//! Routed experts of one token.

use kernels::Step;
use kernels::expert::{ExpertDown, ExpertUp};

use crate::moe::{Mxfp4, choose, place};
use crate::support::{Bf16, Buffer, Exchange, Gpus, Job, PATIENT, Random, Rows, assert_rows_close, situ, widened};

/// A layer's experts on one rank: of each of them columns of w1 and w3 and the same columns of w2.
struct Experts {
    w1: Vec<Mxfp4>,
    w2: Vec<Mxfp4>,
    w3: Vec<Mxfp4>,
    arena: Vec<u8>,
    /// Of packed w1, its scales, w2, w3 likewise.
    offsets: [u32; 6],
    stride: usize,
}

impl Experts {
    /// `count` experts, of which those not in `resident` share the weights of the first.
    fn random(random: &mut Random, count: usize, resident: usize, latent: usize, columns: usize) -> Self {
        let mut matrices = |rows, depth| (0..resident).map(|_| Mxfp4::random(random, rows, depth)).collect::<Vec<_>>();
        let (w1, w3, w2) = (matrices(columns, latent), matrices(columns, latent), matrices(latent, columns));
        let (mut arena, mut offsets, mut stride) = (Vec::new(), [0; 6], 0);
        for e in 0..count {
            let e = e % resident;
            let (bytes, at) = place([&w1[e], &w2[e], &w3[e]]);
            (offsets, stride) = (at, bytes.len());
            arena.extend(bytes);
        }
        Self { w1, w2, w3, arena, offsets, stride }
    }

    /// Sum over `chosen` of weight times the expert's output.
    fn apply(&self, z: &Rows, chosen: &[(u32, f64)]) -> Vec<f64> {
        let mut sum = vec![0.0; z.width];
        for &(expert, weight) in chosen {
            let e = expert as usize % self.w1.len();
            let (gate, up) = (z.times(&self.w1[e].values), z.times(&self.w3[e].values));
            let hidden: Vec<f64> = gate.values.iter().zip(&up.values).map(|(&gate, &up)| situ(gate, up)).collect();
            let part = Rows::new(hidden.len(), hidden).times(&self.w2[e].values);
            sum.iter_mut().zip(part.values).for_each(|(sum, part)| *sum += weight * part);
        }
        sum
    }
}

struct Case {
    ranks: usize,
    experts: usize,
    resident: usize,
    top_k: usize,
    latent: usize,
    columns: usize,
}

/// From the router's logits to the sum over ranks; gives the sum.
fn check(case: &Case) -> Vec<Bf16> {
    let Case { ranks, experts, resident, top_k, latent, columns } = *case;
    let gpus = Gpus::new(ranks);
    let mut random = Random::new((latent + columns * ranks) as u64);
    let z = random.bf16s(latent, 0.5);
    // Multiples of 1/64 are far apart after the sigmoid, so no order depends on its last bits.
    let logits: Vec<f32> = (0..experts).map(|_| (random.normal(1.0) * 64.0).round() / 64.0).collect();
    let mut bias = vec![0.0; experts];
    bias[experts - 1] = 1.0;
    let chosen = choose(&logits, &bias, top_k);
    let exchange = Exchange::new(&gpus, ranks, latent as u64, PATIENT);
    let mut expected = vec![0.0; latent];
    let (mut keep, mut jobs, mut outs): (Vec<(Vec<Buffer>, Buffer)>, Vec<_>, Vec<_>) = Default::default();
    for rank in 0..ranks {
        let weights = Experts::random(&mut random, experts, resident, latent, columns);
        let part = weights.apply(&Rows::of_bf16(latent, &z), &chosen);
        expected.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        let [w1_packed, w1_scale, w2_packed, w2_scale, w3_packed, w3_scale] = weights.offsets;
        let arena = gpus.upload(rank, &weights.arena);
        let step = gpus.upload(rank, &[Step { count: 1, epoch: 5, ..Step::default() }]);
        let (logits, bias, z) = (gpus.upload(rank, &logits), gpus.upload(rank, &bias), gpus.upload(rank, &z));
        let [ids, shares] = [0; 2].map(|_| gpus.fresh(rank, top_k * 4));
        let (h, out) = (gpus.fresh(rank, top_k * columns * 2), gpus.fresh(rank, latent * 2));
        let up = ExpertUp {
            logits: logits.va(),
            bias: bias.va(),
            z: z.va(),
            experts: arena.va(),
            ids: ids.va(),
            weights: shares.va(),
            h: h.va(),
            stride: weights.stride as u64,
            w1_packed,
            w1_scale,
            w3_packed,
            w3_scale,
            packed_pitch: (latent / 2) as u32,
            scale_pitch: weights.w1[0].scale_pitch as u32,
            h_pitch: (columns * 2) as u32,
            expert_count: experts as u32,
            top_k: top_k as u32,
            scale: 1.0,
            depth: latent as u32,
            columns: columns as u32,
            situ_beta: 4.0,
            situ_linear_beta: 25.0,
        };
        let down = ExpertDown {
            step: step.va(),
            ids: ids.va(),
            weights: shares.va(),
            experts: arena.va(),
            h: h.va(),
            out: out.va(),
            mailbox: exchange.mailbox(rank),
            stride: weights.stride as u64,
            w2_packed,
            w2_scale,
            packed_pitch: (columns / 2) as u32,
            scale_pitch: weights.w2[0].scale_pitch as u32,
            h_pitch: (columns * 2) as u32,
            top_k: top_k as u32,
            depth: columns as u32,
            rows: latent as u32,
            collective: 0,
            reserved: 0,
        };
        jobs.push(vec![Job::of(&up), Job::of(&down)]);
        keep.push((vec![arena, step, logits, bias, z, shares, h], ids));
        outs.push(out);
    }
    gpus.run_all(&jobs);
    assert_eq!(exchange.failures(&gpus), vec![None; ranks]);
    let ids: Vec<u32> = chosen.iter().map(|(id, _)| *id).collect();
    let found = gpus.read::<Bf16>(&outs[0]);
    for ((_, found_ids), out) in keep.iter().zip(&outs) {
        assert_eq!(gpus.read::<u32>(found_ids), ids);
        assert_eq!(gpus.read::<Bf16>(out), found, "the same bits on every rank");
    }
    let what = format!("{experts} experts, {ranks} ranks, latent {latent}, {columns} columns");
    assert_rows_close(&what, &Rows::new(latent, widened(&found)), &Rows::new(latent, expected), 5e-3);
    found
}

#[test]
fn experts_of_k3_nano_are_right_at_every_tensor_parallel_degree() {
    for ranks in [1, 2, 4, 8] {
        check(&Case { ranks, experts: 16, resident: 16, top_k: 4, latent: 128, columns: 256 / ranks });
    }
}

#[test]
pub(crate) fn sixteen_of_many_experts_are_chosen_and_summed_in_the_same_bits_every_time() {
    let case = Case { ranks: 1, experts: 896, resident: 2, top_k: 16, latent: 160, columns: 32 };
    assert_eq!(check(&case), check(&case));
    check(&Case { ranks: 2, experts: 1024, resident: 2, top_k: 64, latent: 64, columns: 64 });
    check(&Case { ranks: 1, experts: 65, resident: 3, top_k: 1, latent: 544, columns: 96 });
}

#[test]
fn experts_of_official_width_are_right() {
    check(&Case { ranks: 1, experts: 2, resident: 2, top_k: 2, latent: 3584, columns: 384 });
}

/// Small launches that run through the whole of both kernels.
pub(crate) fn exercise() {
    check(&Case { ranks: 2, experts: 4, resident: 4, top_k: 2, latent: 128, columns: 64 });
}
