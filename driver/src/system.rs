//! The seam between this driver and the operating system.
//!
//! Everything above [`System`] is the same code on a machine with GPUs and on an emulated one. Nothing above it may ask
//! which of the two it runs on, and nothing below it knows a queue, a packet or a kernel.
//!
//! # Contract of an implementation
//!
//! * **Errors are errno.** Each failing call returns an [`io::Error`] whose `raw_os_error` is the errno Linux would give
//!   for the same call; the driver's messages are chosen by it.
//! * **Paths are Linux paths**: `/dev/kfd`, `/dev/dri/renderD<minor>`, and sysfs below
//!   `/sys/devices/virtual/kfd/kfd/topology` and `/sys/class/drm`.
//! * **Memory is memory.** A mapping is ordinary host memory at exactly the address asked for. What a GPU writes to it
//!   becomes visible to plain atomic loads of the host, and the host's plain atomic stores to the GPU: signals, rings,
//!   read and write pointers need no call to be exchanged.
//! * **Doorbells are stores.** The mapping of a doorbell slice is rung by one 64-bit store of the new write pointer with
//!   release ordering; the implementation sees it without a further call.
//! * **Threads.** All calls may be made from any thread at any time.
//! * **File descriptors** belong to the `System` that made them. They close on exec, and memory mapped from one stays
//!   mapped after it is closed.

use std::ffi::{OsString, c_void};
use std::io;
use std::path::Path;
use std::ptr::NonNull;

use crate::address::{Bytes, GpuVa, HostVa};

/// An open file, as a number only its [`System`] can interpret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Fd(i32);

impl Fd {
    /// For implementations of [`System`]: the descriptor numbered `raw`.
    pub const fn from_raw(raw: i32) -> Self {
        Self(raw)
    }

    /// For implementations of [`System`] and for ioctl arguments that name another file (`ACQUIRE_VM`).
    pub const fn as_raw(self) -> i32 {
        self.0
    }
}

bitflags::bitflags! {
    /// What the host may do with a mapping.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Protection: u8 {
        /// Loads.
        const READ = 1;
        /// Stores.
        const WRITE = 2;
    }
}

/// What stands behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Private zeroed memory, in huge pages where the system has them, and not inherited by forks: staging that GPUs
    /// read. With `reserve_only` only addresses are taken (`MAP_NORESERVE`), to be mapped over later.
    Anonymous {
        /// Take addresses, promise no memory.
        reserve_only: bool,
    },
    /// Shared memory of an open file.
    File {
        /// The file: a render node, or `/dev/kfd` for doorbells and the MMIO remap page.
        fd: Fd,
        /// Byte offset, in the driver's own encoding (`mmap_offset`, `doorbell_offset`).
        offset: u64,
    },
}

/// One `mmap` call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapRequest {
    /// The address, which replaces whatever is mapped there (`MAP_FIXED`); `None` lets the system choose.
    pub fixed: Option<HostVa>,
    /// Length in bytes, not zero.
    pub bytes: usize,
    /// What the host may do.
    pub protection: Protection,
    /// What is mapped.
    pub backing: Backing,
}

/// The operating system as this driver needs it. See the [module documentation](self) for what an implementation owes.
pub trait System: Send + Sync {
    /// Opens `path` for reading and writing, close-on-exec.
    fn open(&self, path: &Path) -> io::Result<Fd>;

    /// Closes `fd`. Like `close(2)` on Linux it always releases the number, so there is nothing to report.
    fn close(&self, fd: Fd);

    /// One `ioctl(2)`, retried on `EINTR` and, a bounded number of times, on `EAGAIN` (libhsakmt's `kmtIoctl` retries
    /// both for ever). Returns the non-negative result.
    ///
    /// # Safety
    /// `arg` points at a live, writable structure of the size that `request` encodes, and every pointer inside it is
    /// valid for what the request does with it.
    unsafe fn ioctl(&self, fd: Fd, request: u32, arg: *mut c_void) -> io::Result<i32>;

    /// One `mmap(2)`.
    ///
    /// # Safety
    /// With `fixed`, the caller owns the whole range: it reserved it by an earlier call and nothing refers to it.
    unsafe fn mmap(&self, request: MapRequest) -> io::Result<NonNull<u8>>;

    /// One `munmap(2)`.
    ///
    /// # Safety
    /// The range was mapped by this `System`, and nothing refers to it any more, a GPU included.
    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()>;

    /// The whole content of a sysfs file.
    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// The names in a folder, in no particular order, without `.` and `..`.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>>;

    /// Says what `bytes` bytes of GPU memory at `at` are for, until they are freed; ranges may lie within others. For
    /// tools that watch a program, such as an emulated machine; a kernel does not ask.
    fn name_memory(&self, at: GpuVa, bytes: Bytes, label: &str) {
        let _ = (at, bytes, label);
    }
}
