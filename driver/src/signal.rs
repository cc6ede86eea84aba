//! Signals: 64 bytes of memory that packets decrement or write and the host waits for.
//!
//! ```text
//!  0 kind      16 event mailbox   32 start time   48 queue
//!  8 value     24 event id        40 end time     56 reserved
//! ```
//!
//! Layout: `amd_signal_t` of ROCr's `amd_hsa_signal.h`. A completing packet subtracts one from the value; if there is a
//! mailbox it writes the event id there and interrupts.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::address::{Bytes, GpuVa};
use crate::event::{self, Event, Interrupt};
use crate::gpu::Gpu;
use crate::memory::{self, Allocation, Buffer};
use crate::packets::Compare;
use crate::queue::{QueueReport, Report};

/// Bytes and alignment of a signal.
pub const BYTES: u64 = 64;
/// `AMD_SIGNAL_KIND_USER`.
const KIND_USER: u64 = 1;

/// Offsets of the fields.
pub mod offset {
    /// What it is.
    pub const KIND: u64 = 0;
    /// The value, 64 bits.
    pub const VALUE: u64 = 8;
    /// Address of the event's mailbox, zero for none.
    pub const MAILBOX: u64 = 16;
    /// The event id, 32 bits.
    pub const EVENT_ID: u64 = 24;
    /// Clock when the packet's work started.
    pub const START: u64 = 32;
    /// Clock when it ended.
    pub const END: u64 = 40;
}

/// How long a host waits, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long to spin before sleeping: spinning sees the value soonest and costs a core.
    pub spin: Duration,
    /// After how long the wait fails.
    pub limit: Duration,
}

impl Default for Patience {
    /// 200 microseconds of spinning, 30 seconds in all.
    fn default() -> Self {
        Self { spin: Duration::from_micros(200), limit: Duration::from_secs(30) }
    }
}

/// Longest sleep in the kernel at a time: an interrupt that is lost delays a wait by no more than this.
const LONGEST_SLEEP_MS: u32 = 10;
/// Looks at the value between looks at the clock while spinning.
const LOOKS_PER_CLOCK: u32 = 64;

/// Why a wait ended without the value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The value did not come.
    #[error("{signal} is {actual:#x} after {waited:?}, waiting for {function} {expected:#x}; {}", list(queues))]
    Timeout {
        /// Which signal.
        signal: String,
        /// The comparison.
        function: Compare,
        /// With what.
        expected: u64,
        /// The value.
        actual: u64,
        /// How long it was waited for.
        waited: Duration,
        /// The queues that should have brought it.
        queues: Vec<QueueReport>,
    },
    /// A GPU faulted, or the kernel cannot say.
    #[error(transparent)]
    Event(#[from] event::Error),
}

fn list(queues: &[QueueReport]) -> String {
    let queues: Vec<_> = queues.iter().map(QueueReport::to_string).collect();
    if queues.is_empty() { "no queue was named".into() } else { queues.join("; ") }
}

/// What went wrong with making a signal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool has none left.
    #[error("all {0} signals of the pool are taken: make the pool larger")]
    Exhausted(u64),
    /// Memory of the pool.
    #[error(transparent)]
    Memory(#[from] memory::Error),
    /// The event of a signal.
    #[error(transparent)]
    Event(#[from] event::Error),
}

/// Memory that signals are taken from.
pub struct SignalPool {
    buffer: Buffer,
    free: Mutex<Vec<u64>>,
    count: u64,
}

impl SignalPool {
    /// Allocates a pool of `count` signals in host memory that `gpu` reaches without caching.
    pub fn new(gpu: &Arc<Gpu>, count: u64) -> Result<Arc<Self>, Error> {
        let bytes = Bytes::new(count.saturating_mul(BYTES));
        let buffer = gpu.allocate(&Allocation::shared(bytes, "signals"))?;
        // Taken from the end: the first signal is the first taken.
        let free = (0..count).rev().collect();
        Ok(Arc::new(Self { buffer, free: Mutex::new(free), count }))
    }

    /// Lets more GPUs reach the signals.
    pub fn map_to(&self, gpus: &[&Arc<Gpu>]) -> Result<(), Error> {
        Ok(self.buffer.map_to(gpus)?)
    }

    /// Takes a signal that is polled: a packet need not interrupt.
    pub fn take(self: &Arc<Self>, value: u64) -> Result<Signal, Error> {
        self.take_with(value, None)
    }

    /// Takes a signal with an event: completing packets wake a sleeping host.
    pub fn take_with_event(self: &Arc<Self>, value: u64) -> Result<Signal, Error> {
        let event = Event::new(self.buffer.gpu())?;
        self.take_with(value, Some(event))
    }

    fn take_with(self: &Arc<Self>, value: u64, event: Option<Event>) -> Result<Signal, Error> {
        let index = self.lock().pop().ok_or(Error::Exhausted(self.count))?;
        let signal = Signal { pool: self.clone(), index, event };
        let interrupt = signal.interrupt();
        signal.set(offset::KIND, KIND_USER)?;
        signal.set(offset::MAILBOX, interrupt.map_or(0, |interrupt| interrupt.mailbox.get()))?;
        signal.set(offset::EVENT_ID, interrupt.map_or(0, |interrupt| interrupt.event_id.into()))?;
        for field in [offset::START, offset::END, 48, 56] {
            signal.set(field, 0)?;
        }
        signal.set(offset::VALUE, value)?;
        Ok(signal)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        // A panic elsewhere leaves the list whole: every change is one push or pop.
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// One signal. Goes back to its pool when dropped: no packet may still refer to it.
pub struct Signal {
    pool: Arc<SignalPool>,
    index: u64,
    event: Option<Event>,
}

impl Signal {
    /// Its address: what AQL packets call a signal handle.
    pub fn va(&self) -> GpuVa {
        GpuVa::new(self.pool.buffer.va().get() + self.index * BYTES)
    }

    /// Address of its value, for packets that write or poll it.
    pub fn value_va(&self) -> GpuVa {
        GpuVa::new(self.va().get() + offset::VALUE)
    }

    /// What a PM4 or SDMA packet does besides to wake a sleeping host.
    pub fn interrupt(&self) -> Option<Interrupt> {
        self.event.as_ref().map(Event::interrupt)
    }

    /// The value. Acquire: what the GPU wrote before it is seen after it.
    pub fn load(&self) -> u64 {
        self.get(offset::VALUE)
    }

    /// Sets the value. Release: what the host wrote before is seen by a GPU that sees it.
    pub fn store(&self, value: u64) -> Result<(), Error> {
        self.set(offset::VALUE, value)
    }

    /// GPU clock at the start and end of the packet that completed it last, 100 MHz.
    pub fn times(&self) -> (u64, u64) {
        (self.get(offset::START), self.get(offset::END))
    }

    /// Waits until the value compares with `reference`. A fault of any GPU ends every wait.
    ///
    /// The queues that should bring the value are shown if it does not come.
    pub fn wait(
        &self,
        function: Compare,
        reference: u64,
        patience: Patience,
        queues: &[&dyn Report],
    ) -> Result<(), WaitError> {
        let process = self.pool.buffer.gpu().process();
        let start = Instant::now();
        let spin = patience.spin.min(patience.limit);
        loop {
            for _ in 0..LOOKS_PER_CLOCK {
                if function.holds(self.load(), reference) {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            process.events().check().map_err(event::Error::from)?;
            if start.elapsed() >= spin {
                break;
            }
        }
        let event = self.interrupt().map(|interrupt| interrupt.event_id);
        loop {
            let left = patience.limit.saturating_sub(start.elapsed());
            // Without an event nothing wakes this thread, so it sleeps as little as the kernel offers.
            let longest = if event.is_some() { LONGEST_SLEEP_MS } else { 1 };
            let sleep = u32::try_from(left.as_millis()).unwrap_or(u32::MAX).min(longest);
            process.events().wait(process, event, sleep)?;
            // The value is what counts, not what woke this thread.
            let actual = self.load();
            if function.holds(actual, reference) {
                return Ok(());
            }
            if left.is_zero() {
                return Err(WaitError::Timeout {
                    signal: self.to_string(),
                    function,
                    expected: reference,
                    actual,
                    waited: start.elapsed(),
                    queues: queues.iter().map(|queue| queue.report()).collect(),
                });
            }
        }
    }

    fn set(&self, field: u64, value: u64) -> Result<(), Error> {
        let view = self.pool.buffer.host()?;
        view.word(self.index * BYTES + field)?.store(value, Ordering::Release);
        Ok(())
    }

    fn get(&self, field: u64) -> u64 {
        let view = self.pool.buffer.host();
        let word = view.and_then(|view| view.word(self.index * BYTES + field));
        word.expect("setting the signal up wrote every field of it").load(Ordering::Acquire)
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.pool.lock().push(self.index);
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {} at {}", self.index, self.va())
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} with {:?}", self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_names_signal_values_queue_and_last_packet() {
        let report = QueueReport {
            queue: "AQL queue 3 of GPU 0xc822".into(),
            written: 0x12,
            read: 0x11,
            last_packet: Some("BARRIER_AND barrier".into()),
        };
        let error = WaitError::Timeout {
            signal: "signal 5 at 0x7f0000000140".into(),
            function: Compare::GreaterOrEqual,
            expected: 7,
            actual: 6,
            waited: Duration::from_millis(1500),
            queues: vec![report],
        };
        assert_eq!(
            error.to_string(),
            "signal 5 at 0x7f0000000140 is 0x6 after 1.5s, waiting for >= 0x7; AQL queue 3 of GPU 0xc822 written to \
             0x12, read to 0x11, last packet BARRIER_AND barrier"
        );
    }
}
