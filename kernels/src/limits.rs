//! Sizes the kernels are written for. A model beyond them has to be refused before anything is launched.

/// Most ranks.
pub const MAX_RANKS: usize = 8;
/// Most tokens of a vocabulary.
pub const MAX_VOCABULARY: u32 = 1 << 18;
/// Width of a KDA head: keys and values.
pub const KDA_HEAD_DIM: u32 = 128;
/// Width of the part of an MLA query that meets the latent.
pub const MLA_NOPE_DIM: u32 = 128;
/// Width of the part of an MLA query that meets the shared key values.
pub const MLA_ROPE_DIM: u32 = 64;
/// Width of an MLA value.
pub const MLA_V_DIM: u32 = 128;
/// Width of the cached latent.
pub const MLA_KV_RANK: u32 = 512;
/// BF16 values of a cached token.
pub const MLA_CACHED: u32 = MLA_KV_RANK + MLA_ROPE_DIM;
/// Most parts that the cached latents are divided into: one for each compute unit.
pub const MAX_SPLITS: u32 = 256;
/// Most routed experts.
pub const MAX_EXPERTS: u32 = 1024;
/// Most experts of a token.
pub const MAX_TOP_K: u32 = 64;
/// Most saved blocks that a mix reads.
pub const MAX_BLOCKS: u32 = 8;
/// Most outputs of one projection launch.
pub const MAX_SEGMENTS: usize = 6;
/// Widest row that is mixed or normed, in BF16 values.
pub const MAX_WIDTH: u32 = 8192;
/// Longest vector that a decode kernel multiplies by a matrix: each of two parts filled up to [`ROW_STEP`].
pub const MAX_VECTOR: u32 = 8192;
/// Values that a decode kernel multiplies at a time.
pub const ROW_STEP: u32 = 64;
/// Most values of all experts' inner activations of a token: each filled up to 128.
pub const MAX_EXPERT_INPUT: u32 = 16384;
/// Hidden, latent and low-rank widths are multiples of this many BF16 values: 16 bytes.
pub const WIDTH_ALIGN: u32 = 8;
/// Row pitch of activations is a multiple of this, in bytes.
pub const PITCH_ALIGN: u32 = 16;
