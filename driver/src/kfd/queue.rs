//! Arguments that concern user queues.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `KFD_MIN_QUEUE_RING_SIZE`, bytes. Ring sizes are powers of two.
pub const MIN_RING_BYTES: u32 = 1024;
/// `KFD_MAX_QUEUE_PERCENTAGE`.
pub const MAX_PERCENTAGE: u32 = 100;
/// `KFD_MAX_QUEUE_PRIORITY`.
pub const MAX_PRIORITY: u32 = 15;

/// `KFD_IOC_QUEUE_TYPE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum QueueType {
    /// PM4 packets, run by one target XCC.
    Compute = 0,
    /// SDMA packets, on an engine the kernel picks.
    Sdma = 1,
    /// AQL packets, run by all XCCs of the partition together.
    ComputeAql = 2,
    /// SDMA packets, on an engine meant for XGMI traffic.
    SdmaXgmi = 3,
    /// SDMA packets, on the engine named by `sdma_engine_id` (KFD 1.17 and later).
    SdmaByEngineId = 4,
}

impl QueueType {
    /// The type numbered `raw`.
    pub const fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            0 => Self::Compute,
            1 => Self::Sdma,
            2 => Self::ComputeAql,
            3 => Self::SdmaXgmi,
            4 => Self::SdmaByEngineId,
            _ => return None,
        })
    }

    /// Whether an SDMA engine runs the queue.
    pub const fn is_sdma(self) -> bool {
        matches!(self, Self::Sdma | Self::SdmaXgmi | Self::SdmaByEngineId)
    }
}

/// `CREATE_QUEUE`.
///
/// The kernel looks each buffer up by its exact mapping (`kfd_queue_acquire_buffers`): the pointer pages 4 KiB each, the
/// ring the ring size rounded up to a page, the CWSR area its size plus debug memory, times the XCCs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CreateQueue {
    /// To KFD: GPU address of the ring.
    pub ring_base_address: u64,
    /// To KFD: GPU address of the 64-bit write pointer.
    pub write_pointer_address: u64,
    /// To KFD: GPU address of the read pointer.
    pub read_pointer_address: u64,
    /// From KFD: what to mmap for the doorbell; the doorbell's byte offset in its slice is in the low bits.
    pub doorbell_offset: u64,
    /// To KFD: bytes.
    pub ring_size: u32,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD: a [`QueueType`].
    pub queue_type: u32,
    /// To KFD: bits 0..=7 the share of time in percent, bits 8..=15 the target XCC of a PM4 queue.
    pub queue_percentage: u32,
    /// To KFD: 0 (lowest) to 15.
    pub queue_priority: u32,
    /// From KFD: the queue's name in later calls.
    pub queue_id: u32,
    /// To KFD: GPU address of the end-of-pipe event buffer; zero for SDMA.
    pub eop_buffer_address: u64,
    /// To KFD: bytes.
    pub eop_buffer_size: u64,
    /// To KFD: GPU address of the compute wave save and restore (CWSR) area; zero for SDMA.
    pub ctx_save_restore_address: u64,
    /// To KFD: bytes for one XCC, without debug memory.
    pub ctx_save_restore_size: u32,
    /// To KFD: bytes, as the topology's `ctl_stack_size` says.
    pub ctl_stack_size: u32,
    /// To KFD: engine, for [`QueueType::SdmaByEngineId`].
    pub sdma_engine_id: u32,
    /// To KFD: bytes of the AQL metadata ring, zero without.
    pub metadata_ring_size: u32,
}

/// `DESTROY_QUEUE`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DestroyQueue {
    /// To KFD.
    pub queue_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `UPDATE_QUEUE`: a ring size or percentage of zero stops the queue.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UpdateQueue {
    /// To KFD: GPU address of the ring.
    pub ring_base_address: u64,
    /// To KFD.
    pub queue_id: u32,
    /// To KFD: bytes.
    pub ring_size: u32,
    /// To KFD: as in [`CreateQueue`].
    pub queue_percentage: u32,
    /// To KFD: as in [`CreateQueue`].
    pub queue_priority: u32,
}

/// `SET_CU_MASK`: which compute units a queue may use.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetCuMask {
    /// To KFD.
    pub queue_id: u32,
    /// To KFD: bits in the mask, a multiple of 32.
    pub num_cu_mask: u32,
    /// To KFD: pointer to the mask's `u32`s.
    pub cu_mask_ptr: u64,
}

/// `GET_QUEUE_WAVE_STATE`: copies the saved wave state of a queue that is not running.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GetQueueWaveState {
    /// To KFD: where to copy the control stack.
    pub ctl_stack_address: u64,
    /// From KFD: bytes.
    pub ctl_stack_used_size: u32,
    /// From KFD: bytes.
    pub save_area_used_size: u32,
    /// To KFD.
    pub queue_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `ALLOC_QUEUE_GWS`: global wave sync entries for a queue.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AllocQueueGws {
    /// To KFD.
    pub queue_id: u32,
    /// To KFD.
    pub num_gws: u32,
    /// From KFD: always zero.
    pub first_gws: u32,
    /// Unused.
    pub pad: u32,
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn create_queue_is_laid_out_as_the_c_header_lays_it_out() {
        assert_eq!(offset_of!(CreateQueue, ring_base_address), 0);
        assert_eq!(offset_of!(CreateQueue, write_pointer_address), 8);
        assert_eq!(offset_of!(CreateQueue, read_pointer_address), 16);
        assert_eq!(offset_of!(CreateQueue, doorbell_offset), 24);
        assert_eq!(offset_of!(CreateQueue, ring_size), 32);
        assert_eq!(offset_of!(CreateQueue, gpu_id), 36);
        assert_eq!(offset_of!(CreateQueue, queue_type), 40);
        assert_eq!(offset_of!(CreateQueue, queue_percentage), 44);
        assert_eq!(offset_of!(CreateQueue, queue_priority), 48);
        assert_eq!(offset_of!(CreateQueue, queue_id), 52);
        assert_eq!(offset_of!(CreateQueue, eop_buffer_address), 56);
        assert_eq!(offset_of!(CreateQueue, eop_buffer_size), 64);
        assert_eq!(offset_of!(CreateQueue, ctx_save_restore_address), 72);
        assert_eq!(offset_of!(CreateQueue, ctx_save_restore_size), 80);
        assert_eq!(offset_of!(CreateQueue, ctl_stack_size), 84);
        assert_eq!(offset_of!(CreateQueue, sdma_engine_id), 88);
        assert_eq!(offset_of!(CreateQueue, metadata_ring_size), 92);
    }

    #[test]
    fn update_queue_is_laid_out_as_the_c_header_lays_it_out() {
        assert_eq!(offset_of!(UpdateQueue, queue_id), 8);
        assert_eq!(offset_of!(UpdateQueue, queue_priority), 20);
    }

    #[test]
    fn queue_types_map_to_their_numbers_and_back() {
        for raw in 0..5 {
            assert_eq!(QueueType::from_raw(raw).map(|t| t as u32), Some(raw));
        }
        assert_eq!(QueueType::from_raw(5), None);
    }
}
