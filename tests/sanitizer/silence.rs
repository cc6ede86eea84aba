//! K3-nano runs without a report.

use crate::cli;

/// Answers under the sanitizer; fails on any report.
fn check(devices: &str) {
    let arguments = ["run", "--json", "--devices", devices, "--raw", "Hi", "--max-tokens", "2"];
    let output = cli::run(&format!("check,gpus={devices}"), &arguments);
    let text = String::from_utf8_lossy(&output.stdout);
    let report: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(report["reports"], serde_json::json!([]), "{devices} GPUs");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_token_on_one_and_on_two_gpus() {
    check("1");
    check("2");
}

#[test]
#[ignore = "half a minute; .ci/sweep runs it"]
fn a_token_on_eight_gpus() {
    check("8");
}
