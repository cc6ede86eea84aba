//! The CPU reference against the golden files of K3-nano.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use model::golden::{Trace, greedy, k3_nano, perplexity};
use model::reference::{LayerState, Matrix, Mix, Reference, relative_l2};
use model::sampling;
use model::{Checkpoint, Config};

fn reference() -> Reference {
    let config = Config::read(&k3_nano()).unwrap();
    Reference::load(&Checkpoint::open(&k3_nano(), &config).unwrap()).unwrap()
}

/// Two FP32 programs that add in another order; the golden one agrees with the vendor's code to 3.4e-6.
const BOUND: f64 = 5e-6;

fn assert_close(name: &str, ours: &[f32], golden: &[f32]) -> f64 {
    let error = relative_l2(ours, golden);
    assert!(error < BOUND, "{name}: relative L2 error {error:.2e}");
    error
}

#[test]
fn every_tensor_of_the_golden_trace_is_reproduced() {
    let (reference, trace) = (reference(), Trace::read(&k3_nano()).unwrap());
    let mut state = reference.initial_state();
    let mut seen: BTreeMap<String, Matrix> = BTreeMap::new();
    let logits = reference.forward_traced(&trace.ids().unwrap(), &mut state, |name, values| {
        seen.insert(name.to_owned(), values.clone());
    });
    seen.insert("logits".to_owned(), logits);
    for (layer, state) in state.0.into_iter().enumerate() {
        match state {
            LayerState::Kda(state) => {
                let dim = reference.config().kda.head_dim;
                seen.insert(format!("layers.{layer}.self_attn.state_khv"), Matrix::new(dim, state.recurrent));
            }
            LayerState::Mla(state) => _ = seen.insert(format!("layers.{layer}.self_attn.latent_cache"), state.latents),
        }
    }
    let mut worst: f64 = 0.0;
    for name in trace.names().unwrap().into_iter().filter(|name| name != "ids") {
        let golden = trace.tensor(&name).unwrap();
        let error = assert_close(&name, seen[&name].values(), &golden.values);
        println!("{name}: {error:.2e}");
        worst = worst.max(error);
    }
    println!("worst: {worst:.2e}");
}

#[test]
fn each_block_alone_gives_the_golden_output_for_the_golden_input() {
    let (reference, trace) = (reference(), Trace::read(&k3_nano()).unwrap());
    let golden = |name: String| Matrix::new(reference.config().hidden_size, trace.tensor(&name).unwrap().values);
    let mut states = reference.initial_state();
    for (layer, state) in states.0.iter_mut().enumerate() {
        let input = golden(format!("layers.{layer}.self_attn.in"));
        let output = golden(format!("layers.{layer}.self_attn.out"));
        assert_close("attention", reference.attention(layer, &input, state).values(), output.values());
        if layer > 0 {
            let input = golden(format!("layers.{layer}.block_sparse_moe.in"));
            let output = golden(format!("layers.{layer}.block_sparse_moe.out"));
            assert_close("experts", reference.feed_forward(layer, &input).values(), output.values());
            let chosen: Vec<Vec<usize>> = {
                let routing = reference.route(layer, &input);
                routing.0.iter().map(|experts| experts.iter().map(|(expert, _)| *expert).collect()).collect()
            };
            let forced = reference.route_forced(layer, &input, &chosen);
            assert_close("forced experts", reference.moe(layer, &input, &forced).values(), output.values());
            let mut others = chosen;
            others.iter_mut().for_each(|experts| experts.iter_mut().for_each(|expert| *expert = (*expert + 8) % 16));
            let wrong = reference.moe(layer, &input, &reference.route_forced(layer, &input, &others));
            assert!(relative_l2(wrong.values(), output.values()) > 0.01);
        }
    }
}

#[test]
fn a_mix_with_a_single_source_is_that_source() {
    let reference = reference();
    let h = reference.embed(&[5, 6, 7]);
    let mixed = reference.mix(Mix::Attention(0), &[], &h);
    assert_close("mix", mixed.values(), h.values());
}

#[test]
fn tokens_one_at_a_time_give_the_logits_of_all_at_once() {
    let (reference, trace) = (reference(), Trace::read(&k3_nano()).unwrap());
    let ids = &trace.ids().unwrap()[..20];
    let whole = reference.forward(ids, &mut reference.initial_state());
    let mut state = reference.initial_state();
    for (position, id) in ids.iter().enumerate() {
        let logits = reference.forward(&[*id], &mut state);
        assert_close("logits", logits.values(), whole.row(position));
    }
}

#[test]
fn greedy_decoding_gives_the_golden_replies() {
    let reference = reference();
    for case in greedy(&k3_nano()).unwrap() {
        let mut state = reference.initial_state();
        let logits = reference.forward(&case.prompt_tokens, &mut state);
        let mut token = sampling::greedy(logits.row(logits.rows() - 1)).unwrap();
        let mut reply = vec![token];
        while token != reference.config().eos_token && reply.len() < case.tokens.len() {
            let logits = reference.forward(&[token], &mut state);
            token = sampling::greedy(logits.row(0)).unwrap();
            reply.push(token);
        }
        assert_eq!(reply, case.tokens, "{}", case.name);
    }
}

#[test]
fn the_likelihood_of_held_out_documents_is_the_golden_one() {
    let reference = reference();
    let golden = perplexity(&k3_nano()).unwrap();
    for document in &golden.documents {
        let logits = reference.forward(&document.tokens, &mut reference.initial_state());
        let nll = |(position, token): (usize, &u32)| {
            let row = logits.row(position);
            let highest = f64::from(row.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            let sum: f64 = row.iter().map(|logit| (f64::from(*logit) - highest).exp()).sum();
            sum.ln() + highest - f64::from(row[*token as usize])
        };
        let sum: f64 = document.tokens[1..].iter().enumerate().map(nll).sum();
        assert_eq!(document.predicted, document.tokens.len() - 1);
        assert!((sum - document.nll_sum).abs() < 1e-3, "{sum} and {}", document.nll_sum);
    }
}
