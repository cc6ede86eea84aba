//! Multi-head latent attention in the absorbed form.
//!
//! Order of launches: [`MlaLatent`], q_b ([`crate::gemm`]), [`MlaAbsorb`], [`MlaAttention`], [`MlaValue`].

use crate::arguments::arguments;
use crate::limits::{MLA_CACHED, MLA_KV_RANK, MLA_V_DIM};
use crate::project::row_groups;
use crate::{GpuVa, Kernel, Launch, kernels};

arguments! {
    /// Norms of the low-rank query and latent (eps 1e-6), and append to the latent cache. A position beyond the cache sets the
    /// error word.
    MlaLatent for [MLA_LATENT] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][q_width]` BF16: q_a_proj.
        q: GpuVa,
        /// `[tokens][512 + 64]` BF16: kv_a_proj_with_mqa.
        kv: GpuVa,
        /// `[q_width]` BF16: q_a_layernorm.
        q_weight: GpuVa,
        /// `[512]` BF16: kv_a_layernorm.
        kv_weight: GpuVa,
        /// `[tokens][q_width]` BF16: input of q_b_proj.
        q_out: GpuVa,
        /// `[capacity][512 + 64]` BF16: the cache, by position.
        cache: GpuVa,
        /// The error word of this GPU.
        error: GpuVa,
        /// Width of the low-rank query.
        q_width: u32,
        /// Bytes from one token to the next in q.
        q_pitch: u32,
        /// Likewise in kv.
        kv_pitch: u32,
        /// Likewise in q_out.
        q_out_pitch: u32,
        /// Tokens the cache holds.
        capacity: u32,
        /// This rank.
        rank: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for MlaLatent {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MLA_LATENT
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.tokens, 1, 1]
    }
}

arguments! {
    /// For one token: norm of the low-rank query, q_b, and what [`MlaLatent`] does to the latent.
    MlaQuery for [MLA_QUERY] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[depth]` BF16: q_a_proj.
        q_low: GpuVa,
        /// `[depth]` BF16: q_a_layernorm.
        q_weight: GpuVa,
        /// `[rows][depth]` BF16: q_b_proj.
        q_b: GpuVa,
        /// `[rows]` BF16.
        q: GpuVa,
        /// `[512 + 64]` BF16: kv_a_proj.
        kv: GpuVa,
        /// `[512]` BF16: kv_a_layernorm.
        kv_weight: GpuVa,
        /// `[capacity][512 + 64]` BF16, packed.
        cache: GpuVa,
        /// The error word: a position beyond the cache is reported.
        error: GpuVa,
        /// `q_lora_rank` of the config, a multiple of 8, at most [`crate::limits::MAX_WIDTH`].
        depth: u32,
        /// Bytes from one row of q_b to the next, a multiple of 16.
        q_b_pitch: u32,
        /// Rows of q_b.
        rows: u32,
        /// Tokens the cache holds.
        capacity: u32,
        /// This rank.
        rank: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for MlaQuery {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MLA_QUERY
    }

    fn workgroups(&self) -> [u32; 3] {
        [row_groups(self.rows, self.depth) + 1, 1, 1]
    }
}

/// Tokens of a workgroup in [`MlaAbsorb`] and [`MlaValue`].
const TOKENS: u32 = 128;

arguments! {
    /// Absorbed query: the key half of kv_b applied to the query.
    MlaAbsorb for [MLA_ABSORB] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][heads][128 + 64]` BF16: q_b_proj.
        q: GpuVa,
        /// `[heads][128][512]` BF16, packed: key half of kv_b.
        key_weight: GpuVa,
        /// `[tokens][heads][512 + 64]` BF16, packed.
        out: GpuVa,
        /// Heads of this rank.
        heads: u32,
        /// Bytes from one token to the next in q.
        q_pitch: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl MlaAbsorb {
    /// Bytes of `out`.
    pub fn out_bytes(tokens: u32, heads: u32) -> u64 {
        u64::from(tokens) * u64::from(heads) * u64::from(MLA_CACHED) * 2
    }
}

impl Launch for MlaAbsorb {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MLA_ABSORB
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.heads * (MLA_KV_RANK / 128), self.tokens.div_ceil(TOKENS), 1]
    }
}

arguments! {
    /// Attention over the cached latents, causal, each split of the cache apart.
    MlaAttention for [MLA_ATTENTION] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens x heads][512 + 64]` BF16: output of [`MlaAbsorb`].
        query: GpuVa,
        /// The cache that [`MlaLatent`] wrote.
        cache: GpuVa,
        /// `[splits][tokens x heads][512]` FP32 ([`MlaAttention::partial_bytes`]).
        partial: GpuVa,
        /// `[splits][tokens x heads][2]` FP32 ([`MlaAttention::sums_bytes`]).
        sums: GpuVa,
        /// Heads of this rank.
        heads: u32,
        /// Parts that the cached tokens are divided into, at most [`crate::limits::MAX_SPLITS`]; unused parts exit early. More
        /// than 1 for few query rows.
        splits: u32,
        /// Tokens the cache holds.
        capacity: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
}

impl MlaAttention {
    /// Bytes of `partial`.
    pub fn partial_bytes(tokens: u32, heads: u32, splits: u32) -> u64 {
        u64::from(splits) * u64::from(tokens) * u64::from(heads) * u64::from(MLA_KV_RANK) * 4
    }

    /// Bytes of `sums`.
    pub fn sums_bytes(tokens: u32, heads: u32, splits: u32) -> u64 {
        u64::from(splits) * u64::from(tokens) * u64::from(heads) * 8
    }
}

impl Launch for MlaAttention {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MLA_ATTENTION
    }

    fn workgroups(&self) -> [u32; 3] {
        [(self.tokens * self.heads).div_ceil(16), self.splits, 1]
    }
}

arguments! {
    /// Joins the splits, applies the value half of kv_b and the output gate.
    MlaValue for [MLA_VALUE] {
        /// [`crate::Step`].
        step: GpuVa,
        /// As [`MlaAttention`] left it.
        partial: GpuVa,
        /// As [`MlaAttention`] left it.
        sums: GpuVa,
        /// `[heads][128][512]` BF16, packed: value half of kv_b.
        value_weight: GpuVa,
        /// `[tokens][heads][128]` BF16: g_proj.
        gate: GpuVa,
        /// `[tokens][heads][128]` BF16: input of o_proj.
        out: GpuVa,
        /// Heads of this rank.
        heads: u32,
        /// As in [`MlaAttention`].
        splits: u32,
        /// Bytes from one token to the next in gate.
        gate_pitch: u32,
        /// Likewise in out.
        out_pitch: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for MlaValue {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MLA_VALUE
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.heads * (MLA_V_DIM / 64), self.tokens.div_ceil(TOKENS), 1]
    }
}
