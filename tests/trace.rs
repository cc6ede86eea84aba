//! Each block of K3-nano on the emulated GPUs against the golden trace of an FP32 reference, and the logits end to end.
//!
//! Figures are printed: run with `--nocapture` to see them.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use cli::k3_nano;
use half::bf16;
use kimi_hcq::engine::{Block, Engine, Options};
use kimi_hcq::loader::Silent;
use kimi_hcq::platform::Platform;
use model::checkpoint::Checkpoint;
use model::config::{Config, FeedForward};
use model::golden::Trace;
use model::tensor::{LayerTensor, TensorId};

/// What right BF16 arithmetic may differ by from FP32, relative L2 of a row: it gives about 0.0054.
const ROW_BOUND: f64 = 1e-2;
/// Of the logits over the whole prompt: right BF16 arithmetic gives about 0.014.
const LOGITS_BOUND: f64 = 3e-2;
/// Tokens whose experts are chosen by less than this may choose others in BF16.
const MARGIN: f32 = 2e-3;

struct Bench {
    engine: Engine,
    checkpoint: Checkpoint,
    trace: Trace,
}

impl Bench {
    fn start(options: Options) -> Self {
        let config = Config::read(&k3_nano()).unwrap();
        let checkpoint = Checkpoint::open(&k3_nano(), &config).unwrap();
        let machine = mock::Config { gpus: options.devices, ..mock::Config::default() };
        let platform = Platform::open_mock(machine).unwrap();
        let engine = Engine::start(&platform, &checkpoint, options, &Silent).unwrap();
        Self { engine, checkpoint, trace: Trace::read(&k3_nano()).unwrap() }
    }

    /// Runs the block on the trace's own input; gives the relative L2 error of each token's row.
    fn row_errors(&mut self, block: Block, name: &str) -> Vec<f64> {
        let input = self.trace.tensor(&format!("{name}.in")).unwrap();
        let expected = self.trace.tensor(&format!("{name}.out")).unwrap();
        let rounded: Vec<bf16> = input.values.iter().map(|&value| bf16::from_f32(value)).collect();
        let output = self.engine.run_block(block, &rounded).unwrap();
        let width = expected.shape[1];
        output
            .chunks(width)
            .zip(expected.values.chunks(width))
            .map(|(found, expected)| relative_l2(found.iter().map(|value| value.to_f32()), expected))
            .collect()
    }

    /// By token: the corrected score of the last chosen expert less that of the best one left out.
    fn margins(&self, layer: usize) -> Vec<f32> {
        let config = self.checkpoint.config();
        let tensor = |tensor| self.checkpoint.read(TensorId::Layer(layer as u16, tensor)).unwrap().unwrap();
        let gate: Vec<f32> =
            tensor(LayerTensor::Router).chunks(2).map(|b| bf16::from_le_bytes([b[0], b[1]]).to_f32()).collect();
        let bias: Vec<f32> =
            tensor(LayerTensor::RouterBias).chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let input = self.trace.tensor(&format!("layers.{layer}.block_sparse_moe.in")).unwrap();
        let width = config.hidden_size;
        input
            .values
            .chunks(width)
            .map(|x| {
                let mut scores: Vec<f32> = gate
                    .chunks(width)
                    .zip(&bias)
                    .map(|(row, bias)| {
                        let logit: f32 = row.iter().zip(x).map(|(w, x)| w * x).sum();
                        1.0 / (1.0 + (-logit).exp()) + bias
                    })
                    .collect();
                scores.sort_by(|a, b| b.total_cmp(a));
                let chosen = config.moe.experts_per_token;
                scores[chosen - 1] - scores[chosen]
            })
            .collect()
    }
}

fn relative_l2(found: impl Iterator<Item = f32>, expected: &[f32]) -> f64 {
    let (mut difference, mut norm) = (0.0, 0.0);
    for (found, &expected) in found.zip(expected) {
        difference += f64::from(found - expected).powi(2);
        norm += f64::from(expected).powi(2);
    }
    (difference / norm).sqrt()
}

fn check_blocks(devices: usize) {
    let mut bench = Bench::start(Options { devices, ..Options::default() });
    let layers = bench.checkpoint.config().layers.clone();
    for (layer, kind) in layers.iter().enumerate() {
        let errors = bench.row_errors(Block::Attention(layer), &format!("layers.{layer}.self_attn"));
        report(devices, layer, "attention", &errors, errors.len());
        // The trace has no dense block: layer 0's is covered by the logits.
        if kind.feed_forward == FeedForward::Moe {
            let errors = bench.row_errors(Block::FeedForward(layer), &format!("layers.{layer}.block_sparse_moe"));
            let margins = bench.margins(layer);
            let sure: Vec<f64> =
                errors.iter().zip(&margins).filter(|(_, margin)| **margin > MARGIN).map(|(error, _)| *error).collect();
            assert!(sure.len() * 2 > errors.len(), "most tokens choose their experts clearly");
            report(devices, layer, "MoE", &sure, errors.len());
        }
    }
}

fn report(devices: usize, layer: usize, what: &str, errors: &[f64], tokens: usize) {
    let worst = errors.iter().copied().fold(0.0, f64::max);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    println!(
        "TP {devices}, layer {layer} {what}: worst row {worst:.5}, mean {mean:.5}, {} of {tokens} tokens",
        errors.len()
    );
    assert!(worst <= ROW_BOUND, "TP {devices}, layer {layer} {what}: {worst} at some token");
}

#[test]
fn every_block_is_within_bf16_of_the_reference_on_one_gpu() {
    check_blocks(1);
}

#[test]
fn every_block_is_within_bf16_of_the_reference_on_eight_gpus() {
    check_blocks(8);
}

/// Runs the first `count` tokens of the prompt; gives their logits' bits.
fn check_logits(bench: &mut Bench, count: usize) -> Vec<u32> {
    let ids = &bench.trace.ids().unwrap()[..count];
    let expected = bench.trace.tensor("logits").unwrap();
    let logits = bench.engine.logits(ids).unwrap().concat();
    let error = relative_l2(logits.iter().copied(), &expected.values[..logits.len()]);
    println!("logits: relative L2 {error:.5} over {count} tokens");
    assert!(error <= LOGITS_BOUND, "{error}");
    logits.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn the_logits_of_a_whole_prompt_are_within_bf16_of_the_reference() {
    let mut bench = Bench::start(Options { all_logits: true, ..Options::default() });
    let count = bench.trace.ids().unwrap().len();
    let first = check_logits(&mut bench, count);
    assert_eq!(first, check_logits(&mut bench, count), "two runs give identical bits");
}

/// The kernels of decode, which work on one token, on every token of a prompt.
#[test]
fn the_logits_of_a_prompt_run_token_by_token_are_within_bf16_of_the_reference() {
    let mut bench = Bench::start(Options { devices: 2, chunk: 1, all_logits: true, ..Options::default() });
    check_logits(&mut bench, 40);
}
