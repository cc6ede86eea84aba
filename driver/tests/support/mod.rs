//! A kernel side that says yes, keeps account and fails on demand. It runs nothing: the emulated machine does.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsString, c_void};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Mutex;

use driver::kfd::event::{CreateEvent, DestroyEvent, EventData, HwException, MemoryException, WaitEvents, WaitResult};
use driver::kfd::memory::{
    AllocMemoryOfGpu, FreeMemoryOfGpu, MapMemoryToGpu, MmapOffset, MmapType, UnmapMemoryFromGpu,
};
use driver::kfd::process::{AcquireVm, Apertures, GetProcessAperturesNew, GetVersion};
use driver::kfd::queue::{CreateQueue, DestroyQueue, UpdateQueue};
use driver::kfd::{Arguments, Command};
use driver::linux::Linux;
use driver::system::{Backing, Fd, MapRequest, Protection, System};
use driver::topology::NODES;
use zerocopy::IntoBytes;

/// GPUs of the machine, by node number.
pub(crate) const GPUS: [(u32, u32); 2] = [(1, 0xa1), (2, 0xb2)];
/// What a whole MI350X lists, as far as the driver asks.
const PROPERTIES: &str = "simd_count 1024\nmax_waves_per_simd 8\nlds_size_in_kb 160\nwave_front_size 64\n\
    array_count 32\nsimd_arrays_per_engine 1\nsimd_per_cu 4\nmax_slots_scratch_cu 32\ngfx_target_version 90500\n\
    device_id 30112\nlocation_id 1280\nnum_sdma_engines 2\nnum_sdma_xgmi_engines 14\nnum_xcc 8\n";

/// What is open, allocated, mapped and running.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) files: BTreeSet<i32>,
    pub(crate) memory: BTreeMap<u64, BTreeSet<u32>>,
    pub(crate) queues: BTreeSet<u32>,
    pub(crate) events: BTreeSet<u32>,
    pub(crate) mappings: BTreeMap<usize, usize>,
    pub(crate) vms: BTreeSet<u32>,
}

#[derive(Default)]
struct State {
    account: Account,
    calls: Vec<Command>,
    created: Vec<CreateQueue>,
    updated: Vec<UpdateQueue>,
    allocated: Vec<AllocMemoryOfGpu>,
    doorbells: Option<usize>,
    next: u64,
    failure: Option<(Command, usize, i32)>,
    memory_fault: Option<MemoryException>,
    hw_fault: Option<HwException>,
    event_page: Option<u64>,
    version: (u32, u32),
}

/// The kernel side.
pub(crate) struct Kernel(Mutex<State>);

impl Default for Kernel {
    fn default() -> Self {
        Self(Mutex::new(State { version: (1, 23), ..Default::default() }))
    }
}

impl Kernel {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no test panics while it holds the lock")
    }

    /// Lets the `nth` (from 0) call of a command from now on fail.
    pub(crate) fn fail(&self, command: Command, nth: usize, errno: i32) {
        self.state().failure = Some((command, nth, errno));
    }

    /// Speaks another version of the interface.
    pub(crate) fn set_version(&self, version: (u32, u32)) {
        self.state().version = version;
    }

    /// Raises a memory fault.
    pub(crate) fn fault(&self, exception: MemoryException) {
        self.state().memory_fault = Some(exception);
    }

    /// Raises a hardware exception.
    pub(crate) fn hw_fault(&self, exception: HwException) {
        self.state().hw_fault = Some(exception);
    }

    /// Commands so far; forgets them.
    pub(crate) fn take_calls(&self) -> Vec<Command> {
        std::mem::take(&mut self.state().calls)
    }

    /// Arguments of every queue created so far.
    pub(crate) fn created(&self) -> Vec<CreateQueue> {
        self.state().created.clone()
    }

    /// Arguments of every change of a queue so far.
    pub(crate) fn updated(&self) -> Vec<UpdateQueue> {
        self.state().updated.clone()
    }

    /// Arguments of every allocation so far.
    pub(crate) fn allocated(&self) -> Vec<AllocMemoryOfGpu> {
        self.state().allocated.clone()
    }

    /// Runs `look` on the account.
    pub(crate) fn account<T>(&self, look: impl FnOnce(&Account) -> T) -> T {
        look(&self.state().account)
    }

    /// The value of the doorbell at `offset` in the slice that is mapped.
    pub(crate) fn doorbell(&self, offset: u64) -> u64 {
        let slice = self.state().doorbells.expect("a slice is mapped");
        let at = std::ptr::with_exposed_provenance::<u64>(slice + (offset & 0x1fff) as usize);
        // SAFETY: the slice is mapped, and the test that asks holds the queue that keeps it so.
        unsafe { at.read_volatile() }
    }
}

fn error<T>(errno: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(errno))
}

/// The argument of an ioctl whose caller kept the contract of [`System::ioctl`].
struct Argument<'a> {
    command: Command,
    pointer: *mut c_void,
    memory: std::marker::PhantomData<&'a mut ()>,
}

impl<'a> Argument<'a> {
    /// # Safety
    /// `pointer` is that of a live argument structure of `command`; arrays it points at have the lengths it states.
    unsafe fn new(command: Command, pointer: *mut c_void) -> Self {
        Self { command, pointer, memory: std::marker::PhantomData }
    }

    fn structure<A: Arguments>(&self) -> &'a mut A {
        assert_eq!(A::COMMAND, self.command);
        // SAFETY: `new` was promised a live structure of the command, which the assertion says is `A`.
        unsafe { &mut *self.pointer.cast() }
    }

    /// An array that the structure points at.
    fn array<T>(&self, address: u64, count: u32) -> &'a mut [T] {
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: `new` was promised arrays of the stated lengths; the commands here have one of a fixed type each.
        unsafe { std::slice::from_raw_parts_mut(start, count as usize) }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn answer(&mut self, arg: &Argument<'_>) -> io::Result<i32> {
        match arg.command {
            Command::GetVersion => {
                let args: &mut GetVersion = arg.structure();
                (args.major_version, args.minor_version) = self.version;
            }
            Command::AcquireVm => {
                let args: &mut AcquireVm = arg.structure();
                if !self.account.files.contains(&args.drm_fd.cast_signed()) {
                    return error(libc::EINVAL);
                }
                if !self.account.vms.insert(args.gpu_id) {
                    return error(libc::EBUSY);
                }
            }
            Command::GetProcessAperturesNew => {
                let args: &mut GetProcessAperturesNew = arg.structure();
                let entries: &mut [Apertures] = arg.array(args.apertures_ptr, args.num_of_nodes);
                for (entry, (_, gpu_id)) in entries.iter_mut().zip(GPUS) {
                    *entry = Apertures { lds_base: 1 << 48, scratch_base: 2 << 48, gpu_id, ..Default::default() };
                }
                args.num_of_nodes = GPUS.len() as u32;
            }
            Command::AllocMemoryOfGpu => {
                let args: &mut AllocMemoryOfGpu = arg.structure();
                args.handle = u64::from(args.gpu_id) << 32 | self.number();
                if args.mmap_offset == 0 {
                    args.mmap_offset = self.number() << 12;
                }
                self.account.memory.insert(args.handle, BTreeSet::new());
                self.allocated.push(*args);
            }
            Command::FreeMemoryOfGpu => {
                let args: &mut FreeMemoryOfGpu = arg.structure();
                if self.event_page == Some(args.handle) {
                    return error(libc::EPERM);
                }
                match self.account.memory.get(&args.handle) {
                    Some(gpus) if gpus.is_empty() => self.account.memory.remove(&args.handle),
                    Some(_) => return error(libc::EBUSY),
                    None => return error(libc::EINVAL),
                };
            }
            Command::MapMemoryToGpu => {
                let args: &mut MapMemoryToGpu = arg.structure();
                let gpus: &mut [u32] = arg.array(args.device_ids_array_ptr, args.n_devices);
                let Some(mapped) = self.account.memory.get_mut(&args.handle) else { return error(libc::ENOMEM) };
                mapped.extend(gpus.iter());
                args.n_success = args.n_devices;
            }
            Command::UnmapMemoryFromGpu => {
                let args: &mut UnmapMemoryFromGpu = arg.structure();
                let gpus: &mut [u32] = arg.array(args.device_ids_array_ptr, args.n_devices);
                let Some(mapped) = self.account.memory.get_mut(&args.handle) else { return error(libc::ENOMEM) };
                mapped.retain(|gpu| !gpus.contains(gpu));
                args.n_success = args.n_devices;
            }
            Command::CreateEvent => {
                let args: &mut CreateEvent = arg.structure();
                match (args.event_page_offset, self.event_page) {
                    (0, None) => return error(libc::EINVAL),
                    (0, Some(_)) => {}
                    (handle, None) => self.event_page = Some(handle),
                    (_, Some(_)) => return error(libc::EINVAL),
                }
                args.event_id = self.number() as u32;
                args.event_slot_index = args.event_id;
                self.account.events.insert(args.event_id);
            }
            Command::DestroyEvent => {
                let args: &mut DestroyEvent = arg.structure();
                if !self.account.events.remove(&args.event_id) {
                    return error(libc::EINVAL);
                }
            }
            Command::WaitEvents => {
                let args: &mut WaitEvents = arg.structure();
                let events: &mut [EventData] = arg.array(args.events_ptr, args.num_events);
                args.wait_result = WaitResult::Timeout as u32;
                // The driver waits for the memory event first, then the hardware one.
                if let Some(exception) = self.memory_fault {
                    events[0].payload.as_mut_bytes().copy_from_slice(exception.as_bytes());
                    args.wait_result = WaitResult::Complete as u32;
                }
                if let Some(exception) = self.hw_fault {
                    events[1].payload[..2].as_mut_bytes().copy_from_slice(exception.as_bytes());
                    args.wait_result = WaitResult::Complete as u32;
                }
            }
            Command::CreateQueue => {
                let args: &mut CreateQueue = arg.structure();
                args.queue_id = self.number() as u32;
                let offset = 0x100 + u64::from(args.queue_id) * 8;
                args.doorbell_offset = MmapOffset { kind: MmapType::Doorbell, gpu_id: args.gpu_id, offset }.to_raw();
                self.account.queues.insert(args.queue_id);
                self.created.push(*args);
            }
            Command::DestroyQueue => {
                let args: &mut DestroyQueue = arg.structure();
                if !self.account.queues.remove(&args.queue_id) {
                    return error(libc::EINVAL);
                }
            }
            Command::UpdateQueue => self.updated.push(*arg.structure::<UpdateQueue>()),
            _ => return error(libc::ENOTTY),
        }
        Ok(0)
    }
}

impl System for Kernel {
    fn open(&self, path: &Path) -> io::Result<Fd> {
        let known = ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"];
        if !known.iter().any(|name| path == Path::new(name)) {
            return error(libc::ENOENT);
        }
        let mut state = self.state();
        let fd = state.number() as i32;
        state.account.files.insert(fd);
        Ok(Fd::from_raw(fd))
    }

    fn close(&self, fd: Fd) {
        assert!(self.state().account.files.remove(&fd.as_raw()), "a file is closed once");
    }

    unsafe fn ioctl(&self, _: Fd, request: u32, arg: *mut c_void) -> io::Result<i32> {
        let mut state = self.state();
        let command = Command::from_request(request).expect("the driver only makes KFD ioctls");
        state.calls.push(command);
        if let Some((which, nth, errno)) = &mut state.failure
            && *which == command
        {
            if *nth == 0 {
                let errno = *errno;
                state.failure = None;
                return error(errno);
            }
            *nth -= 1;
        }
        // SAFETY: the same contract.
        let arg = unsafe { Argument::new(command, arg) };
        state.answer(&arg)
    }

    unsafe fn mmap(&self, request: MapRequest) -> io::Result<NonNull<u8>> {
        let reserve_only = request.backing == Backing::Anonymous { reserve_only: true };
        let anonymous = MapRequest {
            backing: Backing::Anonymous { reserve_only },
            protection: if reserve_only { request.protection } else { Protection::READ | Protection::WRITE },
            ..request
        };
        // SAFETY: the same contract.
        let at = unsafe { Linux.mmap(anonymous) }?;
        let mut state = self.state();
        if request.fixed.is_none() {
            state.account.mappings.insert(at.as_ptr().expose_provenance(), request.bytes);
        }
        if let Backing::File { offset, .. } = request.backing
            && MmapOffset::from_raw(offset).kind == MmapType::Doorbell
        {
            assert_eq!((request.bytes, offset & 0x1fff), (8192, 0), "only the whole slice can be mapped");
            state.doorbells = Some(at.as_ptr().expose_provenance());
        }
        Ok(at)
    }

    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        assert_eq!(self.state().account.mappings.remove(&at.as_ptr().addr()), Some(bytes));
        // SAFETY: the same contract.
        unsafe { Linux.munmap(at, bytes) }
    }

    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        for (node, gpu_id) in GPUS {
            let folder = PathBuf::from(NODES).join(node.to_string());
            if path == folder.join("gpu_id") {
                return Ok(gpu_id.to_string().into_bytes());
            }
            if path == folder.join("properties") {
                return Ok(format!("{PROPERTIES}drm_render_minor {}\n", 127 + node).into_bytes());
            }
        }
        error(libc::ENOENT)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        if path != Path::new(NODES) {
            return error(libc::ENOENT);
        }
        Ok(GPUS.iter().map(|(node, _)| node.to_string().into()).collect())
    }
}
