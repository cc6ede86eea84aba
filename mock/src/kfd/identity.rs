//! Who the emulated devices are: node numbers, GPU ids, render nodes, and the sysfs files that say so.
//!
//! Property values are those of an MI350X as rocjitsu's configuration and `kfd_topology.c` give them, for the number of
//! XCCs of this mock.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;

use crate::config::Config;

/// Minor number of the first render node.
const FIRST_RENDER_MINOR: usize = 128;
const TOPOLOGY: &str = "/sys/devices/virtual/kfd/kfd/topology";

/// KFD's id of GPU `index`: 16 bits, as the kernel's hash gives.
pub(crate) fn gpu_id(index: usize) -> u32 {
    0xc822 + 0x111 * index as u32
}

/// The GPU with KFD id `id`.
pub(super) fn gpu_index(id: u32, gpus: usize) -> Option<usize> {
    (0..gpus).find(|&index| gpu_id(index) == id)
}

/// The GPU whose render node has `path`.
pub(super) fn render_gpu(path: &Path, gpus: usize) -> Option<usize> {
    let minor: usize = path.to_str()?.strip_prefix("/dev/dri/renderD")?.parse().ok()?;
    minor.checked_sub(FIRST_RENDER_MINOR).filter(|&gpu| gpu < gpus)
}

/// Context-save and control-stack sizes of one XCC with `compute_units` compute units (`kfd_queue.c`,
/// `kfd_queue_ctx_save_restore_size`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContextSave {
    pub(super) control_stack_bytes: u32,
    pub(super) save_restore_bytes: u32,
    pub(super) debug_bytes: u32,
}

impl ContextSave {
    pub(super) fn of(compute_units: u32) -> Self {
        const PAGE: u32 = 4096;
        // Per compute unit of gfx950: VGPRs, SGPRs, LDS and hardware registers.
        const PER_UNIT: u32 = 0x80000 + 0x4000 + 0x28000 + 0x1000;
        let waves = compute_units * 40;
        let control_stack_bytes = (40 + waves * 8 + 8).next_multiple_of(PAGE);
        let save_restore_bytes = control_stack_bytes + (PER_UNIT * compute_units).next_multiple_of(PAGE);
        Self { control_stack_bytes, save_restore_bytes, debug_bytes: (waves * 32).next_multiple_of(64) }
    }
}

/// The content of sysfs file `path`, if the mock has it.
pub(super) fn read(config: &Config, path: &Path) -> Option<Vec<u8>> {
    let path = path.to_str()?;
    if path == "/sys/module/amdgpu/initstate" {
        return Some(b"live\n".to_vec());
    }
    if let Some(rest) = path.strip_prefix("/sys/class/drm/renderD") {
        return ip_discovery(config, rest);
    }
    let mut parts = path.strip_prefix(TOPOLOGY)?.trim_start_matches('/').split('/');
    let text = match (parts.next()?, parts.next()) {
        ("generation_id", None) => "2\n".into(),
        ("system_properties", None) => "platform_oem 0\nplatform_id 0\nplatform_rev 0\n".into(),
        ("nodes", Some(node)) => {
            let node: usize = node.parse().ok()?;
            let file: Vec<&str> = parts.collect();
            node_file(config, node, &file)?
        }
        _ => return None,
    };
    Some(text.into_bytes())
}

/// The entries of sysfs folder `path`, if the mock has it.
pub(super) fn list(config: &Config, path: &Path) -> Option<Vec<OsString>> {
    let text = path.to_str()?.trim_end_matches('/');
    let names = |names: Vec<String>| Some(names.into_iter().map(OsString::from).collect());
    let count = |n: usize| names((0..n).map(|i| i.to_string()).collect());
    if text == "/sys/class/drm" {
        return names((0..config.gpus).map(|gpu| format!("renderD{}", FIRST_RENDER_MINOR + gpu)).collect());
    }
    let parts: Vec<&str> = text.strip_prefix(TOPOLOGY)?.trim_start_matches('/').split('/').collect();
    match parts[..] {
        [""] => names(["generation_id", "system_properties", "nodes"].map(String::from).to_vec()),
        ["nodes"] => count(1 + config.gpus),
        ["nodes", node, kind] => {
            let node: usize = node.parse().ok().filter(|&node| node <= config.gpus)?;
            match kind {
                "mem_banks" | "caches" => count(1),
                "io_links" if node == 0 => count(config.gpus),
                "io_links" => count(1),
                "p2p_links" => count(config.gpus - usize::from(node > 0)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// IP discovery of a render node: GC 9.5.0 (hwid 11), SDMA 4.4.5 (42), NBIF 7.9.1 (108).
fn ip_discovery(config: &Config, rest: &str) -> Option<Vec<u8>> {
    let (minor, file) = rest.split_once("/device/ip_discovery/die/0/")?;
    let gpu = minor.parse::<usize>().ok()?.checked_sub(FIRST_RENDER_MINOR)?;
    let version = match (gpu < config.gpus, file.rsplit_once("/0/")?) {
        (true, ("11", part)) => (part, [9, 5, 0]),
        (true, ("42", part)) => (part, [4, 4, 5]),
        (true, ("108", part)) => (part, [7, 9, 1]),
        _ => return None,
    };
    let (part, [major, minor, revision]) = version;
    let value = match part {
        "major" => major,
        "minor" => minor,
        "revision" => revision,
        _ => return None,
    };
    Some(format!("{value}\n").into_bytes())
}

fn node_file(config: &Config, node: usize, file: &[&str]) -> Option<String> {
    if node > config.gpus {
        return None;
    }
    let gpu = node.checked_sub(1);
    match (file, gpu) {
        (["gpu_id"], None) => Some("0\n".into()),
        (["gpu_id"], Some(gpu)) => Some(format!("{}\n", gpu_id(gpu))),
        (["name"], None) => Some("\n".into()),
        (["name"], Some(_)) => Some("ip discovery\n".into()),
        (["properties"], None) => Some(cpu_properties(config)),
        (["properties"], Some(gpu)) => Some(gpu_properties(config, gpu)),
        (["mem_banks", "0", "properties"], None) => Some(properties(&[
            ("heap_type", 0),
            ("size_in_bytes", 1 << 40),
            ("flags", 0),
            ("width", 64),
            ("mem_clk_max", 0),
        ])),
        (["mem_banks", "0", "properties"], Some(_)) => Some(properties(&[
            ("heap_type", 1),
            ("size_in_bytes", config.vram_bytes),
            ("flags", 0),
            ("width", 8192),
            ("mem_clk_max", 1900),
        ])),
        (["caches", "0", "properties"], _) => Some(properties(&[
            ("processor_id_low", 0),
            ("level", 2),
            ("size", 4096),
            ("cache_line_size", 128),
            ("cache_lines_per_tag", 1),
            ("association", 16),
            ("latency", 0),
            ("type", 9),
        ])),
        (["io_links", link, "properties"], _) => {
            let link: usize = link.parse().ok()?;
            let to = if node == 0 { link + 1 } else { 0 };
            // PCIe (2) between host and GPU.
            (to <= config.gpus).then(|| io_link(2, node, to))
        }
        (["p2p_links", link, "properties"], Some(_)) => {
            let link: usize = link.parse().ok()?;
            let to = (1..=config.gpus).filter(|&other| other != node).nth(link)?;
            // XGMI (11) between GPUs.
            Some(io_link(11, node, to))
        }
        _ => None,
    }
}

fn io_link(kind: u64, from: usize, to: usize) -> String {
    properties(&[
        ("type", kind),
        ("version_major", 0),
        ("version_minor", 0),
        ("node_from", from as u64),
        ("node_to", to as u64),
        ("weight", if kind == 11 { 15 } else { 20 }),
        ("min_latency", 0),
        ("max_latency", 0),
        ("min_bandwidth", 0),
        ("max_bandwidth", 0),
        ("recommended_transfer_size", 0),
        ("flags", 1),
    ])
}

fn properties(pairs: &[(&str, u64)]) -> String {
    let mut text = String::new();
    for (key, value) in pairs {
        // Writing to a String can't fail.
        let _ = writeln!(text, "{key} {value}");
    }
    text
}

fn cpu_properties(config: &Config) -> String {
    properties(&[
        ("cpu_cores_count", 64),
        ("simd_count", 0),
        ("mem_banks_count", 1),
        ("caches_count", 1),
        ("io_links_count", config.gpus as u64),
        ("cpu_core_id_base", 0),
        ("gfx_target_version", 0),
        ("vendor_id", 0),
        ("device_id", 0),
        ("drm_render_minor", 0),
    ])
}

fn gpu_properties(config: &Config, gpu: usize) -> String {
    let xccs = config.xccs as u64;
    let units = u64::from(config.compute_units) * xccs;
    let save = ContextSave::of(config.compute_units);
    properties(&[
        ("cpu_cores_count", 0),
        ("simd_count", units * 4),
        ("mem_banks_count", 1),
        ("caches_count", 1),
        ("io_links_count", 1),
        ("p2p_links_count", config.gpus as u64 - 1),
        ("cpu_core_id_base", 0),
        ("simd_id_base", 2_147_487_744 + 1000 * gpu as u64),
        ("max_waves_per_simd", 8),
        ("lds_size_in_kb", 160),
        ("gds_size_in_kb", 0),
        ("num_gws", 64),
        ("wave_front_size", 64),
        ("array_count", 4 * xccs),
        ("simd_arrays_per_engine", 1),
        ("cu_per_simd_array", u64::from(config.compute_units / 4)),
        ("simd_per_cu", 4),
        ("max_slots_scratch_cu", 32),
        ("gfx_target_version", 90500),
        ("vendor_id", 0x1002),
        ("device_id", 0x75a0),
        ("location_id", 0x500 + 0x100 * gpu as u64),
        ("domain", 0),
        ("drm_render_minor", (FIRST_RENDER_MINOR + gpu) as u64),
        ("hive_id", 0x5ee5_1d0e_1d0e),
        ("num_sdma_engines", 2),
        ("num_sdma_xgmi_engines", 14),
        ("num_sdma_queues_per_engine", 8),
        ("num_cp_queues", 24),
        ("max_engine_clk_fcompute", 2400),
        ("max_engine_clk_ccompute", 0),
        ("local_mem_size", 0),
        ("fw_version", 180),
        ("capability", 2_889_327_232),
        ("capability2", 1),
        ("debug_prop", 1494),
        ("sdma_fw_version", 24),
        ("unique_id", 0x6b3c_0000_0000_0000 + gpu as u64),
        ("num_xcc", xccs),
        ("cwsr_size", u64::from(save.save_restore_bytes)),
        ("ctl_stack_size", u64::from(save.control_stack_bytes)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_save_sizes_are_those_two_clients_computed_for_an_mi350x() {
        let save = ContextSave::of(32);
        assert_eq!(save.control_stack_bytes, 0x3000);
        assert_eq!(save.save_restore_bytes, 0x15A_3000);
        assert_eq!(8 * (save.save_restore_bytes + save.debug_bytes), 0xAD6_8000);
    }

    #[test]
    fn every_listed_node_has_its_files() {
        let config = Config::default();
        let nodes = list(&config, Path::new("/sys/devices/virtual/kfd/kfd/topology/nodes")).unwrap();
        assert_eq!(nodes.len(), 9);
        for node in nodes {
            let folder = Path::new(TOPOLOGY).join("nodes").join(&node);
            for file in ["gpu_id", "properties", "mem_banks/0/properties", "caches/0/properties"] {
                assert!(read(&config, &folder.join(file)).is_some(), "{node:?}/{file}");
            }
            for link in list(&config, &folder.join("io_links")).unwrap() {
                assert!(read(&config, &folder.join("io_links").join(link).join("properties")).is_some());
            }
        }
        assert!(read(&config, Path::new("/sys/devices/virtual/kfd/kfd/topology/nodes/9/gpu_id")).is_none());
    }

    #[test]
    fn gpu_ids_are_distinct_and_found_again() {
        for gpu in 0..8 {
            assert_eq!(gpu_index(gpu_id(gpu), 8), Some(gpu));
            assert!(gpu_id(gpu) < 1 << 16);
        }
        assert_eq!(gpu_index(1, 8), None);
    }
}
