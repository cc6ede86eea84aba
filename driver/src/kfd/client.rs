//! The open `/dev/kfd`: one typed call per ioctl the driver makes.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::command::{Arguments, Command};
use super::event::{CreateEvent, DestroyEvent, EventData, EventType, WaitEvents, WaitResult};
use super::memory::{
    AllocFlags, AllocMemoryOfGpu, AvailableMemory, FreeMemoryOfGpu, MapMemoryToGpu, UnmapMemoryFromGpu,
};
use super::process::{AcquireVm, Apertures, GetClockCounters, GetProcessAperturesNew, GetVersion};
use super::queue::{CreateQueue, DestroyQueue, UpdateQueue};
use crate::address::{Bytes, GpuVa, HostVa};
use crate::system::{Fd, System};

/// The compute device of the kernel.
pub const DEVICE: &str = "/dev/kfd";
/// Interface this crate speaks: the major version, and the minor one from which everything it calls exists.
/// `AVAILABLE_MEMORY` came with 1.9, the layout of event data with 1.14; gfx950 itself needs newer kernels still.
const MAJOR_VERSION: u32 = 1;
const MINOR_VERSION: u32 = 14;
/// Most GPUs asked for in one call.
const MAX_GPUS: usize = 128;

/// An ioctl that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("KFD {command} failed for {object}: {source}")]
pub struct IoctlError {
    /// Which one.
    pub command: Command,
    /// On which object.
    pub object: String,
    /// What the system said.
    pub source: io::Error,
}

impl IoctlError {
    /// The errno, for callers that act on it.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// Why the compute device cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Opening failed.
    #[error("cannot open {DEVICE}: {source}; {}", advice(.source))]
    Open {
        /// What the system said.
        source: io::Error,
    },
    /// Asking for the version failed: it is not KFD.
    #[error("{DEVICE} does not answer as the KFD device: {0}")]
    Version(#[from] IoctlError),
    /// The interface is another one, or older.
    #[error(
        "the kernel speaks KFD interface {major}.{minor}, at least {MAJOR_VERSION}.{MINOR_VERSION} is needed; \
             update the kernel or the amdgpu driver"
    )]
    OldKernel {
        /// Major version.
        major: u32,
        /// Minor version.
        minor: u32,
    },
}

/// What to do about a failed open of `/dev/kfd`. Reports behind each line: ROCm's trackers, by errno.
fn advice(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOENT) => {
            "is the amdgpu driver loaded (lsmod | grep amdgpu)? In a container, pass the devices: \
             --device=/dev/kfd --device=/dev/dri"
        }
        Some(libc::EACCES) | Some(libc::EPERM) => {
            "the user may not: join the group that owns it (stat -c %G /dev/kfd) and log in again; in a container give \
             that group's number, --group-add $(stat -c %g /dev/kfd)"
        }
        Some(libc::EINVAL) => {
            "the driver cannot attach this process, as happens in containers whose device node is not the host's (LXC: \
             compare the major number in ls -l /dev/kfd inside and outside); dmesg says more"
        }
        Some(libc::ENOMEM) => {
            "the driver has no resources for this process or does not support the GPU: see dmesg | grep kfd"
        }
        Some(libc::ENXIO) | Some(libc::ENODEV) => {
            "the node exists without its driver: the amdgpu driver found no GPU, or failed to start; see dmesg"
        }
        Some(libc::EAGAIN) | Some(libc::EBUSY) => "a GPU is being reset or suspended; try again",
        Some(libc::EMFILE) | Some(libc::ENFILE) => "too many open files: raise the limit (ulimit -n)",
        _ => "see dmesg | grep kfd",
    }
}

/// The open compute device.
///
/// The kernel knows one compute process per address space, whatever is opened how often: a program has one `Kfd`.
pub struct Kfd {
    system: Arc<dyn System>,
    fd: Fd,
    version: (u32, u32),
}

impl Kfd {
    /// Opens `/dev/kfd` and checks its interface.
    pub fn open(system: Arc<dyn System>) -> Result<Self, OpenError> {
        let fd = system.open(Path::new(DEVICE)).map_err(|source| OpenError::Open { source })?;
        let mut kfd = Self { system, fd, version: (0, 0) };
        let mut version = GetVersion::default();
        kfd.call(&mut version, || DEVICE.into())?;
        let (major, minor) = (version.major_version, version.minor_version);
        if major != MAJOR_VERSION || minor < MINOR_VERSION {
            return Err(OpenError::OldKernel { major, minor });
        }
        kfd.version = (major, minor);
        Ok(kfd)
    }

    /// Major and minor version of the interface.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The system it was opened on.
    pub fn system(&self) -> &Arc<dyn System> {
        &self.system
    }

    /// For mapping doorbells.
    pub(crate) fn fd(&self) -> Fd {
        self.fd
    }

    /// Makes the address space of an open render node this process' one on a GPU.
    pub fn acquire_vm(&self, gpu_id: u32, render: Fd) -> Result<(), IoctlError> {
        let drm_fd = render.as_raw().cast_unsigned();
        self.call(&mut AcquireVm { drm_fd, gpu_id }, || gpu(gpu_id))
    }

    /// The address windows of every GPU.
    pub fn apertures(&self) -> Result<Vec<Apertures>, IoctlError> {
        let mut entries = vec![Apertures::default(); MAX_GPUS];
        let mut args = GetProcessAperturesNew {
            apertures_ptr: HostVa::from(std::ptr::NonNull::from(&mut entries[..]).cast()).get() as u64,
            num_of_nodes: MAX_GPUS as u32,
            pad: 0,
        };
        // SAFETY: the array is live and has the stated number of entries.
        unsafe { self.call_with_pointers(&mut args, || "all GPUs".into()) }?;
        entries.truncate(args.num_of_nodes as usize);
        Ok(entries)
    }

    /// VRAM left on a GPU.
    pub fn available_memory(&self, gpu_id: u32) -> Result<Bytes, IoctlError> {
        let mut args = AvailableMemory { gpu_id, ..Default::default() };
        self.call(&mut args, || gpu(gpu_id))?;
        Ok(Bytes::new(args.available))
    }

    /// The clocks of a GPU and of the host, read together.
    pub fn clock_counters(&self, gpu_id: u32) -> Result<GetClockCounters, IoctlError> {
        let mut args = GetClockCounters { gpu_id, ..Default::default() };
        self.call(&mut args, || gpu(gpu_id))?;
        Ok(args)
    }

    /// Allocates memory at `va`; returns its handle and the offset to mmap it at. `host` is the memory of a userptr.
    ///
    /// # Safety
    /// With [`AllocFlags::USERPTR`], `host` and `bytes` name memory of this process that stays mapped until the handle
    /// is freed.
    pub(crate) unsafe fn alloc_memory(
        &self,
        gpu_id: u32,
        va: GpuVa,
        bytes: Bytes,
        flags: AllocFlags,
        host: Option<HostVa>,
    ) -> Result<(u64, u64), IoctlError> {
        let mut args = AllocMemoryOfGpu {
            va_addr: va.get(),
            size: bytes.get(),
            handle: 0,
            mmap_offset: host.map_or(0, |host| host.get() as u64),
            gpu_id,
            flags: flags.bits(),
        };
        self.call(&mut args, || format!("{bytes} ({flags:?}) at {va} on {}", gpu(gpu_id)))?;
        Ok((args.handle, args.mmap_offset))
    }

    /// Frees memory that is mapped to no GPU.
    pub(crate) fn free_memory(&self, handle: u64) -> Result<(), IoctlError> {
        self.call(&mut FreeMemoryOfGpu { handle }, || format!("handle {handle:#x}"))
    }

    /// Makes memory visible to GPUs. On an error the count says how many of them, from the first, see it.
    pub(crate) fn map_memory(&self, handle: u64, gpus: &[u32]) -> Result<(), (usize, IoctlError)> {
        let mut args = MapMemoryToGpu {
            handle,
            device_ids_array_ptr: pointer_to(gpus),
            n_devices: gpus.len() as u32,
            n_success: 0,
        };
        // SAFETY: the array is live and has the stated number of entries.
        let result = unsafe { self.call_with_pointers(&mut args, || format!("handle {handle:#x} on {}", list(gpus))) };
        result.map_err(|error| ((args.n_success as usize).min(gpus.len()), error))
    }

    /// Takes memory from GPUs.
    pub(crate) fn unmap_memory(&self, handle: u64, gpus: &[u32]) -> Result<(), IoctlError> {
        let mut args = UnmapMemoryFromGpu {
            handle,
            device_ids_array_ptr: pointer_to(gpus),
            n_devices: gpus.len() as u32,
            n_success: 0,
        };
        // SAFETY: the array is live and has the stated number of entries.
        unsafe { self.call_with_pointers(&mut args, || format!("handle {handle:#x} on {}", list(gpus))) }
    }

    /// Creates a queue; fills in its id and doorbell offset.
    ///
    /// # Safety
    /// Every buffer the arguments name is mapped to the GPU, has the size the kernel expects of it, and stays so until
    /// the queue is destroyed.
    pub(crate) unsafe fn create_queue(&self, args: &mut CreateQueue) -> Result<(), IoctlError> {
        let (gpu_id, kind, ring) = (args.gpu_id, args.queue_type, args.ring_size);
        self.call(args, || format!("a queue of type {kind} with a ring of {ring:#x} bytes on {}", gpu(gpu_id)))
    }

    /// Changes share, priority or ring of a queue. A share of zero stops it.
    pub(crate) fn update_queue(&self, mut args: UpdateQueue) -> Result<(), IoctlError> {
        let queue = args.queue_id;
        self.call(&mut args, || format!("queue {queue}"))
    }

    /// Takes a queue off the hardware.
    pub(crate) fn destroy_queue(&self, queue_id: u32) -> Result<(), IoctlError> {
        self.call(&mut DestroyQueue { queue_id, pad: 0 }, || format!("queue {queue_id}"))
    }

    /// Creates an event; the first of the process says which memory is the event page.
    pub(crate) fn create_event(
        &self,
        kind: EventType,
        auto_reset: bool,
        event_page: Option<u64>,
    ) -> Result<CreateEvent, IoctlError> {
        let mut args = CreateEvent {
            event_page_offset: event_page.unwrap_or(0),
            event_type: kind as u32,
            auto_reset: auto_reset.into(),
            ..Default::default()
        };
        self.call(&mut args, || format!("an event of type {kind:?}"))?;
        Ok(args)
    }

    /// Destroys an event; those that wait for it hear so.
    pub(crate) fn destroy_event(&self, event_id: u32) -> Result<(), IoctlError> {
        self.call(&mut DestroyEvent { event_id, pad: 0 }, || format!("event {event_id}"))
    }

    /// Waits until any of the events comes, at most `milliseconds`; fills in what the kernel says about each.
    pub(crate) fn wait_events(&self, events: &mut [EventData], milliseconds: u32) -> Result<WaitResult, IoctlError> {
        let object = events.iter().map(|event| event.event_id.to_string()).collect::<Vec<_>>().join(", ");
        let mut args = WaitEvents {
            events_ptr: HostVa::from(std::ptr::NonNull::from(&mut *events).cast()).get() as u64,
            num_events: events.len() as u32,
            wait_for_all: 0,
            timeout: milliseconds,
            wait_result: 0,
        };
        // SAFETY: the array is live, writable and has the stated number of entries.
        unsafe { self.call_with_pointers(&mut args, || format!("events {object}")) }?;
        WaitResult::from_raw(args.wait_result).ok_or_else(|| IoctlError {
            command: Command::WaitEvents,
            object: format!("result {}", args.wait_result),
            source: io::Error::from_raw_os_error(libc::EPROTO),
        })
    }

    /// An ioctl whose arguments hold no pointer this process dereferences.
    fn call<A: Arguments>(&self, args: &mut A, object: impl FnOnce() -> String) -> Result<(), IoctlError> {
        // SAFETY: no pointers to vouch for.
        unsafe { self.call_with_pointers(args, object) }
    }

    /// # Safety
    /// Every pointer in the arguments is valid for what the command does with it.
    unsafe fn call_with_pointers<A: Arguments>(
        &self,
        args: &mut A,
        object: impl FnOnce() -> String,
    ) -> Result<(), IoctlError> {
        // SAFETY: `args` is live and has the size its command's request states, a property of the command table; the
        // caller vouches for pointers inside.
        match unsafe { self.system.ioctl(self.fd, A::COMMAND.request(), std::ptr::from_mut(args).cast()) } {
            Ok(_) => Ok(()),
            Err(source) => Err(IoctlError { command: A::COMMAND, object: object(), source }),
        }
    }
}

impl Drop for Kfd {
    fn drop(&mut self) {
        self.system.close(self.fd);
    }
}

fn pointer_to(ids: &[u32]) -> u64 {
    ids.as_ptr().expose_provenance() as u64
}

fn gpu(gpu_id: u32) -> String {
    format!("GPU {gpu_id:#x}")
}

fn list(gpus: &[u32]) -> String {
    gpus.iter().map(|id| gpu(*id)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Canned;

    #[test]
    fn each_way_that_opening_fails_has_its_own_advice() {
        let errnos =
            [libc::ENOENT, libc::EACCES, libc::EINVAL, libc::ENOMEM, libc::ENXIO, libc::EBUSY, libc::EMFILE, libc::EIO];
        let messages: Vec<String> = errnos
            .iter()
            .map(|&errno| {
                let system = Canned::default().with_open_error(DEVICE, errno);
                let Err(error) = Kfd::open(Arc::new(system)) else { panic!("errno {errno} is an error") };
                error.to_string()
            })
            .collect();
        for (index, message) in messages.iter().enumerate() {
            assert!(message.starts_with("cannot open /dev/kfd: "), "{message}");
            assert!(!messages[..index].contains(message), "{message}");
        }
        assert!(messages[0].contains("--device=/dev/kfd"));
        assert!(messages[1].contains("stat -c %g /dev/kfd"), "the group comes from the node, not from a name");
    }

    #[test]
    fn a_device_that_is_not_kfd_is_refused() {
        let error = Kfd::open(Arc::new(Canned::default().with_device(DEVICE))).err().unwrap();
        assert!(matches!(&error, OpenError::Version(inner) if inner.errno() == Some(libc::ENOTTY)), "{error}");
    }
}
