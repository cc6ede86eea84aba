//! The plan as a table that adds up.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};

use super::{MemoryPlan, Section};

impl fmt::Display for MemoryPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_BORDERS_ONLY).set_header(["per GPU", "parts", "bytes", "GiB"]);
        let mut row = |name: &str, parts: usize, bytes: u64| {
            table.add_row([
                name.to_string(),
                parts.to_string(),
                bytes.to_string(),
                format!("{:.3}", bytes as f64 / f64::from(1 << 30)),
            ]);
        };
        let section = |section: &Section| (section.parts().len(), section.bytes().get());
        row("weights", 1, self.weights.get());
        for (name, (parts, bytes)) in [
            ("MLA latents", section(&self.cache)),
            ("KDA states", section(&self.state)),
            ("workspace", section(&self.workspace)),
            ("mailboxes", section(&self.exchange)),
        ] {
            row(name, parts, bytes);
        }
        row("VRAM in all", 0, self.vram_bytes().get());
        for column in 1..4 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        write!(f, "{table}")
    }
}
