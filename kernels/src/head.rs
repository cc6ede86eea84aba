//! The end of a run: choice of the token and advance.

use crate::arguments::arguments;
use crate::collective::Mailbox;
use crate::{GpuVa, Kernel, Launch, kernels};

arguments! {
    /// Chooses a token over all ranks, as [`crate::step::Sampling`] says, into [`crate::Step::token`]: the largest logit, ties
    /// to the lowest token, or a token drawn. A collective of [`Sample::WORDS`] words. A NaN sets the error word.
    Sample for [SAMPLE] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[1 or tokens][rows]` FP32: this rank's logits.
        logits: GpuVa,
        /// See [`Mailbox`].
        mailbox: Mailbox,
        /// Bytes from one row of logits to the next.
        row_pitch: u32,
        /// Vocabulary rows of a rank: rank r has tokens r x rows and up, at most [`crate::limits::MAX_VOCABULARY`] in all.
        rows: u32,
        /// 1: logits has a row for every token, use that of the last; 0: use row 0.
        last_row: u32,
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

impl Sample {
    /// Words that a rank sends: the best candidate and the drawn one, two sums of weights, and twice, to cut off, a sum for
    /// each of 1,024 digits in each of five rounds. A sum is two words.
    pub const WORDS: u64 = 2 + 1 + 2 * 2 + 2 * (5 * 1024 * 2);
}

impl Launch for Sample {
    fn kernel(&self) -> &'static Kernel {
        &kernels::SAMPLE
    }

    fn workgroups(&self) -> [u32; 3] {
        [1, 1, 1]
    }
}

arguments! {
    /// Reports the run in the ring and makes the step that of the next run, unless the error word is set: then only
    /// [`crate::Step::sequence`] counts on.
    Advance for [ADVANCE] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[..]` u32: the tokens of the next run; with `has_token` the first becomes the chosen one.
        ids: GpuVa,
        /// `[ring_mask + 1]` of [`crate::RingEntry`], host-visible, or null.
        ring: GpuVa,
        /// The error word of this GPU.
        error: GpuVa,
        /// Entries of the ring, a power of two, less 1.
        ring_mask: u32,
        /// Collectives of the graph.
        collectives: u32,
        /// 1 if the graph chose a token.
        has_token: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
}

impl Launch for Advance {
    fn kernel(&self) -> &'static Kernel {
        &kernels::ADVANCE
    }

    fn workgroups(&self) -> [u32; 3] {
        [1, 1, 1]
    }
}
