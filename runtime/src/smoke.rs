//! Whether a machine computes: the admission check of a new one.
//!
//! Needs no checkpoint. Every kind of block is compared with FP32 arithmetic of the host, in a run of one token and in one of
//! several; then a small model with all of them answers a prompt, again, in both forms of submission, and running ahead,
//! each time with the same tokens.

use std::time::{Duration, Instant};

use crate::bench::block::{self, Kind, Numbers, Plan, Width};
use crate::engine::{Options, Sampling};
use crate::failure::Failure;
use crate::graph::Form;
use crate::platform::Platform;

/// One check that was made.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// What is wrong, if anything is.
    pub problem: Option<String>,
}

/// Tokens of a run that is no decode: more than a tile of the small kernels, and no whole number of them.
const SEVERAL: u32 = 20;
/// Tokens of the prompt: a whole run, and a part of one.
const PROMPT: u32 = 37;
const CHUNK: u32 = 32;
/// Tokens that are made.
const ANSWER: usize = 6;
/// A machine that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes all checks on the first `devices` GPUs, telling `say` of each. The first one that cannot be made ends them.
///
/// # Errors
/// Only those of `say`; what is wrong with the machine is in the checks.
pub fn run(
    platform: &Platform,
    devices: usize,
    say: &mut dyn FnMut(&Check) -> Result<(), Failure>,
) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    let mut check = |name: String, make: &dyn Fn() -> Result<Option<String>, Failure>| -> Result<bool, Failure> {
        let start = Instant::now();
        let (problem, go_on) = match make() {
            Ok(problem) => (problem, true),
            Err(failure) => (Some(failure.to_string()), false),
        };
        let check = Check { name, seconds: start.elapsed().as_secs_f64(), problem };
        say(&check)?;
        checks.push(check);
        Ok(go_on)
    };
    let blocks =
        [Kind::Kda, Kind::Mla, Kind::Dense, Kind::Moe].into_iter().flat_map(|kind| [(kind, 1), (kind, SEVERAL)]);
    for (kind, tokens) in blocks {
        if !check(format!("{kind:?} block, {tokens} tokens"), &|| block(platform, devices, kind, tokens))? {
            return Ok(checks);
        }
    }
    check("prefill, decode and replay".into(), &|| same_answers(platform, devices))?;
    Ok(checks)
}

/// Compares a block with FP32.
fn block(platform: &Platform, devices: usize, kind: Kind, tokens: u32) -> Result<Option<String>, Failure> {
    let plan = Plan {
        kind,
        width: Width::Nano,
        layers: 1,
        tokens,
        context: if kind == Kind::Mla { 200 } else { 0 },
        ranks: devices,
        devices,
        experts: 16,
        seed: 1,
    };
    let outcome = block::run(&plan, platform)?;
    Ok(match outcome.numbers {
        Some(numbers) if numbers.is_within() => None,
        Some(numbers) => Some(describe(&numbers)),
        None => Some("nothing was compared".into()),
    })
}

fn describe(numbers: &Numbers) -> String {
    let off = numbers.stages.iter().filter(|stage| stage.relative > block::TOLERANCE || stage.relative.is_nan());
    let off: Vec<String> = off
        .map(|stage| format!("{} of kernel {} is off by {:.1e}", stage.stage, stage.kernel, stage.relative))
        .collect();
    let routing = numbers.routing_gap.filter(|gap| *gap > block::TIE || gap.is_nan());
    let routing = routing.map(|gap| format!("a chosen expert scores {gap:.1e} too little"));
    off.into_iter().chain(routing).collect::<Vec<_>>().join("; ")
}

/// Answers the same prompt in several ways.
fn same_answers(platform: &Platform, devices: usize) -> Result<Option<String>, Failure> {
    let config = block::nano_config();
    let prompt: Vec<u32> = (0..PROMPT).map(|token| token * 31 % 1024).collect();
    let mut first: Option<Vec<u32>> = None;
    for (form, run_ahead) in [(Form::Aql, 0), (Form::Aql, 3), (Form::Ib, 0)] {
        let options = Options {
            devices,
            max_context: PROMPT + ANSWER as u32,
            chunk: CHUNK,
            form,
            run_ahead,
            patience: PATIENCE,
            ..Options::default()
        };
        let mut engine = block::engine(platform, &config, options, 1, config.moe.experts)?;
        for time in ["", ", again"] {
            let answer = engine.generate(&prompt, Sampling::default(), &[], ANSWER, &mut |_| true)?;
            match &first {
                None => first = Some(answer.tokens),
                Some(first) if *first == answer.tokens => {}
                Some(first) => {
                    let tokens = answer.tokens;
                    return Ok(Some(format!(
                        "{form:?} form, {run_ahead} ahead{time}: {tokens:?}, where {first:?} came first"
                    )));
                }
            }
        }
    }
    Ok(None)
}
