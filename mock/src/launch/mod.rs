//! Tests of GPU kernels with no GPU: load a code object, bind buffers, launch, read back.
//!
//! A [`Device`] is an emulated MI350X with a driver on it. What a launch does is what it would do on hardware: memory comes
//! from KFD, the code object is put there by the same loader, and an AQL packet in a ring starts the kernel.
//!
//! ```
//! use mock::launch::{Argument, Device, Launch};
//!
//! # fn main() -> Result<(), mock::launch::Error> {
//! let mut device = Device::new()?;
//! // saxpy(float *y, const float *x, float a, unsigned n), compiled for gfx950.
//! let program = device.load(include_bytes!("../../examples/kernels/saxpy.hsaco"))?;
//! let x = device.upload("x", &[1.0_f32, 2.0, 3.0])?;
//! let y = device.upload("y", &[10.0_f32, 20.0, 30.0])?;
//! let launch = Launch::new(&program, "saxpy")?
//!     .workgroups([1, 1, 1])
//!     .workgroup([64, 1, 1])
//!     .arguments([Argument::from(&y), Argument::from(&x), 2.0_f32.into(), 3_u32.into()])?;
//! let outcome = device.launch(&launch)?;
//! assert_eq!(y.read::<f32>()?, [12.0, 24.0, 36.0]);
//! assert!(outcome.wave_instructions > 0);
//! # Ok(())
//! # }
//! ```
//!
//! A kernel that does what hardware faults on ends as an [`Error::Wait`], which names the instruction, its address, the wave
//! and the memory.

mod argument;
mod buffer;
mod error;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytemuck::NoUninit;
use driver::address::{Bytes, GpuVa};
use driver::memory::{self, Access, Allocation};
use driver::packets::Compare;
use driver::packets::aql::Aql;
use driver::program::{Dimensions, allocate_scratch, fill_hidden_arguments};
use driver::queue::{AqlQueue, QueueOptions};
use driver::signal::{Patience, SignalPool};
use driver::system::System;
use driver::{Gpu, Process};
use firmware_tools::code_object::Kernel;

pub use argument::Argument;
pub use buffer::Buffer;
pub use driver::program::Program;
pub use error::Error;

use crate::{Config, Mock};

/// A launch that has not completed after this long is given up, unless [`Launch::limit`] says otherwise.
const LIMIT: Duration = Duration::from_secs(600);

/// One emulated GPU, opened, with a queue. Further GPUs of the machine stand idle.
pub struct Device {
    // Dropped in order: the queue goes before what its packets use.
    queue: AqlQueue,
    signals: Arc<SignalPool>,
    /// What launches that did not end may still use.
    abandoned: Vec<memory::Buffer>,
    gpu: Arc<Gpu>,
    mock: Arc<Mock>,
}

impl Device {
    /// A whole MI350X: eight XCCs of 32 compute units, emulated by all of the host's processors.
    ///
    /// # Errors
    /// The host does not give it memory or threads.
    pub fn new() -> Result<Self, Error> {
        Self::start(Config { gpus: 1, ..Config::default() })
    }

    /// The first GPU of the machine that `config` describes, such as `Config::parse("gpus=1,seed=7")`.
    ///
    /// # Errors
    /// The host does not give it memory or threads.
    pub fn start(config: Config) -> Result<Self, Error> {
        let mock = Arc::new(Mock::start(config).map_err(Error::Start)?);
        let process = Process::open(Arc::clone(&mock) as Arc<dyn System>)?;
        let node = process.topology()?.gpus.into_iter().next().ok_or(Error::NoGpu)?;
        let gpu = Gpu::open(&process, node)?;
        let queue = AqlQueue::create(&gpu, QueueOptions::default())?;
        let signals = SignalPool::new(&gpu, 1)?;
        Ok(Self { queue, signals, abandoned: Vec::new(), gpu, mock })
    }

    /// The machine, for its counters and reports.
    #[must_use]
    pub fn mock(&self) -> &Mock {
        &self.mock
    }

    /// The driver's side of the GPU, for what this module does not offer.
    #[must_use]
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Puts a code object into GPU memory: a `.hsaco`, or a bundle or host program that holds exactly one for gfx950.
    ///
    /// # Errors
    /// It is none, is for another GPU, or does not fit.
    pub fn load(&self, code_object: &[u8]) -> Result<Program, Error> {
        Ok(Program::load(&self.gpu, code_object)?)
    }

    /// Device memory of `bytes` bytes that nobody has written to. `label` names it in reports.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn allocate(&self, label: &str, bytes: usize) -> Result<Buffer, Error> {
        // An empty array still has an address.
        let wanted = Allocation::vram(Bytes::new(bytes.max(1) as u64), label).with(Access::HOST);
        Ok(Buffer::new(self.gpu.allocate(&wanted)?, bytes))
    }

    /// Device memory of `bytes` bytes, all zero. `label` names it in reports.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn zeroed(&self, label: &str, bytes: usize) -> Result<Buffer, Error> {
        let buffer = self.allocate(label, bytes)?;
        buffer.zero()?;
        Ok(buffer)
    }

    /// Device memory that holds a copy of `data`. `label` names it in reports.
    ///
    /// # Errors
    /// There is no such memory.
    pub fn upload<T: NoUninit>(&self, label: &str, data: &[T]) -> Result<Buffer, Error> {
        let buffer = self.allocate(label, size_of_val(data))?;
        buffer.write(data)?;
        Ok(buffer)
    }

    /// Launches a kernel, and waits for it.
    ///
    /// # Errors
    /// It can't be launched like this, does not complete in time, or faults. After a fault, as on hardware, the device is
    /// of no more use.
    pub fn launch(&mut self, launch: &Launch<'_>) -> Result<Outcome, Error> {
        let Launch { program, kernel, dimensions, dynamic_lds, limit, .. } = launch;
        launch.check()?;
        let segment = launch.segment()?;
        let kernargs =
            self.gpu.allocate(&Allocation::shared(Bytes::new(segment.len().max(1) as u64), "kernel arguments"))?;
        kernargs.host()?.write(0, &segment)?;
        let scratch = allocate_scratch(&self.gpu, kernel.descriptor.private_segment_fixed_size)?;
        if let Some((layout, memory)) = &scratch {
            self.queue.set_scratch(layout, memory.va())?;
        }
        let done = self.signals.take_with_event(1)?;
        let mut dispatch = program.dispatch(kernel, dimensions, *dynamic_lds, kernargs.va());
        dispatch.completion_signal = done.va();
        let executed = self.mock.counters().wave_instructions.load(Ordering::Relaxed);
        let start = Instant::now();
        self.queue.submit(&[Aql::KernelDispatch(dispatch)])?;
        let patience = Patience { limit: *limit, ..Patience::default() };
        if let Err(error) = done.wait(Compare::Equal, 0, patience, &[&self.queue]) {
            let faults = match self.mock.faults() {
                faults if faults.is_empty() => self.mock.describe_queues(),
                faults => faults,
            };
            self.abandoned.extend(scratch.map(|(_, memory)| memory).into_iter().chain([kernargs]));
            return Err(Error::Wait { error, faults });
        }
        let elapsed = start.elapsed();
        let wave_instructions = self.mock.counters().wave_instructions.load(Ordering::Relaxed) - executed;
        Ok(Outcome { wave_instructions, elapsed })
    }
}

/// What a launch gave, besides what is in its buffers.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Instructions that waves executed.
    pub wave_instructions: u64,
    /// From the doorbell to the completion signal, of the emulation; nothing is known about a GPU's time.
    pub elapsed: Duration,
}

/// A kernel with what it is launched with. One work-item until told otherwise.
#[derive(Clone)]
pub struct Launch<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    dimensions: Dimensions,
    dynamic_lds: Bytes,
    /// Places in the kernel-argument segment and what goes there, over hidden arguments.
    arguments: Vec<(u32, Argument)>,
    limit: Duration,
}

impl<'a> Launch<'a> {
    /// A launch of the kernel `name`.
    ///
    /// # Errors
    /// The program has no such kernel; the message lists those it has.
    pub fn new(program: &'a Program, name: &str) -> Result<Self, Error> {
        Ok(Self {
            program,
            kernel: program.kernel(name)?,
            dimensions: Dimensions::linear(1, 1),
            dynamic_lds: Bytes::default(),
            arguments: Vec::new(),
            limit: LIMIT,
        })
    }

    /// Workgroups per dimension.
    #[must_use]
    pub fn workgroups(mut self, workgroups: [u32; 3]) -> Self {
        self.dimensions.workgroups = workgroups;
        self
    }

    /// Work-items of a workgroup per dimension.
    #[must_use]
    pub fn workgroup(mut self, items: [u16; 3]) -> Self {
        self.dimensions.workgroup = items;
        self
    }

    /// Bytes of LDS on top of what the kernel declares.
    #[must_use]
    pub fn dynamic_lds(mut self, bytes: u32) -> Self {
        self.dynamic_lds = Bytes::new(bytes.into());
        self
    }

    /// The longest that the launch is waited for.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// All arguments, in the order in which the kernel declares them. Hidden ones are filled in.
    ///
    /// # Errors
    /// There are more or fewer, or one has another size than the kernel's metadata says.
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = Argument>) -> Result<Self, Error> {
        let declared: Vec<_> =
            self.kernel.metadata.arguments.iter().filter(|argument| !argument.kind.is_hidden()).collect();
        let given: Vec<Argument> = arguments.into_iter().collect();
        let kernel = || self.kernel.name.clone();
        if declared.len() != given.len() {
            return Err(Error::ArgumentCount { kernel: kernel(), declared: declared.len(), given: given.len() });
        }
        for (index, (declared, given)) in declared.into_iter().zip(given).enumerate() {
            if given.0.len() != declared.size as usize {
                let name = declared.name.clone().unwrap_or_else(|| index.to_string());
                let (declared, given) = (declared.size as usize, given.0.len());
                return Err(Error::ArgumentSize { kernel: kernel(), name, declared, given });
            }
            self.arguments.push((declared.offset, given));
        }
        Ok(self)
    }

    /// An argument at an offset of the kernel-argument segment: for kernels whose metadata lists none, or to say what a
    /// hidden argument is.
    #[must_use]
    pub fn argument_at(mut self, offset: u32, argument: Argument) -> Self {
        self.arguments.push((offset, argument));
        self
    }

    /// The kernel-argument segment.
    fn segment(&self) -> Result<Vec<u8>, Error> {
        let end = |(offset, argument): &(u32, Argument)| *offset as usize + argument.0.len();
        let declared = self.kernel.metadata.kernarg_segment_size as usize;
        let mut segment = vec![0; self.arguments.iter().map(end).fold(declared, usize::max)];
        fill_hidden_arguments(self.kernel, &self.dimensions, self.dynamic_lds, GpuVa::NULL, &mut segment)?;
        for (offset, Argument(bytes)) in &self.arguments {
            segment[*offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        Ok(segment)
    }

    /// Refuses what the packet or the kernel can't take.
    fn check(&self) -> Result<(), Error> {
        let refuse = |problem: String| Err(Error::Dimensions { kernel: self.kernel.name.clone(), problem });
        let Dimensions { workgroups, workgroup } = self.dimensions;
        if workgroups.contains(&0) || workgroup.contains(&0) {
            return refuse("a grid or workgroup of zero".into());
        }
        if (0..3).any(|d| workgroups[d].checked_mul(workgroup[d].into()).is_none()) {
            return refuse("a grid of 2^32 work-items or more in one dimension".into());
        }
        let items: u64 = workgroup.iter().map(|&n| u64::from(n)).product();
        let most = self.kernel.metadata.max_flat_workgroup_size;
        if items > most.into() {
            return refuse(format!("a workgroup of {items} work-items; it was compiled for at most {most}"));
        }
        if let Some(required) = self.kernel.metadata.required_workgroup_size
            && required != workgroup.map(u32::from)
        {
            return refuse(format!("a workgroup of {workgroup:?}; it was compiled for {required:?}"));
        }
        let lds = u64::from(self.kernel.descriptor.group_segment_fixed_size) + self.dynamic_lds.get();
        if lds > MAX_LDS {
            return refuse(format!("{lds} bytes of LDS; a workgroup has at most {MAX_LDS}"));
        }
        Ok(())
    }
}

/// LDS of one compute unit of gfx950, in bytes.
const MAX_LDS: u64 = 160 << 10;
