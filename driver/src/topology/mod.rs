//! Which GPUs the machine has, as the kernel lists them below `/sys/devices/virtual/kfd/kfd/topology`.
//!
//! The list is read as it is found in the field: CPU nodes between GPUs, node numbers with gaps, nodes a container may
//! not read, properties that an older kernel lacks. Such a node is left out with the reason; those after it are still
//! found.

mod node;
mod properties;

use std::io;
use std::path::Path;

pub use node::{Cache, GfxTarget, GpuNode, IoLink, MemoryBank, SkipReason};
use properties::Properties;

use crate::system::System;

/// Where the kernel lists nodes.
pub const NODES: &str = "/sys/devices/virtual/kfd/kfd/topology/nodes";

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel has no such list.
    #[error(
        "{NODES} does not exist: the amdgpu driver with KFD is not loaded, or the container hides /sys; \
             try modprobe amdgpu"
    )]
    NotLoaded,
    /// The list cannot be read.
    #[error("cannot list {NODES}: {0}; is /sys mounted and readable?")]
    List(io::Error),
}

/// The GPUs this driver can use, and the nodes it left out.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// In the order of their node numbers.
    pub gpus: Vec<GpuNode>,
    /// Nodes that may be GPUs but cannot be used, each with the reason.
    pub skipped: Vec<(u32, SkipReason)>,
}

impl Topology {
    /// Reads the list.
    pub fn read(system: &dyn System) -> Result<Self, Error> {
        let names = system.list_dir(Path::new(NODES)).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => Error::NotLoaded,
            _ => Error::List(error),
        })?;
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        let mut topology = Self::default();
        for number in numbers {
            match GpuNode::read(system, number) {
                Ok(Some(gpu)) => topology.gpus.push(gpu),
                Ok(None) => {}
                Err(reason) => topology.skipped.push((number, reason)),
            }
        }
        Ok(topology)
    }
}

/// A whole MI350X, as the tests below list it.
#[cfg(test)]
pub(crate) fn example_node() -> GpuNode {
    let system = tests::node(crate::testing::Canned::default(), 1, 51234, tests::GPU);
    Topology::read(&system).expect("the list is there").gpus.remove(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Canned;

    pub(super) const GPU: &str = "cpu_cores_count 0\nsimd_count 1024\nmax_waves_per_simd 8\nlds_size_in_kb 160\n\
        wave_front_size 64\narray_count 32\nsimd_arrays_per_engine 1\ncu_per_simd_array 9\nsimd_per_cu 4\n\
        max_slots_scratch_cu 32\ngfx_target_version 90500\nvendor_id 4098\ndevice_id 30112\nlocation_id 1280\n\
        domain 0\ndrm_render_minor 128\nhive_id 77\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 14\n\
        num_sdma_queues_per_engine 8\nnum_cp_queues 24\nmax_engine_clk_fcompute 2400\nfw_version 100\n\
        capability 2889327232\nsdma_fw_version 20\nunique_id 123456789\nnum_xcc 8\n";
    const CPU: &str = "cpu_cores_count 64\nsimd_count 0\nmem_banks_count 1\n";

    pub(super) fn node(system: Canned, number: u32, gpu_id: u32, properties: &str) -> Canned {
        let folder = format!("{NODES}/{number}");
        system
            .with_file(format!("{folder}/gpu_id"), format!("{gpu_id}\n"))
            .with_file(format!("{folder}/properties"), properties)
    }

    #[test]
    fn gpus_are_found_in_order_behind_cpu_nodes_and_gaps() {
        let mut system = node(node(Canned::default(), 0, 0, CPU), 1, 0, CPU);
        for (number, gpu_id) in [(11, 0xb), (2, 0xa), (9, 0xc)] {
            system = node(system, number, gpu_id, GPU);
        }
        let topology = Topology::read(&system).unwrap();
        let found: Vec<_> = topology.gpus.iter().map(|gpu| (gpu.node, gpu.gpu_id)).collect();
        assert_eq!(found, [(2, 0xa), (9, 0xc), (11, 0xb)]);
        assert!(topology.skipped.is_empty(), "{:?}", topology.skipped);
    }

    #[test]
    fn a_gpu_has_the_properties_the_kernel_lists() {
        let system = node(Canned::default(), 1, 51234, GPU)
            .with_file(format!("{NODES}/1/name"), "ip discovery\n")
            .with_file(
                format!("{NODES}/1/mem_banks/0/properties"),
                "heap_type 1\nsize_in_bytes 309220868096\nflags 0\nwidth 8192\nmem_clk_max 1900\n",
            )
            .with_file(
                format!("{NODES}/1/caches/0/properties"),
                "processor_id_low 0\nlevel 2\nsize 4096\ncache_line_size 128\ntype 4\n",
            )
            .with_file(
                format!("{NODES}/1/io_links/0/properties"),
                "type 11\nnode_from 1\nnode_to 2\nweight 15\nmax_bandwidth 64000\n",
            );
        let topology = Topology::read(&system).unwrap();
        let gpu = &topology.gpus[0];
        assert_eq!((gpu.target, gpu.device_id, gpu.xcc_count), (GfxTarget::Gfx950, 0x75a0, 8));
        assert_eq!(gpu.cu_count(), 256);
        assert_eq!(gpu.cu_per_xcc(), 32);
        assert_eq!(gpu.render_path().to_str(), Some("/dev/dri/renderD128"));
        assert_eq!(gpu.name.as_deref(), Some("ip discovery"));
        assert_eq!(gpu.pci_address(), "0000:05:00.0");
        assert_eq!((gpu.memory[0].bytes.get(), gpu.memory[0].width_bits), (309_220_868_096, 8192));
        assert_eq!((gpu.caches[0].level, gpu.caches[0].kib), (2, 4096));
        assert_eq!((gpu.links[0].kind, gpu.links[0].to, gpu.links[0].weight), (11, 2, 15));
    }

    #[test]
    fn a_missing_list_says_that_the_driver_is_not_loaded() {
        let error = Topology::read(&Canned::default()).unwrap_err();
        assert!(matches!(error, Error::NotLoaded));
        assert!(error.to_string().contains("modprobe amdgpu"), "{error}");
    }

    #[test]
    fn a_node_that_may_not_be_read_is_reported_and_the_next_still_found() {
        let system = node(Canned::default(), 2, 0xa, GPU)
            .with_file_error(format!("{NODES}/1/gpu_id"), libc::EPERM)
            .with_file(format!("{NODES}/1/properties"), "");
        let topology = Topology::read(&system).unwrap();
        assert_eq!(topology.gpus.len(), 1);
        let (number, reason) = &topology.skipped[0];
        assert_eq!(*number, 1);
        assert!(matches!(reason, SkipReason::Unreadable { .. }));
        assert!(reason.to_string().contains("gpu_id"), "{reason}");
    }

    #[test]
    fn a_missing_key_is_named() {
        for key in ["drm_render_minor", "num_xcc", "simd_per_cu"] {
            let without: String = GPU.lines().filter(|line| !line.starts_with(key)).flat_map(|l| [l, "\n"]).collect();
            let topology = Topology::read(&node(Canned::default(), 1, 0xa, &without)).unwrap();
            assert!(topology.gpus.is_empty());
            assert!(topology.skipped[0].1.to_string().contains(key), "{}", topology.skipped[0].1);
        }
    }

    #[test]
    fn blank_lines_and_lines_without_a_value_are_passed_over() {
        let odd = format!("\n  \nsome_flag\nanother x\n{GPU}\n\n");
        assert_eq!(Topology::read(&node(Canned::default(), 1, 0xa, &odd)).unwrap().gpus.len(), 1);
    }

    #[test]
    fn an_unknown_target_is_refused_by_name_and_others_stay() {
        let mi300 = GPU.replace("90500", "90402");
        let strange = GPU.replace("90500", "130007");
        let system = node(node(node(Canned::default(), 1, 0xa, &mi300), 2, 0xb, &strange), 3, 0xc, GPU);
        let topology = Topology::read(&system).unwrap();
        assert_eq!(topology.gpus.iter().map(|gpu| gpu.node).collect::<Vec<_>>(), [3]);
        assert!(topology.skipped[0].1.to_string().contains("gfx942"), "{}", topology.skipped[0].1);
        assert!(topology.skipped[1].1.to_string().contains("gfx1307"), "{}", topology.skipped[1].1);
    }

    #[test]
    fn numbers_that_would_divide_by_zero_are_refused() {
        for key in ["simd_per_cu 4", "num_xcc 8", "simd_arrays_per_engine 1"] {
            let zero = GPU.replace(key, &format!("{} 0", key.split_once(' ').unwrap().0));
            let topology = Topology::read(&node(Canned::default(), 1, 0xa, &zero)).unwrap();
            assert!(matches!(topology.skipped[0].1, SkipReason::Value { .. }), "{key}");
        }
    }
}
