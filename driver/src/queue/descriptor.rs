//! `amd_queue_t`: what the command processor reads about an AQL queue (`amd_hsa_queue.h` of ROCr).
//!
//! The structure surrounds the queue's two pointers: the processor is given their addresses and finds the rest from
//! `read_dispatch_id_field_base_byte_offset`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Offset of the write pointer in the structure.
pub const WRITE_DISPATCH_ID_OFFSET: u64 = 56;
/// Offset of the read pointer in the structure.
pub const READ_DISPATCH_ID_OFFSET: u64 = 128;

/// `AMD_QUEUE_PROPERTIES_IS_PTR64`.
pub(super) const IS_PTR64: u32 = 1 << 1;
/// `AMD_QUEUE_PROPERTIES_ENABLE_PROFILING`: start and end times are written to completion signals.
pub(super) const ENABLE_PROFILING: u32 = 1 << 3;
/// `HSA_QUEUE_FEATURE_KERNEL_DISPATCH`.
pub(super) const FEATURE_KERNEL_DISPATCH: u32 = 1;

/// `amd_queue_t`, version 1.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AmdQueue {
    /// `hsa_queue_type_t`: 0 several producers, 1 one.
    pub queue_type: u32,
    /// `HSA_QUEUE_FEATURE_*`.
    pub features: u32,
    /// Address of the ring.
    pub base_address: u64,
    /// Address of the doorbell signal; unused here.
    pub doorbell_signal: u64,
    /// Packets of the ring.
    pub size: u32,
    /// Zero.
    pub reserved_0: u32,
    /// Number of the queue.
    pub id: u64,
    /// Capabilities.
    pub caps: u32,
    /// Zero.
    pub reserved_1: [u32; 3],
    /// The write pointer, in packets.
    pub write_dispatch_id: u64,
    /// Bits 32..=63 of the LDS window.
    pub group_segment_aperture_base_hi: u32,
    /// Bits 32..=63 of the scratch window.
    pub private_segment_aperture_base_hi: u32,
    /// Highest CU number.
    pub max_cu_id: u32,
    /// Highest wave number of a CU.
    pub max_wave_id: u32,
    /// For doorbells of older GPUs.
    pub max_legacy_doorbell_dispatch_id_plus_1: u64,
    /// For doorbells of older GPUs.
    pub legacy_doorbell_lock: u32,
    /// Zero.
    pub reserved_2: [u32; 9],
    /// The read pointer, in packets.
    pub read_dispatch_id: u64,
    /// Offset of `read_dispatch_id` in this structure.
    pub read_dispatch_id_field_base_byte_offset: u32,
    /// Value of `COMPUTE_TMPRING_SIZE` for dispatches with scratch.
    pub compute_tmpring_size: u32,
    /// Buffer resource of the scratch.
    pub scratch_resource_descriptor: [u32; 4],
    /// Address of the scratch.
    pub scratch_backing_memory_location: u64,
    /// Zero.
    pub reserved_3: [u32; 2],
    /// Scratch bytes of a work-item.
    pub scratch_wave64_lane_byte_size: u32,
    /// `AMD_QUEUE_PROPERTIES_*`.
    pub queue_properties: u32,
    /// Zero.
    pub reserved_4: [u32; 2],
    /// Signal by which the processor asks for more scratch; unused here.
    pub queue_inactive_signal: u64,
    /// Zero.
    pub reserved_5: [u32; 14],
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_structure_is_laid_out_as_the_runtime_header_lays_it_out() {
        assert_eq!(size_of::<AmdQueue>(), 256);
        assert_eq!(offset_of!(AmdQueue, caps), 40);
        assert_eq!(offset_of!(AmdQueue, write_dispatch_id) as u64, WRITE_DISPATCH_ID_OFFSET);
        assert_eq!(offset_of!(AmdQueue, group_segment_aperture_base_hi), 64);
        assert_eq!(offset_of!(AmdQueue, max_cu_id), 72);
        assert_eq!(offset_of!(AmdQueue, legacy_doorbell_lock), 88);
        assert_eq!(offset_of!(AmdQueue, read_dispatch_id) as u64, READ_DISPATCH_ID_OFFSET);
        assert_eq!(offset_of!(AmdQueue, compute_tmpring_size), 140);
        assert_eq!(offset_of!(AmdQueue, scratch_resource_descriptor), 144);
        assert_eq!(offset_of!(AmdQueue, scratch_backing_memory_location), 160);
        assert_eq!(offset_of!(AmdQueue, scratch_wave64_lane_byte_size), 176);
        assert_eq!(offset_of!(AmdQueue, queue_properties), 180);
        assert_eq!(offset_of!(AmdQueue, queue_inactive_signal), 192);
    }
}
