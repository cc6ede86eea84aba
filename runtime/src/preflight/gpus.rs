//! GPUs, their driver, and what they let each other and the host do.

use std::path::Path;
use std::sync::Arc;

use driver::Gpu;
use driver::address::Bytes;
use driver::memory::{Access, Allocation, Buffer};
use driver::topology::GpuNode;

use super::{MI350X_VRAM, Report, Status, Topic, size};
use crate::platform::Platform;

/// XCCs of an unpartitioned MI350X.
const XCCS: u32 = 8;
/// `CRAT_IOLINK_TYPE_XGMI`.
const XGMI: u32 = 11;
/// Memory that trial allocations take: a huge page.
const TRIAL: Bytes = Bytes::HUGE_PAGE;

/// VRAM of the smallest of the GPUs that a load would take, if the kernel lists them.
pub(super) fn vram(platform: &Platform, gpus: usize) -> Option<Bytes> {
    let topology = platform.process.topology().ok()?;
    let vram = |gpu: &GpuNode| gpu.memory.iter().map(|bank| bank.bytes.get()).sum::<u64>();
    topology.gpus.iter().take(gpus).map(vram).filter(|bytes| *bytes > 0).min().map(Bytes::new)
}

pub(super) fn check(report: &mut Report, platform: &Platform, wanted: usize) {
    let (major, minor) = platform.process.kfd().version();
    let emulated = if platform.is_emulated() { ", emulated by MOCKKFD" } else { "" };
    report.ok(Topic::Gpu, format!("/dev/kfd opens: interface {major}.{minor}{emulated}"));
    let topology = match platform.process.topology() {
        Ok(topology) => topology,
        Err(error) => return report.fail(Topic::Gpu, error.to_string()),
    };
    for (node, reason) in &topology.skipped {
        let fix = "it is left out; if it should not be, pass it to the container, or update the kernel";
        report.warn(Topic::Gpu, format!("node {node}: {reason}"), fix);
    }
    let found = topology.gpus.len();
    if found < wanted {
        let fix = if found == 0 {
            "check lspci and dmesg | grep amdgpu".into()
        } else {
            format!("use --devices {found} or fewer")
        };
        return report.fail_with(Topic::Gpu, format!("{wanted} GPUs are wanted, {found} are usable"), fix);
    }
    let nodes = &topology.gpus[..wanted];
    report.ok(Topic::Gpu, describe(nodes));
    check_partition(report, platform, nodes);
    check_links(report, nodes);
    let opened: Vec<_> = nodes.iter().map(|node| Gpu::open(&platform.process, node.clone())).collect();
    let failures: Vec<_> = opened.iter().filter_map(|gpu| gpu.as_ref().err()).collect();
    if failures.is_empty() {
        report.ok(Topic::Gpu, format!("{wanted} render nodes open, and give their address space"));
    }
    for error in failures {
        report.fail(Topic::Gpu, error.to_string());
    }
    let gpus: Vec<_> = opened.into_iter().filter_map(Result::ok).collect();
    check_memory(report, &gpus);
    check_peers(report, &gpus);
    check_bar(report, &gpus);
}

fn describe(nodes: &[GpuNode]) -> String {
    let Some(first) = nodes.first() else { return "no GPUs".into() };
    let same = nodes.iter().all(|node| (node.target, node.cu_count()) == (first.target, first.cu_count()));
    let kind = if same { "" } else { " (of different kinds)" };
    format!(
        "{} x {}{kind}, {} CUs, {} of VRAM, {} SDMA engines",
        nodes.len(),
        first.target,
        first.cu_count(),
        size(Bytes::new(first.memory.iter().map(|bank| bank.bytes.get()).sum())),
        first.sdma_engines + first.sdma_xgmi_engines
    )
}

/// A whole GPU is one node of eight XCCs (SPX). In other modes each part has a part of the memory, too.
fn check_partition(report: &mut Report, platform: &Platform, nodes: &[GpuNode]) {
    let parts: Vec<_> = nodes.iter().filter(|node| node.xcc_count != XCCS).collect();
    let Some(node) = parts.first() else {
        return report.ok(Topic::Gpu, format!("partition mode: whole GPUs of {XCCS} XCCs (SPX)"));
    };
    let file = format!("/sys/class/drm/renderD{}/device/current_compute_partition", node.render_minor);
    let mode = platform.process.kfd().system().read_file(Path::new(&file)).ok();
    let mode = mode.map_or(String::new(), |text| format!(" ({})", String::from_utf8_lossy(&text).trim()));
    report.warn(
        Topic::Gpu,
        format!("partition mode{mode}: {} of {} nodes have {} XCCs", parts.len(), nodes.len(), node.xcc_count),
        "eight ranks want eight whole GPUs: amd-smi set --compute-partition SPX",
    );
}

fn check_links(report: &mut Report, nodes: &[GpuNode]) {
    if nodes.len() == 1 {
        return;
    }
    let linked = |a: &GpuNode, b: &GpuNode| a.links.iter().any(|link| link.to == b.node && link.kind == XGMI);
    let one_hive = nodes.iter().all(|node| node.hive_id == nodes[0].hive_id && node.hive_id != 0);
    let all_linked = nodes.iter().all(|a| nodes.iter().all(|b| a.node == b.node || linked(a, b)));
    if one_hive && (all_linked || nodes.iter().all(|node| node.links.is_empty())) {
        report.ok(Topic::Gpu, "all GPUs are in one XGMI hive");
    } else if !one_hive {
        let fix = "collectives go over PCIe, which is far slower: use GPUs of one hive";
        report.warn(Topic::Gpu, "the GPUs are not in one XGMI hive", fix);
    }
}

fn check_memory(report: &mut Report, gpus: &[Arc<Gpu>]) {
    let needed: i64 = report.plan.iter().filter(|row| row.name != "head-room").map(|row| row.bytes).sum();
    let needed = Bytes::new(needed.max(0) as u64);
    let mut short = false;
    for gpu in gpus {
        match gpu.available_memory() {
            Ok(available) if available < needed => {
                short = true;
                let fix = "see who holds it: /sys/class/kfd/kfd/proc, or amd-smi process";
                report.fail_with(
                    Topic::Gpu,
                    format!("{gpu} has {} of VRAM left, {} are needed", size(available), size(needed)),
                    fix,
                );
            }
            Ok(_) => {}
            Err(error) => {
                short = true;
                report.fail(Topic::Gpu, format!("{gpu} does not say how much VRAM it has left: {error}"));
            }
        }
    }
    if !short && !gpus.is_empty() {
        let least = gpus.iter().filter_map(|gpu| gpu.available_memory().ok()).min().unwrap_or(MI350X_VRAM);
        report.ok(Topic::Gpu, format!("{} of VRAM are free on each", size(least)));
    }
}

/// Memory of each GPU is mapped by every other one.
fn check_peers(report: &mut Report, gpus: &[Arc<Gpu>]) {
    if gpus.len() < 2 {
        return;
    }
    let others: Vec<_> = gpus.iter().collect();
    let map = |gpu: &Arc<Gpu>| gpu.allocate(&Allocation::vram(TRIAL, "peer access check"))?.map_to(&others);
    let before = report.checks.len();
    for error in gpus.iter().filter_map(|gpu| map(gpu).err()) {
        report.fail(Topic::Gpu, format!("peer access: {error}"));
    }
    if report.checks.len() == before {
        report.ok(Topic::Gpu, format!("peer access: each GPU maps memory of the {} others", gpus.len() - 1));
    }
}

/// The host maps VRAM: code objects are written there.
fn check_bar(report: &mut Report, gpus: &[Arc<Gpu>]) {
    let map = |gpu: &Arc<Gpu>| -> Result<Buffer, driver::memory::Error> {
        gpu.allocate(&Allocation::vram(TRIAL, "large BAR check").with(Access::HOST))
    };
    let before = report.checks.len();
    for error in gpus.iter().filter_map(|gpu| map(gpu).err()) {
        report.fail(Topic::Gpu, format!("large BAR: {error}"));
    }
    if report.checks[before..].iter().all(|check| check.status != Status::Failure) && !gpus.is_empty() {
        report.ok(Topic::Gpu, "large BAR: the host maps VRAM");
    }
}
