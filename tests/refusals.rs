//! What a user gets wrong: one clear line, the right exit code, nothing half-done.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use std::path::Path;
use std::process::Output;

use cli::{k3_nano, kimi, run};

/// A copy of the bundled model that a test may spoil. Large files are linked.
fn model() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(k3_nano()).unwrap() {
        let path = entry.unwrap().path();
        let to = folder.path().join(path.file_name().unwrap());
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            std::os::unix::fs::symlink(path.canonicalize().unwrap(), to).unwrap();
        } else if path.is_file() {
            std::fs::copy(path, to).unwrap();
        }
    }
    folder
}

fn one_line(output: &Output, code: i32, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(output.stdout.is_empty(), "{output:?}");
}

fn prompt(model: &Path, more: &[&str]) -> Output {
    let arguments = ["run", "--devices", "1", "--prompt", "Hi", "--model", model.to_str().unwrap()];
    run("gpus=1", &[&arguments[..], more].concat())
}

#[test]
fn without_a_gpu_and_without_a_mock_both_ways_out_are_named() {
    if Path::new("/dev/kfd").exists() {
        println!("SKIPPED: this machine has /dev/kfd");
        return;
    }
    for command in [&["devices"][..], &["run", "--prompt", "Hi"]] {
        one_line(&run("", command), 1, &["/dev/kfd", "amdgpu", "MOCKKFD=1"]);
    }
}

#[test]
fn words_of_mockkfd_that_are_not_known_are_refused() {
    one_line(&run("gpus=8,turbo", &["devices"]), 2, &["unknown word `turbo`"]);
    one_line(&run("gpus=8,gpus=1", &["devices"]), 2, &["`gpus=1` is said twice"]);
    one_line(&kimi("", &["devices"]).env("MOCKKFD", "").output().unwrap(), 2, &["MOCKKFD is empty"]);
}

#[test]
fn unknown_flags_and_values_are_usage_errors() {
    for arguments in [
        &["run", "--prompt", "Hi", "--turbo"][..],
        &["run"],
        &["run", "--prompt", "Hi", "--raw", "Hi"],
        &["run", "--prompt", "Hi", "--devices", "3"],
        &["run", "--prompt", "Hi", "--effort", "medium"],
        &["run", "--prompt", "Hi", "--max-context", "0"],
        &["mock", "exec", "anywhere", "--timeout", "0"],
        &["frobnicate"],
    ] {
        let output = run("1", arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn requests_without_a_message_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests");
    let arguments = ["run", "--requests", path.to_str().unwrap()];
    std::fs::write(&path, "\n").unwrap();
    one_line(&run("gpus=1", &arguments), 2, &["has no request"]);
    std::fs::write(&path, "{\"messages\":[]}\n").unwrap();
    one_line(&run("gpus=1", &arguments), 2, &["requests line 1: `messages` is empty"]);
}

#[test]
fn documents_with_tokens_that_the_model_does_not_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("documents.json");
    std::fs::write(&path, "{\"documents\":[{\"tokens\":[1,999999]}]}").unwrap();
    let output = run("gpus=1", &["perplexity", "--devices", "1", "--documents", path.to_str().unwrap()]);
    one_line(&output, 2, &["token 999999"]);
}

#[test]
fn more_devices_than_the_machine_has_are_refused() {
    one_line(&run("gpus=2", &["run", "--prompt", "Hi"]), 2, &["8 GPUs are wanted", "has 2", "--devices"]);
}

#[test]
fn a_prompt_longer_than_the_context_is_refused() {
    let model = k3_nano();
    one_line(&prompt(&model, &["--max-context", "8"]), 2, &["tokens", "context is 8"]);
}

#[test]
fn more_context_than_the_model_was_made_for_is_refused() {
    one_line(&prompt(&k3_nano(), &["--max-context", "8192"]), 2, &["8192", "4096"]);
}

#[test]
fn a_missing_shard_is_named_and_not_created() {
    let folder = model();
    let shard = folder.path().join("model-00003-of-000006.safetensors");
    std::fs::remove_file(&shard).unwrap();
    one_line(&prompt(folder.path(), &[]), 2, &["model-00003-of-000006.safetensors"]);
    assert!(!shard.exists());
}

#[test]
fn a_truncated_shard_is_named() {
    let folder = model();
    let shard = folder.path().join("model-00002-of-000006.safetensors");
    let bytes = std::fs::read(&shard).unwrap();
    std::fs::remove_file(&shard).unwrap();
    std::fs::write(&shard, &bytes[..bytes.len() - 100]).unwrap();
    one_line(&prompt(folder.path(), &[]), 2, &["model-00002-of-000006.safetensors"]);
}

#[test]
fn a_wrong_model_is_named_field_by_field() {
    let folder = model();
    let path = folder.path().join("config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["text_config"]["hidden_act"] = "silu".into();
    config["text_config"]["mla_use_nope"] = false.into();
    std::fs::write(&path, serde_json::to_vec(&config).unwrap()).unwrap();
    let output = prompt(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    for part in ["hidden_act", "silu", "situ", "mla_use_nope"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_folder_that_is_no_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    one_line(&prompt(folder.path(), &[]), 2, &["config.json"]);
}

#[test]
fn requests_that_are_no_requests_are_named_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.jsonl");
    std::fs::write(&file, "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}\n{\"messages\": 3}\n").unwrap();
    one_line(&run("1", &["run", "--requests", file.to_str().unwrap()]), 2, &["requests.jsonl line 2"]);
    one_line(&run("1", &["run", "--messages", "/nonexistent/file"]), 2, &["/nonexistent/file"]);
}
