//! The Linux kernel's compute device, `/dev/kfd`: its ABI, structure by structure, and a typed client of it.
//!
//! Source of every number here: `include/uapi/linux/kfd_ioctl.h` of Linux 7.2 (KFD 1.23), unless another file is named.

mod client;
pub mod command;
pub mod event;
pub mod memory;
pub mod process;
pub mod queue;
pub mod share;

pub use client::{DEVICE, IoctlError, Kfd, OpenError};
pub use command::{Arguments, Command, Direction};
