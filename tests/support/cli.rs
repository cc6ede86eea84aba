//! The binary from the outside.

#![allow(clippy::unwrap_used, dead_code, reason = "a test panics, and each test target uses its own part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The bundled model.
pub(crate) fn k3_nano() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano")
}

/// `kimi-hcq` on the emulated machine that `mock` describes, on no machine if it is empty.
pub(crate) fn kimi(mock: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kimi-hcq"));
    command.args(arguments).env_remove("KIMI_HCQ_MODEL").env_remove("MOCKKFD");
    if !mock.is_empty() {
        command.env("MOCKKFD", mock);
    }
    command
}

/// Runs the command to its end.
pub(crate) fn run(mock: &str, arguments: &[&str]) -> Output {
    kimi(mock, arguments).output().unwrap()
}

/// The objects that a successful command printed.
pub(crate) fn objects(output: &Output) -> Vec<serde_json::Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A file of one request a line.
pub(crate) fn requests_file<'a>(requests: impl IntoIterator<Item = &'a serde_json::Value>) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for request in requests {
        writeln!(file, "{request}").unwrap();
    }
    file
}
