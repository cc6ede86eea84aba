//! MOCKKFD: an emulated AMD machine.
//!
//! [`Mock`] answers the system calls of a KFD client in-process: device files, ioctls, memory, queues, events. Behind it
//! stands a machine of several GPUs with several XCCs each: command processors read AQL and PM4 packets, SDMA engines
//! copy, and compute units execute gfx950 instructions. It knows no kernel by name: what comes out is what the code
//! object given to it computes.

mod atomic;
mod check;
mod code;
mod config;
mod cp;
mod doorbell;
mod exec;
mod facts;
pub mod inspect;
mod kfd;
pub mod launch;
pub mod listing;
mod machine;
mod memory;
mod null;
mod observe;
mod random;
mod sdma;
#[cfg(test)]
mod testbench;
mod wave;
mod workgroup;

pub use check::{Report, ReportKind};
pub use config::{Config, ConfigError};
pub use exec::{Fidelity, HostLevel, MfmaOrder, WaveFault, fidelity};
pub use kfd::Mock;
pub use machine::Counters;
pub use memory::{MemoryFault, MemoryFaultReason};
pub use null::StandIn;
pub use workgroup::FaultReport;
