//! How a profile is shown.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;

use super::output::note;
use crate::bench::profile::KernelTime;
use crate::engine::Span;

/// A table for people, on standard error, where the answer is not.
pub(super) fn print_profile(kernels: &[KernelTime], is_emulated: bool) {
    let mut table = Table::new();
    let header = ["kernel, GPU 0", "dispatches", "ms", "us each", "MB", "GB/s", "share", "idle before, ms"];
    table.load_preset(presets::UTF8_BORDERS_ONLY).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for kernel in kernels {
        let seconds = (kernel.microseconds * 1e-6).max(f64::MIN_POSITIVE);
        table.add_row([
            kernel.kernel.to_owned(),
            kernel.count.to_string(),
            format!("{:.3}", kernel.microseconds / 1e3),
            format!("{:.2}", kernel.microseconds / kernel.count as f64),
            format!("{:.2}", kernel.bytes as f64 / 1e6),
            format!("{:.2}", kernel.bytes as f64 / seconds / 1e9),
            format!("{:.1} %", kernel.share * 100.0),
            format!("{:.3}", kernel.idle_microseconds / 1e3),
        ]);
    }
    note!("{table}");
    if is_emulated {
        note!("an emulated GPU: these are times of the emulation, and say nothing about hardware");
    }
}

/// Writes the trace-event format of Chrome, which Perfetto reads: a complete event for each dispatch, in microseconds.
pub(super) fn write_trace(path: &Path, spans: &[Span]) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for (number, span) in spans.iter().enumerate() {
        let event = json!({
            "name": span.kernel,
            "cat": span.layer.map_or_else(|| "start and head".into(), |layer| format!("layer {layer}")),
            "ph": "X",
            "ts": span.start(),
            "dur": span.microseconds(),
            "pid": 0,
            "tid": 0,
            "args": { "dispatch": span.index, "tokens": span.tokens, "position": span.position },
        });
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}\n{event}")?;
    }
    writeln!(out, "\n]}}")?;
    out.flush()
}
