//! `ALLOC/FREE/MAP/UNMAP_MEMORY_OF_GPU` and the mappings clients make of the results (`kfd_chardev.c`,
//! `amdgpu_amdkfd_gpuvm.c`).

use std::collections::BTreeMap;
use std::io;
use std::ptr::NonNull;

use driver::address::GpuVa;
use driver::kfd::memory::{AllocFlags, AllocMemoryOfGpu, AvailableMemory, MmapOffset, MmapType};
use driver::system::MapRequest;

use super::errno;
use super::identity::{gpu_id, gpu_index};
use crate::check::poison;
use crate::machine::Shared;
use crate::memory::host::{HostMemory, PAGE, SharedPage};
use crate::memory::{Mapping, PageMap};
use crate::observe::{Allocated, Event};

/// Bytes of a process' doorbell slice on one GPU (SOC15: 1024 doorbells of 8 bytes).
pub(super) const DOORBELL_SLICE: u64 = 8192;

enum Backing {
    /// Memory of the mock's own; `client` is where a client has mapped it for the host.
    Own { memory: HostMemory, client: Option<usize> },
    /// The client's own memory.
    Client(*mut u8),
    /// The doorbell slice of the GPU.
    Doorbells(*mut u8),
    /// The page of remapped HDP registers: writes to it flush a cache the mock does not have.
    HdpFlush(HostMemory),
}

// SAFETY: the pointers are only handed to page maps; see `Mapping`.
unsafe impl Send for Backing {}

impl Backing {
    fn host(&self) -> *mut u8 {
        match self {
            Self::Own { memory, .. } | Self::HdpFlush(memory) => memory.at(),
            Self::Client(at) | Self::Doorbells(at) => *at,
        }
    }
}

pub(super) struct Allocation {
    gpu: usize,
    va: u64,
    bytes: u64,
    flags: AllocFlags,
    backing: Backing,
    mapped_on: Vec<usize>,
    mmap_offset: u64,
}

/// The allocations of the client process.
#[derive(Default)]
pub(crate) struct Allocations {
    by_handle: BTreeMap<u64, Allocation>,
    next: u32,
    next_offset: u64,
    vram_used: Vec<u64>,
}

impl Allocations {
    pub(super) fn alloc(
        &mut self,
        shared: &Shared,
        doorbells: &[SharedPage],
        args: &mut AllocMemoryOfGpu,
    ) -> io::Result<()> {
        let config = &shared.config;
        let gpu = gpu_index(args.gpu_id, config.gpus).ok_or_else(|| errno(libc::EINVAL))?;
        let flags = AllocFlags::from_bits(args.flags).ok_or_else(|| errno(libc::EINVAL))?;
        let bytes = args.size.checked_next_multiple_of(PAGE).ok_or_else(|| errno(libc::EINVAL))?;
        if args.size == 0 || !args.va_addr.is_multiple_of(PAGE) || args.va_addr.checked_add(bytes).is_none() {
            return Err(errno(libc::EINVAL));
        }
        let domains =
            AllocFlags::VRAM | AllocFlags::GTT | AllocFlags::USERPTR | AllocFlags::DOORBELL | AllocFlags::MMIO_REMAP;
        let backing = match flags & domains {
            AllocFlags::VRAM => {
                self.vram_used.resize(config.gpus, 0);
                if bytes > config.vram_bytes - self.vram_used[gpu] {
                    return Err(errno(libc::ENOMEM));
                }
                self.vram_used[gpu] += bytes;
                Backing::Own { memory: HostMemory::new(bytes as usize)?, client: None }
            }
            AllocFlags::GTT => Backing::Own { memory: HostMemory::new(bytes as usize)?, client: None },
            AllocFlags::USERPTR => {
                if args.mmap_offset == 0 || !args.mmap_offset.is_multiple_of(PAGE) {
                    return Err(errno(libc::EINVAL));
                }
                Backing::Client(std::ptr::with_exposed_provenance_mut(args.mmap_offset as usize))
            }
            AllocFlags::DOORBELL if args.size == DOORBELL_SLICE => Backing::Doorbells(doorbells[gpu].at()),
            AllocFlags::MMIO_REMAP if args.size == PAGE => Backing::HdpFlush(HostMemory::new(PAGE as usize)?),
            _ => return Err(errno(libc::EINVAL)),
        };
        self.next += 1;
        let handle = u64::from(args.gpu_id) << 32 | u64::from(self.next);
        let mmap_offset = match &backing {
            Backing::Client(_) => args.mmap_offset,
            Backing::Doorbells(_) => MmapOffset { kind: MmapType::Doorbell, gpu_id: gpu_id(gpu), offset: 0 }.to_raw(),
            Backing::HdpFlush(_) => MmapOffset { kind: MmapType::Mmio, gpu_id: gpu_id(gpu), offset: 0 }.to_raw(),
            Backing::Own { .. } => {
                self.next_offset += 0x10000;
                let offset = self.next_offset;
                self.next_offset += bytes;
                offset
            }
        };
        let va = args.va_addr;
        // Executable memory is code, or where firmware saves waves: long, and no kernel's data.
        let is_data = flags.contains(AllocFlags::VRAM) && !flags.contains(AllocFlags::EXECUTABLE);
        let poisoned = config.check && is_data && bytes <= poison::LONGEST_FILL;
        if let (true, Backing::Own { memory, .. }) = (poisoned, &backing) {
            memory.fill(|offset| poison::word(va + offset));
        }
        shared.observers.event(&Event::Allocated(Allocated { gpu, va, bytes, flags, poisoned }));
        self.by_handle
            .insert(handle, Allocation { gpu, va, bytes, flags, backing, mapped_on: Vec::new(), mmap_offset });
        args.handle = handle;
        args.mmap_offset = mmap_offset;
        Ok(())
    }

    pub(super) fn free(&mut self, shared: &Shared, handle: u64) -> io::Result<()> {
        let allocation = self.by_handle.get(&handle).ok_or_else(|| errno(libc::EINVAL))?;
        if !allocation.mapped_on.is_empty() {
            return Err(errno(libc::EBUSY));
        }
        if allocation.flags.contains(AllocFlags::VRAM) {
            self.vram_used[allocation.gpu] -= allocation.bytes;
        }
        shared.observers.event(&Event::Freed(allocation.va));
        // Memory a client has mapped for the host stays mapped until the client unmaps it.
        if let Some(Allocation { backing: Backing::Own { memory, client: Some(_) }, .. }) =
            self.by_handle.remove(&handle)
        {
            std::mem::forget(memory);
        }
        Ok(())
    }

    /// Maps on GPU `id`; mapping twice is no error, as in the kernel.
    pub(super) fn map(&mut self, shared: &Shared, maps: &mut [PageMap], handle: u64, id: u32) -> io::Result<()> {
        let allocation = self.by_handle.get_mut(&handle).ok_or_else(|| errno(libc::EINVAL))?;
        let gpu = gpu_index(id, shared.config.gpus).ok_or_else(|| errno(libc::EINVAL))?;
        if allocation.mapped_on.contains(&gpu) {
            return Ok(());
        }
        let mapping = Mapping {
            start: allocation.va,
            end: allocation.va + allocation.bytes,
            host: allocation.backing.host(),
            writable: allocation.flags.contains(AllocFlags::WRITABLE),
            executable: allocation.flags.contains(AllocFlags::EXECUTABLE),
        };
        maps[gpu].map(mapping).map_err(|_| errno(libc::EINVAL))?;
        allocation.mapped_on.push(gpu);
        Ok(())
    }

    pub(super) fn unmap(&mut self, shared: &Shared, maps: &mut [PageMap], handle: u64, id: u32) -> io::Result<()> {
        let allocation = self.by_handle.get_mut(&handle).ok_or_else(|| errno(libc::EINVAL))?;
        let gpu = gpu_index(id, shared.config.gpus).ok_or_else(|| errno(libc::EINVAL))?;
        if let Some(at) = allocation.mapped_on.iter().position(|&mapped| mapped == gpu) {
            allocation.mapped_on.swap_remove(at);
            maps[gpu].unmap(GpuVa::new(allocation.va)).map_err(|_| errno(libc::EINVAL))?;
        }
        Ok(())
    }

    pub(super) fn available(&self, shared: &Shared, args: &mut AvailableMemory) -> io::Result<()> {
        let gpu = gpu_index(args.gpu_id, shared.config.gpus).ok_or_else(|| errno(libc::EINVAL))?;
        args.available = shared.config.vram_bytes - self.vram_used.get(gpu).copied().unwrap_or(0);
        Ok(())
    }

    /// Host memory that the allocations take, the client's own apart.
    pub(super) fn touched(&self) -> io::Result<u64> {
        let own = self.by_handle.values().filter_map(|allocation| match &allocation.backing {
            Backing::Own { memory, .. } | Backing::HdpFlush(memory) => Some(memory),
            Backing::Client(_) | Backing::Doorbells(_) => None,
        });
        own.map(HostMemory::touched).sum()
    }

    /// Whether `bytes` bytes from `va` on are exactly one allocation mapped on `gpu` (`kfd_queue_buffer_get`).
    pub(super) fn is_exact_buffer(&self, gpu: usize, va: u64, bytes: u64) -> bool {
        self.by_handle.values().any(|a| a.va == va && a.bytes == bytes && a.mapped_on.contains(&gpu))
    }

    pub(super) fn has_handle(&self, handle: u64) -> bool {
        self.by_handle.contains_key(&handle)
    }

    /// A client maps an allocation of `gpu` for the host through its render node.
    ///
    /// # Safety
    /// As for [`driver::system::System::mmap`].
    pub(super) unsafe fn host_map(
        &mut self,
        maps: &mut [PageMap],
        gpu: usize,
        offset: u64,
        request: &MapRequest,
    ) -> io::Result<NonNull<u8>> {
        let allocation = self
            .by_handle
            .values_mut()
            .find(|a| a.gpu == gpu && a.mmap_offset == offset && matches!(a.backing, Backing::Own { .. }))
            .ok_or_else(|| errno(libc::EINVAL))?;
        let Backing::Own { memory, client } = &mut allocation.backing else { return Err(errno(libc::EINVAL)) };
        let bytes = (request.bytes as u64).checked_next_multiple_of(PAGE).ok_or_else(|| errno(libc::EINVAL))?;
        if bytes > allocation.bytes {
            return Err(errno(libc::EINVAL));
        }
        // The memory itself moves to where the client wants it, so it can be in one place and as a whole only.
        if client.is_some() || bytes != allocation.bytes {
            return Err(errno(libc::EOPNOTSUPP));
        }
        if let Some(to) = request.fixed.and_then(|at| at.pointer()) {
            // SAFETY: the caller owns the range; page maps are locked for writing, so no one uses the old place.
            unsafe { memory.move_to(to) }?;
        }
        let at = memory.at();
        *client = Some(at as usize);
        for &gpu in &allocation.mapped_on {
            maps[gpu].rehost(GpuVa::new(allocation.va), at);
        }
        NonNull::new(at).ok_or_else(|| errno(libc::ENOMEM))
    }

    /// A client unmaps host memory at `at`; says whether that was an allocation's, which then lives on elsewhere.
    pub(super) fn host_unmap(&mut self, maps: &mut [PageMap], at: usize) -> io::Result<bool> {
        for allocation in self.by_handle.values_mut() {
            if let Backing::Own { memory, client } = &mut allocation.backing
                && *client == Some(at)
            {
                // SAFETY: page maps are locked for writing, and the client gives its mapping up with this call.
                unsafe { memory.move_away() }?;
                *client = None;
                for &gpu in &allocation.mapped_on {
                    maps[gpu].rehost(GpuVa::new(allocation.va), memory.at());
                }
                return Ok(true);
            }
        }
        Ok(false)
    }
}
