//! An emulated machine, its memory and launches on it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytemuck::Pod;
use driver::Gpu;
use driver::address::Bytes;
use driver::memory::{self, Access, Allocation};
use driver::packets::Compare;
use driver::packets::aql::Aql;
use driver::program::{Dimensions, Program};
use driver::queue::{AqlQueue, QueueOptions};
use driver::signal::{Patience, Signal, SignalPool, WaitError};
use kernels::{GpuVa, Kernel, Launch};
use kimi_hcq::platform::{MOCK_VARIABLE, Platform};

use super::removal;

/// No test's launches take longer, however slow the host.
const LIMIT: Duration = Duration::from_secs(600);
/// With something taken away a kernel may wait for ever.
const IMPATIENT: Duration = Duration::from_secs(20);
/// How often a test looks for reports of the sanitizer while it waits.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// Alignment that the kernels ask of buffers.
const ALIGN: usize = 16;

/// Memory of a GPU that ends where its pages end, so that what lies behind it is mapped to nobody.
pub(crate) struct Buffer {
    memory: memory::Buffer,
    offset: usize,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn va(&self) -> GpuVa {
        GpuVa(self.memory.va().get() + self.offset as u64)
    }
}

/// A launch with its arguments.
pub(crate) struct Job {
    kernel: &'static Kernel,
    workgroups: [u32; 3],
    kernarg: Vec<u8>,
}

impl Job {
    pub(crate) fn of<L: Launch>(launch: &L) -> Self {
        Self { kernel: launch.kernel(), workgroups: launch.workgroups(), kernarg: launch.kernarg().to_vec() }
    }
}

struct Device {
    gpu: Arc<Gpu>,
    queue: Mutex<AqlQueue>,
    signals: Arc<SignalPool>,
    programs: Mutex<HashMap<&'static str, Arc<Program>>>,
}

/// GPUs of one emulated machine.
pub(crate) struct Gpus {
    // Before the platform: queues and memory go first.
    devices: Vec<Device>,
    platform: Platform,
}

impl Gpus {
    pub(crate) fn new(count: usize) -> Self {
        // `MOCKKFD` may ask for another machine than the default one: other seeds, fewer XCCs.
        let words = std::env::var(MOCK_VARIABLE).unwrap_or_else(|_| "1".into());
        let config = mock::Config { gpus: count, check: true, ..mock::Config::parse(&words).unwrap() };
        let platform = Platform::open_mock(config).unwrap();
        let nodes = platform.process.topology().unwrap().gpus;
        let open = |node| {
            let gpu = Gpu::open(&platform.process, node).unwrap();
            let queue = Mutex::new(AqlQueue::create(&gpu, QueueOptions::default()).unwrap());
            let signals = SignalPool::new(&gpu, 4).unwrap();
            Device { gpu, queue, signals, programs: Mutex::default() }
        };
        let devices: Vec<_> = nodes.into_iter().map(open).collect();
        assert_eq!(devices.len(), count);
        Self { devices, platform }
    }

    /// Memory that nobody has written to.
    pub(crate) fn fresh(&self, gpu: usize, bytes: usize) -> Buffer {
        self.allocate(gpu, bytes, Access::empty())
    }

    pub(crate) fn zeroed(&self, gpu: usize, bytes: usize) -> Buffer {
        self.upload(gpu, &vec![0_u8; bytes])
    }

    pub(crate) fn upload<T: Pod>(&self, gpu: usize, data: &[T]) -> Buffer {
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let buffer = self.fresh(gpu, bytes.len());
        buffer.memory.host().unwrap().write(buffer.offset as u64, bytes).unwrap();
        buffer
    }

    /// Zeros that all GPUs see each other write: for mailboxes and what the host polls.
    pub(crate) fn shared(&self, gpu: usize, bytes: usize) -> Buffer {
        let buffer = self.allocate(gpu, bytes, Access::COHERENT | Access::UNCACHED);
        buffer.memory.host().unwrap().write(buffer.offset as u64, &vec![0; bytes]).unwrap();
        self.share(&buffer);
        buffer
    }

    /// Lets all GPUs read and write it.
    pub(crate) fn share(&self, buffer: &Buffer) {
        buffer.memory.map_to(&self.devices.iter().map(|device| &device.gpu).collect::<Vec<_>>()).unwrap();
    }

    pub(crate) fn read<T: Pod>(&self, buffer: &Buffer) -> Vec<T> {
        self.read_at(buffer, 0, buffer.bytes / size_of::<T>())
    }

    /// `count` values from byte `offset` on.
    pub(crate) fn read_at<T: Pod>(&self, buffer: &Buffer, offset: usize, count: usize) -> Vec<T> {
        assert!(offset + count * size_of::<T>() <= buffer.bytes);
        let mut values = vec![T::zeroed(); count];
        let to = bytemuck::cast_slice_mut(&mut values);
        buffer.memory.host().unwrap().read((buffer.offset + offset) as u64, to).unwrap();
        values
    }

    /// Runs launches on one GPU, one after the other.
    pub(crate) fn run(&self, gpu: usize, jobs: &[Job]) {
        let started = self.start(&self.devices[gpu], jobs);
        self.finish(&self.devices[gpu], started);
    }

    /// Runs a list of launches on each of the first GPUs, all lists at once.
    pub(crate) fn run_all(&self, jobs: &[Vec<Job>]) {
        let started: Vec<_> = self.devices.iter().zip(jobs).map(|(device, jobs)| self.start(device, jobs)).collect();
        for (device, started) in self.devices.iter().zip(started) {
            self.finish(device, started);
        }
    }

    fn allocate(&self, gpu: usize, bytes: usize, access: Access) -> Buffer {
        // Whole pages: the sanitizer takes what was asked for as the buffer, which then ends where the pages end.
        let whole = (bytes.max(1) as u64).next_multiple_of(Bytes::PAGE.get());
        let wanted = Allocation::vram(Bytes::new(whole), "test buffer").with(Access::HOST | access);
        let memory = self.devices[gpu].gpu.allocate(&wanted).unwrap();
        let offset = (memory.len().get() as usize - bytes) / ALIGN * ALIGN;
        Buffer { memory, offset, bytes }
    }

    fn start(&self, device: &Device, jobs: &[Job]) -> (Signal, Vec<memory::Buffer>) {
        let done = device.signals.take(1).unwrap();
        let mut kernargs = Vec::new();
        let mut packets = Vec::new();
        for job in jobs {
            let program = self.program(device, job.kernel);
            let kernel = program.kernel(job.kernel.name).unwrap();
            let wanted = Allocation::shared(Bytes::new(job.kernarg.len() as u64), "kernel arguments");
            let kernarg = device.gpu.allocate(&wanted).unwrap();
            kernarg.host().unwrap().write(0, &job.kernarg).unwrap();
            let dimensions = Dimensions { workgroups: job.workgroups, workgroup: [job.kernel.workgroup as u16, 1, 1] };
            packets.push(program.dispatch(kernel, &dimensions, Bytes::new(0), kernarg.va()));
            kernargs.push(kernarg);
        }
        packets.last_mut().unwrap().completion_signal = done.va();
        packets.iter_mut().for_each(removal::change_packet);
        let packets: Vec<_> = packets.into_iter().map(Aql::KernelDispatch).collect();
        device.queue.lock().unwrap().submit(&packets).unwrap();
        (done, kernargs)
    }

    fn finish(&self, device: &Device, (done, _kernargs): (Signal, Vec<memory::Buffer>)) {
        let queue = device.queue.lock().unwrap();
        let mock = self.platform.mock.as_ref().unwrap();
        let limit = if removal::is_active() { IMPATIENT } else { LIMIT };
        let start = Instant::now();
        loop {
            let waited =
                done.wait(Compare::Equal, 0, Patience { limit: BETWEEN_LOOKS, ..Patience::default() }, &[&*queue]);
            let reports: Vec<String> = mock.reports().iter().map(ToString::to_string).collect();
            assert!(reports.is_empty(), "{}\n{}", removal::REPORTED, reports.join("\n"));
            match waited {
                Ok(()) => return,
                Err(WaitError::Timeout { .. }) if start.elapsed() < limit => {}
                Err(error) => {
                    panic!("{error}\nfaults: {:#?}\nqueues: {:#?}", mock.faults(), mock.describe_queues());
                }
            }
        }
    }

    fn program(&self, device: &Device, kernel: &Kernel) -> Arc<Program> {
        let mut programs = device.programs.lock().unwrap();
        let load = || Arc::new(Program::load(&device.gpu, &removal::code(kernel.code_object)).unwrap());
        programs.entry(kernel.code_object.name).or_insert_with(load).clone()
    }
}
