//! `kimi-hcq bench`

mod block;
mod load;
mod tables;
mod whole;

use std::process::ExitCode;

use crate::failure::Failure;

/// What to measure.
#[derive(clap::Subcommand)]
pub(super) enum Bench {
    /// Loading weights, compared with reading the same bytes and doing nothing with them.
    Load(load::Arguments),
    /// One block at full width on random weights: what its kernels do, and how far they are from FP32.
    Block(block::Arguments),
    /// One token of a whole model: counts and modelled time from its launches, and what it takes on this machine.
    Decode(whole::DecodeArguments),
    /// A prompt of a whole model: counts and modelled time from its launches.
    Prefill(whole::PrefillArguments),
}

pub(super) fn run(bench: &Bench, json: bool) -> Result<ExitCode, Failure> {
    match bench {
        Bench::Load(arguments) => load::run(arguments, json),
        Bench::Block(arguments) => block::run(arguments, json),
        Bench::Decode(arguments) => whole::decode(arguments, json),
        Bench::Prefill(arguments) => whole::prefill(arguments, json),
    }
}
