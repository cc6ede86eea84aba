//! `kimi-hcq load`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use driver::address::Bytes;
use driver::memory::Allocation;
use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};
use model::{Checkpoint, Config, Layout};
use serde::Serialize;

use super::model::ModelArguments;
use super::output::{note, print_json, say};
use crate::engine::open_gpus;
use crate::failure::Failure;
use crate::interrupt;
use crate::loader::{self, LoadReport, Manifest, Options, Progress, ReaderChoice, Verified};
use crate::plan::{MemoryPlan, Sizes};
use crate::platform::{MOCK_VARIABLE, Platform};

/// Arguments of the command.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    /// Read and plan as for so many devices, but copy nothing: needs no GPU.
    #[arg(long)]
    null_devices: bool,
    /// When everything is loaded, read it back from the GPUs and compare it with the files.
    #[arg(long, conflicts_with = "null_devices")]
    verify: bool,
    /// Write a checksum of each tensor to FILE, or compare with those in FILE if it is there.
    #[arg(long, value_name = "FILE")]
    checksums: Option<PathBuf>,
    /// Load only the first N layers, and what belongs to no layer.
    #[arg(long, value_name = "N")]
    limit_layers: Option<usize>,
}

/// How to read.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct ReadingArguments {
    /// Read with io_uring, or fail; by default it is used where it works.
    #[arg(long, conflicts_with = "pread")]
    io_uring: bool,
    /// Read with threads that call pread.
    #[arg(long)]
    pread: bool,
    /// Bytes of one read: a multiple of 4096.
    #[arg(long, value_name = "BYTES")]
    block: Option<u64>,
    /// Reads in flight for each disk; without, the load finds out how many pay.
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Bytes of the staging buffer between disks and GPUs.
    #[arg(long, value_name = "BYTES")]
    staging: Option<u64>,
}

impl ReadingArguments {
    pub(super) fn options(&self) -> Options {
        let Self { io_uring, pread, block, depth, staging } = *self;
        let default = Options::default();
        Options {
            reader: match (io_uring, pread) {
                (true, _) => ReaderChoice::IoUring,
                (_, true) => ReaderChoice::Pread,
                _ => ReaderChoice::Best,
            },
            block: block.map_or(default.block, Bytes::new),
            depth,
            staging: staging.map_or(default.staging, Bytes::new),
            ..default
        }
    }
}

impl Arguments {
    fn options(&self) -> Options {
        Options {
            limit_layers: self.limit_layers,
            verify: self.verify,
            checksums: self.checksums.clone(),
            ..self.reading.options()
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    reader: &'static str,
    bytes_read: u64,
    weight_bytes: u64,
    padding_bytes: u64,
    bytes_per_gpu: &'a [u64],
    seconds: f64,
    gb_per_s: f64,
    peak_rss_bytes: u64,
    mock_bytes: u64,
    cpu_seconds: f64,
    stages: Stages,
    disks: usize,
    files: usize,
    buffered_files: usize,
    block_bytes: u64,
    depth: usize,
    reads: u64,
    resubmitted_reads: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<VerifiedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksums: Option<&'static str>,
}

#[derive(Serialize)]
struct VerifiedReport {
    tensors: usize,
    bytes: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct Stages {
    plan_seconds: f64,
    read_wait_seconds: f64,
    sdma_wait_seconds: f64,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    if arguments.null_devices {
        let folder = arguments.model.folder_on(std::env::var_os(MOCK_VARIABLE).is_some())?;
        let (checkpoint, layout) = open(arguments, &folder)?;
        interrupt::watch().map_err(Failure::run)?;
        let bar = Bar::default();
        let report = loader::read_only(&checkpoint, &layout, &arguments.options(), &bar)?;
        bar.end();
        return print(&report, 0, json);
    }
    let platform = Platform::open()?;
    let (checkpoint, layout) = open(arguments, &arguments.model.folder(&platform)?)?;
    let gpus = open_gpus(&platform, arguments.model.devices)?;
    let sizes = Sizes {
        ranks: layout.ranks(),
        chunk: arguments.model.chunk(),
        max_context: arguments.model.max_context,
        all_logits: false,
    };
    let needed = MemoryPlan::new(checkpoint.config(), &layout, sizes).vram_bytes();
    for gpu in &gpus {
        let available = gpu.available_memory().map_err(Failure::run)?;
        if available < needed {
            return Err(Failure::Input(format!(
                "the model needs {} of {gpu} at a context of {} tokens, which has {} left; use more --devices or a \
                 smaller --max-context",
                BinaryBytes(needed.get()),
                arguments.model.max_context,
                BinaryBytes(available.get())
            )));
        }
    }
    let arena = Allocation::vram(Bytes::new(layout.arena_bytes()), "weights");
    let arenas = gpus.iter().map(|gpu| gpu.allocate(&arena)).collect::<Result<Vec<_>, _>>().map_err(Failure::run)?;
    interrupt::watch().map_err(Failure::run)?;
    let bar = Bar::default();
    let report =
        loader::load(&checkpoint, &layout, &gpus, &arenas.iter().collect::<Vec<_>>(), &arguments.options(), &bar)?;
    bar.end();
    print(&report, platform.touched_bytes().map_err(Failure::run)?, json)
}

fn open(arguments: &Arguments, folder: &std::path::Path) -> Result<(Checkpoint, Layout), Failure> {
    let config = Config::read(folder).map_err(Failure::input)?;
    arguments.model.check_context(&config)?;
    let layout = Layout::new(&config, arguments.model.devices).map_err(Failure::input)?;
    let checkpoint = Checkpoint::open(folder, &config).map_err(Failure::input)?;
    Ok((checkpoint, layout))
}

fn print(report: &LoadReport, mock_bytes: u64, json: bool) -> Result<ExitCode, Failure> {
    let peak_rss_bytes = loader::peak_rss_bytes().map_err(Failure::run)?;
    let seconds = report.elapsed.as_secs_f64();
    let gb_per_s = report.bytes_per_second() / 1e9;
    let stages = Stages {
        plan_seconds: report.stages.plan.as_secs_f64(),
        read_wait_seconds: report.stages.read_wait.as_secs_f64(),
        sdma_wait_seconds: report.stages.sdma_wait.as_secs_f64(),
    };
    if json {
        print_json(&Report {
            reader: report.reader.name(),
            bytes_read: report.bytes_read,
            weight_bytes: report.weight_bytes,
            padding_bytes: report.bytes_read - report.weight_bytes,
            bytes_per_gpu: &report.bytes_per_rank,
            seconds,
            gb_per_s,
            peak_rss_bytes,
            mock_bytes,
            cpu_seconds: report.cpu.as_secs_f64(),
            stages,
            disks: report.disks,
            files: report.files,
            buffered_files: report.buffered_files,
            block_bytes: report.block,
            depth: report.depth,
            reads: report.reads,
            resubmitted_reads: report.resubmitted,
            verified: report.verified.map(|verified| VerifiedReport {
                tensors: verified.tensors,
                bytes: verified.bytes,
                seconds: verified.elapsed.as_secs_f64(),
            }),
            checksums: report.manifest.map(|manifest| match manifest {
                Manifest::Written => "written",
                Manifest::Compared { .. } => "equal",
            }),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{} bytes of weights in {seconds:.2} s: {gb_per_s:.2} GB/s by {} ({} KiB, {} in flight) from {} disk(s)",
        report.weight_bytes,
        report.reader.name(),
        report.block >> 10,
        report.depth,
        report.disks
    );
    say!(
        "planned {:.3} s, waited {:.3} s for reads and {:.3} s for SDMA; the loader's processor time was {:.3} s",
        stages.plan_seconds,
        stages.read_wait_seconds,
        stages.sdma_wait_seconds,
        report.cpu.as_secs_f64()
    );
    if let Some(Verified { tensors, bytes, elapsed }) = report.verified {
        let seconds = elapsed.as_secs_f64();
        say!("read back in {seconds:.2} s: all {bytes} bytes of {tensors} tensors are what the files say");
    }
    match report.manifest {
        Some(Manifest::Written) => say!("wrote checksums"),
        Some(Manifest::Compared { tensors }) => say!("checksums of all {tensors} tensors are right"),
        None => {}
    }
    let most = report.bytes_per_rank.iter().max().unwrap_or(&0);
    say!("{most} bytes on each of {} GPUs; {} MiB of host memory at most", report.bytes_per_rank.len(), {
        peak_rss_bytes.saturating_sub(mock_bytes) >> 20
    });
    Ok(ExitCode::SUCCESS)
}

/// A bar on the terminal, if there is one, and Ctrl-C.
pub(super) struct Bar(ProgressBar);

impl Default for Bar {
    fn default() -> Self {
        let style = ProgressStyle::with_template(
            "{bar:30} {percent:>3}% {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} ETA {eta} {msg}",
        );
        let bar = ProgressBar::new(0);
        bar.set_style(style.expect("the template is fixed, and every run uses it"));
        Self(bar)
    }
}

impl Bar {
    /// Ctrl-C only.
    pub(super) fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, bytes: u64) {
        self.0.reset();
        self.0.set_length(bytes);
        self.0.enable_steady_tick(Duration::from_millis(200));
    }

    fn advance(&self, bytes: u64, layer: Option<u16>) {
        self.0.inc(bytes);
        if let Some(layer) = layer {
            self.0.set_message(format!("layer {layer}"));
        }
    }

    fn notice(&self, text: &str) {
        self.0.suspend(|| note!("kimi-hcq: {text}"));
    }

    fn is_cancelled(&self) -> bool {
        interrupt::requested()
    }
}
