//! `kimi-hcq preflight` from the outside.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn nano() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano")
}

fn preflight(model: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kimi-hcq"));
    command.arg("preflight").arg("--model").arg(model).args(arguments).env_remove("MOCKKFD");
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Texts and fixes of the checks with a status.
fn checks(report: &Value, status: &str) -> Vec<String> {
    let all = report["checks"].as_array().unwrap().iter();
    let with = all.filter(|check| check["status"] == status);
    with.map(|check| format!("{} {}", check["found"].as_str().unwrap(), check["fix"].as_str().unwrap_or(""))).collect()
}

fn assert_adds_up(report: &Value) {
    let rows = report["plan"]["rows"].as_array().unwrap().iter();
    let sum: i64 = rows.map(|row| row["bytes"].as_i64().unwrap()).sum();
    assert_eq!(Some(sum), report["plan"]["vram_bytes"].as_i64());
}

#[test]
fn the_official_stand_in_has_the_published_tensors_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let written = Command::new(env!("CARGO_BIN_EXE_kimi-hcq"))
        .args(["fixture", "official", "--json", "--sparse"])
        .arg(folder.path())
        .output()
        .unwrap();
    let written = json(&written);
    assert!(written["disk_bytes"].as_u64().unwrap() < 160 << 20, "{written}");

    let output = preflight(folder.path(), &["--metadata-only", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    let model = &report["model"];
    assert_eq!(model["shards"], 96);
    assert_eq!(model["tensors"], 497_220);
    assert_eq!(model["text_tensors"], 497_052);
    assert_eq!(model["text_bytes"], 1_559_965_606_912_u64);
    assert_eq!(model["vision_tensors"], 168);
    assert_eq!(model["total_bytes"], 1_560_860_324_864_u64);
    assert_eq!(model["bytes_per_gpu"], 196_784_365_296_u64);
    assert_eq!(report["status"], "ok");
    assert_adds_up(&report);

    let text = preflight(folder.path(), &["--metadata-only"]).output().unwrap();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for number in ["497220 tensors in 96 shards", "1559965606912 bytes", "196784365296 bytes of weights on each GPU"] {
        assert!(text.contains(number), "{text}");
    }

    let full = preflight(folder.path(), &["--json"]).env("MOCKKFD", "1").output().unwrap();
    assert_eq!(full.status.code(), Some(0), "{full:?}");
    let full = json(&full);
    assert_eq!(full["mounts"][0]["shards"], 96);
    assert!(full["estimated_load_seconds"].as_f64().unwrap() > 0.0);
    assert!(checks(&full, "warning").iter().any(|check| check.contains("mostly holes")), "{full}");
}

#[test]
fn metadata_needs_neither_device_nor_mock_and_everything_else_does() {
    let output = preflight(&nano(), &["--metadata-only", "--json"]).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!(report["mounts"], Value::from(Vec::<Value>::new()));
    if Path::new("/dev/kfd").exists() {
        return;
    }
    let output = preflight(&nano(), &["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(checks(&json(&output), "failure")[0].contains("/dev/kfd"));
}

#[test]
fn a_machine_that_would_do_is_described_line_by_line() {
    let output = preflight(&nano(), &["--json", "--devices", "8"]).env("MOCKKFD", "1").output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    let found = checks(&report, "ok").join("\n");
    for words in ["/dev/kfd opens", "8 x gfx950", "partition mode", "peer access", "large BAR", "render nodes open"] {
        assert!(found.contains(words), "{words}: {found}");
    }
    assert_adds_up(&report);
    assert_eq!(report["model"]["largest_context"], 4096);
}

#[test]
fn too_few_gpus_and_parts_of_gpus_are_named() {
    let output = preflight(&nano(), &["--json"]).env("MOCKKFD", "gpus=4,xcc=2").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(checks(&json(&output), "failure")[0].contains("8 GPUs are wanted, 4 are usable use --devices 4"));
    let output = preflight(&nano(), &["--json", "--devices", "4"]).env("MOCKKFD", "gpus=4,xcc=2").output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(checks(&report, "warning").iter().any(|check| check.contains("4 of 4 nodes have 2 XCCs")), "{report}");
}

#[test]
fn a_context_that_does_not_fit_is_a_failure_that_says_which_does() {
    let whole = json(&preflight(&nano(), &["--metadata-only", "--json"]).output().unwrap());
    let room = whole["plan"]["rows"].as_array().unwrap().last().unwrap()["bytes"].as_u64().unwrap();
    let short = (whole["plan"]["vram_bytes"].as_u64().unwrap() - room - (1 << 20)) / 4096 * 4096;
    let machine = format!("vram={short}");
    let output = preflight(&nano(), &["--json"]).env("MOCKKFD", &machine).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(2), "{report}");
    let largest = report["model"]["largest_context"].as_u64().unwrap();
    assert!(largest < 4096);
    assert!(checks(&report, "failure")[0].contains(&format!("--max-context {largest} fits")), "{report}");
    assert_adds_up(&report);
    let fits = preflight(&nano(), &["--json", "--max-context", &largest.to_string()]).env("MOCKKFD", machine).output();
    assert_eq!(fits.unwrap().status.code(), Some(0));
}

/// A folder of links to K3-nano, as in the Hugging Face cache.
fn linked_nano() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(nano()).unwrap() {
        let path = entry.unwrap().path().canonicalize().unwrap();
        if path.is_file() {
            symlink(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    folder
}

fn edit(folder: &TempDir, name: &str, change: impl FnOnce(&mut Value)) {
    let path = folder.path().join(name);
    let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    fs::remove_file(&path).unwrap();
    fs::write(&path, value.to_string()).unwrap();
}

#[test]
fn each_wrong_field_of_the_config_has_its_own_line() {
    let folder = linked_nano();
    edit(&folder, "config.json", |config| {
        config["text_config"]["hidden_act"] = "silu".into();
        config["text_config"]["topk_group"] = 2.into();
    });
    let output = preflight(folder.path(), &["--metadata-only", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let failures = checks(&json(&output), "failure");
    assert_eq!(failures.len(), 2);
    assert!(failures[0].contains("hidden_act") && failures[1].contains("topk_group"), "{failures:?}");
}

#[test]
fn each_disagreement_of_index_and_headers_has_its_own_line() {
    let folder = linked_nano();
    edit(&folder, "model.safetensors.index.json", |index| {
        let map = index["weight_map"].as_object_mut().unwrap();
        map.remove("language_model.lm_head.weight");
        map.insert("language_model.model.norm.bias".into(), "model-00001-of-000006.safetensors".into());
    });
    let output = preflight(folder.path(), &["--metadata-only", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let failures = checks(&json(&output), "failure").join("\n");
    assert!(failures.contains("does not list language_model.lm_head.weight"), "{failures}");
    assert!(failures.contains("language_model.model.norm.bias") && failures.contains("no tensor of this model"));
}

#[test]
fn a_missing_tokenizer_is_a_warning_as_weights_load_without_it() {
    let folder = linked_nano();
    fs::remove_file(folder.path().join("tiktoken.model")).unwrap();
    let output = preflight(folder.path(), &["--metadata-only", "--json"]).output().unwrap();
    let report = json(&output);
    assert_eq!(output.status.code(), Some(0));
    assert!(checks(&report, "warning")[0].contains("tiktoken.model"), "{report}");
}
