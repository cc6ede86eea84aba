//! Doorbells: the words a store to which tells an engine that its ring has grown.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::address::HostVa;
use crate::kfd::Kfd;
use crate::system::{Backing, MapRequest, Protection, System};

/// Doorbells of one process on one GPU, bytes (`kfd_doorbell_process_slice`: two pages on SOC15).
const SLICE_BYTES: u64 = 8192;

/// The mapped doorbells of this process on one GPU. Only the whole slice can be mapped (`kfd_doorbell_mmap`).
pub(crate) struct DoorbellSlice {
    system: Arc<dyn System>,
    start: NonNull<u8>,
}

// SAFETY: the pointer is the start of a mapping this object owns; its words are reached atomically only.
unsafe impl Send for DoorbellSlice {}
// SAFETY: as above.
unsafe impl Sync for DoorbellSlice {}

impl DoorbellSlice {
    /// Maps the slice that `offset`, the doorbell offset of a queue, lies in.
    pub(crate) fn map(kfd: &Kfd, offset: u64) -> io::Result<Self> {
        let request = MapRequest {
            fixed: None,
            bytes: SLICE_BYTES as usize,
            protection: Protection::READ | Protection::WRITE,
            backing: Backing::File { fd: kfd.fd(), offset: offset & !(SLICE_BYTES - 1) },
        };
        // SAFETY: no fixed address.
        let start = unsafe { kfd.system().mmap(request) }?;
        Ok(Self { system: kfd.system().clone(), start })
    }
}

impl Drop for DoorbellSlice {
    fn drop(&mut self) {
        // SAFETY: the slice was mapped by this object; doorbells hold a reference to it while they live.
        if let Err(error) = unsafe { self.system.munmap(self.start, SLICE_BYTES as usize) } {
            tracing::error!(address = %HostVa::from(self.start), %error, "cannot unmap doorbells");
        }
    }
}

/// The doorbell of one queue.
pub(crate) struct Doorbell {
    slice: Arc<DoorbellSlice>,
    offset: usize,
}

impl Doorbell {
    /// The doorbell at the low bits of a queue's doorbell offset; `None` if that is not the place of a 64-bit word.
    pub(crate) fn new(slice: Arc<DoorbellSlice>, doorbell_offset: u64) -> Option<Self> {
        let offset = doorbell_offset & (SLICE_BYTES - 1);
        offset.is_multiple_of(8).then_some(Self { slice, offset: offset as usize })
    }

    /// Tells the engine that its ring is written up to `value`.
    ///
    /// Everything the engine will read was written before: packets, and the memory they name. Three kinds of memory are
    /// involved, and the store below must come after all of them.
    /// * Write-back memory (rings, arguments in GTT): the release ordering of the store is enough.
    /// * Write-combining memory (VRAM through the BAR): a release store does not wait for combining buffers on x86;
    ///   `sfence` does.
    /// * The doorbell page is uncached, so the store itself goes out at once.
    pub(crate) fn ring(&self, value: u64) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE is part of x86-64; the instruction touches no memory.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
        fence(Ordering::Release);
        // SAFETY: the offset is a multiple of 8 inside the mapped slice (`new`), which lives as long as this object, and
        // the word is reached atomically only.
        let word = unsafe { AtomicU64::from_ptr(self.slice.start.add(self.offset).as_ptr().cast()) };
        word.store(value, Ordering::Release);
    }
}
