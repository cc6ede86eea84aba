//! Talks to an AMD GPU: through the Linux kernel's compute device (KFD), with nothing else in between.
//!
//! The crate knows memory, queues, signals, packets and code objects. It knows no kernel and no model.

pub mod address;
mod doorbell;
pub mod event;
mod gpu;
pub mod kfd;
pub mod linux;
pub mod memory;
pub mod packets;
mod process;
pub mod program;
pub mod queue;
pub mod signal;
pub mod system;
#[cfg(test)]
mod testing;
pub mod topology;

pub use gpu::{Gpu, OpenError};
pub use process::Process;
