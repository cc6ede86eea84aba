//! What the reports of `bench` have in common.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use crate::bench::cost::{Constants, SETS, Seconds};
use crate::cli::output::say;
use crate::failure::Failure;
use crate::graph::Form;

/// A modelled time of one set of constants and one form.
pub(super) struct Modelled {
    constants: Constants,
    form: Form,
    seconds: Seconds,
}

pub(super) fn each_model(mut time: impl FnMut(&Constants, Form) -> Seconds) -> Vec<Modelled> {
    let pairs = SETS.into_iter().flat_map(|constants| [Form::Aql, Form::Ib].map(|form| (constants, form)));
    pairs.map(|(constants, form)| Modelled { constants, form, seconds: time(&constants, form) }).collect()
}

pub(super) fn form_name(form: Form) -> &'static str {
    match form {
        Form::Aql => "aql",
        Form::Ib => "ib",
    }
}

pub(super) fn modelled_json(model: &Modelled, tokens: f64) -> Value {
    let total = model.seconds.total();
    json!({
        "constants": model.constants.name,
        "form": form_name(model.form),
        "seconds": total,
        "by_cause": model.seconds,
        "tokens_per_second": tokens / total,
    })
}

pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

pub(super) fn megabytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1e6)
}

pub(super) fn print_modelled(modelled: &[Modelled], tokens: f64) -> Result<(), Failure> {
    let mut table = table(&[
        "constants",
        "form",
        "bytes ms",
        "FLOPs ms",
        "dispatches ms",
        "collectives ms",
        "XCC barriers ms",
        "total ms",
        "tokens/s",
    ]);
    for model in modelled {
        let Seconds { bytes, flops, dispatches, collectives, barriers } = model.seconds;
        let total = model.seconds.total();
        let times = [bytes, flops, dispatches, collectives, barriers, total].map(|time| format!("{:.3}", time * 1e3));
        let mut row = vec![model.constants.name.to_owned(), form_name(model.form).to_owned()];
        row.extend(times);
        row.push(format!("{:.1}", tokens / total));
        table.add_row(row);
    }
    say!("{table}");
    Ok(())
}
