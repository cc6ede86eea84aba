//! `kimi-hcq preflight`

use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::model::ModelArguments;
use super::output::{print_json, say};
use crate::failure::Failure;
use crate::plan::Sizes;
use crate::platform::{MOCK_VARIABLE, Platform};
use crate::preflight::{self, MountFacts, Report, Request, Status};

/// Arguments of the command.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,
    /// Check the model's files only: needs no GPU, looks at no disk's speed.
    #[arg(long)]
    metadata_only: bool,
}

pub(super) fn run(arguments: &Arguments, json: bool) -> Result<ExitCode, Failure> {
    let platform = (!arguments.metadata_only).then(Platform::open);
    let folder = arguments.model.folder_on(std::env::var_os(MOCK_VARIABLE).is_some())?;
    let request = Request {
        folder,
        sizes: Sizes {
            ranks: arguments.model.devices,
            chunk: arguments.model.chunk(),
            max_context: arguments.model.max_context,
            all_logits: false,
        },
        metadata_only: arguments.metadata_only,
    };
    let report = preflight::run(&request, platform.as_ref());
    if json {
        print_json(&object(&report))?;
    } else {
        print(&report)?;
    }
    Ok(ExitCode::from(match report.status() {
        Status::Ok | Status::Warning => 0,
        Status::Failure if report.refuses_input() => 2,
        Status::Failure => 1,
    }))
}

fn object(report: &Report) -> Value {
    let checks = report.checks.iter().map(|check| {
        json!({
            "topic": check.topic.name(),
            "status": check.status.name(),
            "found": check.found,
            "fix": check.fix,
        })
    });
    let model = report.model.as_ref().map(|model| {
        json!({
            "shards": model.shards,
            "text_tensors": model.text_tensors,
            "text_bytes": model.text_bytes,
            "vision_tensors": model.vision_tensors,
            "vision_bytes": model.vision_bytes,
            "tensors": model.text_tensors + model.vision_tensors,
            "total_bytes": model.text_bytes + model.vision_bytes,
            "bytes_per_gpu": model.bytes_per_gpu,
            "largest_context": model.largest_context,
        })
    });
    let plan = report.model.as_ref().map(|model| {
        let rows = report.plan.iter().map(|row| json!({ "name": row.name, "bytes": row.bytes }));
        json!({ "vram_bytes": model.vram_bytes, "rows": rows.collect::<Vec<_>>() })
    });
    let mount = |mount: &MountFacts| {
        json!({
            "mount_point": mount.mount_point.to_string_lossy(),
            "file_system": mount.file_system,
            "source": mount.source,
            "shards": mount.shards,
            "bytes": mount.bytes,
            "allocated_bytes": mount.allocated,
            "direct_alignment": mount.direct_alignment,
            "extents": mount.extents,
            "gb_per_s": mount.bytes_per_second.map(|rate| rate / 1e9),
        })
    };
    json!({
        "status": report.status().name(),
        "checks": checks.collect::<Vec<_>>(),
        "model": model,
        "plan": plan,
        "mounts": report.mounts.iter().map(mount).collect::<Vec<_>>(),
        "estimated_load_seconds": report.load_seconds,
    })
}

fn print(report: &Report) -> Result<(), Failure> {
    for check in &report.checks {
        say!("{:<8} {:<7} {}", check.status.name(), check.topic.name(), check.found);
        if let Some(fix) = &check.fix {
            say!("{:<16} -> {fix}", "");
        }
    }
    if let Some(model) = &report.model {
        say!(
            "\n{} tensors in {} shards, {} bytes: text {} ({} bytes), vision {} ({} bytes, not loaded)",
            model.text_tensors + model.vision_tensors,
            model.shards,
            model.text_bytes + model.vision_bytes,
            model.text_tensors,
            model.text_bytes,
            model.vision_tensors,
            model.vision_bytes
        );
        say!("{} bytes of weights on each GPU", model.bytes_per_gpu);
        print_plan(report, model.vram_bytes)?;
        if let Some(context) = model.largest_context {
            say!("largest context that fits: {context} tokens");
        }
    }
    if let Some(seconds) = report.load_seconds {
        say!("estimated load time: {seconds:.1} s");
    }
    let verdict = match report.status() {
        Status::Ok => "a load would start",
        Status::Warning => "a load would start; see the warnings",
        Status::Failure => "a load would NOT start; see the failures",
    };
    say!("{verdict}");
    Ok(())
}

fn print_plan(report: &Report, vram: u64) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY).set_header(["per GPU", "bytes", "GiB"]);
    let mut row = |name: &str, bytes: i64| {
        let gib = format!("{:.3}", bytes as f64 / f64::from(1 << 30));
        table.add_row([name.to_owned(), bytes.to_string(), gib]);
    };
    for part in &report.plan {
        row(part.name, part.bytes);
    }
    row("VRAM", vram as i64);
    for column in 1..3 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    say!("{table}");
    Ok(())
}
