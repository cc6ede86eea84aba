//! K3-nano answers as the golden file says, however many GPUs it is split over and in whatever order they advance.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use cli::{k3_nano, objects, requests_file, run};
use serde_json::Value;

fn golden() -> Vec<Value> {
    let bytes = std::fs::read(k3_nano().join("golden/greedy.json")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

/// Runs `cases` in one process and compares every token.
fn check(mock: &str, devices: &str, cases: &[Value]) {
    check_with(mock, devices, &[], cases);
}

fn check_with(mock: &str, devices: &str, more: &[&str], cases: &[Value]) {
    let file = requests_file(cases.iter().map(|case| &case["request"]));
    let path = file.path().to_str().unwrap();
    let arguments = ["run", "--json", "--devices", devices, "--requests", path];
    let output = run(mock, &[&arguments[..], more].concat());
    let answers = objects(&output);
    assert_eq!(answers.len(), cases.len());
    for (answer, case) in answers.iter().zip(cases) {
        let name = format!("{} on {devices} GPUs, MOCKKFD={mock}", case["name"]);
        assert_eq!(answer["prompt_tokens"], case["prompt_tokens"], "{name}");
        assert_eq!(
            answer["tokens"], case["tokens"],
            "{name}: {} where {} is expected",
            answer["raw_text"], case["text"]
        );
        assert_eq!(answer["raw_text"], case["text"], "{name}");
        assert_eq!(answer["finish_reason"], "stop", "{name}");
    }
}

/// Every kind of case once, the shortest of each.
fn one_of_each_kind() -> Vec<Value> {
    let kind = |case: &Value| case["name"].as_str().unwrap().split('-').next().unwrap().to_string();
    let length =
        |case: &Value| case["prompt_tokens"].as_array().unwrap().len() + case["tokens"].as_array().unwrap().len();
    let mut cases = golden();
    cases.sort_by_key(|case| (kind(case), length(case)));
    cases.dedup_by_key(|case| kind(case));
    cases
}

#[test]
fn one_case_of_each_kind_is_answered_token_by_token_on_eight_gpus() {
    let cases = one_of_each_kind();
    assert!(cases.len() >= 6);
    check("1", "8", &cases);
}

#[test]
#[ignore = "three minutes; .ci/sweep runs it"]
fn all_golden_cases_are_answered_token_by_token_on_eight_gpus() {
    let cases = golden();
    assert_eq!(cases.len(), 24);
    check("1", "8", &cases);
}

#[test]
fn cases_are_answered_on_one_two_and_four_gpus() {
    for devices in ["1", "2", "4"] {
        check("1", devices, &one_of_each_kind()[..2]);
    }
}

#[test]
#[ignore = "a minute; .ci/sweep runs it"]
fn one_case_of_each_kind_is_answered_on_one_two_and_four_gpus() {
    assert!(one_of_each_kind().len() >= 6);
    for devices in ["1", "2", "4"] {
        check("1", devices, &one_of_each_kind());
    }
}

/// The cases of these names.
fn named(names: &[&str]) -> Vec<Value> {
    let mut cases = golden();
    cases.retain(|case| names.contains(&case["name"].as_str().unwrap()));
    assert_eq!(cases.len(), names.len());
    cases
}

/// Three cases of different kinds.
fn three() -> Vec<Value> {
    named(&["arith-00", "hello-03", "fact-09"])
}

#[test]
fn another_order_of_gpus_and_waves_on_one_thread_changes_nothing() {
    check("seed=1,threads=1", "8", &three()[..1]);
}

#[test]
#[ignore = "two minutes; .ci/sweep runs it"]
fn the_order_in_which_gpus_and_waves_advance_does_not_matter() {
    for seed in 1..=3 {
        for threads in 1..=2 {
            check(&format!("seed={seed},threads={threads}"), "8", &three());
        }
    }
}

/// The hardware's order is not documented, so answers must not depend on it.
#[test]
#[ignore = "two minutes, as other orders are twenty times slower; .ci/sweep runs it"]
fn other_orders_of_accumulation_in_matrix_instructions_change_nothing() {
    for order in ["sequential", "pairwise", "cdna3"] {
        // The bits that the self-test knows are those of the default order.
        check_with(&format!("gpus=1,mfma={order}"), "1", &["--no-self-test"], &named(&["hello-03", "arith-15"]));
    }
}

#[test]
fn one_xcc_or_eight_give_the_same_answer() {
    check("gpus=1,xcc=1", "1", &one_of_each_kind()[..2]);
}

#[test]
fn the_resident_form_and_running_ahead_give_the_same_answers() {
    check_with("gpus=2", "2", &["--submit", "ib", "--run-ahead", "4"], &one_of_each_kind()[..2]);
    check_with("gpus=1", "1", &["--run-ahead", "2"], &one_of_each_kind()[..2]);
}

#[test]
#[ignore = "half a minute; .ci/sweep runs it"]
fn the_resident_form_gives_the_same_answers_on_eight_gpus() {
    check_with("1", "8", &["--submit", "ib"], &one_of_each_kind());
}

#[test]
fn collectives_with_signals_give_the_same_answers() {
    check_with("gpus=2", "2", &["--collectives", "signals"], &one_of_each_kind()[..2]);
}

#[test]
fn any_chunking_of_the_prompt_gives_the_same_answer() {
    for chunk in ["7", "512"] {
        check_with("gpus=2", "2", &["--chunk", chunk], &one_of_each_kind()[..2]);
    }
}

#[test]
#[ignore = "a minute; .ci/sweep runs it"]
fn any_chunking_of_the_prompt_gives_all_kinds_of_answers() {
    for chunk in ["1", "7", "32", "512"] {
        check_with("gpus=2", "2", &["--chunk", chunk], &one_of_each_kind());
    }
}
