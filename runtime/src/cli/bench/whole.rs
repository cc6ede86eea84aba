//! `kimi-hcq bench decode` and `kimi-hcq bench prefill`

use std::path::PathBuf;
use std::process::ExitCode;

use model::config::Config;
use serde_json::{Value, json};

use super::tables::{each_model, form_name, megabytes, modelled_json, print_modelled, table};
use crate::bench::cost::{SETS, Seconds};
use crate::bench::host::{self, HostCost};
use crate::bench::load::{cores, processor};
use crate::bench::pass::{Pass, PassSizes};
use crate::bench::published;
use crate::bench::speed::{self, Speed};
use crate::bench::work::Work;
use crate::cli::load::Bar;
use crate::cli::model as model_arguments;
use crate::cli::output::{print_json, say};
use crate::engine::Options;
use crate::failure::Failure;
use crate::graph::Form;
use crate::platform::{MOCK_VARIABLE, Platform};

/// Which model, and how it is split.
#[derive(clap::Args)]
struct WholeArguments {
    /// Folder of a checkpoint: it is loaded and run too, where there is a machine that executes. Without it, the released
    /// model, of which nothing is loaded.
    #[arg(long)]
    model: Option<PathBuf>,
    /// GPUs to split the model over.
    #[arg(long, default_value_t = 8, value_parser = model_arguments::parse_devices)]
    devices: usize,
    /// Tokens that the caches hold.
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    max_context: u32,
}

#[derive(clap::Args)]
pub(in crate::cli) struct DecodeArguments {
    #[command(flatten)]
    whole: WholeArguments,
    /// Tokens to measure, on a machine that executes or on one that executes nothing (MOCKKFD=null).
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    tokens: u32,
}

#[derive(clap::Args)]
pub(in crate::cli) struct PrefillArguments {
    #[command(flatten)]
    whole: WholeArguments,
    /// Tokens of the prompt.
    #[arg(long, default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    prompt: u32,
    /// Tokens of a run.
    #[arg(long, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(1..=2048))]
    chunk: u32,
}

impl WholeArguments {
    fn config(&self) -> Result<Config, Failure> {
        self.model.as_deref().map_or_else(|| Ok(Config::official()), Config::read).map_err(Failure::input)
    }

    fn pass(&self, tokens: u32, max_context: u32) -> Result<Pass, Failure> {
        Pass::new(&self.config()?, PassSizes { ranks: self.devices, tokens, max_context }).map_err(Failure::input)
    }

    /// What a request takes, if a checkpoint was named and there is a machine to run it on.
    fn speed(&self, chunk: u32, prompt: usize, tokens: usize) -> Result<Option<(Speed, bool)>, Failure> {
        let Some(folder) = &self.model else { return Ok(None) };
        let Ok(platform) = Platform::open() else { return Ok(None) };
        if platform.executes_nothing() {
            return Ok(None);
        }
        let max_context = self.max_context.max((prompt + tokens) as u32);
        let options = Options { devices: self.devices, max_context, chunk, ..Options::default() };
        let speed = speed::measure(&platform, folder, options, prompt, tokens, &Bar::hidden())?;
        Ok(Some((speed, platform.is_emulated())))
    }

    fn name(&self) -> String {
        self.model.as_ref().map_or_else(|| "the released model".into(), |folder| folder.display().to_string())
    }
}

pub(super) fn decode(arguments: &DecodeArguments, json: bool) -> Result<ExitCode, Failure> {
    let whole = &arguments.whole;
    let pass = whole.pass(1, whole.max_context)?;
    let position = whole.max_context - 1;
    let modelled = each_model(|constants, form| pass.time(position, constants, form));
    let host = host_costs(arguments, pass.config())?;
    let speed = whole.speed(1, 1, arguments.tokens as usize + 1)?;
    // The published run was of the released model on eight GPUs.
    let is_published = whole.model.is_none() && whole.devices == 8;
    if json {
        let mut report = counts(&pass, position, whole);
        report["modelled"] = modelled.iter().map(|model| modelled_json(model, 1.0)).collect();
        report["host"] = host.iter().map(host_json).collect();
        report["measured"] = json!(speed.map(speed_json));
        if is_published {
            let sets =
                SETS.map(|set| json!({ "constants": set.name, "points": published::points(&pass, position, &set) }));
            report["published"] = json!({ "runs": sets, "why": published::WHY });
        }
        print_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "One token of {}, {} tokens in its context, on one of {} GPUs:",
        whole.name(),
        whole.max_context,
        whole.devices
    );
    print_counts(&pass, position)?;
    say!("\nModelled, not measured:");
    print_modelled(&modelled, 1.0)?;
    if is_published {
        print_published(&pass, position)?;
    }
    print_host(&host)?;
    print_speed(speed)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn prefill(arguments: &PrefillArguments, json: bool) -> Result<ExitCode, Failure> {
    let PrefillArguments { whole, prompt, chunk } = arguments;
    let chunk = (*chunk).min(*prompt);
    let pass = whole.pass(chunk, whole.max_context.max(*prompt))?;
    let chunks = prompt.div_ceil(chunk);
    let last = (chunks - 1) * chunk;
    let modelled = each_model(|constants, form| {
        let mut sum = Seconds::default();
        (0..chunks).for_each(|index| sum += pass.time(index * chunk, constants, form));
        sum
    });
    let speed = whole.speed(chunk, *prompt as usize, 1)?;
    let tokens = f64::from(*prompt);
    if json {
        let mut report = counts(&pass, last, whole);
        report["prompt"] = json!(prompt);
        report["chunk"] = json!(chunk);
        report["modelled"] = modelled.iter().map(|model| modelled_json(model, tokens)).collect();
        report["measured"] = json!(speed.map(speed_json));
        print_json(&report)?;
        return Ok(ExitCode::SUCCESS);
    }
    say!("The last of {chunks} runs of {chunk} tokens of {}, on one of {} GPUs:", whole.name(), whole.devices);
    print_counts(&pass, last)?;
    say!(
        "\nModelled, not measured, a prompt of {prompt} tokens; links between GPUs are taken to be as fast as it takes:"
    );
    print_modelled(&modelled, tokens)?;
    print_speed(speed)?;
    Ok(ExitCode::SUCCESS)
}

/// Host cost in both forms, on a machine that executes nothing; elsewhere a token takes what its kernels take.
fn host_costs(arguments: &DecodeArguments, config: &Config) -> Result<Vec<HostCost>, Failure> {
    if std::env::var_os(MOCK_VARIABLE).is_none() {
        return Ok(Vec::new());
    }
    let platform = Platform::open()?;
    if !platform.executes_nothing() {
        return Ok(Vec::new());
    }
    let WholeArguments { devices, max_context, .. } = arguments.whole;
    let measure = |form| {
        let options = Options { devices, max_context, chunk: 1, form, ..Options::default() };
        host::measure(&platform, config, options, arguments.tokens as usize)
    };
    Ok([Form::Aql, Form::Ib].into_iter().map(measure).collect::<Result<_, _>>()?)
}

fn counts(pass: &Pass, position: u32, whole: &WholeArguments) -> Value {
    let works = pass.works(position);
    let kernels: Vec<_> = pass
        .by_kernel(position)
        .into_iter()
        .map(|(name, count, work)| json!({ "name": name, "dispatches": count, "work": work }))
        .collect();
    json!({
        "model": whole.name(),
        "devices": whole.devices,
        "max_context": whole.max_context,
        "layers": pass.config().layers.len(),
        "dispatches": pass.launches.kernels.len(),
        "collectives": pass.launches.collectives.len(),
        "work": works.iter().copied().sum::<Work>(),
        "layer_kinds": pass.by_kind(position),
        "kernels": kernels,
        "is_modelled": true,
    })
}

fn host_json(cost: &HostCost) -> Value {
    json!({
        "form": form_name(cost.form),
        "microseconds_per_token": cost.microseconds(),
        "tokens": cost.tokens.len(),
        "devices": cost.devices,
        "dispatches": cost.dispatches,
        "ring_packets": cost.ring_packets,
        "doorbells": cost.devices,
        "pm4_dwords": cost.indirect_buffer.map(|(dwords, _)| dwords),
        "xcc_barriers": cost.indirect_buffer.map(|(_, barriers)| barriers),
        "graph_build_seconds": cost.build.as_secs_f64(),
        "executed": false,
        "processor": processor(),
        "cores": cores(),
    })
}

fn print_counts(pass: &Pass, position: u32) -> Result<(), Failure> {
    let mut kinds =
        table(&["layers", "number", "dispatches", "collectives", "weights MB", "states MB", "activations MB"]);
    for kind in pass.by_kind(position) {
        let each = |bytes: u64| megabytes(bytes / kind.layers as u64);
        kinds.add_row([
            kind.name.to_owned(),
            kind.layers.to_string(),
            kind.most_dispatches.to_string(),
            kind.collectives.to_string(),
            each(kind.work.weight_bytes),
            each(kind.work.state_bytes),
            each(kind.work.activation_bytes),
        ]);
    }
    say!("{kinds}");
    let mut kernels = table(&["kernel", "dispatches", "weights MB", "states MB", "activations MB", "GFLOP"]);
    let mut row = |name: &str, count: usize, work: Work| {
        kernels.add_row([
            name.to_owned(),
            count.to_string(),
            megabytes(work.weight_bytes),
            megabytes(work.state_bytes),
            megabytes(work.activation_bytes),
            format!("{:.2}", work.flops as f64 / 1e9),
        ]);
    };
    pass.by_kernel(position).into_iter().for_each(|(name, count, work)| row(name, count, work));
    row("all", pass.launches.kernels.len(), pass.works(position).into_iter().sum());
    say!("{kernels}");
    say!("{} collectives are among the dispatches", pass.launches.collectives.len());
    Ok(())
}

fn print_published(pass: &Pass, position: u32) -> Result<(), Failure> {
    say!("\nThe model beside what the tinygrad branch published (6,304 kernel events in four tokens):");
    let mut table = table(&["of", "constants", "published ms", "modelled ms", "times", "of the HBM peak"]);
    for set in SETS {
        for point in published::points(pass, position, &set) {
            table.add_row([
                point.what.to_owned(),
                set.name.to_owned(),
                format!("{:.3}", point.published * 1e3),
                format!("{:.3}", point.modelled * 1e3),
                format!("{:.0}", point.times),
                format!("{:.1} %", point.bandwidth_share * 100.0),
            ]);
        }
    }
    say!("{table}\n{}", published::WHY);
    Ok(())
}

fn speed_json((speed, emulated): (Speed, bool)) -> Value {
    json!({
        "prompt_tokens": speed.prompt,
        "prefill_seconds": speed.prefill.as_secs_f64(),
        "prefill_tokens_per_second": speed.prefill_rate(),
        "decoded_tokens": speed.decoded,
        "decode_tokens_per_second": speed.decode_rate(),
        "emulated": emulated,
        "processor": processor(),
        "cores": cores(),
    })
}

fn print_speed(speed: Option<(Speed, bool)>) -> Result<(), Failure> {
    let Some((speed, emulated)) = speed else { return Ok(()) };
    let machine =
        if emulated { "an emulated machine: the speed of the emulation, not of a GPU" } else { "this machine" };
    let decode = speed.decode_rate().map_or_else(String::new, |rate| format!(", {rate:.2} tokens/s after it"));
    say!(
        "measured on {machine}: a prompt of {} tokens in {:.2} s ({:.1} tokens/s){decode}; {}, {} cores",
        speed.prompt,
        speed.prefill.as_secs_f64(),
        speed.prefill_rate(),
        processor(),
        cores(),
    );
    Ok(())
}

fn print_host(costs: &[HostCost]) -> Result<(), Failure> {
    for cost in costs {
        let buffer = cost.indirect_buffer.map_or_else(String::new, |(dwords, barriers)| {
            format!(", a resident buffer of {dwords} PM4 dwords with {barriers} XCC barriers")
        });
        say!(
            "host, {} form: {:.1} us a token for {} GPUs, median of {} ({} packets to a ring, {} doorbells{buffer}); measured on {}, {} cores, \
             MOCKKFD=null: nothing was executed",
            form_name(cost.form),
            cost.microseconds(),
            cost.devices,
            cost.tokens.len(),
            cost.ring_packets,
            cost.devices,
            processor(),
            cores(),
        );
    }
    Ok(())
}
