//! How the process ends when the world outside does not play along: output that goes nowhere, and Ctrl-C.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/cli.rs"]
mod cli;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use cli::{k3_nano, kimi};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Commands that print text soon.
fn commands() -> Vec<Command> {
    let model = k3_nano();
    let model = model.to_str().unwrap();
    vec![
        kimi("gpus=1", &["devices"]),
        kimi("gpus=1", &["devices", "--json"]),
        kimi("", &["preflight", "--metadata-only", "--model", model]),
        kimi("gpus=1", &["load", "--devices", "1"]),
        kimi("", &["mock", "disasm", "--hex", "000081bf"]),
        kimi("", &["bench", "decode"]),
    ]
}

#[test]
fn a_full_disk_under_standard_output_is_an_error() {
    for mut command in commands() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {text}");
        assert!(text.contains("cannot write to standard output: No space left on device"), "{command:?}: {text}");
    }
}

#[test]
fn a_reader_that_has_closed_standard_output_is_not_told_so() {
    for mut command in commands() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command:?}");
    }
}

#[test]
fn notes_that_nobody_takes_do_not_cost_the_answer() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = kimi("gpus=1", &["run", "--devices", "1", "--prompt", "Hi", "--max-tokens", "8"]);
    let output = command.stdout(Stdio::piped()).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn ctrl_c_ends_an_answer_with_its_own_exit_code() {
    let mut command = kimi("gpus=1", &["run", "--devices", "1", "--thinking", "off", "--prompt", "Count to ten."]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let status = child.wait().unwrap();
    let lines: Vec<String> = BufReader::new(child.stderr.unwrap()).lines().map(Result::unwrap).collect();
    assert_eq!(status.code(), Some(130), "{lines:?}");
    assert!(lines.iter().any(|line| line == "kimi-hcq: interrupted"), "{lines:?}");
}

#[test]
fn ctrl_c_leaves_nothing_of_a_fixture() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("official");
    let mut child = kimi("", &["fixture", "official", "--sparse", folder.to_str().unwrap()]).spawn().unwrap();
    while !folder.exists() {
        std::thread::sleep(Duration::from_millis(1));
        assert!(child.try_wait().unwrap().is_none(), "it ended before it made its folder");
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!folder.exists());
}
