//! Memory that kernels and host share: the step and the ring.

use bytemuck::{Pod, Zeroable};

/// How [`crate::head::Sample`] draws a token; the default takes the most likely one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Sampling {
    /// log2(e) / temperature; 0 takes the most likely token.
    pub scale: f32,
    /// Candidates kept at most; 0 keeps all.
    pub top_k: u32,
    /// Candidates are kept until their probabilities add up to this, in units of 2^-64; 0 keeps all.
    pub top_p: u64,
    /// Key of the random numbers; their counter is the position of the token.
    pub seed: u64,
}

/// What changes from one run of the graph to the next. In device memory, one copy a GPU, all alike. [`crate::head::Advance`]
/// makes it that of the next run; the host writes it to start a request or a prefill chunk, with the GPU idle.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Step {
    /// Tokens already in the caches: position of the first token of this run.
    pub position: u32,
    /// Tokens of this run, at least 1: collectives rely on it.
    pub count: u32,
    /// Epoch of the first collective of this run. Starts at 1 with zeroed mailboxes and must not wrap: the host starts over
    /// with both before 2^32.
    pub epoch: u32,
    /// Runs finished.
    pub sequence: u32,
    /// What was chosen in this run.
    pub token: u32,
    /// Unused.
    pub reserved: u32,
    /// How it is chosen. Kernels leave it as it is.
    pub sampling: Sampling,
}

/// An entry of the host-visible ring, one a run. The host waits for `sequence` to become the number of the run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct RingEntry {
    /// The error word of the GPU ([`crate::ErrorWord`]): the run is void unless it is 0.
    pub error: u64,
    /// The chosen token, or [`RingEntry::NO_TOKEN`].
    pub token: u32,
    /// Number of the run, from 1. Stored last, in one 64-bit store with the token.
    pub sequence: u32,
}

impl RingEntry {
    /// The run chose no token: it failed, or its graph has no head.
    pub const NO_TOKEN: u32 = u32::MAX;
}
