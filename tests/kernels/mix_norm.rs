//! Attention-residual mix and RMSNorm.

use kernels::mix_norm::MixNorm;
use kernels::{GpuVa, Step};

use crate::support::{Bf16, Gpus, Job, Random, Rows, assert_rows_close, mix, rms_norm, widened};

const EPS: f64 = 1e-5;
/// Two roundings to BF16: of the mix and of the norm.
const TOLERANCE: f64 = 4e-3;

struct Case {
    width: usize,
    blocks: usize,
    tokens: usize,
    capacity: usize,
    save: bool,
    last_only: bool,
}

fn check(gpus: &Gpus, case: Case) {
    let Case { width, blocks, tokens, capacity, save, last_only } = case;
    let mut random = Random::new((width + blocks) as u64);
    let h = random.bf16s(tokens * width, 1.5);
    // Blocks are as far apart as for a full run; rows beyond the valid ones are never touched.
    let saved: Vec<_> = (0..blocks).map(|_| random.bf16s(tokens * width, 0.7)).collect();
    let mut arena = Vec::new();
    for block in &saved {
        arena.extend_from_slice(block);
        arena.resize(arena.len() + (capacity - tokens) * width, 0);
    }
    let [norm, proj, weight] = [0.5, 0.1, 1.0].map(|deviation| random.bf16s(width, deviation));
    let out_rows = if last_only { 1 } else { tokens };
    let (h_va, arena_va) = (gpus.upload(0, &h), gpus.upload(0, if blocks == 0 { &[0][..] } else { &arena }));
    let [norm_va, proj_va, weight_va] = [&norm, &proj, &weight].map(|values| gpus.upload(0, values));
    let (out, copy) = (gpus.fresh(0, out_rows * width * 2), gpus.fresh(0, tokens * width * 2));
    let step = gpus.upload(0, &[Step { count: tokens as u32, ..Step::default() }]);
    let launch = MixNorm {
        step: step.va(),
        h: h_va.va(),
        blocks: arena_va.va(),
        save: if save { copy.va() } else { GpuVa::NULL },
        norm: norm_va.va(),
        proj: proj_va.va(),
        weight: weight_va.va(),
        out: out.va(),
        block_stride: (capacity * width * 2) as u64,
        block_count: blocks as u32,
        width: width as u32,
        eps: EPS as f32,
        last_only: u32::from(last_only),
        tokens: capacity as u32,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);

    let (norm, proj, weight) = (widened(&norm), widened(&proj), widened(&weight));
    let h_rows = Rows::of_bf16(width, &h);
    let saved: Vec<_> = saved.iter().map(|block| Rows::of_bf16(width, block)).collect();
    let expected = (tokens - out_rows..tokens).flat_map(|token| {
        let mut sources: Vec<_> = saved.iter().map(|block| block.row(token)).collect();
        sources.push(h_rows.row(token));
        let mixed = if blocks == 0 { h_rows.row(token).to_vec() } else { mix(&sources, &norm, &proj, EPS) };
        rms_norm(&mixed, &weight, EPS)
    });
    let what = format!("mix of {blocks} blocks and h, width {width}, {tokens} tokens");
    let found = Rows::of_bf16(width, &gpus.read::<Bf16>(&out));
    assert_rows_close(&what, &found, &Rows::new(width, expected.collect()), TOLERANCE);
    if save {
        assert_eq!(gpus.read::<Bf16>(&copy), h, "{what}: the saved block");
    }
}

#[test]
pub(crate) fn every_number_of_blocks_is_mixed_right() {
    let gpus = Gpus::new(1);
    for blocks in 0..=8 {
        check(&gpus, Case { width: 256, blocks, tokens: 3, capacity: 16, save: blocks % 2 == 0, last_only: false });
    }
}

#[test]
fn the_official_width_with_all_eight_blocks_is_right() {
    check(&Gpus::new(1), Case { width: 7168, blocks: 8, tokens: 2, capacity: 2, save: true, last_only: false });
}

#[test]
pub(crate) fn the_latent_is_normed_at_both_widths() {
    let gpus = Gpus::new(1);
    for width in [128, 3584] {
        check(&gpus, Case { width, blocks: 0, tokens: 5, capacity: 128, save: false, last_only: false });
    }
}

#[test]
pub(crate) fn the_head_gets_the_last_valid_token_alone() {
    let gpus = Gpus::new(1);
    for tokens in [1, 77] {
        check(&gpus, Case { width: 256, blocks: 3, tokens, capacity: 128, save: false, last_only: true });
    }
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise() {
    let gpus = Gpus::new(1);
    check(&gpus, Case { width: 256, blocks: 3, tokens: 2, capacity: 16, save: true, last_only: false });
    check(&gpus, Case { width: 7168, blocks: 0, tokens: 1, capacity: 1, save: false, last_only: true });
    check(&gpus, Case { width: 2056, blocks: 8, tokens: 2, capacity: 2, save: true, last_only: false });
}
