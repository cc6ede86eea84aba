//! `kimi-hcq bench block`

use std::process::ExitCode;

use serde_json::{Value, json};

use super::tables::{each_model, form_name, megabytes, modelled_json, print_modelled, table};
use crate::bench::block::{self, KernelUse, Kind, Numbers, Outcome, Plan, TIE, TOLERANCE, Width};
use crate::bench::cost::Constants;
use crate::cli::output::{print_json, say};
use crate::cli::reports;
use crate::failure::Failure;
use crate::graph::Form;
use crate::platform::Platform;

#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Which block.
    #[arg(long, value_enum)]
    kind: KindName,
    /// How wide: as the released model on each of eight GPUs, or as K3-nano.
    #[arg(long, value_enum, default_value_t = WidthName::Official)]
    width: WidthName,
    /// Tokens of the run.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2048))]
    tokens: u32,
    /// Layers of the kind. What is reported is of one; with more than one, nothing is compared with FP32.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=93))]
    layers: u64,
    /// GPUs: eight, or one of the eight, which computes its part while its mailbox echoes it as that of every other.
    #[arg(long, default_value = "1", value_parser = ["1", "8"])]
    devices: String,
    /// Tokens in the latent caches before the run, made up; by default what fills 4,096 for MLA, and none else.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1_046_528))]
    context: Option<u32>,
    /// Experts that have weights; tokens choose from these.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=896))]
    experts: Option<u64>,
    /// Seed of the weights.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum KindName {
    Kda,
    Mla,
    Moe,
    Dense,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum WidthName {
    Official,
    Nano,
}

/// Experts with weights unless told otherwise: more than a token chooses, few enough to be made in a moment.
const OFFICIAL_EXPERTS: u64 = 64;
const NANO_EXPERTS: u64 = 16;

impl Arguments {
    fn plan(&self) -> Plan {
        let (width, experts) = match self.width {
            WidthName::Official => (Width::Official, OFFICIAL_EXPERTS),
            WidthName::Nano => (Width::Nano, NANO_EXPERTS),
        };
        let kind = match self.kind {
            KindName::Kda => Kind::Kda,
            KindName::Mla => Kind::Mla,
            KindName::Moe => Kind::Moe,
            KindName::Dense => Kind::Dense,
        };
        let context = if kind == Kind::Mla { 4096_u32.saturating_sub(self.tokens) } else { 0 };
        Plan {
            kind,
            width,
            layers: self.layers as usize,
            tokens: self.tokens,
            context: self.context.unwrap_or(context),
            ranks: 8,
            devices: if self.devices == "8" { 8 } else { 1 },
            experts: self.experts.unwrap_or(experts) as usize,
            seed: self.seed,
        }
    }
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let plan = arguments.plan();
    let platform = Platform::open_tallied()?;
    if platform.executes_nothing() {
        return Err(Failure::Input("a machine that executes nothing has nothing to measure; set MOCKKFD=1".into()));
    }
    let outcome = block::run(&plan, &platform)?;
    if json {
        print_json(&report(&plan, &outcome, &platform))?;
    } else {
        print(&plan, &outcome, &platform)?;
    }
    let is_good = outcome.numbers.as_ref().is_none_or(Numbers::is_within);
    reports::end(&platform, false, Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

fn collectives_are(plan: &Plan) -> &'static str {
    if plan.devices == 8 {
        "between eight GPUs"
    } else {
        "executed by one GPU of eight, whose mailbox echoes what it sends as that of every peer"
    }
}

fn report(plan: &Plan, outcome: &Outcome, platform: &Platform) -> Value {
    let modelled = each_model(|constants, form| outcome.time(constants, form));
    json!({
        "kind": format!("{:?}", plan.kind).to_lowercase(),
        "width": format!("{:?}", plan.width).to_lowercase(),
        "tokens": plan.tokens,
        "context": plan.context,
        "layers": plan.layers,
        "devices": plan.devices,
        "resident_experts": plan.experts,
        "distinct_experts": outcome.distinct_experts,
        "dispatches": outcome.dispatches(),
        "layer_dispatches": outcome.layer_dispatches,
        "collectives": outcome.collectives,
        "collectives_are": collectives_are(plan),
        "pm4_dwords": outcome.pm4_dwords,
        // A run, however many layers it has, is one doorbell a GPU.
        "doorbells_per_run_and_gpu": 1,
        "kernels": outcome.kernels.iter().map(kernel_json).collect::<Vec<_>>(),
        "modelled": modelled.iter().map(|model| modelled_json(model, 1.0)).collect::<Vec<_>>(),
        "numbers": outcome.numbers,
        "is_within_tolerance": outcome.numbers.as_ref().map(Numbers::is_within),
        "run_seconds": outcome.elapsed.as_secs_f64(),
        "emulated": platform.is_emulated(),
    })
}

fn kernel_json(kernel: &KernelUse) -> Value {
    let mut value = serde_json::to_value(kernel).unwrap_or_default();
    value["weight_ratio"] = json!(kernel.counted.and_then(|counted| counted.weight_ratio(&kernel.work)));
    value
}

fn print(plan: &Plan, outcome: &Outcome, platform: &Platform) -> Result<(), Failure> {
    say!(
        "One {:?} block, {} tokens behind {} others, on one of eight GPUs: {} dispatches ({} the whole layer), {} collectives \
         ({}), {} PM4 dwords in the resident form, 1 doorbell a run",
        plan.kind,
        plan.tokens,
        plan.context,
        outcome.dispatches(),
        outcome.layer_dispatches,
        outcome.collectives,
        collectives_are(plan),
        outcome.pm4_dwords,
    );
    if let Some(distinct) = outcome.distinct_experts {
        say!("{distinct} different experts were chosen, of {} that have weights", plan.experts);
    }
    print_kernels(&outcome.kernels)?;
    say!("\nModelled, not measured:");
    print_modelled(&each_model(|constants: &Constants, form: Form| outcome.time(constants, form)), 1.0)?;
    if let Some(numbers) = &outcome.numbers {
        print_numbers(numbers)?;
    }
    let machine = if platform.is_emulated() { "emulated" } else { "on hardware" };
    say!("the run took {:.2} s, {machine}, {} form", outcome.elapsed.as_secs_f64(), form_name(Form::Aql));
    Ok(())
}

fn print_kernels(kernels: &[KernelUse]) -> Result<(), Failure> {
    let mut counts = table(&[
        "kernel",
        "dispatches",
        "workgroups",
        "waves",
        "VGPRs",
        "SGPRs",
        "LDS",
        "waves/CU",
        "instructions",
        "matrix",
        "LDS conflicts",
    ]);
    let mut bytes = table(&[
        "kernel",
        "weights MB",
        "requested",
        "ratio",
        "16 B loads",
        "states MB",
        "requested",
        "activations MB",
        "requested",
        "GFLOP",
    ]);
    let percent =
        |part: u64, of: u64| if of == 0 { "-".into() } else { format!("{:.1} %", 100.0 * part as f64 / of as f64) };
    for kernel in kernels {
        let occupancy = kernel.occupancy;
        let counted = kernel.counted.unwrap_or_default();
        let seen = |text: String| if kernel.counted.is_some() { text } else { "-".into() };
        counts.add_row([
            kernel.name.to_owned(),
            kernel.dispatches.to_string(),
            kernel.workgroups.to_string(),
            kernel.waves.to_string(),
            occupancy.vector_registers.to_string(),
            occupancy.scalar_registers.to_string(),
            occupancy.lds_bytes.to_string(),
            occupancy.waves_per_cu.to_string(),
            seen(counted.wave_instructions.to_string()),
            seen(counted.matrix_instructions.to_string()),
            seen(percent(counted.lds_conflict_cycles, counted.lds_cycles)),
        ]);
        let ratio = counted.weight_ratio(&kernel.work).map_or_else(|| "-".into(), |ratio| format!("{ratio:.3}"));
        bytes.add_row([
            kernel.name.to_owned(),
            megabytes(kernel.work.weight_bytes),
            seen(megabytes(counted.weight_bytes)),
            seen(ratio),
            seen(percent(counted.wide_weight_bytes, counted.weight_bytes)),
            megabytes(kernel.work.state_bytes),
            seen(megabytes(counted.state_bytes)),
            megabytes(kernel.work.activation_bytes),
            seen(megabytes(counted.other_bytes)),
            format!("{:.3}", kernel.work.flops as f64 / 1e9),
        ]);
    }
    say!("{counts}\n{bytes}");
    Ok(())
}

fn print_numbers(numbers: &Numbers) -> Result<(), Failure> {
    say!("\nRelative error against FP32 on the host, L2 of the worst row; at most {TOLERANCE} is allowed:");
    let mut errors = table(&["buffer", "written by", "error"]);
    for stage in &numbers.stages {
        errors.add_row([stage.stage.to_owned(), stage.kernel.to_owned(), format!("{:.1e}", stage.relative)]);
    }
    say!("{errors}");
    if let Some(gap) = numbers.routing_gap {
        say!("the worst chosen expert scores {gap:.1e} less than the best left out; at most {TIE} is allowed");
    }
    Ok(())
}
