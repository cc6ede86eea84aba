//! The command line.
//!
//! Objects for machines go to standard output with `--json`, text for people without; everything else (progress, logs,
//! errors) goes to standard error.

mod bench;
mod devices;
#[cfg(feature = "mock")]
mod disasm;
#[cfg(feature = "mock")]
mod exec;
mod fixture;
#[cfg(feature = "mock")]
mod inspect;
mod load;
mod model;
mod output;
mod perplexity;
mod preflight;
mod profile;
mod reports;
mod run;
mod sampling;
mod self_test;
mod smoke;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use output::note;

use crate::failure::Failure;
use crate::interrupt;

/// Runs Kimi K3 on eight MI350X, or on an emulated machine.
#[derive(Parser)]
#[command(name = "kimi-hcq", version, about, long_about = None, after_help = EXIT_CODES)]
struct Arguments {
    /// Print machine-readable JSON objects to standard output.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 input refused, 3 GPU fault, 130 interrupted.\n\
MOCKKFD=1 runs on an emulated machine of eight MI350X.";

#[derive(Subcommand)]
enum Command {
    /// Measure this machine.
    #[command(subcommand)]
    Bench(bench::Bench),
    /// List the GPUs of the machine.
    Devices,
    /// Make a checkpoint folder for tests and measurements.
    #[command(subcommand)]
    Fixture(fixture::Fixture),
    /// Load a model's weights, and say how fast.
    Load(load::Arguments),
    /// Load a model and answer with it.
    Run(run::Arguments),
    /// Compare what every kernel computes on each GPU with known bits, as every load does.
    SelfTest(self_test::Arguments),
    /// Check that the machine computes: a small model with every kind of block, in seconds.
    Smoke(smoke::Arguments),
    /// Check model, memory plan, GPUs, host and disks before a load.
    Preflight(preflight::Arguments),
    /// Measure how well a model predicts given documents.
    Perplexity(perplexity::Arguments),
    /// Use the emulated machine as a tool of its own.
    #[cfg(feature = "mock")]
    #[command(subcommand)]
    Mock(MockCommand),
}

#[cfg(feature = "mock")]
#[derive(Subcommand)]
enum MockCommand {
    /// Disassemble gfx950 code.
    Disasm(disasm::Arguments),
    /// Launch one kernel of a code object on the emulated machine and compare its results.
    Exec(exec::Arguments),
}

/// Parses the command line, does what it says, and gives the exit code.
#[must_use]
pub fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("KIMI_HCQ_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(ansi)
        .without_time()
        .init();
    let arguments = Arguments::parse();
    // Commands that start what must be ended in order look at interruptions themselves.
    let done = interrupt::exit_at_once().map_err(Failure::run).and_then(|()| dispatch(&arguments));
    match done {
        Ok(code) => code,
        Err(failure) => {
            if !matches!(failure, Failure::OutputClosed) {
                note!("kimi-hcq: {failure}");
            }
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Command::Bench(bench) => bench::run(bench, arguments.json),
        Command::Devices => devices::run(arguments.json),
        Command::Fixture(fixture) => fixture::run(fixture, arguments.json),
        Command::Load(load) => load::run(load, arguments.json),
        Command::Run(run) => run::run(run, arguments.json),
        Command::SelfTest(self_test) => self_test::run(self_test, arguments.json),
        Command::Smoke(smoke) => smoke::run(smoke, arguments.json),
        Command::Preflight(preflight) => preflight::run(preflight, arguments.json),
        Command::Perplexity(perplexity) => perplexity::run(perplexity, arguments.json),
        #[cfg(feature = "mock")]
        Command::Mock(MockCommand::Disasm(disasm)) => disasm::run(disasm, arguments.json),
        #[cfg(feature = "mock")]
        Command::Mock(MockCommand::Exec(exec)) => exec::run(exec, arguments.json),
    }
}
