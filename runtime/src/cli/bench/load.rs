//! `kimi-hcq bench load`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use serde_json::{Value, json};

use crate::bench::load::{self, Outcome, Plan, Way};
use crate::cli::load::{Bar, ReadingArguments};
use crate::cli::model;
use crate::cli::output::{note, print_json, say};
use crate::failure::Failure;
use crate::platform::Platform;
use crate::{fixture, interrupt};

#[derive(clap::Args)]
pub(in crate::cli) struct Arguments {
    /// Take this checkpoint. Without it, one with random weights and the matrix shapes of the released model is written
    /// first, and removed at the end.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Folder on the disk to measure, for the checkpoint that is written.
    #[arg(long, default_value_os_t = std::env::temp_dir(), conflicts_with = "model")]
    dir: PathBuf,
    /// Bytes of the checkpoint that is written.
    #[arg(long, default_value_t = 4 << 30, conflicts_with = "model")]
    bytes: u64,
    /// GPUs to load to.
    #[arg(long, default_value_t = 8, value_parser = model::parse_devices)]
    devices: usize,
    /// Passes of each way to read.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    #[command(flatten)]
    reading: ReadingArguments,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    interrupt::watch().map_err(Failure::run)?;
    let platform = Platform::open()?;
    let say = |text: &str| note!("kimi-hcq: {text}");
    let written = match &arguments.model {
        Some(_) => None,
        None => Some(Scratch::write(&arguments.dir, arguments.bytes, &say)?),
    };
    let model = written.as_ref().map(|scratch| &scratch.0).or(arguments.model.as_ref());
    let plan = Plan {
        model: model.expect("one of the two is there").clone(),
        devices: arguments.devices,
        rounds: arguments.rounds as usize,
        options: arguments.reading.options(),
    };
    let outcome = load::run(&plan, &platform, &Bar::hidden(), &say)?;
    if json {
        print_json(&report(&outcome, &platform))?;
    } else {
        print(&outcome, &platform)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A checkpoint that goes away with the measurement.
struct Scratch(PathBuf);

impl Scratch {
    fn write(dir: &Path, bytes: u64, say: &dyn Fn(&str)) -> Result<Self, Failure> {
        let start = Instant::now();
        let folder = Self(dir.join(format!("kimi-hcq-bench-{}", std::process::id())));
        say(&format!("writing a checkpoint to {}", folder.0.display()));
        let json = load::checkpoint_config(bytes);
        let written = fixture::write_random(&folder.0, json.as_bytes(), 0, &interrupt::requested)?;
        for entry in std::fs::read_dir(&folder.0).map_err(Failure::run)? {
            let path = entry.map_err(Failure::run)?.path();
            std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(Failure::run)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        say(&format!("wrote {} bytes in {seconds:.1} s", written.apparent_bytes));
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            note!("kimi-hcq: cannot remove {}: {error}", self.0.display());
        }
    }
}

#[derive(Serialize)]
struct WayReport<'a> {
    name: &'a str,
    gb_per_s: f64,
    passes_gb_per_s: Vec<f64>,
    page_cache_cold: bool,
}

fn way(way: &Way) -> WayReport<'_> {
    WayReport {
        name: &way.name,
        gb_per_s: way.median() / 1e9,
        passes_gb_per_s: way.rates.iter().map(|rate| rate / 1e9).collect(),
        page_cache_cold: way.is_cold(),
    }
}

fn report(outcome: &Outcome, platform: &Platform) -> Value {
    let ways = [&outcome.loader, &outcome.mapped, &outcome.buffered].into_iter().chain(&outcome.raw);
    json!({
        "bytes": outcome.bytes,
        "ratio_to_raw": outcome.ratio_to_raw(),
        "loader": way(&outcome.loader),
        "raw": way(&outcome.raw[0]),
        "other_raw": outcome.raw[1..].iter().map(way).collect::<Vec<_>>(),
        "mmap_copy": way(&outcome.mapped),
        "buffered_pread": way(&outcome.buffered),
        "fresh_memory_gb_per_s": outcome.fresh_memory.median() / 1e9,
        "page_cache_cold": ways.clone().all(Way::is_cold),
        "reader": outcome.reader,
        "cpu_seconds": load::median_seconds(&outcome.cpu),
        "cpu_share_of_a_core": outcome.cpu_share(),
        "peak_rss_bytes": outcome.rss_bytes + outcome.mock_bytes,
        "mock_bytes": outcome.mock_bytes,
        "loader_rss_bytes": outcome.rss_bytes,
        "processor": load::processor(),
        "cores": load::cores(),
        "emulated": platform.is_emulated(),
    })
}

fn print(outcome: &Outcome, platform: &Platform) -> Result<(), Failure> {
    let best = outcome.raw[0].median();
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY).set_header(["way", "GB/s, median", "passes", "of raw", "page cache"]);
    let mut row = |kind: &str, way: &Way| {
        let passes: Vec<_> = way.rates.iter().map(|rate| format!("{:.2}", rate / 1e9)).collect();
        table.add_row([
            format!("{kind}{}", way.name),
            format!("{:.2}", way.median() / 1e9),
            passes.join(" "),
            format!("{:.3}", way.median() / best),
            if way.is_cold() { "cold".into() } else { format!("had {} MiB", way.cached_bytes >> 20) },
        ]);
    };
    outcome.raw.iter().for_each(|way| row("raw ", way));
    row("", &outcome.loader);
    row("", &outcome.buffered);
    row("", &outcome.mapped);
    row("", &outcome.fresh_memory);
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    say!("{table}");
    let target = if platform.is_emulated() { "emulated GPUs" } else { "GPUs" };
    say!(
        "{} bytes of weights to {target}: {:.3} of raw by {}, {:.1} % of a core, {} MiB of host memory",
        outcome.bytes,
        outcome.ratio_to_raw(),
        outcome.reader,
        100.0 * outcome.cpu_share(),
        outcome.rss_bytes >> 20
    );
    say!("{}, {} cores", load::processor(), load::cores());
    if platform.is_emulated() && outcome.fresh_memory.median() < best {
        say!(
            "this machine gives fresh memory more slowly than it reads: the emulated GPUs, not the loader, set the pace"
        );
    }
    Ok(())
}
