//! User queues: rings in memory that the GPU's engines read, fed without a system call.
//!
//! Three kinds. An [`AqlQueue`] takes 64-byte packets that all XCCs of the GPU work on together. A [`Pm4Queue`] takes PM4
//! commands on one XCC. An [`SdmaQueue`] takes copies. Each has one producer, which the `&mut` of `submit` stands for.

mod aql;
mod descriptor;
mod hardware;
mod pm4;
mod ring;
mod save_area;
mod scratch;
mod sdma;

use std::fmt;
use std::io;

pub use aql::AqlQueue;
pub use descriptor::{AmdQueue, READ_DISPATCH_ID_OFFSET, WRITE_DISPATCH_ID_OFFSET};
pub use pm4::Pm4Queue;
pub use save_area::SaveArea;
pub use scratch::ScratchLayout;
pub use sdma::{SdmaEngine, SdmaQueue};

use crate::address::Bytes;
use crate::event;
use crate::kfd::IoctlError;
use crate::memory;
use crate::packets::EncodeError;

/// How a queue is made.
#[derive(Clone, Copy, Debug)]
pub struct QueueOptions {
    /// Length of the ring: a power of two, a page or more.
    pub ring: Bytes,
    /// 0 (lowest) to 15.
    pub priority: u8,
    /// Share of time in percent, 0 to 100; at 0 the queue stands still.
    pub percentage: u8,
}

impl Default for QueueOptions {
    /// 1 MiB, 7 (what ROCr calls normal), all of the time.
    fn default() -> Self {
        Self { ring: Bytes::new(1 << 20), priority: 7, percentage: 100 }
    }
}

/// What went wrong with a queue.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option the kernel would refuse.
    #[error("cannot create a queue with {what} {value}: {limit}")]
    Option {
        /// Which option.
        what: &'static str,
        /// What it was.
        value: u64,
        /// What it may be.
        limit: &'static str,
    },
    /// Memory of the queue.
    #[error("cannot create a queue: {0}")]
    Memory(#[from] memory::Error),
    /// The kernel refused the queue.
    #[error("{source}; {}", create_advice(source))]
    Create {
        /// What the kernel said.
        source: IoctlError,
    },
    /// The kernel gave a doorbell that is none.
    #[error("the kernel gave {queue} a doorbell at {offset:#x}, which is not a 64-bit word of its slice")]
    DoorbellOffset {
        /// Which queue.
        queue: String,
        /// The offset.
        offset: u64,
    },
    /// The doorbells cannot be mapped.
    #[error("cannot map the doorbells of {queue}: {source}")]
    MapDoorbells {
        /// Which queue.
        queue: String,
        /// What the system said.
        source: io::Error,
    },
    /// The ring has no room now.
    #[error("no room for {needed} of {unit}: {report}")]
    Full {
        /// How much room was needed.
        needed: u64,
        /// In what.
        unit: &'static str,
        /// State of the queue.
        report: QueueReport,
    },
    /// The ring never has that much room.
    #[error("{needed} of {unit} do not fit a ring of {capacity}: submit less at a time, or make the ring larger")]
    TooLong {
        /// How much room was needed.
        needed: u64,
        /// How much there is at most.
        capacity: u64,
        /// In what.
        unit: &'static str,
    },
    /// A packet cannot be written.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A change the kernel refused.
    #[error(transparent)]
    Kernel(#[from] IoctlError),
    /// A GPU faulted, or the kernel cannot say.
    #[error(transparent)]
    Event(#[from] event::Error),
}

/// What to do about a refused queue.
fn create_advice(error: &IoctlError) -> &'static str {
    match error.errno() {
        Some(libc::ENOMEM) => {
            "the GPU has no doorbells or queue slots left: too many processes hold queues on it \
             (/sys/class/kfd/kfd/proc), or this one does"
        }
        Some(libc::EINVAL) => "the kernel refused a size: its topology and this driver disagree; see dmesg | grep kfd",
        Some(libc::EAGAIN) | Some(libc::EIO) | Some(libc::ENODEV) => "the GPU is being reset or is lost; see dmesg",
        _ => "see dmesg | grep kfd",
    }
}

/// The state of a queue, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueReport {
    /// Kind, id and GPU.
    pub queue: String,
    /// How far it was written, in packets (AQL), dwords (PM4) or bytes (SDMA).
    pub written: u64,
    /// How far the engine has read.
    pub read: u64,
    /// The last packet submitted, decoded.
    pub last_packet: Option<String>,
}

impl fmt::Display for QueueReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} written to {:#x}, read to {:#x}", self.queue, self.written, self.read)?;
        match &self.last_packet {
            Some(packet) => write!(f, ", last packet {packet}"),
            None => f.write_str(", nothing submitted yet"),
        }
    }
}

/// A queue whose state can be shown.
pub trait Report {
    /// Its state now.
    fn report(&self) -> QueueReport;
}
