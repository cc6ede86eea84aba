//! K3-nano runs without a report.

use crate::cli;

/// Answers under the sanitizer; fails on any report.
fn check(devices: &str, more: &[&str]) {
    let arguments = [&["run", "--json", "--devices", devices], more].concat();
    let output = cli::run(&format!("check,gpus={devices}"), &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(report["reports"], serde_json::json!([]), "{devices} GPUs, {more:?}");
    assert_eq!(output.status.code(), Some(0));
}

const SHORT: [&str; 4] = ["--raw", "Hi", "--max-tokens", "2"];

#[test]
fn a_token_on_one_and_on_two_gpus() {
    check("1", &SHORT);
    check("2", &SHORT);
}

#[test]
#[ignore = "half a minute; .ci/sweep runs it"]
fn a_token_on_eight_gpus() {
    check("8", &SHORT);
}

#[test]
#[ignore = "half a minute; .ci/sweep runs it"]
fn a_token_in_an_indirect_buffer_and_with_signals_between_gpus() {
    check("2", &[&SHORT[..], &["--submit", "ib"]].concat());
    check("2", &[&SHORT[..], &["--collectives", "signals"]].concat());
}

#[test]
#[ignore = "a minute; .ci/sweep runs it"]
fn a_prompt_of_several_chunks() {
    check("2", &["--prompt", "What is 17 + 25?", "--chunk", "16", "--max-tokens", "1"]);
}
