//! The kernel's side of KFD, answered in this process: device files, ioctls, mappings, sysfs.

mod events;
mod identity;
mod memory;
mod queues;

use std::collections::HashMap;
use std::ffi::{OsString, c_void};
use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use driver::address::{Bytes, GpuVa};
use driver::kfd::event::{CreateEvent, DestroyEvent, EventData, EventType, ResetEvent, SetEvent, WaitEvents};
use driver::kfd::memory::{
    AllocMemoryOfGpu, AvailableMemory, FreeMemoryOfGpu, MapMemoryToGpu, MmapOffset, MmapType, UnmapMemoryFromGpu,
};
use driver::kfd::process::{
    AcquireVm, Apertures, GetClockCounters, GetProcessAperturesNew, GetVersion, RuntimeEnable, SetMemoryPolicy,
    SetScratchBackingVa, SetTrapHandler, SetXnackMode,
};
use driver::kfd::queue::{CreateQueue, DestroyQueue, UpdateQueue};
use driver::kfd::{Arguments, Command};
use driver::system::{Backing, Fd, MapRequest, Protection, System};

use crate::check::{Checker, Report};
use crate::config::Config;
use crate::inspect::{Inspection, Recorders, Tally};
use crate::machine::{Counters, Machine};
use crate::memory::host::{SharedPage, map_anonymous, prefer_huge_pages};
use crate::null::StandIn;
use crate::observe::{Event, Observer, Observers};

pub(crate) use events::Events;
pub(crate) use queues::QueueMemory;

use memory::{Allocations, DOORBELL_SLICE};
use queues::Queues;

/// An errno as the error type of the seam.
fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// What an open descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum File {
    Kfd,
    Render(usize),
}

/// Numbers of the mock's descriptors start here, so that none is taken for one of the process.
const FIRST_FD: i32 = 1 << 24;
/// The KFD interface version answered for (Linux 7.2).
const VERSION: GetVersion = GetVersion { major_version: 1, minor_version: 23 };

#[derive(Default)]
struct Process {
    files: HashMap<i32, File>,
    next_fd: i32,
    /// GPUs whose VM has been acquired.
    acquired: Vec<usize>,
    allocations: Allocations,
    queues: Queues,
    event_page: Option<u64>,
}

/// An emulated machine that answers a driver's [`System`] calls.
///
/// Dropping it stops the machine; memory handed to clients stays mapped until they unmap it.
pub struct Mock {
    machine: Machine,
    process: Mutex<Process>,
    doorbells: Vec<SharedPage>,
    recorders: Recorders,
    checker: Option<Arc<Checker>>,
}

impl Mock {
    /// Starts the machine that `config` describes.
    ///
    /// # Errors
    /// Doorbell pages can't be made.
    pub fn start(config: Config) -> io::Result<Self> {
        let recorders = Recorders::new(&config.inspect);
        let checker = config.check.then(|| Arc::new(Checker::default()));
        let checking = checker.iter().map(|checker| Arc::clone(checker) as Arc<dyn Observer>);
        // Recorders first: the sanitizer takes results of loads out of the registers until they are waited for.
        let observers = Observers::new(recorders.observers().into_iter().chain(checking).collect());
        let doorbells =
            (0..config.gpus).map(|_| SharedPage::new(DOORBELL_SLICE as usize)).collect::<io::Result<_>>()?;
        let machine = Machine::start(config, observers);
        Ok(Self { machine, process: Mutex::default(), doorbells, recorders, checker })
    }

    /// What the sanitizer has seen since the start, one report for each kind of mistake and instruction; empty unless the
    /// machine was started with `check`.
    #[must_use]
    pub fn reports(&self) -> Vec<Report> {
        self.checker.as_ref().map_or_else(Vec::new, |checker| checker.reports())
    }

    /// What the machine is.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.machine.shared.config
    }

    /// What the machine has counted since it started.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.machine.shared.counters
    }

    /// What it has recorded of the workgroups that have ended.
    #[must_use]
    pub fn inspection(&self) -> Inspection {
        self.recorders.inspection()
    }

    /// The counts of each launch, if the machine was started to keep them.
    #[must_use]
    pub fn tally(&self) -> Option<&Tally> {
        self.recorders.tally.as_deref()
    }

    /// Host memory that device memory takes: what of it has been touched so far, in whole pages.
    ///
    /// # Errors
    /// The system does not say.
    pub fn touched_bytes(&self) -> io::Result<u64> {
        self.process().allocations.touched()
    }

    /// Faults since the start, in words, oldest first.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.machine.shared.state().faults().iter().map(|(_, fault)| fault.to_string()).collect()
    }

    /// Has the machine report runs that it does not execute; it must be one that executes nothing ([`Config::null`]).
    pub fn stand_in(&self, stand_in: StandIn) {
        self.machine.shared.stand_ins.add(stand_in);
    }

    /// What each queue is doing or waiting for, one line a queue: for reports of hangs.
    #[must_use]
    pub fn describe_queues(&self) -> Vec<String> {
        self.machine.shared.state().describe()
    }

    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, fd: Fd) -> io::Result<File> {
        self.process().files.get(&fd.as_raw()).copied().ok_or_else(|| errno(libc::EBADF))
    }

    fn create_event(&self, args: &mut CreateEvent) -> io::Result<()> {
        let kind = EventType::from_raw(args.event_type).ok_or_else(|| errno(libc::EINVAL))?;
        let mut process = self.process();
        if args.event_page_offset != 0 {
            if process.event_page.is_some() || !process.allocations.has_handle(args.event_page_offset) {
                return Err(errno(libc::EINVAL));
            }
            process.event_page = Some(args.event_page_offset);
        }
        let id = self.machine.shared.events.create(kind, args.auto_reset != 0)?;
        args.event_id = id;
        args.event_trigger_data = id;
        args.event_slot_index = id;
        Ok(())
    }

    fn map_memory(&self, handle: u64, ids: &[u32], done: &mut u32, map: bool) -> io::Result<()> {
        let shared = &self.machine.shared;
        let mut process = self.process();
        let mut maps = shared.maps_mut();
        for &id in ids.get(*done as usize..).unwrap_or_default() {
            if map {
                process.allocations.map(shared, &mut maps, handle, id)?;
            } else {
                process.allocations.unmap(shared, &mut maps, handle, id)?;
            }
            *done += 1;
        }
        Ok(())
    }

    fn apertures(&self, args: &mut GetProcessAperturesNew) -> io::Result<()> {
        let gpus = self.config().gpus as u32;
        if args.num_of_nodes != 0 {
            let nodes = gpus.min(args.num_of_nodes);
            for gpu in 0..nodes {
                // Limits and bases of gfx9 (`kfd_flat_memory.c`, MAKE_*_APP_BASE_V9).
                let entry = Apertures {
                    lds_base: 1 << 48,
                    lds_limit: (1 << 48) + u64::from(u32::MAX),
                    scratch_base: 2 << 48,
                    scratch_limit: (2 << 48) + u64::from(u32::MAX),
                    gpuvm_base: 0x4000,
                    gpuvm_limit: (1 << 47) - 1,
                    gpu_id: identity::gpu_id(gpu as usize),
                    pad: 0,
                };
                // SAFETY: the caller of the ioctl vouches for an array of `num_of_nodes` entries at the pointer.
                unsafe { user_pointer::<Apertures>(args.apertures_ptr)?.add(gpu as usize).write_unaligned(entry) };
            }
        }
        args.num_of_nodes = gpus;
        Ok(())
    }

    fn known_gpu(&self, id: u32) -> io::Result<usize> {
        identity::gpu_index(id, self.config().gpus).ok_or_else(|| errno(libc::EINVAL))
    }

    fn wait_events(&self, args: &mut WaitEvents) -> io::Result<()> {
        if args.num_events == 0 || args.num_events > driver::kfd::event::SIGNAL_EVENT_LIMIT {
            return Err(errno(libc::EINVAL));
        }
        // SAFETY: the caller of the ioctl vouches for an array of `num_events` entries at the pointer.
        let data = unsafe {
            std::slice::from_raw_parts_mut(
                user_pointer::<EventData>(args.events_ptr)?.as_ptr(),
                args.num_events as usize,
            )
        };
        let result = self.machine.shared.events.wait(data, args.wait_for_all != 0, args.timeout);
        args.wait_result = result as u32;
        Ok(())
    }

    fn dispatch(&self, command: Command, arg: Argument) -> io::Result<()> {
        let shared = &self.machine.shared;
        match command {
            Command::GetVersion => arg.with(|a: &mut GetVersion| {
                *a = VERSION;
                Ok(())
            }),
            Command::AcquireVm => arg.with(|a: &mut AcquireVm| {
                let gpu = self.known_gpu(a.gpu_id)?;
                let mut process = self.process();
                match process.files.get(&(a.drm_fd as i32)) {
                    Some(File::Render(render)) if *render == gpu => {}
                    _ => return Err(errno(libc::EINVAL)),
                }
                if !process.acquired.contains(&gpu) {
                    process.acquired.push(gpu);
                }
                Ok(())
            }),
            Command::AllocMemoryOfGpu => arg.with(|a: &mut AllocMemoryOfGpu| {
                let gpu = self.known_gpu(a.gpu_id)?;
                let mut process = self.process();
                if !process.acquired.contains(&gpu) {
                    return Err(errno(libc::EINVAL));
                }
                process.allocations.alloc(shared, &self.doorbells, a)
            }),
            Command::FreeMemoryOfGpu => {
                arg.with(|a: &mut FreeMemoryOfGpu| self.process().allocations.free(shared, a.handle))
            }
            Command::MapMemoryToGpu => arg.with(|a: &mut MapMemoryToGpu| {
                let ids = device_ids(a.device_ids_array_ptr, a.n_devices)?;
                self.map_memory(a.handle, &ids, &mut a.n_success, true)
            }),
            Command::UnmapMemoryFromGpu => arg.with(|a: &mut UnmapMemoryFromGpu| {
                let ids = device_ids(a.device_ids_array_ptr, a.n_devices)?;
                self.map_memory(a.handle, &ids, &mut a.n_success, false)
            }),
            Command::AvailableMemory => {
                arg.with(|a: &mut AvailableMemory| self.process().allocations.available(shared, a))
            }
            Command::CreateQueue => arg.with(|a: &mut CreateQueue| {
                let process = &mut *self.process();
                process.queues.create(&self.machine, &process.allocations, &self.doorbells, a)
            }),
            Command::UpdateQueue => arg.with(|a: &mut UpdateQueue| self.process().queues.update(a)),
            Command::DestroyQueue => {
                arg.with(|a: &mut DestroyQueue| self.process().queues.destroy(&self.machine, a.queue_id))
            }
            Command::CreateEvent => arg.with(|a: &mut CreateEvent| self.create_event(a)),
            Command::DestroyEvent => arg.with(|a: &mut DestroyEvent| shared.events.destroy(a.event_id)),
            Command::SetEvent => arg.with(|a: &mut SetEvent| shared.events.set(a.event_id)),
            Command::ResetEvent => arg.with(|a: &mut ResetEvent| shared.events.reset(a.event_id)),
            Command::WaitEvents => arg.with(|a: &mut WaitEvents| self.wait_events(a)),
            Command::GetProcessAperturesNew => arg.with(|a: &mut GetProcessAperturesNew| self.apertures(a)),
            Command::GetClockCounters => arg.with(|a: &mut GetClockCounters| {
                self.known_gpu(a.gpu_id)?;
                a.gpu_clock_counter = shared.clock();
                a.cpu_clock_counter = shared.clock() * 10;
                a.system_clock_counter = shared.clock() * 10;
                a.system_clock_freq = 1_000_000_000;
                Ok(())
            }),
            // Settings without an effect a client of the emulated machine could see: caching policy (the mock decides
            // coherence by allocation), scratch backing and trap handler (waves do not trap), debugger attachment.
            Command::SetMemoryPolicy => arg.with(|a: &mut SetMemoryPolicy| self.known_gpu(a.gpu_id).map(drop)),
            Command::SetScratchBackingVa => arg.with(|a: &mut SetScratchBackingVa| self.known_gpu(a.gpu_id).map(drop)),
            Command::SetTrapHandler => arg.with(|a: &mut SetTrapHandler| self.known_gpu(a.gpu_id).map(drop)),
            Command::RuntimeEnable => arg.with(|_: &mut RuntimeEnable| Ok(())),
            Command::SetXnackMode => arg.with(|a: &mut SetXnackMode| match a.xnack_enabled {
                // A negative value asks; the part runs with XNACK off.
                ..=0 => {
                    a.xnack_enabled = 0;
                    Ok(())
                }
                _ => Err(errno(libc::EPERM)),
            }),
            Command::GetProcessApertures
            | Command::GetTileConfig
            | Command::SetCuMask
            | Command::GetQueueWaveState
            | Command::GetDmabufInfo
            | Command::ImportDmabuf
            | Command::AllocQueueGws
            | Command::SmiEvents
            | Command::Svm
            | Command::ExportDmabuf
            | Command::DbgTrap => {
                tracing::error!("MOCKKFD does not emulate the KFD ioctl {command}");
                Err(errno(libc::ENOTTY))
            }
        }
    }
}

impl System for Mock {
    fn open(&self, path: &Path) -> io::Result<Fd> {
        let file = if path == Path::new("/dev/kfd") {
            File::Kfd
        } else {
            File::Render(identity::render_gpu(path, self.config().gpus).ok_or_else(|| errno(libc::ENOENT))?)
        };
        let mut process = self.process();
        let fd = FIRST_FD + process.next_fd;
        process.next_fd += 1;
        process.files.insert(fd, file);
        Ok(Fd::from_raw(fd))
    }

    fn close(&self, fd: Fd) {
        self.process().files.remove(&fd.as_raw());
    }

    unsafe fn ioctl(&self, fd: Fd, request: u32, arg: *mut c_void) -> io::Result<i32> {
        if self.file(fd)? != File::Kfd {
            tracing::error!("MOCKKFD does not emulate DRM ioctl {request:#x}");
            return Err(errno(libc::ENOTTY));
        }
        let Some(command) = Command::from_request(request) else {
            tracing::error!("unknown KFD ioctl {request:#x}");
            return Err(errno(libc::ENOTTY));
        };
        let at = NonNull::new(arg.cast()).ok_or_else(|| errno(libc::EFAULT))?;
        self.dispatch(command, Argument { at, bytes: Command::request_bytes(request) })?;
        Ok(0)
    }

    unsafe fn mmap(&self, request: MapRequest) -> io::Result<NonNull<u8>> {
        let fixed = request.fixed.and_then(|at| at.pointer());
        match request.backing {
            Backing::Anonymous { reserve_only } => {
                let (at, flags) = fixed.map_or((std::ptr::null_mut(), 0), |at| (at.as_ptr(), libc::MAP_FIXED));
                let mapped = map_anonymous(at, request.bytes, flags)?;
                if !reserve_only {
                    // As `driver::linux` does. It must come before the first touch: what io_uring registers in small pages
                    // is read into page by page.
                    prefer_huge_pages(mapped, request.bytes);
                }
                protect(mapped, request.bytes, request.protection)?;
                Ok(mapped)
            }
            Backing::File { fd, offset } => match self.file(fd)? {
                File::Render(gpu) => {
                    let mut process = self.process();
                    let mut maps = self.machine.shared.maps_mut();
                    // SAFETY: passed on from the caller.
                    unsafe { process.allocations.host_map(&mut maps, gpu, offset, &request) }
                }
                File::Kfd => {
                    let offset = MmapOffset::from_raw(offset);
                    let gpu = self.known_gpu(offset.gpu_id)?;
                    match offset.kind {
                        MmapType::Doorbell if request.bytes as u64 <= DOORBELL_SLICE => {
                            // SAFETY: passed on from the caller.
                            unsafe { self.doorbells[gpu].map_again(fixed, request.bytes) }
                        }
                        MmapType::Mmio => {
                            let (at, flags) =
                                fixed.map_or((std::ptr::null_mut(), 0), |at| (at.as_ptr(), libc::MAP_FIXED));
                            map_anonymous(at, request.bytes, flags)
                        }
                        _ => Err(errno(libc::EINVAL)),
                    }
                }
            },
        }
    }

    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        {
            let mut process = self.process();
            let mut maps = self.machine.shared.maps_mut();
            if process.allocations.host_unmap(&mut maps, at.as_ptr() as usize)? {
                return Ok(());
            }
        }
        // SAFETY: passed on from the caller.
        if unsafe { libc::munmap(at.as_ptr().cast(), bytes) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        identity::read(self.config(), path).ok_or_else(|| errno(libc::ENOENT))
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        identity::list(self.config(), path).ok_or_else(|| errno(libc::ENOENT))
    }

    fn name_memory(&self, at: GpuVa, bytes: Bytes, label: &str) {
        self.machine.shared.observers.event(&Event::Named { at: at.get(), bytes: bytes.get(), label });
    }
}

fn protect(at: NonNull<u8>, bytes: usize, protection: Protection) -> io::Result<()> {
    let mut prot = libc::PROT_NONE;
    if protection.contains(Protection::READ) {
        prot |= libc::PROT_READ;
    }
    if protection.contains(Protection::WRITE) {
        prot |= libc::PROT_WRITE;
    }
    // SAFETY: a mapping that was made just now.
    if unsafe { libc::mprotect(at.as_ptr().cast(), bytes, prot) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The argument structure of one ioctl call.
struct Argument {
    at: NonNull<u8>,
    bytes: usize,
}

impl Argument {
    /// Calls `answer` with the structure as this KFD knows it: the smaller of both sizes is copied in and out, the rest
    /// is zero (`kfd_ioctl`). On an error nothing but what a partial success reports is copied out, as there.
    fn with<A: Arguments + Default>(&self, answer: impl FnOnce(&mut A) -> io::Result<()>) -> io::Result<()> {
        let mut args = A::default();
        let bytes = self.bytes.min(size_of::<A>());
        // SAFETY: the caller of the ioctl vouches for a live structure of `self.bytes` bytes; both copies stay inside it.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at.as_ptr(), args.as_mut_bytes().as_mut_ptr(), bytes);
            let result = answer(&mut args);
            std::ptr::copy_nonoverlapping(args.as_bytes().as_ptr(), self.at.as_ptr(), bytes);
            result
        }
    }
}

fn device_ids(pointer: u64, count: u32) -> io::Result<Vec<u32>> {
    if count == 0 || count > 64 {
        return Err(errno(libc::EINVAL));
    }
    let at = user_pointer::<u32>(pointer)?;
    // SAFETY: the caller of the ioctl vouches for an array of `count` ids at the pointer.
    Ok(unsafe { std::slice::from_raw_parts(at.as_ptr(), count as usize) }.to_vec())
}

fn user_pointer<T>(raw: u64) -> io::Result<NonNull<T>> {
    NonNull::new(std::ptr::with_exposed_provenance_mut(raw as usize)).ok_or_else(|| errno(libc::EFAULT))
}
