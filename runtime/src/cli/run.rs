//! `kimi-hcq run`

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
#[cfg(feature = "mock")]
use std::sync::atomic::Ordering;

use model::chat::{Effort, Request, ToolCall};
use serde::Serialize;

use super::model::ModelArguments;
use super::output::{note, print_json, say, write_note};
use super::profile::{print_profile, write_trace};
use super::reports;
use super::sampling::{LogProbs, SamplingArguments};
use crate::answer::{Answer, FinishReason, Limits, Piece, Question, answer};
use crate::bench::profile::{KernelTime, by_kernel};
use crate::engine::{Engine, Options, Sampling, Span};
use crate::failure::Failure;
use crate::graph::Form;
use crate::platform::{MOCK_VARIABLE, Platform};

const OBJECT: &str = "\
With --json, each answer is an object on a line of its own:
  prompt_tokens, tokens     the prompt and what was made, as tokens
  raw_text                  all made tokens as text, markers included
  text, reasoning           the response and the think channel
  tool_calls                calls of tools
  finish_reason             stop, length or tool_calls
  logprobs                  with --logprobs, for each token: token, logprob, and top_logprobs, a list of token and
                            logprob, most likely first; null stands for minus infinity
  executed                  false on a machine that executes nothing
  timings                   seconds, rates and counts of dispatches and collectives
  reports                   what the sanitizer found, where it looks
  profile                   with --profile, where the time of GPU 0 went";

/// Arguments of the command.
#[derive(clap::Args)]
#[command(after_help = OBJECT)]
pub(super) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    question: QuestionArguments,
    /// Tokens to make at most; by default as many as the context holds.
    #[arg(long)]
    max_tokens: Option<usize>,
    #[command(flatten)]
    sampling: SamplingArguments,
    /// Whether the model thinks before it answers.
    #[arg(long, value_enum)]
    thinking: Option<Switch>,
    /// How much it thinks.
    #[arg(long, value_enum)]
    effort: Option<EffortName>,
    /// Time each dispatch of GPU 0, and show where the time goes kernel by kernel.
    #[arg(long)]
    profile: bool,
    /// Time each dispatch of GPU 0, and write a trace that Perfetto and Chrome show.
    #[arg(long, value_name = "FILE")]
    profile_trace: Option<PathBuf>,
    /// Say how sure the results of the executed instructions are. Only on an emulated machine, and slow.
    #[cfg(feature = "mock")]
    #[arg(long)]
    fidelity: bool,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct QuestionArguments {
    /// Answer a chat of this one message.
    #[arg(long)]
    prompt: Option<String>,
    /// Go on with this text.
    #[arg(long)]
    raw: Option<String>,
    /// Answer the chat in this JSON file: an object with `messages` and optionally `tools`, `thinking`,
    /// `thinking_effort`.
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Answer one such object a line, in order, each from an empty context.
    #[arg(long, value_name = "FILE.jsonl")]
    requests: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum EffortName {
    Low,
    High,
    Max,
}

#[derive(Serialize)]
struct Report<'a> {
    prompt_tokens: &'a [u32],
    tokens: &'a [u32],
    raw_text: &'a str,
    text: &'a str,
    reasoning: &'a str,
    tool_calls: &'a [ToolCall],
    finish_reason: FinishReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<LogProbs<'a>>,
    /// Whether kernels ran: on a machine that executes nothing there are no tokens, only times of the host.
    executed: bool,
    timings: Timings,
    /// What the sanitizer of the emulated machine has found so far, if it looks.
    #[cfg(feature = "mock")]
    #[serde(skip_serializing_if = "Option::is_none")]
    reports: Option<Vec<mock::Report>>,
    /// Where the time of GPU 0 went, if asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Vec<KernelTime>>,
}

/// How sure the results are of all instructions executed since the machine started.
#[cfg(feature = "mock")]
fn report_fidelity(platform: &Platform, json: bool) -> Result<(), Failure> {
    let Some(mock) = &platform.mock else { return Ok(()) };
    let inspection = mock.inspection();
    if json {
        return print_json(&inspection);
    }
    write_note(format_args!("{}", super::inspect::Text(&inspection)));
    Ok(())
}

#[derive(Serialize)]
struct Timings {
    prefill_seconds: f64,
    decode_seconds: f64,
    decode_tokens_per_second: Option<f64>,
    /// Kernel dispatches of one GPU for one token.
    dispatches_per_token: usize,
    /// Collectives among them.
    collectives_per_token: usize,
    /// The host's own work for one run: submit and read.
    host_microseconds_per_token: f64,
    #[serde(flatten)]
    counted: Option<Counted>,
}

/// What the emulated machine counted during the request, all GPUs together.
#[derive(Clone, Copy, Serialize)]
struct Counted {
    doorbells: u64,
    host_ring_packets: u64,
    dispatches: u64,
    wave_instructions: u64,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let questions = arguments.questions()?;
    let sampling = arguments.sampling.checked(json)?;
    let platform = arguments.platform()?;
    let result = answer_all(arguments, sampling, &questions, &platform, json);
    reports::end(&platform, json, result.map(|()| ExitCode::SUCCESS))
}

fn answer_all(
    arguments: &Arguments,
    sampling: Sampling,
    questions: &[Question],
    platform: &Platform,
    json: bool,
) -> Result<(), Failure> {
    let limits = Limits { sampling, max_tokens: arguments.max_tokens.unwrap_or(usize::MAX) };
    let (checkpoint, tokenizer) = arguments.model.open(platform)?;
    let options = Options { timed: arguments.is_profiled(), ..arguments.model.options() };
    if options.timed && options.form == Form::Ib {
        return Err(Failure::Input("a resident indirect buffer has no time stamps; profile with --submit aql".into()));
    }
    let mut engine = arguments.model.start(platform, &checkpoint, options)?;
    let mut spans: Vec<Span> = Vec::new();
    for question in questions {
        let before = counters(platform);
        let executed = !platform.executes_nothing();
        let mut printer = Printer::new(json || !executed);
        let mut answer = answer(&mut engine, &tokenizer, question, limits, &mut |piece| printer.show(piece))?;
        let mut timings = timings(&engine, &answer, before, counters(platform));
        if !executed {
            discard(&mut answer);
            timings.decode_tokens_per_second = None;
            note!("kimi-hcq: {MOCK_VARIABLE}=null executes nothing: what came back are no tokens and is left out");
        }
        let own = engine.take_spans();
        let profile = arguments.profile.then(|| by_kernel(&engine, &own));
        spans.extend(own);
        if json {
            print_json(&Report {
                prompt_tokens: &answer.prompt_tokens,
                tokens: &answer.generation.tokens,
                raw_text: &answer.raw_text,
                text: &answer.text,
                reasoning: &answer.reasoning,
                tool_calls: &answer.tool_calls,
                finish_reason: answer.finish_reason,
                logprobs: sampling.log_probs.map(|_| LogProbs(&answer.generation.log_probs)),
                executed,
                timings,
                #[cfg(feature = "mock")]
                reports: reports::reports(platform),
                profile,
            })?;
        } else {
            printer.finish(&answer, &timings)?;
            if let Some(profile) = profile {
                print_profile(&profile, platform.is_emulated());
            }
        }
    }
    if let Some(path) = &arguments.profile_trace {
        write_trace(path, &spans).map_err(|error| Failure::Run(format!("cannot write {}: {error}", path.display())))?;
    }
    #[cfg(feature = "mock")]
    if arguments.fidelity {
        report_fidelity(platform, json)?;
    }
    Ok(())
}

/// Takes out of an answer all that would be of the model's making.
fn discard(answer: &mut Answer) {
    answer.generation.tokens.clear();
    answer.generation.log_probs.clear();
    answer.tool_calls.clear();
    for text in [&mut answer.raw_text, &mut answer.text, &mut answer.reasoning] {
        text.clear();
    }
}

impl Arguments {
    fn is_profiled(&self) -> bool {
        self.profile || self.profile_trace.is_some()
    }

    #[cfg(feature = "mock")]
    fn platform(&self) -> Result<Platform, Failure> {
        if self.fidelity {
            Platform::open_inspected(mock::inspect::Inspect { fidelity: true, ..Default::default() })
        } else {
            Platform::open()
        }
    }

    #[cfg(not(feature = "mock"))]
    fn platform(&self) -> Result<Platform, Failure> {
        Platform::open()
    }

    fn questions(&self) -> Result<Vec<Question>, Failure> {
        let question = &self.question;
        if let Some(text) = &question.raw {
            return Ok(vec![Question::Raw(text.clone())]);
        }
        let requests = if let Some(text) = &question.prompt {
            let request = serde_json::json!({ "messages": [{ "role": "user", "content": text }] });
            vec![serde_json::from_value(request).map_err(Failure::input)?]
        } else if let Some(path) = &question.messages {
            vec![parse(path, None, &read(path)?)?]
        } else if let Some(path) = &question.requests {
            let file = std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
            std::io::BufReader::new(file)
                .lines()
                .enumerate()
                .map(|(number, line)| Ok((number, line.map_err(|error| unreadable(path, &error))?)))
                .filter(|line| !matches!(line, Ok((_, text)) if text.trim().is_empty()))
                .map(|line: Result<_, Failure>| line.and_then(|(number, text)| parse(path, Some(number + 1), &text)))
                .collect::<Result<_, _>>()
                .and_then(|requests| at_least_one(requests, path))?
        } else {
            return Err(Failure::Input("give --prompt, --raw, --messages or --requests".into()));
        };
        Ok(requests.into_iter().map(|request| Question::Chat(Box::new(self.adjusted(request)))).collect())
    }

    /// The request with what the command line says about thinking.
    fn adjusted(&self, mut request: Request) -> Request {
        match self.thinking {
            Some(Switch::On) => request.thinking = true,
            Some(Switch::Off) => request.thinking = false,
            None => {}
        }
        if let Some(effort) = self.effort {
            request.thinking_effort = Some(match effort {
                EffortName::Low => Effort::Low,
                EffortName::High => Effort::High,
                EffortName::Max => Effort::Max,
            });
        }
        request
    }
}

fn parse(path: &Path, line: Option<usize>, text: &str) -> Result<Request, Failure> {
    let place = line.map_or_else(String::new, |line| format!(" line {line}"));
    let refuse = |problem: String| Failure::Input(format!("{}{place}: {problem}", path.display()));
    let request: Request = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
    if request.messages.is_empty() { Err(refuse("`messages` is empty".into())) } else { Ok(request) }
}

fn at_least_one(requests: Vec<Request>, path: &Path) -> Result<Vec<Request>, Failure> {
    if requests.is_empty() { Err(Failure::Input(format!("{} has no request", path.display()))) } else { Ok(requests) }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Input(format!("cannot read {}: {error}", path.display()))
}

#[cfg(feature = "mock")]
fn counters(platform: &Platform) -> Option<Counted> {
    let counters = platform.mock.as_ref()?.counters();
    Some(Counted {
        doorbells: counters.doorbells.load(Ordering::Relaxed),
        host_ring_packets: counters.ring_packets.load(Ordering::Relaxed),
        dispatches: counters.dispatches.load(Ordering::Relaxed),
        wave_instructions: counters.wave_instructions.load(Ordering::Relaxed),
    })
}

#[cfg(not(feature = "mock"))]
fn counters(_: &Platform) -> Option<Counted> {
    None
}

fn timings(engine: &Engine, answer: &Answer, before: Option<Counted>, after: Option<Counted>) -> Timings {
    let generation = &answer.generation;
    let decode_seconds = generation.decode.as_secs_f64();
    let decoded = generation.tokens.len().saturating_sub(1);
    let counted = before.zip(after).map(|(before, after)| Counted {
        doorbells: after.doorbells - before.doorbells,
        host_ring_packets: after.host_ring_packets - before.host_ring_packets,
        dispatches: after.dispatches - before.dispatches,
        wave_instructions: after.wave_instructions - before.wave_instructions,
    });
    Timings {
        prefill_seconds: generation.prefill.as_secs_f64(),
        decode_seconds,
        decode_tokens_per_second: (decoded > 0).then(|| decoded as f64 / decode_seconds),
        dispatches_per_token: engine.decode_graph().dispatches(),
        collectives_per_token: engine.decode_graph().collectives().len(),
        host_microseconds_per_token: engine.timings().host_microseconds_per_run(),
        counted,
    }
}

/// Shows an answer to a person while it is made: the response on standard output, the reasoning on standard error.
struct Printer {
    quiet: bool,
    reasoning_shown: bool,
    dim: bool,
}

impl Printer {
    fn new(quiet: bool) -> Self {
        Self { quiet, reasoning_shown: false, dim: std::io::stderr().is_terminal() }
    }

    /// Whether output still goes anywhere.
    fn show(&mut self, piece: Piece) -> bool {
        if self.quiet {
            return true;
        }
        match piece {
            Piece::Reasoning(text) => {
                self.reasoning_shown = true;
                if self.dim {
                    write_note(format_args!("\x1b[2m{text}\x1b[0m"))
                } else {
                    write_note(format_args!("{text}"))
                }
                true
            }
            Piece::Text(text) => {
                if std::mem::take(&mut self.reasoning_shown) {
                    note!("");
                }
                let mut out = std::io::stdout();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
            }
        }
    }

    fn finish(&self, answer: &Answer, timings: &Timings) -> Result<(), Failure> {
        say!("");
        for call in &answer.tool_calls {
            say!("{}", serde_json::to_string(call).map_err(Failure::run)?);
        }
        let rate = timings.decode_tokens_per_second.map_or_else(String::new, |rate| format!(", {rate:.1} tokens/s"));
        note!(
            "{} prompt tokens in {:.2} s, {} tokens in {:.2} s{rate}{}",
            answer.prompt_tokens.len(),
            timings.prefill_seconds,
            answer.generation.tokens.len(),
            timings.decode_seconds,
            if timings.counted.is_some() { " (emulated)" } else { "" }
        );
        Ok(())
    }
}
