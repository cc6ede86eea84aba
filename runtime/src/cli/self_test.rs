//! `kimi-hcq self-test`

use std::path::PathBuf;
use std::process::ExitCode;

use super::output::{print_json, say};
use super::reports;
use crate::failure::Failure;
use crate::graph::KernelSet;
use crate::platform::Platform;
use crate::self_test;

/// Arguments of the command.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// GPUs to test, each by itself.
    #[arg(long, default_value_t = 8, value_parser = super::model::parse_devices)]
    devices: usize,
    /// Write what the kernels compute on the first GPU to FILE instead of comparing it: after a change of kernels, on an
    /// emulated machine, to runtime/src/self_test/known.txt.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let platform = Platform::open()?;
    if platform.executes_nothing() {
        return Err(Failure::Input("a machine that executes nothing has nothing to test; set MOCKKFD=1".into()));
    }
    if let Some(path) = &arguments.record {
        let text = self_test::to_text(&self_test::record(&platform)?);
        std::fs::write(path, text)
            .map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))?;
        return Ok(ExitCode::SUCCESS);
    }
    let start = std::time::Instant::now();
    let checked = self_test::check(&platform, arguments.devices, &KernelSet::default()).map_err(Failure::from);
    let end = reports::end(&platform, false, checked.map(|()| ExitCode::SUCCESS))?;
    if end != ExitCode::SUCCESS {
        return Ok(end);
    }
    let (launches, seconds) = (self_test::known().len(), start.elapsed().as_secs_f64());
    if json {
        let emulated = platform.is_emulated();
        print_json(&serde_json::json!({
            "ok": true, "devices": arguments.devices, "launches": launches, "seconds": seconds, "emulated": emulated
        }))?;
    } else {
        say!("{launches} launches on each of {} GPUs give the known bits ({seconds:.2} s)", arguments.devices);
    }
    Ok(ExitCode::SUCCESS)
}
