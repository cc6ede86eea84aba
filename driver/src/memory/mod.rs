//! Memory of GPUs and of the host that GPUs reach.
//!
//! An allocation takes four steps: addresses are reserved on the host, the kernel allocates memory for them, the host
//! maps it there (if it shall see it), and the GPUs of a list map it. [`Buffer`] owns all four and undoes them in the
//! opposite order; memory a GPU may still reach is leaked rather than given back to the host.

mod error;
mod host;
mod map;
mod reservation;

use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

pub use error::Error;
pub use host::HostView;
pub(crate) use map::AddressMap;
pub use map::Place;
use reservation::Reservation;

use crate::address::{Bytes, GpuVa, HostVa};
use crate::gpu::Gpu;
use crate::kfd::memory::AllocFlags;
use crate::kfd::{IoctlError, Kfd};
use crate::system::{Backing, Fd};

/// Where memory lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// On the GPU.
    Vram,
    /// On the host, allocated and pinned by the kernel.
    Gtt,
    /// On the host, ordinary memory of this process.
    Userptr,
}

bitflags::bitflags! {
    /// How memory may be used.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// The host maps it too. For VRAM this takes a large BAR; host memory is always mapped.
        const HOST = 1 << 0;
        /// The GPU may fetch instructions from it.
        const EXECUTE = 1 << 1;
        /// The GPU may not write to it.
        const GPU_READ_ONLY = 1 << 2;
        /// Writes of one side are seen by the others without cache maintenance (fine grained).
        const COHERENT = 1 << 3;
        /// As `COHERENT`, for device-scope atomics across GPUs too.
        const EXT_COHERENT = 1 << 4;
        /// The GPU does not cache it: XCCs see each other's writes.
        const UNCACHED = 1 << 5;
        /// Physically contiguous VRAM.
        const CONTIGUOUS = 1 << 6;
    }
}

/// What to allocate.
#[derive(Clone, Copy, Debug)]
pub struct Allocation<'a> {
    /// Where.
    pub kind: MemoryKind,
    /// Length; rounded up to a page.
    pub bytes: Bytes,
    /// How it may be used.
    pub access: Access,
    /// What it is for: shown when an access near it faults.
    pub label: &'a str,
}

impl<'a> Allocation<'a> {
    /// VRAM that only GPUs touch.
    pub const fn vram(bytes: Bytes, label: &'a str) -> Self {
        Self { kind: MemoryKind::Vram, bytes, access: Access::empty(), label }
    }

    /// Host memory for what host and GPUs poll or write in turn: rings, pointers, signals, indirect buffers.
    pub const fn shared(bytes: Bytes, label: &'a str) -> Self {
        let access = Access::HOST.union(Access::COHERENT).union(Access::UNCACHED);
        Self { kind: MemoryKind::Gtt, bytes, access, label }
    }

    /// Ordinary host memory a GPU reads or writes: staging.
    pub const fn staging(bytes: Bytes, label: &'a str) -> Self {
        Self { kind: MemoryKind::Userptr, bytes, access: Access::HOST, label }
    }

    /// The same, with more access.
    pub const fn with(self, access: Access) -> Self {
        Self { access: self.access.union(access), ..self }
    }

    fn flags(&self) -> AllocFlags {
        // Never another kind of memory than asked for: the plan is laid out for it.
        let mut flags = AllocFlags::NO_SUBSTITUTE;
        flags |= match self.kind {
            MemoryKind::Vram => AllocFlags::VRAM,
            MemoryKind::Gtt => AllocFlags::GTT,
            MemoryKind::Userptr => AllocFlags::USERPTR,
        };
        flags.set(AllocFlags::WRITABLE, !self.access.contains(Access::GPU_READ_ONLY));
        flags.set(AllocFlags::EXECUTABLE, self.access.contains(Access::EXECUTE));
        flags.set(AllocFlags::PUBLIC, self.is_host_visible());
        flags.set(AllocFlags::COHERENT, self.access.intersects(Access::COHERENT | Access::EXT_COHERENT));
        flags.set(AllocFlags::EXT_COHERENT, self.access.contains(Access::EXT_COHERENT));
        flags.set(AllocFlags::UNCACHED, self.access.contains(Access::UNCACHED));
        flags.set(AllocFlags::CONTIGUOUS, self.access.contains(Access::CONTIGUOUS));
        flags
    }

    fn is_host_visible(&self) -> bool {
        self.access.contains(Access::HOST) || self.kind != MemoryKind::Vram
    }
}

/// Kernel memory with its addresses. Dropping it gives neither back: as long as the kernel has memory there, a GPU may
/// reach it, and the addresses must not become anything else. [`release`](Self::release) gives both back.
pub(crate) struct RawMemory {
    pub(crate) va: GpuVa,
    pub(crate) handle: u64,
    reservation: Reservation,
    host: Option<NonNull<u8>>,
}

// SAFETY: the pointer is the start of the reservation's range, used through `HostView` only, which is thread-safe.
unsafe impl Send for RawMemory {}
// SAFETY: as above.
unsafe impl Sync for RawMemory {}

impl RawMemory {
    /// Reserves, allocates and maps to the host; maps to no GPU.
    pub(crate) fn allocate(
        kfd: &Kfd,
        render: Fd,
        gpu_id: u32,
        gpu: &str,
        what: &Allocation<'_>,
    ) -> Result<Self, Error> {
        let label = || what.label.to_owned();
        let bytes = what.bytes.align_up(Bytes::PAGE).filter(|bytes| bytes.get() != 0 && bytes.get() < 1 << 47);
        let Some((bytes, length)) = bytes.and_then(|bytes| Some((bytes, bytes.as_usize()?))) else {
            return Err(Error::Length { label: label(), bytes: what.bytes });
        };
        let alignment = if bytes >= Bytes::HUGE_PAGE { Bytes::HUGE_PAGE } else { Bytes::PAGE };
        let mut reservation = Reservation::new(kfd.system(), bytes, alignment).map_err(|source| Error::Reserve {
            label: label(),
            bytes,
            source,
        })?;
        let va = reservation.va();

        let mut host = None;
        if what.kind == MemoryKind::Userptr {
            let memory = reservation.map(length, Backing::Anonymous { reserve_only: false });
            host = Some(memory.map_err(|source| Error::HostMemory { label: label(), bytes, source })?);
        }
        let user_memory: Option<HostVa> = host.map(HostVa::from);
        // SAFETY: a userptr is the reservation's own memory, which outlives the handle: `release` frees it first.
        let allocated = unsafe { kfd.alloc_memory(gpu_id, va, bytes, what.flags(), user_memory) };
        let (handle, offset) = allocated.map_err(|source| Error::Allocate {
            label: label(),
            bytes,
            kind: what.kind,
            access: what.access,
            gpu: gpu.to_owned(),
            source,
        })?;
        if host.is_none() && what.is_host_visible() {
            match reservation.map(length, Backing::File { fd: render, offset }) {
                Ok(memory) => host = Some(memory),
                Err(source) => {
                    report("free", what.label, kfd.free_memory(handle));
                    return Err(Error::MapHost { label: label(), bytes, gpu: gpu.to_owned(), source });
                }
            }
        }
        reservation.keep();
        Ok(Self { va, handle, reservation, host })
    }

    /// Gives the memory back. It is mapped to no GPU any more, and nothing on the host uses it.
    fn release(self, kfd: &Kfd, label: &str) {
        match kfd.free_memory(self.handle) {
            Ok(()) => self.reservation.give_back(),
            Err(error) => report("free", label, Err(error)),
        }
    }
}

/// Memory that GPUs, and perhaps the host, can reach at one address.
///
/// Dropping it unmaps it from every GPU: work that uses it must be done.
pub struct Buffer {
    gpu: Arc<Gpu>,
    memory: Option<RawMemory>,
    bytes: Bytes,
    label: String,
    kind: MemoryKind,
    mapped_to: Mutex<Vec<u32>>,
}

impl Buffer {
    pub(crate) fn allocate(gpu: &Arc<Gpu>, what: &Allocation<'_>) -> Result<Self, Error> {
        let (kfd, gpu_id) = (gpu.process().kfd(), gpu.id());
        let memory = RawMemory::allocate(kfd, gpu.render(), gpu_id, &gpu.to_string(), what)?;
        let bytes = what.bytes.align_up(Bytes::PAGE).unwrap_or(what.bytes);
        let va = memory.va;
        let buffer = Self {
            gpu: gpu.clone(),
            memory: Some(memory),
            bytes,
            label: what.label.to_owned(),
            kind: what.kind,
            mapped_to: Mutex::default(),
        };
        buffer.map_to(&[gpu])?;
        gpu.process().addresses().insert(va, bytes, what.label);
        kfd.system().name_memory(va, what.bytes, what.label);
        Ok(buffer)
    }

    /// Makes the memory visible to more GPUs, at the same address.
    pub fn map_to(&self, gpus: &[&Arc<Gpu>]) -> Result<(), Error> {
        let mut mapped = self.mapped();
        let new: Vec<u32> = gpus.iter().map(|gpu| gpu.id()).filter(|id| !mapped.contains(id)).collect();
        if new.is_empty() {
            return Ok(());
        }
        match self.gpu.process().kfd().map_memory(self.memory().handle, &new) {
            Ok(()) => mapped.extend(new),
            Err((done, source)) => {
                mapped.extend(&new[..done]);
                let (label, owner) = (self.label.clone(), self.gpu.to_string());
                // The first that is not done is the one that failed; all done means that the wait for it did.
                let gpu_id = new.get(done).or(new.last()).copied().unwrap_or_default();
                return Err(Error::MapGpu { label, owner, gpu_id, source });
            }
        }
        Ok(())
    }

    /// Its address, on every GPU and on the host.
    pub fn va(&self) -> GpuVa {
        self.memory().va
    }

    /// Its length, a multiple of the page.
    pub fn len(&self) -> Bytes {
        self.bytes
    }

    /// Never: memory of no bytes cannot be allocated.
    pub fn is_empty(&self) -> bool {
        self.bytes == Bytes::default()
    }

    /// What it is for.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Where it lives.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// The GPU it was allocated on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The host's view of it.
    pub fn host(&self) -> Result<HostView<'_>, Error> {
        let start = self.memory().host.ok_or_else(|| Error::NotHostVisible { label: self.label.clone() })?;
        // A buffer longer than the address space was refused when it was allocated.
        let bytes =
            self.bytes.as_usize().ok_or_else(|| Error::Length { label: self.label.clone(), bytes: self.bytes })?;
        // SAFETY: the memory is mapped for reading and writing until the buffer is dropped, which the view's lifetime
        // prevents; all references to it are made by `HostView`.
        Ok(unsafe { HostView::new(start, bytes) })
    }

    fn memory(&self) -> &RawMemory {
        self.memory.as_ref().expect("taken only when dropped")
    }

    fn mapped(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        // A panic elsewhere leaves the list whole: it is changed after the kernel answered.
        self.mapped_to.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Gives everything up without telling the kernel: for memory a queue that could not be stopped still uses.
    pub(crate) fn leak(mut self) {
        self.memory = None;
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else { return };
        let process = self.gpu.process();
        process.addresses().remove(memory.va);
        let mapped = std::mem::take(&mut *self.mapped());
        if !mapped.is_empty()
            && let Err(error) = process.kfd().unmap_memory(memory.handle, &mapped)
        {
            // A GPU may still write there: its addresses must not be used for anything else.
            report("unmap", &self.label, Err(error));
            return;
        }
        memory.release(process.kfd(), &self.label);
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer(\"{}\", {:?}, {} at {} on {})", self.label, self.kind, self.bytes, self.va(), self.gpu)
    }
}

/// Tells of a failure that has no caller to be returned to.
fn report(action: &str, label: &str, result: Result<(), IoctlError>) {
    if let Err(error) = result {
        tracing::error!(label, %error, "cannot {action} memory; it stays allocated until the process ends");
    }
}
