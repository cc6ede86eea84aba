//! Routed experts of one token: decode.

use crate::arguments::arguments;
use crate::collective::Mailbox;
use crate::gemm::group_rows;
use crate::{GpuVa, Kernel, Launch, kernels};

arguments! {
    /// Choice of the experts as in [`crate::moe::RouterTopk`], then gate and up with SiTU as in [`crate::moe::MoeUp`].
    ExpertUp for [EXPERT_UP] {
        /// `[expert_count]` FP32: output of the router's gate.
        logits: GpuVa,
        /// `[expert_count]` FP32: e_score_correction_bias.
        bias: GpuVa,
        /// `[depth]` BF16: the latent z.
        z: GpuVa,
        /// Expert 0 of the layer.
        experts: GpuVa,
        /// `[top_k]` u32: gets the chosen experts, best first.
        ids: GpuVa,
        /// `[top_k]` FP32: gets their weights.
        weights: GpuVa,
        /// `[top_k][columns]` BF16.
        h: GpuVa,
        /// Bytes from one expert to the next.
        stride: u64,
        /// See [`crate::moe::MoeUp`].
        w1_packed: u32,
        /// See [`crate::moe::MoeUp`].
        w1_scale: u32,
        /// See [`crate::moe::MoeUp`].
        w3_packed: u32,
        /// See [`crate::moe::MoeUp`].
        w3_scale: u32,
        /// See [`crate::moe::MoeUp`].
        packed_pitch: u32,
        /// See [`crate::moe::MoeUp`].
        scale_pitch: u32,
        /// Bytes from one choice to the next in h.
        h_pitch: u32,
        /// Experts, at most [`crate::limits::MAX_EXPERTS`].
        expert_count: u32,
        /// Experts of a token, at most [`crate::limits::MAX_TOP_K`].
        top_k: u32,
        /// `routed_scaling_factor` of the config.
        scale: f32,
        /// Width of the latent, a multiple of 32, at most [`crate::limits::MAX_EXPERT_INPUT`].
        depth: u32,
        /// Columns of an expert on this rank, a multiple of 16.
        columns: u32,
        /// See [`crate::gemm::SituBetas`].
        situ_beta: f32,
        /// See [`crate::gemm::SituBetas`].
        situ_linear_beta: f32,
    }
}

impl Launch for ExpertUp {
    fn kernel(&self) -> &'static Kernel {
        &kernels::EXPERT_UP
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.columns.div_ceil(group_rows(self.depth)), self.top_k, 1]
    }
}

arguments! {
    /// Down projection of the chosen experts, weighted sum over them and sum over ranks, rounded once to BF16. Sends `rows`
    /// words. Infinities and NaNs as in [`crate::collective::AllReduce`].
    ExpertDown for [EXPERT_DOWN] {
        /// [`crate::Step`].
        step: GpuVa,
        /// Of [`ExpertUp`].
        ids: GpuVa,
        /// Of [`ExpertUp`].
        weights: GpuVa,
        /// Expert 0 of the layer.
        experts: GpuVa,
        /// `[top_k][depth]` BF16: output of [`ExpertUp`].
        h: GpuVa,
        /// `[rows]` BF16.
        out: GpuVa,
        /// See [`Mailbox`].
        mailbox: Mailbox,
        /// Bytes from one expert to the next.
        stride: u64,
        /// See [`crate::moe::MoeDown`].
        w2_packed: u32,
        /// See [`crate::moe::MoeDown`].
        w2_scale: u32,
        /// See [`crate::moe::MoeDown`].
        packed_pitch: u32,
        /// See [`crate::moe::MoeDown`].
        scale_pitch: u32,
        /// Bytes from one choice to the next in h.
        h_pitch: u32,
        /// Experts of a token: `top_k x depth`, with `depth` filled up to 128, is at most
        /// [`crate::limits::MAX_EXPERT_INPUT`].
        top_k: u32,
        /// Columns of an expert on this rank, a multiple of 32.
        depth: u32,
        /// Width of the latent.
        rows: u32,
        /// Number of this collective in the graph.
        collective: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for ExpertDown {
    fn kernel(&self) -> &'static Kernel {
        &kernels::EXPERT_DOWN
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.rows.div_ceil(16), 1, 1]
    }
}
