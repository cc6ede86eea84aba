//! `kimi-hcq devices`

use std::process::ExitCode;

use comfy_table::{Table, presets};
use serde::Serialize;

use super::output::{note, print_json, say};
use crate::failure::Failure;
use crate::platform::Platform;

#[derive(Serialize)]
struct Device {
    node: u32,
    gpu_id: u32,
    gfx_target: &'static str,
    xccs: u32,
    compute_units: u32,
    vram_bytes: u64,
    render_node: String,
    pci_address: String,
    emulated: bool,
}

pub(super) fn run(json: bool) -> Result<ExitCode, Failure> {
    let platform = Platform::open()?;
    let topology = platform.process.topology().map_err(Failure::run)?;
    let emulated = platform.is_emulated();
    let devices: Vec<Device> = topology
        .gpus
        .iter()
        .map(|gpu| Device {
            node: gpu.node,
            gpu_id: gpu.gpu_id,
            gfx_target: gpu.target.name(),
            xccs: gpu.xcc_count,
            compute_units: gpu.cu_count(),
            vram_bytes: gpu.memory.iter().map(|bank| bank.bytes.get()).sum(),
            render_node: gpu.render_path().display().to_string(),
            pci_address: gpu.pci_address(),
            emulated,
        })
        .collect();
    for (node, reason) in &topology.skipped {
        note!("kimi-hcq: node {node} left out: {reason}");
    }
    if json {
        for device in &devices {
            print_json(device)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY).set_header([
        "node",
        "GPU id",
        "target",
        "XCCs",
        "CUs",
        "VRAM GiB",
        "render node",
        "PCI",
    ]);
    for d in &devices {
        table.add_row([
            d.node.to_string(),
            d.gpu_id.to_string(),
            d.gfx_target.to_string(),
            d.xccs.to_string(),
            d.compute_units.to_string(),
            format!("{:.1}", d.vram_bytes as f64 / f64::from(1 << 30)),
            d.render_node.clone(),
            d.pci_address.clone(),
        ]);
    }
    say!("{table}");
    if emulated {
        say!("emulated by MOCKKFD");
    }
    Ok(ExitCode::SUCCESS)
}
