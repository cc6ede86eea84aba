//! K3-nano predicts the golden documents as well as the reference does.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use cli::{k3_nano, objects, run};

/// How far the mean may be from the FP32 reference's: BF16 arithmetic at the right places stays well inside.
const TOLERANCE: f64 = 0.003;

#[test]
fn the_mean_negative_log_likelihood_is_that_of_the_reference() {
    let file = k3_nano().join("golden/perplexity.json");
    let golden: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let output = run("gpus=2", &["perplexity", "--json", "--devices", "2", "--documents", file.to_str().unwrap()]);
    let report = &objects(&output)[0];
    assert_eq!(report["predicted"], golden["predicted"]);
    assert_eq!(report["documents"].as_array().unwrap().len(), golden["documents"].as_array().unwrap().len());
    let (mean, expected) = (report["mean_nll"].as_f64().unwrap(), golden["mean_nll"].as_f64().unwrap());
    println!("mean NLL {mean:.6}, the reference's is {expected:.6}: {:+.4} %", (mean / expected - 1.0) * 100.0);
    assert!((mean / expected - 1.0).abs() < TOLERANCE, "{mean} instead of {expected}");
}
