//! Every kernel against FP64 arithmetic on the host, executed by the emulated machine.
//!
//! Sizes are K3-nano's at all tensor-parallel degrees and the official ones of a GPU at degree 8 for one launch of each kind.
//! Buffers are exactly as long as the kernels' documentation says: the machine refuses what goes beyond.

#![allow(clippy::unwrap_used, reason = "tests")]

mod collectives;
mod embed;
mod expert;
mod gemm;
mod head;
mod kda;
mod mix_norm;
mod mla;
mod moe;
#[path = "../support/orders.rs"]
mod orders;
mod packets;
mod project;
mod removed;
mod sample;
mod support;
