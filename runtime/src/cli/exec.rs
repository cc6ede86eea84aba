//! `kimi-hcq mock exec`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use mock::inspect::{Inspect, Inspection, WaveName};
use mock::launch::Device;
use serde::Serialize;

use super::inspect;
use super::output::{print_json, say, write_text};
use super::reports::print_reports;
use crate::case::{self, Case, CaseOutcome};
use crate::failure::Failure;
use crate::platform::MOCK_VARIABLE;

/// Arguments of the command.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Folder with case.json, the code object and the data files.
    case: PathBuf,
    /// Seconds after which a launch that has not completed is given up.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Print each instruction that one wave executed, with the registers it changed. The wave is given as
    /// --trace=WORKGROUP.WAVE, workgroups numbered with x fastest; it is 0.0 if left out.
    #[arg(long, value_name = "WORKGROUP.WAVE", num_args = 0..=1, require_equals = true, default_missing_value = "0.0")]
    trace: Option<WaveName>,
    /// Print counts by basic block: instructions by unit, memory traffic, LDS bank conflicts, lanes on; and the occupancy.
    #[arg(long)]
    profile: bool,
    /// Print how sure the executed instructions' results are: exact, within a bound, modelled, unsupported.
    #[arg(long)]
    fidelity: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    ok: bool,
    max_error: Option<f64>,
    wave_instructions: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    seen: Seen,
}

/// What was seen of the execution, as far as it was asked for.
#[derive(Serialize)]
struct Seen {
    #[serde(flatten)]
    inspection: Inspection,
    /// What the sanitizer found, if it looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    reports: Option<Vec<mock::Report>>,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let case = Case::read(&arguments.case).map_err(Failure::input)?;
    let Arguments { profile, fidelity, .. } = *arguments;
    let inspect = Inspect { trace: arguments.trace, profile, fidelity, ..Inspect::default() };
    let config = mock::Config { inspect, ..config()? };
    if config.null {
        return Err(Failure::Input(format!("{MOCK_VARIABLE}=null executes nothing, so there is nothing to compare")));
    }
    let mut device = Device::start(config).map_err(Failure::run)?;
    let result = case::run(&case, &mut device, Duration::from_secs(arguments.timeout));
    let inspection = device.mock().inspection();
    let reports = device.mock().config().check.then(|| device.mock().reports());
    if !json {
        write_text(format_args!("{}", inspect::Text(&inspection)))?;
        print_reports(reports.as_deref().unwrap_or_default());
    }
    match result {
        Ok(outcome) => {
            let ok = outcome.is_match() && reports.as_ref().is_none_or(Vec::is_empty);
            report(&case, &outcome, Seen { inspection, reports }, json)?;
            Ok(ExitCode::from(u8::from(!ok)))
        }
        Err(error) => {
            if json {
                print_json(&Report {
                    name: &case.name,
                    ok: false,
                    max_error: None,
                    wave_instructions: 0,
                    seconds: 0.0,
                    error: Some(error.to_string()),
                    seen: Seen { inspection, reports },
                })?;
            }
            Err(if error.is_refusal() { Failure::input(error) } else { Failure::run(error) })
        }
    }
}

/// One GPU of eight XCCs, unless `MOCKKFD` asks for another machine.
fn config() -> Result<mock::Config, Failure> {
    match std::env::var(MOCK_VARIABLE) {
        Ok(words) => mock::Config::parse(&words).map_err(Failure::input),
        Err(_) => Ok(mock::Config { gpus: 1, ..mock::Config::default() }),
    }
}

fn report(case: &Case, outcome: &CaseOutcome, seen: Seen, json: bool) -> Result<(), Failure> {
    let seconds = outcome.launch.elapsed.as_secs_f64();
    if json {
        return print_json(&Report {
            name: &case.name,
            ok: outcome.is_match() && seen.reports.as_ref().is_none_or(Vec::is_empty),
            max_error: Some(outcome.max_error()),
            wave_instructions: outcome.launch.wave_instructions,
            seconds,
            error: None,
            seen,
        });
    }
    let verdict = if outcome.is_match() { "matches" } else { "DIFFERS" };
    say!(
        "{}: {verdict}, largest error {:.3e}, {} wave instructions in {seconds:.3} s",
        case.name,
        outcome.max_error(),
        outcome.launch.wave_instructions
    );
    for (expectation, comparison) in case.expect.iter().zip(&outcome.comparisons) {
        if let Some(first) = comparison.first {
            say!(
                "  {}: {} elements differ, first at {}: {} where {} is expected",
                case.arguments[expectation.argument].name,
                comparison.differing,
                first.index,
                first.found,
                first.expected
            );
        }
    }
    Ok(())
}
