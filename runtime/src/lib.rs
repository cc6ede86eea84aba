//! kimi-hcq: runs Kimi K3 on eight MI350X with nothing between the program and the GPU but the kernel's KFD device.
//!
//! The library puts the other crates together: `driver` for the GPU, `kernels` for what runs on it, `model` for what K3
//! is, and `mock` where there is no GPU. The binary only parses, calls and prints.

pub mod answer;
pub mod bench;
#[cfg(feature = "mock")]
pub mod case;
pub mod cli;
pub mod engine;
pub mod failure;
pub mod fixture;
pub mod forward;
pub mod graph;
pub mod interrupt;
pub mod loader;
pub mod perplexity;
pub mod plan;
pub mod platform;
pub mod preflight;
pub mod self_test;
pub mod smoke;
