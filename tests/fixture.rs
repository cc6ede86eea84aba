//! `kimi-hcq fixture` from the outside, and loads of what it makes.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kimi-hcq"));
    command.args(arguments).env_remove("MOCKKFD");
    command
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn nano_config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano/config.json")
}

#[test]
fn a_random_checkpoint_of_any_config_loads_onto_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let mut config: Value = serde_json::from_slice(&fs::read(nano_config()).unwrap()).unwrap();
    config["text_config"]["num_experts"] = 24.into();
    config["text_config"]["intermediate_size"] = 320.into();
    let config_file = folder.path().join("odd.json");
    fs::write(&config_file, config.to_string()).unwrap();
    let model = folder.path().join("model");
    let output =
        command(&["fixture", "random", "--json", "--seed", "9", "--config"]).arg(&config_file).arg(&model).output();
    let written = json(&output.unwrap());
    assert_eq!(written["files"], 10);

    let output = command(&["load", "--json", "--model"]).arg(&model).env("MOCKKFD", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    assert!(report["weight_bytes"].as_u64().unwrap() < written["apparent_bytes"].as_u64().unwrap());
}

#[test]
fn a_config_that_is_no_k3_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    fs::write(&config, "{}").unwrap();
    let model = folder.path().join("model");
    let output = command(&["fixture", "random", "--config"]).arg(&config).arg(&model).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(!model.exists());
}

#[test]
fn the_official_checkpoint_needs_the_word_sparse() {
    let folder = tempfile::tempdir().unwrap();
    let output = command(&["fixture", "official"]).arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

fn official() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let status = command(&["fixture", "official", "--sparse"]).arg(folder.path()).stdout(Stdio::null()).status();
    assert!(status.unwrap().success());
    folder
}

#[test]
fn a_layer_of_the_official_stand_in_loads_to_null_devices() {
    let folder = official();
    let output = command(&["load", "--null-devices", "--limit-layers", "1", "--json", "--model"])
        .arg(folder.path())
        .output()
        .unwrap();
    let report = json(&output);
    // Embedding, head, norms, and a dense KDA layer (k3-architecture sizes).
    assert_eq!(report["weight_bytes"], 4_697_620_480_u64 + 43_008 + 86_016 + 887_800_832 + 1_453_326_336);
    assert!(report["peak_rss_bytes"].as_u64().unwrap() < 256 << 20, "{report}");
}

#[test]
fn ctrl_c_ends_a_load_of_the_official_stand_in_with_130_while_it_plans_and_while_it_reads() {
    let folder = official();
    // The first handler is there before a file of the model is opened. Shards are all open at once when they are read, and
    // no disk reads 1.5 TB of holes before the test gets there.
    for files in [1, 90] {
        let child: Child = command(&["load", "--null-devices", "--json", "--model"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while open_files(child.id(), folder.path()) < files {
            std::thread::yield_now();
        }
        let pid = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        assert!(output.stdout.is_empty());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "kimi-hcq: interrupted\n");
    }
}

/// How many files of a folder a process has open.
fn open_files(pid: u32, folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|path| path.starts_with(folder)).count()
}
