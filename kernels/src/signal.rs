//! Collectives in two launches with one signal a peer: the fallback for [`crate::collective`], with the same bits.
//!
//! [`SignalSend`] stores this rank's values to all mailboxes; [`SignalSum`] or [`SignalGather`] follows it, tells the peers so,
//! and waits until they have told it. The two are one collective. A mailbox has one word more for each sender than it sends
//! values ([`Mailbox::words`]).

use crate::arguments::arguments;
use crate::collective::Mailbox;
use crate::{GpuVa, Kernel, Launch, kernels};

arguments! {
    /// Stores what this rank contributes to all mailboxes.
    SignalSend for [SIGNAL_SEND] {
        /// [`crate::Step`].
        step: GpuVa,
        /// As in [`crate::collective::AllReduce`].
        partial: GpuVa,
        /// As in [`crate::collective::AllReduce`].
        weights: GpuVa,
        /// See [`Mailbox`].
        mailbox: Mailbox,
        /// Bytes from one row of partial to the next.
        partial_pitch: u32,
        /// Rows of partial a token.
        terms: u32,
        /// Values of a row.
        width: u32,
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

impl Launch for SignalSend {
    fn kernel(&self) -> &'static Kernel {
        &kernels::SIGNAL_SEND
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.width.div_ceil(256), self.tokens, 1]
    }
}

arguments! {
    /// Sum over ranks of what they sent, plus a residual, as in [`crate::collective::AllReduce`].
    SignalSum for [SIGNAL_SUM] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][width]` BF16 to add, or null.
        residual: GpuVa,
        /// `[tokens][width]` BF16; may be `residual`.
        out: GpuVa,
        /// See [`Mailbox`].
        mailbox: Mailbox,
        /// Values of a row.
        width: u32,
        /// That of the [`SignalSend`] before.
        collective: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for SignalSum {
    fn kernel(&self) -> &'static Kernel {
        &kernels::SIGNAL_SUM
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.width.div_ceil(256), self.tokens, 1]
    }
}

arguments! {
    /// Columns of all ranks, as in [`crate::collective::AllGather`].
    SignalGather for [SIGNAL_GATHER] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][ranks x width]` BF16.
        out: GpuVa,
        /// See [`Mailbox`].
        mailbox: Mailbox,
        /// Columns of a rank.
        width: u32,
        /// That of the [`SignalSend`] before.
        collective: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for SignalGather {
    fn kernel(&self) -> &'static Kernel {
        &kernels::SIGNAL_GATHER
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.width.div_ceil(256), self.tokens, 1]
    }
}
