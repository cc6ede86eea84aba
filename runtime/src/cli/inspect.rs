//! Traces, profiles and fidelity reports as text.

use std::fmt::{self, Display, Formatter};

use comfy_table::{CellAlignment, Table, presets};
use mock::inspect::{Block, Change, FidelityReport, Inspection, Judged, KernelProfile, Trace, Traffic};

/// An inspection for people: what was asked for, one part after the other.
pub(super) struct Text<'a>(pub(super) &'a Inspection);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(trace) = &self.0.trace {
            write_trace(f, trace)?;
        }
        if let Some(profile) = &self.0.profile {
            profile.kernels.iter().try_for_each(|kernel| write_kernel(f, kernel))?;
        }
        self.0.fidelity.as_ref().map_or(Ok(()), |report| write_fidelity(f, report))
    }
}

fn write_trace(f: &mut Formatter<'_>, trace: &Trace) -> fmt::Result {
    for traced in &trace.instructions {
        writeln!(f, "{:+#8x}  {}", traced.offset, traced.text)?;
        for change in &traced.changes {
            write_change(f, change)?;
        }
    }
    if trace.instructions.is_empty() {
        writeln!(f, "the launch has no such wave")?;
    }
    if trace.left_out > 0 {
        writeln!(f, "{} further instructions left out", trace.left_out)?;
    }
    Ok(())
}

/// Runs of lanes with the same value in one line of text.
const RUNS_PER_LINE: usize = 6;

fn write_change(f: &mut Formatter<'_>, change: &Change) -> fmt::Result {
    match change {
        Change::Scalar { register, value } => writeln!(f, "{:12}{register} = {value:#x}", ""),
        Change::Vector { register, lanes } => {
            let next_of = |a: &(u8, u32), b: &(u8, u32)| a.0 + 1 == b.0 && a.1 == b.1;
            let runs: Vec<String> = lanes
                .chunk_by(next_of)
                .map(|run| match run {
                    [(lane, value)] => format!("{lane}: {value:#x}"),
                    [(first, value), .., (last, _)] => format!("{first}-{last}: {value:#x}"),
                    [] => String::new(),
                })
                .collect();
            for (line, runs) in runs.chunks(RUNS_PER_LINE).enumerate() {
                let name = if line == 0 { register } else { "" };
                writeln!(f, "{:12}{name:4} {}", "", runs.join("  "))?;
            }
            Ok(())
        }
    }
}

fn table(header: &[&str], numbers_from: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY).set_header(header);
    for column in table.column_iter_mut().skip(numbers_from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn write_kernel(f: &mut Formatter<'_>, kernel: &KernelProfile) -> fmt::Result {
    let occupancy = &kernel.occupancy;
    let by_lds = occupancy.by_lds.map_or_else(|| "no LDS used".into(), |waves| format!("{waves} by LDS"));
    writeln!(f, "kernel at {:#x}: {} workgroups, {} waves", kernel.entry, kernel.workgroups, kernel.waves)?;
    writeln!(
        f,
        "occupancy: {} waves a SIMD ({} by {} vector registers, {by_lds}, {} by slots)",
        occupancy.waves_per_simd, occupancy.by_registers, kernel.vector_registers, occupancy.by_slots
    )?;
    let mut blocks = table(
        &[
            "block",
            "length",
            "count",
            "lanes on",
            "loaded B",
            "needed",
            "stored B",
            "needed",
            "LDS B",
            "LDS cycles",
            "conflicts",
        ],
        1,
    );
    for block in &kernel.blocks {
        blocks.add_row(block_row(block));
    }
    writeln!(f, "{blocks}")?;
    let mut units: Vec<&str> = kernel.blocks.iter().flat_map(|block| block.units.keys().copied()).collect();
    units.sort_unstable();
    units.dedup();
    let mut header = vec!["executed, block"];
    header.extend(&units);
    let mut executed = table(&header, 1);
    for block in &kernel.blocks {
        let counts = units.iter().map(|unit| block.units.get(unit).map_or_else(String::new, u64::to_string));
        executed.add_row(std::iter::once(name(block)).chain(counts));
    }
    writeln!(f, "{executed}")
}

fn name(block: &Block) -> String {
    format!("{:+#x}", block.offset)
}

fn block_row(block: &Block) -> Vec<String> {
    let moved = |traffic: &Traffic| [traffic.moved.to_string(), traffic.needed.to_string()];
    let lanes = block.active_lanes.map_or_else(String::new, |lanes| format!("{lanes:.1}"));
    let mut row = vec![name(block), block.length.to_string(), block.count.to_string(), lanes];
    row.extend(moved(&block.loaded));
    row.extend(moved(&block.stored));
    row.push((block.lds.read + block.lds.written).to_string());
    row.extend([block.lds.cycles.to_string(), block.lds.conflicts.to_string()]);
    row
}

fn write_fidelity(f: &mut Formatter<'_>, report: &FidelityReport) -> fmt::Result {
    let lists = [
        ("exact", &report.exact),
        ("within bound", &report.within_bound),
        ("modelled", &report.modelled),
        ("unsupported", &report.unsupported),
    ];
    let count = |list: &[Judged]| list.iter().map(|judged| judged.count).sum::<u64>();
    let mut summary = table(&["fidelity", "instructions", "executed"], 1);
    for (name, list) in lists {
        summary.add_row([name.to_owned(), list.len().to_string(), count(list).to_string()]);
    }
    writeln!(f, "{summary}")?;
    let mut details = table(&["instruction", "fidelity", "note", "executed"], 3);
    for (name, list) in &lists[1..] {
        for judged in *list {
            details.add_row([judged.instruction, name, judged.note, &judged.count.to_string()]);
        }
    }
    if details.is_empty() { Ok(()) } else { writeln!(f, "{details}") }
}
