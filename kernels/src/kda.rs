//! Kimi Delta Attention.

use crate::arguments::arguments;
use crate::limits::KDA_HEAD_DIM;
use crate::{GpuVa, Kernel, Launch, kernels};

arguments! {
    /// Everything of a KDA block between its projections: causal convolution, f_b, gates, recurrence, output norm and gate, for
    /// this rank's heads. Histories and state are updated; all zero at the start of a request. One token takes the
    /// recurrence as it stands, more take it in blocks of 16.
    Kda for [KDA, KDA_CHUNK] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][heads][128]` BF16: q_proj.
        q: GpuVa,
        /// Likewise k_proj.
        k: GpuVa,
        /// Likewise v_proj.
        v: GpuVa,
        /// Likewise g_proj.
        gate: GpuVa,
        /// `[tokens][128]` BF16: f_a_proj.
        f_a: GpuVa,
        /// `[tokens][heads]` FP32: b_proj.
        b: GpuVa,
        /// `[heads][128][128]` BF16, packed: f_b_proj.
        f_b: GpuVa,
        /// `[heads][128][4]` FP32: q_conv1d.
        q_taps: GpuVa,
        /// Likewise k_conv1d.
        k_taps: GpuVa,
        /// Likewise v_conv1d.
        v_taps: GpuVa,
        /// `[heads]` FP32: A_log.
        a_log: GpuVa,
        /// `[heads][128]` FP32: dt_bias.
        dt_bias: GpuVa,
        /// `[128]` FP32: o_norm.
        o_norm: GpuVa,
        /// `[3][heads][128]` BF16: the last three tokens of q_proj, oldest first.
        q_history: GpuVa,
        /// Likewise k_proj.
        k_history: GpuVa,
        /// Likewise v_proj.
        v_history: GpuVa,
        /// `[heads][128 keys][128 values]` FP32.
        state: GpuVa,
        /// `[tokens][heads][128]` BF16: input of o_proj.
        out: GpuVa,
        /// Heads of this rank.
        heads: u32,
        /// Bytes from one token to the next in q, k, v and gate.
        pitch: u32,
        /// Likewise in f_a.
        f_a_pitch: u32,
        /// Likewise in b.
        b_pitch: u32,
        /// Likewise in out.
        out_pitch: u32,
        /// `gate_lower_bound` of the config, at least -10.
        gate_lower_bound: f32,
        /// `rms_norm_eps` of the config.
        eps: f32,
        /// Most tokens of a run.
        tokens: u32,
    }
}

impl Kda {
    /// Bytes of `state`.
    pub fn state_bytes(heads: u32) -> u64 {
        u64::from(heads) * u64::from(KDA_HEAD_DIM) * u64::from(KDA_HEAD_DIM) * 4
    }

    /// Bytes of each of the three histories.
    pub fn history_bytes(heads: u32) -> u64 {
        3 * u64::from(heads) * u64::from(KDA_HEAD_DIM) * 2
    }
}

impl Launch for Kda {
    fn kernel(&self) -> &'static Kernel {
        if self.tokens == 1 { &kernels::KDA } else { &kernels::KDA_CHUNK }
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.heads, 1, 1]
    }
}
