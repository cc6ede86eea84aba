//! Attention-residual mix and RMSNorm.

use crate::arguments::arguments;
use crate::{GpuVa, Kernel, Launch, kernels};

arguments! {
    /// Mixes the saved blocks and `h`, then norms: `out = rms(mix(blocks, h)) weight`. Without blocks a plain RMSNorm of `h`.
    MixNorm for [MIX_NORM] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][width]` BF16: the running sum, or whatever is to be normed.
        h: GpuVa,
        /// `[block_count]` saved blocks `[tokens][width]` BF16; unused without blocks.
        blocks: GpuVa,
        /// Where to save the unmixed `h`, `[tokens][width]` BF16, or null. Not one of `blocks`.
        save: GpuVa,
        /// `[width]` BF16: norm weight of the mix; unused without blocks.
        norm: GpuVa,
        /// `[width]` BF16: projection of the mix; unused without blocks.
        proj: GpuVa,
        /// `[width]` BF16: weight of the norm that follows.
        weight: GpuVa,
        /// `[tokens][width]` BF16, or `[1][width]` with `last_only`. Not `h`.
        out: GpuVa,
        /// Bytes from one block to the next.
        block_stride: u64,
        /// Saved blocks, at most [`crate::limits::MAX_BLOCKS`].
        block_count: u32,
        /// Values of a row, a multiple of 8.
        width: u32,
        /// `rms_norm_eps` of the config.
        eps: f32,
        /// 1: the last valid token only, into row 0 of `out`.
        last_only: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for MixNorm {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MIX_NORM
    }

    fn workgroups(&self) -> [u32; 3] {
        [if self.last_only == 0 { self.tokens } else { 1 }, 1, 1]
    }
}
