//! Talks to an AMD GPU: through the Linux kernel's compute device (KFD), with nothing else in between.
//!
//! The crate knows memory, queues, signals and packets. It knows no kernel and no model.

pub mod address;
pub mod kfd;
pub mod packets;
pub mod system;
