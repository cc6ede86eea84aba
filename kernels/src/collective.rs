//! One-shot collectives over mailboxes in peer-mapped memory.
//!
//! A mailbox holds, for each of two halves and each sending rank, [`Mailbox::words`] words of 64 bits: a value and the epoch
//! it belongs to, written by one store. It has to be in memory that peers can store to and no cache holds back, and starts as
//! zeros. Collectives of a graph are numbered 0, 1, 2, ... without gaps, in launch order, the same on every rank, and each
//! waits for all before it: their epoch is [`crate::Step::epoch`] plus that number, and [`crate::head::Advance`] adds how many
//! there are.

use bytemuck::{Pod, Zeroable};

use crate::arguments::arguments;
use crate::limits::MAX_RANKS;
use crate::{GpuVa, Kernel, Launch, kernels};

/// What a rank needs to exchange data with the others: an argument of kernels that do so besides other work.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Mailbox {
    /// By rank: its mailbox, as this GPU maps it.
    pub mailboxes: [GpuVa; MAX_RANKS],
    /// The error word of this GPU.
    pub error: GpuVa,
    /// Words of one sender in one half: one more than the most values that any collective sends, at least 3.
    pub words: u64,
    /// How long to wait for a peer, in ticks of `s_memrealtime` (100 MHz).
    pub timeout: u64,
    /// This rank.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
}

impl Mailbox {
    /// Bytes of a mailbox.
    pub fn bytes(ranks: u32, words: u64) -> u64 {
        2 * u64::from(ranks) * words * 8
    }
}

arguments! {
    /// Sum over ranks in rank order, in FP32, plus a residual, rounded once to BF16: the same bits on every rank. Sends
    /// `tokens x width` words. An infinity or a NaN sets the error word and names the rank it came from.
    AllReduce for [ALL_REDUCE] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens x terms][width]` FP32: what this rank contributes.
        partial: GpuVa,
        /// `[tokens][terms]` FP32 factors of the terms, or null for 1.
        weights: GpuVa,
        /// `[tokens][width]` BF16 to add, or null.
        residual: GpuVa,
        /// `[tokens][width]` BF16; may be `residual`.
        out: GpuVa,
        /// See [`Mailbox`].
        mailboxes: [GpuVa; MAX_RANKS],
        /// See [`Mailbox`].
        error: GpuVa,
        /// See [`Mailbox`].
        words: u64,
        /// See [`Mailbox`].
        timeout: u64,
        /// Bytes from one row of partial to the next.
        partial_pitch: u32,
        /// Rows of partial a token.
        terms: u32,
        /// Values of a row.
        width: u32,
        /// See [`Mailbox`].
        rank: u32,
        /// See [`Mailbox`].
        ranks: u32,
        /// Number of this collective in the graph.
        collective: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for AllReduce {
    fn kernel(&self) -> &'static Kernel {
        &kernels::ALL_REDUCE
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.width.div_ceil(256), self.tokens, 1]
    }
}

arguments! {
    /// Joins the ranks' columns, rounded to BF16. Sends `tokens x width` words. Infinities and NaNs as in [`AllReduce`].
    AllGather for [ALL_GATHER] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][width]` FP32: this rank's columns.
        part: GpuVa,
        /// `[tokens][ranks x width]` BF16.
        out: GpuVa,
        /// See [`Mailbox`].
        mailboxes: [GpuVa; MAX_RANKS],
        /// See [`Mailbox`].
        error: GpuVa,
        /// See [`Mailbox`].
        words: u64,
        /// See [`Mailbox`].
        timeout: u64,
        /// Bytes from one row of part to the next.
        part_pitch: u32,
        /// Columns of a rank.
        width: u32,
        /// See [`Mailbox`].
        rank: u32,
        /// See [`Mailbox`].
        ranks: u32,
        /// Number of this collective in the graph.
        collective: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
}

impl Launch for AllGather {
    fn kernel(&self) -> &'static Kernel {
        &kernels::ALL_GATHER
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.width.div_ceil(256), self.tokens, 1]
    }
}
