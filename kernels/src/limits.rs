//! Sizes the kernels are written for. A model beyond them has to be refused before anything is launched.

/// Most ranks.
pub const MAX_RANKS: usize = 8;
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
/// Most routed experts.
pub const MAX_EXPERTS: u32 = 1024;
/// Most experts of a token.
pub const MAX_TOP_K: u32 = 64;
/// Most saved blocks that a mix reads.
pub const MAX_BLOCKS: u32 = 8;
/// Most outputs of one projection launch.
pub const MAX_SEGMENTS: usize = 6;
/// Hidden, latent and low-rank widths are multiples of this many BF16 values: 16 bytes.
pub const WIDTH_ALIGN: u32 = 8;
/// Row pitch of activations is a multiple of this, in bytes.
pub const PITCH_ALIGN: u32 = 16;
