//! `config.json`: sizes are free, the architecture is not.
//!
//! [`parse`] reads the file into an [`UnverifiedConfig`]; [`UnverifiedConfig::verify`] checks every field the forward
//! pass depends on and names all that are wrong at once.

mod fields;
mod generation;
mod verify;

use std::path::{Path, PathBuf};

pub use fields::{WrongField, WrongFields};
pub use generation::{GenerationConfig, parse_generation_config};

/// The released `config.json`, restated from its facts: text fields as published, vision fields left out.
pub const OFFICIAL_CONFIG_JSON: &str = include_str!("official.json");

/// Longest `config.json` or `generation_config.json` read, in bytes (the released one has some 6 KB).
const CONFIG_FILE_LIMIT: u64 = 1 << 20;

/// Entries of every stored `A_log`, whatever the number of heads: one value a head, then exact zeros.
pub const A_LOG_ENTRIES: u64 = 128;

/// Taps of the causal depthwise convolution before KDA's q, k and v; tap 3 is the current token.
pub const CONV_TAPS: usize = 4;

/// Elements of an MXFP4 weight that share one E8M0 scale.
pub const MXFP4_GROUP: usize = 32;

/// eps of the two MLA low-rank norms: a class default of the vendor code, not a config field.
pub const MLA_NORM_EPS: f32 = 1e-6;

/// eps inside the square root of the l2 norm of KDA's q and k.
pub const L2_NORM_EPS: f32 = 1e-6;

/// Added to the sum of the chosen router scores before dividing by it.
pub const ROUTER_SUM_EPS: f32 = 1e-20;

/// The token mixer of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// Kimi Delta Attention: a recurrent state of head_dim x head_dim per head.
    Kda,
    /// Multi-head latent attention without position encoding, with an output gate.
    Mla,
}

/// The feed-forward block of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedForward {
    /// One SiTU MLP.
    Dense,
    /// Latent mixture of experts plus fused shared experts.
    Moe,
}

/// The two choices that differ from layer to layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The token mixer.
    pub attention: Attention,
    /// The feed-forward block.
    pub feed_forward: FeedForward,
}

/// Sizes and constants of the KDA layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Kda {
    /// Heads; at most [`A_LOG_ENTRIES`].
    pub heads: usize,
    /// Size of q, k and v of a head, of the decay vector, and of the low rank of the decay projection.
    pub head_dim: usize,
    /// Log decay is `gate_lower_bound * sigmoid(exp(A_log) * s)`; negative.
    pub gate_lower_bound: f32,
}

/// Sizes of the MLA layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mla {
    /// Heads.
    pub heads: usize,
    /// Low rank of the query projection.
    pub q_rank: usize,
    /// Size of the normed latent kept per token.
    pub kv_rank: usize,
    /// Per-head query and key size that goes through the latent.
    pub nope_dim: usize,
    /// Query and key size shared by all heads; called "rope" in the files, never rotated.
    pub rope_dim: usize,
    /// Value size of a head.
    pub v_dim: usize,
}

/// Sizes of the mixture of experts.
#[derive(Clone, Debug, PartialEq)]
pub struct Moe {
    /// Routed experts of a layer.
    pub experts: usize,
    /// Experts chosen per token.
    pub experts_per_token: usize,
    /// Inner width of one routed expert.
    pub expert_width: usize,
    /// Width of the latent the routed experts read and write.
    pub latent_size: usize,
    /// Inner width of the fused shared experts.
    pub shared_width: usize,
    /// Factor on the normalised router weights.
    pub routed_scaling_factor: f32,
}

/// A verified Kimi K3 text config. Only this module makes one.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Rows of the embedding and of the head.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Longest context the model was made for, in tokens.
    pub max_context: usize,
    /// eps of every RMSNorm but the two of MLA ([`MLA_NORM_EPS`]).
    pub rms_norm_eps: f32,
    /// beta of SiTU's gate.
    pub situ_beta: f32,
    /// beta of SiTU's linear half.
    pub situ_linear_beta: f32,
    /// The residual stream is saved, and restarted, at every layer whose zero-based index is a multiple of this.
    pub attn_res_block_size: usize,
    /// Inner width of the dense MLPs.
    pub dense_width: usize,
    /// What each layer is made of, in order.
    pub layers: Vec<Layer>,
    /// KDA sizes.
    pub kda: Kda,
    /// MLA sizes.
    pub mla: Mla,
    /// Mixture-of-experts sizes.
    pub moe: Moe,
    /// Start of a plain document.
    pub bos_token: u32,
    /// End of a chat message: where generation stops.
    pub eos_token: u32,
    /// Padding.
    pub pad_token: u32,
}

impl Config {
    /// Reads, parses and verifies `config.json` of a checkpoint folder.
    pub fn read(folder: &Path) -> Result<Self, ConfigError> {
        let path = folder.join("config.json");
        let bytes = crate::file::read(&path, CONFIG_FILE_LIMIT).map_err(|source| ConfigError::Read { path, source })?;
        parse(&bytes)?.verify()
    }

    /// The released model's config.
    pub fn official() -> Self {
        parse(OFFICIAL_CONFIG_JSON.as_bytes())
            .and_then(|config| config.verify())
            .expect("the built-in file is fixed, and a test verifies it")
    }

    /// Whether layer `index` (zero-based) saves the residual stream before its attention and restarts the sum.
    pub fn restarts_residual(&self, index: usize) -> bool {
        index.is_multiple_of(self.attn_res_block_size)
    }
}

/// `config.json` as written: well-formed JSON of bounded depth, nothing else known.
#[derive(Clone, Debug)]
pub struct UnverifiedConfig(serde_json::Value);

/// Parses the bytes of a `config.json`.
pub fn parse(bytes: &[u8]) -> Result<UnverifiedConfig, ConfigError> {
    serde_json::from_slice(bytes).map(UnverifiedConfig).map_err(|source| ConfigError::Parse { source })
}

/// Why a config cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {}: {source}; name a folder that holds a published Kimi K3 checkpoint", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not JSON of its form, or nests deeper than 127 levels.
    #[error("the config file is not valid: {source}")]
    Parse {
        /// Where and why.
        source: serde_json::Error,
    },
    /// The file describes another model, or one this program cannot run.
    #[error("config.json does not describe a Kimi K3 text model: {0}")]
    Verify(WrongFields),
}
