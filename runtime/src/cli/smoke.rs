//! `kimi-hcq smoke`

use std::process::ExitCode;

use super::output::{print_json, say};
use super::reports;
use crate::failure::Failure;
use crate::platform::Platform;
use crate::smoke;

/// Arguments of the command.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// GPUs to check together.
    #[arg(long, default_value_t = 8, value_parser = super::model::parse_devices)]
    devices: usize,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let platform = Platform::open()?;
    if platform.executes_nothing() {
        return Err(Failure::Input("a machine that executes nothing has nothing to check; set MOCKKFD=1".into()));
    }
    let checks = smoke::run(&platform, arguments.devices, &mut |check| {
        if !json {
            let verdict = check.problem.as_deref().unwrap_or("ok");
            say!("{:<28} {verdict} ({:.2} s)", check.name, check.seconds);
        }
        Ok(())
    })?;
    let is_good = checks.iter().all(|check| check.problem.is_none());
    if json {
        let emulated = platform.is_emulated();
        print_json(
            &serde_json::json!({ "ok": is_good, "devices": arguments.devices, "emulated": emulated, "checks": checks }),
        )?;
    }
    reports::end(&platform, false, Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}
