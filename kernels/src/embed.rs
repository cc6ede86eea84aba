//! Embedding.

use crate::arguments::arguments;
use crate::limits::MAX_RANKS;
use crate::{GpuVa, Kernel, Launch, kernels};

arguments! {
    /// `h[token]` = row of the token, read from the rank that owns it. A token beyond the vocabulary sets the error word.
    Embed for [EMBED] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens]` u32: the tokens of the run.
        ids: GpuVa,
        /// By rank: its rows of the embedding `[rows_per_rank][hidden]` BF16, peer-mapped.
        table: [GpuVa; MAX_RANKS],
        /// `[tokens][hidden]` BF16: the residual stream.
        h: GpuVa,
        /// The error word of this GPU.
        error: GpuVa,
        /// This rank.
        rank: u32,
        /// Rows of each rank.
        rows_per_rank: u32,
        /// Number of ranks.
        ranks: u32,
        /// Width of the residual stream, a multiple of 8.
        hidden: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for Embed {
    fn kernel(&self) -> &'static Kernel {
        &kernels::EMBED
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.tokens, 1, 1]
    }
}
