//! One node of the topology that is a GPU.
//!
//! Keys: `node_show` and its neighbours in `kfd_topology.c` of Linux.

use std::fmt;
use std::path::{Path, PathBuf};

use super::properties::text;
use super::{NODES, Properties};
use crate::address::Bytes;
use crate::system::System;

/// A GPU this driver knows the queues and packets of. Any other is refused, never guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GfxTarget {
    /// MI350X and MI355X.
    Gfx950,
}

impl GfxTarget {
    /// By `gfx_target_version`: major * 10000 + minor * 100 + stepping.
    const fn from_version(version: u32) -> Option<Self> {
        if version == 90500 { Some(Self::Gfx950) } else { None }
    }

    /// LLVM's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gfx950 => "gfx950",
        }
    }
}

impl fmt::Display for GfxTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a node is left out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// A file of it cannot be read; for `gpu_id` a container's device rules do that.
    #[error("cannot read {}: {message}; in a container, the GPU may not be passed to it", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        message: String,
    },
    /// A key is missing.
    #[error("its properties have no {key}: the kernel is too old for this GPU")]
    MissingKey {
        /// Which.
        key: &'static str,
    },
    /// A number cannot be what it says.
    #[error("its properties say {key} is {value}, which cannot be")]
    Value {
        /// Which key.
        key: &'static str,
        /// What it holds.
        value: u64,
    },
    /// Another kind of GPU.
    #[error("it is a {0}, which this driver does not support: only gfx950 (MI350X, MI355X)")]
    UnsupportedTarget(String),
}

/// What the kernel says about one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuNode {
    /// Number of the node.
    pub node: u32,
    /// The kernel's id of the GPU, in every ioctl.
    pub gpu_id: u32,
    /// Which kind it is.
    pub target: GfxTarget,
    /// The kernel's name of it, if it has one.
    pub name: Option<String>,
    /// SIMDs of all XCCs.
    pub simd_count: u32,
    /// SIMDs of a CU.
    pub simd_per_cu: u32,
    /// Waves a SIMD holds.
    pub max_waves_per_simd: u32,
    /// Waves of a CU that may have scratch.
    pub max_scratch_slots_per_cu: u32,
    /// LDS of a CU in KiB.
    pub lds_kib: u32,
    /// Work-items of a wave.
    pub wave_front_size: u32,
    /// Shader arrays of all XCCs.
    pub array_count: u32,
    /// Shader arrays of a shader engine.
    pub simd_arrays_per_engine: u32,
    /// XCCs behind one queue of this node: 8 for a whole MI350X, fewer for a partition.
    pub xcc_count: u32,
    /// PCI vendor.
    pub vendor_id: u32,
    /// PCI device.
    pub device_id: u32,
    /// PCI bus, device and function.
    pub location_id: u32,
    /// PCI domain.
    pub domain: u32,
    /// Number of the render node, 128 and up.
    pub render_minor: u32,
    /// XGMI hive; GPUs of one hive reach each other directly.
    pub hive_id: u64,
    /// Unchanging number of the GPU.
    pub unique_id: u64,
    /// SDMA engines for host traffic.
    pub sdma_engines: u32,
    /// SDMA engines for XGMI traffic.
    pub sdma_xgmi_engines: u32,
    /// Queues of an SDMA engine.
    pub sdma_queues_per_engine: u32,
    /// Compute queues of the hardware.
    pub cp_queues: u32,
    /// Bytes of a queue's save area of one XCC, by newer kernels.
    pub cwsr_bytes: Option<u32>,
    /// Bytes of a queue's control stack, by newer kernels.
    pub ctl_stack_bytes: Option<u32>,
    /// Capability bits (`HSA_CAP_*`).
    pub capability: u32,
    /// Version of the compute firmware.
    pub fw_version: u32,
    /// Version of the SDMA firmware.
    pub sdma_fw_version: u32,
    /// Highest clock, MHz.
    pub max_clock_mhz: u32,
    /// Memory of the GPU.
    pub memory: Vec<MemoryBank>,
    /// Caches of the GPU.
    pub caches: Vec<Cache>,
    /// Links to other nodes.
    pub links: Vec<IoLink>,
}

/// A bank of memory (`mem_banks`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBank {
    /// 1 for VRAM the host reaches, 2 for VRAM it does not (`HSA_MEM_HEAP_TYPE_*`).
    pub heap_type: u32,
    /// Length.
    pub bytes: Bytes,
    /// Width of the bus in bits.
    pub width_bits: u32,
    /// Highest clock, MHz.
    pub max_clock_mhz: u32,
}

/// A cache (`caches`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// 1, 2 or 3.
    pub level: u32,
    /// Size in KiB.
    pub kib: u32,
    /// Length of a line in bytes.
    pub line_bytes: u32,
    /// Bit 0 data, 1 instructions, 2 for the CPU, 3 for the GPU.
    pub kind: u32,
}

/// A link to another node (`io_links`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoLink {
    /// 2 PCIe, 11 XGMI (`CRAT_IOLINK_TYPE_*`).
    pub kind: u32,
    /// Number of the other node.
    pub to: u32,
    /// The lower the nearer.
    pub weight: u32,
    /// Most bandwidth in MB/s, zero if not known.
    pub max_bandwidth: u32,
}

impl GpuNode {
    /// Reads node `node`; `None` if it is not a GPU.
    pub(super) fn read(system: &dyn System, node: u32) -> Result<Option<Self>, SkipReason> {
        let folder = Path::new(NODES).join(node.to_string());
        let gpu_id = text(system, &folder.join("gpu_id"))?;
        let gpu_id: u32 = match gpu_id.trim().parse() {
            Ok(0) => return Ok(None),
            Ok(id) => id,
            Err(_) => return Err(SkipReason::MissingKey { key: "gpu_id" }),
        };
        let properties = Properties::read(system, &folder.join("properties"))?;
        if properties.get("simd_count") == Some(0) {
            return Ok(None);
        }
        Self::from_properties(system, &folder, node, gpu_id, &properties).map(Some)
    }

    fn from_properties(
        system: &dyn System,
        folder: &Path,
        node: u32,
        gpu_id: u32,
        p: &Properties,
    ) -> Result<Self, SkipReason> {
        let version = p.required("gfx_target_version")?;
        let target =
            GfxTarget::from_version(version).ok_or_else(|| SkipReason::UnsupportedTarget(gfx_name(version)))?;
        let positive = |key: &'static str| match p.required(key)? {
            0 => Err(SkipReason::Value { key, value: 0 }),
            value => Ok(value),
        };
        Ok(Self {
            node,
            gpu_id,
            target,
            name: text(system, &folder.join("name")).ok().map(|name| name.trim().to_owned()).filter(|n| !n.is_empty()),
            simd_count: positive("simd_count")?,
            simd_per_cu: positive("simd_per_cu")?,
            max_waves_per_simd: positive("max_waves_per_simd")?,
            max_scratch_slots_per_cu: positive("max_slots_scratch_cu")?,
            lds_kib: positive("lds_size_in_kb")?,
            wave_front_size: p.required("wave_front_size")?,
            array_count: positive("array_count")?,
            simd_arrays_per_engine: positive("simd_arrays_per_engine")?,
            xcc_count: positive("num_xcc")?,
            vendor_id: p.optional("vendor_id"),
            device_id: p.optional("device_id"),
            location_id: p.optional("location_id"),
            domain: p.optional("domain"),
            render_minor: p.required("drm_render_minor")?,
            hive_id: p.optional("hive_id"),
            unique_id: p.optional("unique_id"),
            sdma_engines: p.required("num_sdma_engines")?,
            sdma_xgmi_engines: p.optional("num_sdma_xgmi_engines"),
            sdma_queues_per_engine: p.optional("num_sdma_queues_per_engine"),
            cp_queues: p.optional("num_cp_queues"),
            cwsr_bytes: p.get("cwsr_size").and_then(|value| value.try_into().ok()),
            ctl_stack_bytes: p.get("ctl_stack_size").and_then(|value| value.try_into().ok()),
            capability: p.optional("capability"),
            fw_version: p.optional("fw_version"),
            sdma_fw_version: p.optional("sdma_fw_version"),
            max_clock_mhz: p.optional("max_engine_clk_fcompute"),
            memory: children(system, &folder.join("mem_banks"), |p| MemoryBank {
                heap_type: p.optional("heap_type"),
                bytes: Bytes::new(p.optional("size_in_bytes")),
                width_bits: p.optional("width"),
                max_clock_mhz: p.optional("mem_clk_max"),
            }),
            caches: children(system, &folder.join("caches"), |p| Cache {
                level: p.optional("level"),
                kib: p.optional("size"),
                line_bytes: p.optional("cache_line_size"),
                kind: p.optional("type"),
            }),
            links: children(system, &folder.join("io_links"), |p| IoLink {
                kind: p.optional("type"),
                to: p.optional("node_to"),
                weight: p.optional("weight"),
                max_bandwidth: p.optional("max_bandwidth"),
            }),
        })
    }

    /// Compute units of all XCCs.
    pub const fn cu_count(&self) -> u32 {
        self.simd_count / self.simd_per_cu
    }

    /// Compute units of one XCC.
    pub const fn cu_per_xcc(&self) -> u32 {
        self.cu_count() / self.xcc_count
    }

    /// The render node.
    pub fn render_path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/dri/renderD{}", self.render_minor))
    }

    /// Domain, bus, device and function, as `lspci -D` writes them.
    pub fn pci_address(&self) -> String {
        let (bus, device, function) =
            (self.location_id >> 8 & 0xff, self.location_id >> 3 & 0x1f, self.location_id & 7);
        format!("{:04x}:{bus:02x}:{device:02x}.{function}", self.domain)
    }
}

/// The numbered folders below `folder`, in order; those that cannot be read are passed over: nothing here needs them.
fn children<T>(system: &dyn System, folder: &Path, read: impl Fn(&Properties) -> T) -> Vec<T> {
    let mut numbers: Vec<u32> =
        system.list_dir(folder).unwrap_or_default().iter().filter_map(|name| name.to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let path = |number: u32| folder.join(number.to_string()).join("properties");
    numbers.into_iter().filter_map(|number| Some(read(&Properties::read(system, &path(number)).ok()?))).collect()
}

/// LLVM's spelling of a version number: minor and stepping in hexadecimal.
fn gfx_name(version: u32) -> String {
    format!("gfx{}{:x}{:x}", version / 10000, version / 100 % 100, version % 100)
}
