//! Arguments that concern memory, and the encoding of mmap offsets.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

bitflags::bitflags! {
    /// `KFD_IOC_ALLOC_MEM_FLAGS_*`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct AllocFlags: u32 {
        /// Memory of the GPU.
        const VRAM = 1 << 0;
        /// Memory of the host, pinned by the kernel.
        const GTT = 1 << 1;
        /// Memory of the host the process already has.
        const USERPTR = 1 << 2;
        /// The process' doorbell slice, made visible to the GPU.
        const DOORBELL = 1 << 3;
        /// The page of remapped HDP flush registers.
        const MMIO_REMAP = 1 << 4;
        /// Physically contiguous VRAM.
        const CONTIGUOUS = 1 << 23;
        /// Coherent across all devices with device-scope atomics (fine grained and extended).
        const EXT_COHERENT = 1 << 24;
        /// Not cached by the GPU.
        const UNCACHED = 1 << 25;
        /// Fine-grained coherent with the host.
        const COHERENT = 1 << 26;
        /// The ring of an AQL queue on gfx7 and gfx8: mapped twice in a row.
        const AQL_QUEUE_MEM = 1 << 27;
        /// Fail rather than fall back to another kind of memory.
        const NO_SUBSTITUTE = 1 << 28;
        /// The host may map it; for VRAM this takes a large BAR.
        const PUBLIC = 1 << 29;
        /// The GPU may fetch instructions from it.
        const EXECUTABLE = 1 << 30;
        /// The GPU may write to it.
        const WRITABLE = 1 << 31;
    }
}

/// `ALLOC_MEMORY_OF_GPU`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AllocMemoryOfGpu {
    /// To KFD: the GPU address it shall have.
    pub va_addr: u64,
    /// To KFD: bytes.
    pub size: u64,
    /// From KFD: the memory's name, `gpu_id << 32 | index`.
    pub handle: u64,
    /// To KFD for userptr: the host address. From KFD: the offset to mmap the render node (or `/dev/kfd`) at.
    pub mmap_offset: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// To KFD: [`AllocFlags`].
    pub flags: u32,
}

/// `FREE_MEMORY_OF_GPU`. The kernel refuses (`EPERM`) to free the event page.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct FreeMemoryOfGpu {
    /// To KFD.
    pub handle: u64,
}

/// `MAP_MEMORY_TO_GPU`: makes memory visible to the GPUs of a list.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MapMemoryToGpu {
    /// To KFD.
    pub handle: u64,
    /// To KFD: pointer to an array of `gpu_id`, `u32` each.
    pub device_ids_array_ptr: u64,
    /// To KFD: entries of the array.
    pub n_devices: u32,
    /// Both ways: entries already done, so that an interrupted call can be repeated.
    pub n_success: u32,
}

/// `UNMAP_MEMORY_FROM_GPU`: the reverse of [`MapMemoryToGpu`], same shape.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct UnmapMemoryFromGpu {
    /// To KFD.
    pub handle: u64,
    /// To KFD: pointer to an array of `gpu_id`, `u32` each.
    pub device_ids_array_ptr: u64,
    /// To KFD: entries of the array.
    pub n_devices: u32,
    /// Both ways: entries already done.
    pub n_success: u32,
}

/// `AVAILABLE_MEMORY`: VRAM left for KFD allocations of one GPU.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct AvailableMemory {
    /// From KFD: bytes.
    pub available: u64,
    /// To KFD.
    pub gpu_id: u32,
    /// Unused.
    pub pad: u32,
}

/// What an mmap offset of `/dev/kfd` names: bits 62..=63 (`KFD_MMAP_TYPE_*` of `kfd_priv.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MmapType {
    /// The HDP flush registers.
    Mmio = 0,
    /// No longer used.
    ReservedMemory = 1,
    /// The event page the kernel allocated.
    Events = 2,
    /// The doorbell slice of this process on one GPU.
    Doorbell = 3,
}

/// An mmap offset of `/dev/kfd`, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmapOffset {
    /// What is mapped.
    pub kind: MmapType,
    /// Of which GPU: 16 bits (`KFD_GPU_ID_HASH_WIDTH`).
    pub gpu_id: u32,
    /// Byte offset in it: for doorbells, which one of the slice.
    pub offset: u64,
}

impl MmapOffset {
    /// `KFD_MMAP_GPU_ID_SHIFT`.
    const GPU_ID_SHIFT: u32 = 46;

    /// Takes `raw` apart.
    pub const fn from_raw(raw: u64) -> Self {
        let kind = match raw >> 62 {
            0 => MmapType::Mmio,
            1 => MmapType::ReservedMemory,
            2 => MmapType::Events,
            _ => MmapType::Doorbell,
        };
        let gpu_id = (raw >> Self::GPU_ID_SHIFT & 0xffff) as u32;
        Self { kind, gpu_id, offset: raw & ((1 << Self::GPU_ID_SHIFT) - 1) }
    }

    /// The number to pass to mmap.
    pub const fn to_raw(self) -> u64 {
        (self.kind as u64) << 62 | (self.gpu_id as u64 & 0xffff) << Self::GPU_ID_SHIFT | self.offset
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_memory_structures_are_laid_out_as_the_c_header_lays_them_out() {
        assert_eq!(offset_of!(AllocMemoryOfGpu, va_addr), 0);
        assert_eq!(offset_of!(AllocMemoryOfGpu, size), 8);
        assert_eq!(offset_of!(AllocMemoryOfGpu, handle), 16);
        assert_eq!(offset_of!(AllocMemoryOfGpu, mmap_offset), 24);
        assert_eq!(offset_of!(AllocMemoryOfGpu, gpu_id), 32);
        assert_eq!(offset_of!(AllocMemoryOfGpu, flags), 36);
        assert_eq!(offset_of!(MapMemoryToGpu, device_ids_array_ptr), 8);
        assert_eq!(offset_of!(MapMemoryToGpu, n_devices), 16);
        assert_eq!(offset_of!(MapMemoryToGpu, n_success), 20);
        assert_eq!(offset_of!(AvailableMemory, gpu_id), 8);
    }

    #[test]
    fn the_flags_of_captured_allocations_have_the_names_their_bits_have() {
        use AllocFlags as F;
        let ring = F::GTT | F::UNCACHED | F::COHERENT | F::NO_SUBSTITUTE | F::PUBLIC | F::EXECUTABLE | F::WRITABLE;
        assert_eq!(ring.bits(), 0xf600_0002);
        assert_eq!((F::VRAM | F::NO_SUBSTITUTE | F::EXECUTABLE | F::WRITABLE).bits(), 0xd000_0001);
    }

    #[test]
    fn an_mmap_offset_comes_apart_and_goes_together_again() {
        let doorbell = MmapOffset { kind: MmapType::Doorbell, gpu_id: 0xc822, offset: 0x108 };
        assert_eq!(doorbell.to_raw(), 3 << 62 | 0xc822 << 46 | 0x108);
        assert_eq!(MmapOffset::from_raw(doorbell.to_raw()), doorbell);
    }
}
