//! Small copies between the host and one GPU, through its SDMA queue. The GPU's kernels must not be using the memory.

use std::sync::Arc;

use driver::address::{Bytes, GpuVa};
use driver::memory::{self, Allocation, Buffer};
use driver::packets::sdma::{ConstantFill, CopyLinear, Fence, FillSize, Trap};
use driver::packets::{Compare, Count, EncodeError};
use driver::queue::{QueueOptions, SdmaEngine, SdmaQueue};
use driver::signal::{Patience, Signal, SignalPool, WaitError};
use driver::{Gpu, queue, signal};

/// Bytes that one round trip through the staging buffer moves.
const STAGING: u64 = 1 << 20;
/// Bytes of one copy or fill packet: what tinygrad and the kernel stay at or below.
const MOST_PER_PACKET: u64 = 1 << 22;

/// What went wrong with a copy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The staging buffer.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// The queue.
    #[error(transparent)]
    Queue(#[from] queue::Error),
    /// A packet.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The signal.
    #[error(transparent)]
    Signal(#[from] signal::Error),
    /// The copy did not complete.
    #[error(transparent)]
    Wait(#[from] WaitError),
}

/// One GPU's copies. Each call returns when the copy is done.
pub struct Transfers {
    queue: SdmaQueue,
    staging: Buffer,
    done: Signal,
    /// Value of `done` after the last copy.
    count: u32,
}

impl Transfers {
    /// Creates the queue and its staging buffer.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, Error> {
        let queue = SdmaQueue::create(gpu, SdmaEngine::Any, QueueOptions::default())?;
        let staging = gpu.allocate(&Allocation::shared(Bytes::new(STAGING), "transfer staging"))?;
        let done = SignalPool::new(gpu, 1)?.take_with_event(0)?;
        Ok(Self { queue, staging, done, count: 0 })
    }

    /// Copies `bytes` to `to`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn write(&mut self, to: GpuVa, bytes: &[u8]) -> Result<(), Error> {
        for (i, part) in bytes.chunks(STAGING as usize).enumerate() {
            self.staging.host()?.write(0, part)?;
            let to = GpuVa::new(to.get() + i as u64 * STAGING);
            self.copy(self.staging.va(), to, part.len() as u64)?;
        }
        Ok(())
    }

    /// Copies `into.len()` bytes from `from`.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn read(&mut self, from: GpuVa, into: &mut [u8]) -> Result<(), Error> {
        for (i, part) in into.chunks_mut(STAGING as usize).enumerate() {
            let from = GpuVa::new(from.get() + i as u64 * STAGING);
            self.copy(from, self.staging.va(), part.len() as u64)?;
            self.staging.host()?.read(0, part)?;
        }
        Ok(())
    }

    /// Writes zeros to `bytes` bytes, a multiple of 4, from `to` on.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn zero(&mut self, to: GpuVa, bytes: Bytes) -> Result<(), Error> {
        let mut at = 0;
        while at < bytes.get() {
            let step = (bytes.get() - at).min(MOST_PER_PACKET);
            let fill = ConstantFill {
                fill_size: FillSize::B4,
                dst: GpuVa::new(to.get() + at),
                data: 0,
                bytes: Count(step as u32),
                ..ConstantFill::default()
            };
            let mut dwords = Vec::new();
            fill.encode(&mut dwords)?;
            self.finish(dwords)?;
            at += step;
        }
        Ok(())
    }

    fn copy(&mut self, src: GpuVa, dst: GpuVa, bytes: u64) -> Result<(), Error> {
        let mut dwords = Vec::new();
        CopyLinear { bytes: Count(bytes as u32), src, dst, ..CopyLinear::default() }.encode(&mut dwords)?;
        self.finish(dwords)
    }

    /// Submits packets with a fence behind them, and waits for it.
    fn finish(&mut self, mut dwords: Vec<u32>) -> Result<(), Error> {
        self.count += 1;
        Fence { address: self.done.value_va(), data: self.count }.encode(&mut dwords)?;
        if let Some(interrupt) = self.done.interrupt() {
            Fence { address: interrupt.mailbox, data: interrupt.event_id }.encode(&mut dwords)?;
            Trap { int_context: interrupt.event_id }.encode(&mut dwords)?;
        }
        let patience = Patience::default();
        self.queue.wait_for_room(dwords.len(), patience.limit)?;
        self.queue.submit(&dwords)?;
        self.done.wait(Compare::Equal, self.count.into(), patience, &[&self.queue])?;
        Ok(())
    }
}
