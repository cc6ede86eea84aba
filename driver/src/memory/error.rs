//! What goes wrong with memory, and what to do about it.

use std::io;

use super::{Access, MemoryKind};
use crate::address::Bytes;
use crate::kfd::IoctlError;

/// What went wrong with memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing was asked for, or more than addresses can name.
    #[error("cannot allocate {bytes} for \"{label}\": not between 1 byte and 128 TiB")]
    Length {
        /// What it was for.
        label: String,
        /// How much was asked for.
        bytes: Bytes,
    },
    /// The host gives no addresses.
    #[error("cannot reserve {bytes} of addresses for \"{label}\": {source}; check ulimit -v and vm.max_map_count")]
    Reserve {
        /// What it was for.
        label: String,
        /// How much was asked for.
        bytes: Bytes,
        /// What the system said.
        source: io::Error,
    },
    /// The host gives no memory behind a userptr.
    #[error("cannot map {bytes} of host memory for \"{label}\": {source}")]
    HostMemory {
        /// What it was for.
        label: String,
        /// How much was asked for.
        bytes: Bytes,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel gives no memory.
    #[error("cannot allocate {bytes} of {kind:?} for \"{label}\" on {gpu}: {source}; {}", allocation_advice(*kind, *access, source))]
    Allocate {
        /// What it was for.
        label: String,
        /// How much was asked for.
        bytes: Bytes,
        /// Which kind.
        kind: MemoryKind,
        /// With which access.
        access: Access,
        /// Which GPU.
        gpu: String,
        /// What the kernel said.
        source: IoctlError,
    },
    /// The host cannot map GPU memory.
    #[error("cannot map \"{label}\" ({bytes}) of {gpu} into this process: {source}")]
    MapHost {
        /// What it is for.
        label: String,
        /// Its length.
        bytes: Bytes,
        /// Whose it is.
        gpu: String,
        /// What the system said.
        source: io::Error,
    },
    /// A GPU cannot map memory.
    #[error(
        "cannot map \"{label}\" of {owner} to GPU {gpu_id:#x}: {source}; are both in one XGMI hive or behind one \
             root with peer access (topology io_links)?"
    )]
    MapGpu {
        /// What it is for.
        label: String,
        /// Whose it is.
        owner: String,
        /// The GPU that cannot.
        gpu_id: u32,
        /// What the kernel said.
        source: IoctlError,
    },
    /// Memory was reached past its end, or not aligned.
    #[error("bytes {offset:#x}..+{bytes:#x} (alignment {alignment}) are not in memory of {view}")]
    OutsideView {
        /// Where.
        offset: u64,
        /// How much.
        bytes: u64,
        /// How aligned it must be.
        alignment: u64,
        /// How much there is.
        view: Bytes,
    },
    /// The host has no view of the memory.
    #[error("\"{label}\" is not mapped into this process: allocate it with Access::HOST, or copy by SDMA")]
    NotHostVisible {
        /// What it is for.
        label: String,
    },
}

/// What to do about a failed allocation.
fn allocation_advice(kind: MemoryKind, access: Access, error: &IoctlError) -> &'static str {
    match (error.errno(), kind) {
        (Some(libc::EINVAL), MemoryKind::Vram) if access.contains(Access::HOST) => {
            "host-visible VRAM needs a large BAR: enable Resizable BAR / Above 4G decoding, or allocate without HOST"
        }
        (Some(libc::ENOMEM), MemoryKind::Vram) => {
            "the GPU has not that much left: see who holds it (/sys/class/kfd/kfd/proc) or make the plan smaller"
        }
        (Some(libc::ENOMEM), _) => {
            "the KFD limit on host memory is reached (system memory, or the amdgpu module's no_system_mem_limit): use \
             fewer or smaller staging buffers"
        }
        (Some(libc::EFAULT), MemoryKind::Userptr) => "the host memory is not mapped or may not be written",
        _ => "see dmesg | grep amdgpu",
    }
}
