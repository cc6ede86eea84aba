//! Arguments that concern the process or a whole GPU: version, address space, apertures, scratch, traps, clocks.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `GET_VERSION`: which interface the kernel speaks.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetVersion {
    /// From KFD: changes when the interface breaks; 1 today.
    pub major_version: u32,
    /// From KFD: grows with each addition.
    pub minor_version: u32,
}

/// `ACQUIRE_VM`: makes the address space of an open render node this process' address space on that GPU.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AcquireVm {
    /// To KFD: the render node's file descriptor. The kernel keeps a reference.
    pub drm_fd: u32,
    /// To KFD.
    pub gpu_id: u32,
}

/// The address windows of one GPU in this process (`kfd_process_device_apertures`).
///
/// On gfx9 the LDS window starts at `1 << 48`, the scratch window at `2 << 48`, each 4 GiB (`kfd_flat_memory.c`,
/// `MAKE_LDS_APP_BASE_V9`, `MAKE_SCRATCH_APP_BASE_V9`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Apertures {
    /// First address of the LDS window.
    pub lds_base: u64,
    /// Last address of the LDS window.
    pub lds_limit: u64,
    /// First address of the scratch window.
    pub scratch_base: u64,
    /// Last address of the scratch window.
    pub scratch_limit: u64,
    /// First address memory may be allocated at.
    pub gpuvm_base: u64,
    /// Last address memory may be allocated at.
    pub gpuvm_limit: u64,
    /// Whose windows these are.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `GET_PROCESS_APERTURES`: the old form, for at most seven GPUs.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetProcessApertures {
    /// From KFD: `num_of_nodes` entries (`NUM_OF_SUPPORTED_GPUS` is 7).
    pub process_apertures: [Apertures; 7],
    /// From KFD: how many entries are valid.
    pub num_of_nodes: u32,
    /// Unused.
    pub pad: u32,
}

/// `GET_PROCESS_APERTURES_NEW`: for any number of GPUs.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetProcessAperturesNew {
    /// To KFD: pointer to an array of [`Apertures`] the kernel fills.
    pub apertures_ptr: u64,
    /// To KFD: capacity of the array; zero asks for the count alone. From KFD: entries filled, or the count.
    pub num_of_nodes: u32,
    /// Unused.
    pub pad: u32,
}

/// `SET_MEMORY_POLICY`: default caching of memory; without effect on gfx9, where each allocation says its own.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetMemoryPolicy {
    /// To KFD.
    pub alternate_aperture_base: u64,
    /// To KFD.
    pub alternate_aperture_size: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD: `KFD_IOC_CACHE_POLICY_COHERENT` 0 or `_NONCOHERENT` 1.
    pub default_policy: u32,
    /// To KFD: the same for the alternate aperture.
    pub alternate_policy: u32,
    /// To KFD: bit 0 asks for high-precision MFMA (`KFD_PROC_FLAG_MFMA_HIGH_PRECISION`).
    pub misc_process_flag: u32,
}

/// `GET_CLOCK_COUNTERS`: the GPU's clock and the host's, read together.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetClockCounters {
    /// From KFD: the counter that timestamps of packets carry, 100 MHz on gfx9.4.
    pub gpu_clock_counter: u64,
    /// From KFD: `ktime_get_raw_ns`, nanoseconds.
    pub cpu_clock_counter: u64,
    /// From KFD: `ktime_get_boottime_ns`, nanoseconds.
    pub system_clock_counter: u64,
    /// From KFD: frequency of the system counter, Hz.
    pub system_clock_freq: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `SET_SCRATCH_BACKING_VA`: memory behind the scratch window when the scheduler is not hardware; else recorded only.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetScratchBackingVa {
    /// To KFD.
    pub va_addr: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `GET_TILE_CONFIG`: the graphics tiling tables, of no use to compute.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetTileConfig {
    /// To KFD: array of `u32` to fill.
    pub tile_config_ptr: u64,
    /// To KFD: array of `u32` to fill.
    pub macro_tile_config_ptr: u64,
    /// To KFD: capacity; from KFD: entries.
    pub num_tile_configs: u32,
    /// To KFD: capacity; from KFD: entries.
    pub num_macro_tile_configs: u32,
    /// To KFD.
    pub gpu_id: u32,
    /// From KFD: the `GB_ADDR_CONFIG` register.
    pub gb_addr_config: u32,
    /// From KFD.
    pub num_banks: u32,
    /// From KFD.
    pub num_ranks: u32,
}

/// `SET_TRAP_HANDLER`: a second-level trap handler for the waves of this process.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetTrapHandler {
    /// To KFD: trap handler code, GPU address.
    pub tba_addr: u64,
    /// To KFD: trap handler memory, GPU address.
    pub tma_addr: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `SMI_EVENTS`: a file that reads as text lines on faults, throttling and resets of one GPU.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SmiEvents {
    /// To KFD.
    pub gpuid: u32,
    /// From KFD: the new file descriptor.
    pub anon_fd: u32,
}

/// `SET_XNACK_MODE`: whether page faults of the GPU may be retried.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetXnackMode {
    /// To KFD: 1 or 0 sets, a negative number asks. From KFD, when asked: the mode.
    pub xnack_enabled: i32,
}

/// `RUNTIME_ENABLE`: tells the kernel, and through it a debugger, that a runtime is up.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RuntimeEnable {
    /// To KFD: address of the process' `r_debug`, or zero.
    pub r_debug: u64,
    /// To KFD: bit 0 enables, bit 1 saves trap temporaries (`KFD_RUNTIME_ENABLE_MODE_*`).
    pub mode_mask: u32,
    /// From KFD: capabilities.
    pub capabilities_mask: u32,
}

/// `DBG_TRAP`: the debugger's interface; a union the kernel selects from by `op`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DbgTrap {
    /// To KFD: the process to debug.
    pub pid: u32,
    /// To KFD: `KFD_IOC_DBG_TRAP_*`.
    pub op: u32,
    /// Both ways: the arguments of `op`.
    pub payload: [u64; 3],
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn an_aperture_entry_is_56_bytes() {
        assert_eq!(size_of::<Apertures>(), 56);
        assert_eq!(offset_of!(Apertures, gpu_id), 48);
        assert_eq!(offset_of!(GetProcessApertures, num_of_nodes), 392);
    }

    #[test]
    fn the_gpu_id_is_where_the_kernel_reads_it() {
        assert_eq!(offset_of!(GetClockCounters, gpu_id), 32);
        assert_eq!(offset_of!(SetMemoryPolicy, gpu_id), 16);
        assert_eq!(offset_of!(SetScratchBackingVa, gpu_id), 8);
        assert_eq!(offset_of!(SetTrapHandler, gpu_id), 16);
        assert_eq!(offset_of!(GetTileConfig, gpu_id), 24);
        assert_eq!(offset_of!(AcquireVm, gpu_id), 4);
    }
}
