//! The buffer that reads go to and copies come from.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use driver::Gpu;
use driver::address::{Bytes, GpuVa};
use driver::memory::{Allocation, Buffer};
use memmap2::{Advice, MmapMut};

use super::LoadError;

/// Huge pages make a read one segment for the block layer, not one for every 4 KiB: it doubles what a disk gives.
const HUGE_PAGE: usize = 2 << 20;

/// Memory that starts at a huge page.
pub(crate) struct Staging {
    memory: Memory,
    bytes: usize,
}

enum Memory {
    Shared(Buffer),
    /// With a huge page more than is used.
    Host(MmapMut),
}

impl Staging {
    /// Memory of the host that all of `gpus` reach.
    pub(crate) fn shared(gpus: &[Arc<Gpu>], bytes: Bytes) -> Result<Self, LoadError> {
        let [first, others @ ..] = gpus else {
            return Err(LoadError::CountArenas { ranks: 0, gpus: 0, arenas: 0 });
        };
        let buffer = first.allocate(&Allocation::staging(bytes, "weight staging"))?;
        buffer.map_to(&others.iter().collect::<Vec<_>>())?;
        let bytes = buffer.len().get() as usize;
        Ok(Self { memory: Memory::Shared(buffer), bytes })
    }

    /// Memory of the host.
    pub(crate) fn host(bytes: Bytes) -> Result<Self, LoadError> {
        let fail = |source| LoadError::AllocateStaging { bytes: bytes.get(), source };
        let bytes = bytes.as_usize().ok_or_else(|| fail(io::ErrorKind::OutOfMemory.into()))?;
        let length = bytes.checked_add(HUGE_PAGE).ok_or_else(|| fail(io::ErrorKind::OutOfMemory.into()))?;
        let map = MmapMut::map_anon(length).map_err(fail)?;
        if let Err(error) = map.advise(Advice::HugePage) {
            tracing::debug!(%error, "no huge pages for staging");
        }
        Ok(Self { memory: Memory::Host(map), bytes })
    }

    /// Length.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The first byte. What lies there belongs to whoever reads into it or copies from it at the time.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        match &self.memory {
            Memory::Shared(buffer) => {
                buffer.host().expect("staging is host memory, of a length the host could map").pointer()
            }
            Memory::Host(map) => {
                let start = NonNull::new(map.as_ptr().cast_mut()).expect("a mapping is nowhere at address zero");
                start.map_addr(|at| at.saturating_add(at.get().next_multiple_of(HUGE_PAGE) - at.get()))
            }
        }
    }

    /// Makes the host give all of it now, for those who measure what comes after.
    pub(crate) fn touch(&self) {
        // SAFETY: the memory is mapped and as long as it says; whoever asks for this has given it to nobody yet.
        unsafe { self.pointer().write_bytes(0, self.bytes) };
    }

    /// Its address on the GPUs; null if they have none.
    pub(crate) fn va(&self) -> GpuVa {
        match &self.memory {
            Memory::Shared(buffer) => buffer.va(),
            Memory::Host(_) => GpuVa::NULL,
        }
    }
}
