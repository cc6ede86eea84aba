//! Tokens drawn on the GPUs, from the outside.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use cli::{objects, run};
use serde_json::Value;

const SHORT: [&str; 6] = ["run", "--json", "--raw", "Once", "--max-tokens", "8"];
const DRAWN: [&str; 6] = ["--temperature", "1.5", "--top-k", "200", "--top-p", "0.9"];

fn answer(devices: &str, more: &[&str]) -> Value {
    objects(&run(&format!("gpus={devices}"), &[&SHORT[..], &["--devices", devices], more].concat())).remove(0)
}

#[test]
fn the_same_tokens_are_drawn_in_every_form_of_submission() {
    let draw = |more: &[&str]| answer("2", &[&DRAWN[..], &["--seed", "7"], more].concat())["tokens"].clone();
    let drawn = draw(&[]);
    assert_eq!(drawn, draw(&["--submit", "ib"]));
    assert_eq!(drawn, draw(&["--run-ahead", "3"]));
    assert_eq!(drawn, draw(&["--logprobs", "1"]));
    assert_ne!(drawn, answer("2", &[&DRAWN[..], &["--seed", "8"]].concat())["tokens"]);
    assert_eq!(answer("2", &["--temperature", "1.5", "--top-k", "1"])["tokens"], answer("2", &[])["tokens"]);
}

#[test]
fn log_probabilities_are_those_of_the_chosen_and_of_the_most_likely_tokens() {
    let answer = answer("1", &["--logprobs", "3"]);
    let places = answer["logprobs"].as_array().unwrap();
    assert_eq!(places.len(), answer["tokens"].as_array().unwrap().len());
    for (place, token) in places.iter().zip(answer["tokens"].as_array().unwrap()) {
        assert_eq!(&place["token"], token);
        let top = place["top_logprobs"].as_array().unwrap();
        assert_eq!((&top[0]["token"], &top[0]["logprob"]), (token, &place["logprob"]), "the greedy choice");
        let values: Vec<f64> = top.iter().map(|one| one["logprob"].as_f64().unwrap()).collect();
        assert!(values.len() == 3 && values.is_sorted_by(|a, b| a >= b), "{values:?}");
        let sum: f64 = values.iter().map(|value| value.exp()).sum();
        assert!(sum > 0.0 && sum <= 1.0 + 1e-9, "{sum}");
    }
}

#[test]
fn impossible_ways_to_draw_are_refused() {
    for (arguments, part) in [
        (&["--temperature", "nan", "--json"][..], "temperature"),
        (&["--temperature", "inf", "--json"], "temperature"),
        (&["--temperature", "-1", "--json"], "temperature"),
        (&["--top-p", "0", "--json"], "top"),
        (&["--top-p", "1.5", "--json"], "top"),
        (&["--logprobs", "2"], "--json"),
    ] {
        let output = run("gpus=1", &[&["run", "--devices", "1", "--raw", "Once"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.lines().count() == 1 && text.contains(part), "{arguments:?}: {text}");
        assert!(output.stdout.is_empty());
    }
}
