//! Running a case: the same driver, queue and code-object loader as a model's.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use driver::address::{Bytes, GpuVa};
use driver::memory::{self, Access, Allocation, Buffer};
use driver::packets::Compare;
use driver::packets::aql::Aql;
use driver::queue::{AqlQueue, QueueOptions};
use driver::signal::{Patience, SignalPool, WaitError};
use driver::{Gpu, queue, signal};

use super::compare::{Comparison, compare};
use super::file::{Case, KernelArgument, Value};
use crate::platform::Platform;
use crate::program::{self, Dimensions, Program, allocate_scratch, fill_hidden_arguments};

/// What running a case gave.
#[derive(Debug)]
pub struct Outcome {
    /// The comparison of each expectation, in the case's order.
    pub comparisons: Vec<Comparison>,
    /// Instructions that waves executed.
    pub wave_instructions: u64,
    /// From the doorbell to the completion signal.
    pub elapsed: Duration,
}

impl Outcome {
    /// Whether every expectation is met.
    #[must_use]
    pub fn is_match(&self) -> bool {
        self.comparisons.iter().all(|comparison| comparison.differing == 0)
    }

    /// The largest error of all expectations.
    #[must_use]
    pub fn max_error(&self) -> f64 {
        self.comparisons.iter().map(|comparison| comparison.max_error).fold(0.0, f64::max)
    }
}

/// Why a case could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The machine has no GPU.
    #[error("the machine has no usable GPU")]
    NoGpu,
    /// Reading the list of GPUs.
    #[error(transparent)]
    Topology(#[from] driver::topology::Error),
    /// Opening the GPU.
    #[error(transparent)]
    Open(#[from] driver::OpenError),
    /// Device memory.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// The queue.
    #[error(transparent)]
    Queue(#[from] queue::Error),
    /// The completion signal.
    #[error(transparent)]
    Signal(#[from] signal::Error),
    /// The code object or kernel.
    #[error(transparent)]
    Program(#[from] program::Error),
    /// The kernel can't be launched as the case says.
    #[error("{0}")]
    Launch(String),
    /// The launch did not complete, and what the machine says about it.
    #[error("{error}{}", faults.iter().map(|fault| format!("\n  {fault}")).collect::<String>())]
    Wait {
        /// How waiting ended.
        error: WaitError,
        /// Faults the emulated machine recorded, or what its queues wait for.
        faults: Vec<String>,
    },
}

/// Runs `case` on the first GPU of `platform`, waiting at most `limit` for it.
///
/// # Errors
/// See [`RunError`]. A mismatch is no error, but an [`Outcome`].
pub fn run(case: &Case, platform: &Platform, limit: Duration) -> Result<Outcome, RunError> {
    let node = platform.process.topology()?.gpus.into_iter().next().ok_or(RunError::NoGpu)?;
    let gpu = Gpu::open(&platform.process, node)?;
    let program = Program::load(&gpu, &case.code_object)?;
    let kernel = program.kernel(&case.entry)?;
    let dimensions = Dimensions { workgroups: case.grid_workgroups, workgroup: case.workgroup };
    let items: u32 = case.workgroup.iter().map(|&n| u32::from(n)).product();
    if items > kernel.metadata.max_flat_workgroup_size {
        return Err(RunError::Launch(format!(
            "a workgroup of {items} work-items; kernel {} was compiled for at most {}",
            kernel.name, kernel.metadata.max_flat_workgroup_size
        )));
    }
    let buffers = allocate(&gpu, &case.arguments)?;
    let bytes = case.kernarg_bytes.max(kernel.metadata.kernarg_segment_size).max(1);
    let kernargs = gpu.allocate(&Allocation::shared(Bytes::new(bytes.into()), "kernel arguments"))?;
    let mut queue = AqlQueue::create(&gpu, QueueOptions::default())?;
    let mut segment = vec![0; bytes as usize];
    let dynamic_lds = Bytes::new(case.dynamic_lds_bytes.into());
    fill_hidden_arguments(kernel, &dimensions, dynamic_lds, GpuVa::NULL, &mut segment)?;
    for (argument, buffer) in case.arguments.iter().zip(&buffers) {
        let value = match (&argument.value, buffer) {
            (Value::Buffer { .. }, Some(buffer)) => buffer.va().get().to_le_bytes().to_vec(),
            (Value::Scalar(bytes), _) => bytes.clone(),
            (Value::Null | Value::Buffer { .. }, _) => vec![0; 8],
        };
        segment[argument.offset as usize..][..value.len()].copy_from_slice(&value);
    }
    kernargs.host()?.write(0, &segment)?;
    let scratch = allocate_scratch(&gpu, kernel.descriptor.private_segment_fixed_size)?;
    if let Some((layout, memory)) = &scratch {
        queue.set_scratch(layout, memory.va())?;
    }
    let signals = SignalPool::new(&gpu, 1)?;
    let done = signals.take_with_event(1)?;
    let mut dispatch = program.dispatch(kernel, &dimensions, dynamic_lds, kernargs.va());
    dispatch.completion_signal = done.va();
    let executed =
        || platform.mock.as_ref().map_or(0, |mock| mock.counters().wave_instructions.load(Ordering::Relaxed));
    let before = executed();
    let start = Instant::now();
    queue.submit(&[Aql::KernelDispatch(dispatch)])?;
    let patience = Patience { limit, ..Patience::default() };
    if let Err(error) = done.wait(Compare::Equal, 0, patience, &[&queue]) {
        let mut faults = Vec::new();
        if let Some(mock) = &platform.mock {
            faults = mock.faults();
            if faults.is_empty() {
                faults = mock.describe_queues();
            }
        }
        return Err(RunError::Wait { error, faults });
    }
    let elapsed = start.elapsed();
    let comparisons = case
        .expect
        .iter()
        .map(|expectation| {
            let argument = &case.arguments[expectation.argument];
            let (Value::Buffer { bytes, element, .. }, Some(buffer)) =
                (&argument.value, &buffers[expectation.argument])
            else {
                return Err(RunError::Launch(format!("argument {} is no buffer", argument.name)));
            };
            let mut found = vec![0; *bytes as usize];
            buffer.host()?.read(0, &mut found)?;
            Ok(compare(&found, *element, &expectation.content, expectation.element, case.tolerance))
        })
        .collect::<Result<_, _>>()?;
    Ok(Outcome { comparisons, wave_instructions: executed() - before, elapsed })
}

/// A device buffer for each argument that is one.
fn allocate(gpu: &std::sync::Arc<Gpu>, arguments: &[KernelArgument]) -> Result<Vec<Option<Buffer>>, RunError> {
    arguments
        .iter()
        .map(|argument| {
            let Value::Buffer { bytes, content, .. } = &argument.value else { return Ok(None) };
            let wanted = Allocation::vram(Bytes::new(*bytes), &argument.name).with(Access::HOST);
            let buffer = gpu.allocate(&wanted)?;
            buffer.host()?.write(0, content)?;
            Ok(Some(buffer))
        })
        .collect()
}
