//! The memory plan: everything a GPU holds, laid out at start from the config.
//!
//! One allocation a kind, cut into parts here; nothing is allocated after the engine has started.

mod section;
mod table;

use driver::address::Bytes;
use kernels::collective::Mailbox;
use kernels::head::Sample;
use kernels::kda::Kda;
use kernels::limits::{MAX_SPLITS, MLA_CACHED, MLA_ROPE_DIM, PITCH_ALIGN};
use kernels::mla::{MlaAbsorb, MlaAttention};
use kernels::moe::MoeGroup;
use kernels::{ErrorWord, RingEntry, Step};
use model::config::{Attention, Config};
use model::layout::Layout;

pub use section::{Offset, Part, Section};

/// What the plan depends on besides the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// GPUs the model is split over.
    pub ranks: usize,
    /// Tokens of the largest run: the prefill chunk.
    pub chunk: u32,
    /// Tokens that the latent caches hold.
    pub max_context: u32,
    /// Logits are kept for every token of a run, not for the last alone.
    pub all_logits: bool,
}

/// Cached tokens of a part at least: what attention reads at a time.
const TOKENS_PER_SPLIT: u32 = 64;
/// Entries of the token ring, a power of two.
pub const RING_ENTRIES: u32 = 1024;

/// Where everything that changes from token to token lies in the workspace. Widths are in the comments of the kernels'
/// arguments; activations are BF16 and packed unless they have a pitch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is documented by the kernel argument of the same name")]
pub struct Workspace {
    pub step: Offset,
    pub error: Offset,
    pub ids: Offset,
    pub h: Offset,
    pub blocks: Offset,
    pub x: Offset,
    /// q, k, v and the gate of KDA, one after the other; of MLA the gate.
    pub projections: [Offset; 4],
    pub f_a: Offset,
    pub beta: Offset,
    pub heads_out: Offset,
    pub partial: Offset,
    pub q_low: Offset,
    pub kv_low: Offset,
    pub q_normed: Offset,
    pub q: Offset,
    pub q_absorbed: Offset,
    pub attention_partial: Offset,
    pub attention_sums: Offset,
    pub dense: Offset,
    pub router_logits: Offset,
    pub latent_part: Offset,
    pub latent: Offset,
    pub shared: Offset,
    pub expert_ids: Offset,
    pub expert_weights: Offset,
    pub expert_list: Offset,
    pub expert_tiles: Offset,
    pub expert_tile_count: Offset,
    pub expert_h: Offset,
    pub expert_y: Offset,
    pub latent_sum: Offset,
    pub latent_normed: Offset,
    pub logits: Offset,
}

/// State of one KDA layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KdaState {
    /// The last three inputs of each convolution.
    pub histories: [Offset; 3],
    /// The recurrent state.
    pub recurrent: Offset,
}

/// What one layer keeps between tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerState {
    /// In the state section.
    Kda(KdaState),
    /// Latents by position, in the cache section.
    Mla(Offset),
}

/// The plan of one GPU; all GPUs have the same.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// What it was made for.
    pub sizes: Sizes,
    /// Bytes of the weight arena.
    pub weights: Bytes,
    /// MLA latents.
    pub cache: Section,
    /// KDA states and convolution histories: zero at the start of a request.
    pub state: Section,
    /// Activations.
    pub workspace: Section,
    /// Mailboxes of collectives: uncached, mapped by all GPUs, zero at the start.
    pub exchange: Section,
    /// The token ring, in host memory.
    pub ring: Section,
    /// Parts of the workspace.
    pub places: Workspace,
    /// By layer.
    pub states: Vec<LayerState>,
    /// Words of a sender in one half of a mailbox.
    pub mailbox_words: u64,
    /// Parts of the cache in the decode graph.
    pub decode_splits: u32,
}

/// Bytes of a row of `values` values of `bytes` bytes, padded as activations are.
#[must_use]
pub fn pitch(values: usize, bytes: usize) -> u32 {
    ((values * bytes) as u32).next_multiple_of(PITCH_ALIGN)
}

impl MemoryPlan {
    /// Lays out everything for `config` over `sizes.ranks` GPUs.
    #[must_use]
    pub fn new(config: &Config, layout: &Layout, sizes: Sizes) -> Self {
        let ranks = sizes.ranks;
        let mut cache = Section::default();
        let mut state = Section::default();
        let kda_heads = (config.kda.heads / ranks) as u32;
        let states = config
            .layers
            .iter()
            .enumerate()
            .map(|(index, layer)| match layer.attention {
                Attention::Kda => LayerState::Kda(KdaState {
                    histories: ["q", "k", "v"]
                        .map(|name| state.take(format!("layer {index} {name} history"), Kda::history_bytes(kda_heads))),
                    recurrent: state.take(format!("layer {index} KDA state"), Kda::state_bytes(kda_heads)),
                }),
                Attention::Mla => {
                    let bytes = u64::from(sizes.max_context) * u64::from(MLA_CACHED) * 2;
                    LayerState::Mla(cache.take(format!("layer {index} latents"), bytes))
                }
            })
            .collect();
        let decode_splits = sizes.max_context.div_ceil(TOKENS_PER_SPLIT).clamp(1, MAX_SPLITS);
        let mut workspace = Section::default();
        let places = places(config, sizes, decode_splits, &mut workspace);
        let widest = config.hidden_size.max(config.moe.latent_size) as u64;
        // One more is for the signal of collectives in two launches.
        let mailbox_words = (u64::from(sizes.chunk) * widest).max(Sample::WORDS) + 1;
        let mut exchange = Section::default();
        exchange.take("mailboxes", Mailbox::bytes(ranks as u32, mailbox_words));
        let mut ring = Section::default();
        ring.take("token ring", u64::from(RING_ENTRIES) * size_of::<RingEntry>() as u64);
        let weights = Bytes::new(layout.arena_bytes());
        Self { sizes, weights, cache, state, workspace, exchange, ring, places, states, mailbox_words, decode_splits }
    }

    /// Bytes of VRAM of one GPU, kernel arguments and code apart.
    #[must_use]
    pub fn vram_bytes(&self) -> Bytes {
        let sections = [&self.cache, &self.state, &self.workspace, &self.exchange];
        Bytes::new(self.weights.get() + sections.iter().map(|section| section.bytes().get()).sum::<u64>())
    }
}

fn places(config: &Config, sizes: Sizes, splits: u32, section: &mut Section) -> Workspace {
    let tokens = u64::from(sizes.chunk);
    let ranks = sizes.ranks;
    let (kda, mla, moe) = (&config.kda, &config.mla, &config.moe);
    let hidden = config.hidden_size;
    let kda_width = kda.heads / ranks * kda.head_dim;
    let mla_heads = mla.heads / ranks;
    let heads_width = kda_width.max(mla_heads * mla.v_dim);
    let assignments = tokens * moe.experts_per_token as u64;
    let mut rows =
        |name: &str, rows: u64, width: usize, bytes: usize| section.take(name, rows * u64::from(pitch(width, bytes)));
    // The decode graph splits the cache, a chunk does not: whichever needs more room decides.
    let attention =
        |of: fn(u32, u32, u32) -> u64| of(sizes.chunk, mla_heads as u32, 1).max(of(1, mla_heads as u32, splits));
    Workspace {
        step: rows("step", 1, size_of::<Step>(), 1),
        error: rows("error word", 1, size_of::<ErrorWord>(), 1),
        ids: rows("tokens", tokens, 1, 4),
        h: rows("residual stream", tokens, hidden, 2),
        blocks: rows("saved blocks", tokens * saved_blocks(config) as u64, hidden, 2),
        x: rows("block input", tokens, hidden, 2),
        projections: ["q", "k", "v", "gate"].map(|name| rows(name, tokens, heads_width, 2)),
        f_a: rows("decay, low rank", tokens, kda.head_dim, 2),
        beta: rows("beta", tokens, kda.heads / ranks, 4),
        heads_out: rows("heads' output", tokens, heads_width, 2),
        partial: rows("partial sums", tokens, hidden, 4),
        q_low: rows("query, low rank", tokens, mla.q_rank, 2),
        kv_low: rows("latent and shared key", tokens, mla.kv_rank + MLA_ROPE_DIM as usize, 2),
        q_normed: rows("query, low rank, normed", tokens, mla.q_rank, 2),
        q: rows("query", tokens, mla_heads * (mla.nope_dim + mla.rope_dim), 2),
        q_absorbed: rows("query, absorbed", 1, MlaAbsorb::out_bytes(sizes.chunk, mla_heads as u32) as usize, 1),
        attention_partial: rows("attention, by split", 1, attention(MlaAttention::partial_bytes) as usize, 1),
        attention_sums: rows("attention sums, by split", 1, attention(MlaAttention::sums_bytes) as usize, 1),
        dense: rows("dense MLP", tokens, config.dense_width / ranks, 2),
        router_logits: rows("router logits", tokens, moe.experts, 4),
        latent_part: rows("latent, own columns", tokens, moe.latent_size / ranks, 4),
        latent: rows("latent", tokens, moe.latent_size, 2),
        shared: rows("shared experts", tokens, moe.shared_width / ranks, 2),
        expert_ids: rows("chosen experts", assignments, 1, 4),
        expert_weights: rows("expert weights", assignments, 1, 4),
        expert_list: rows("assignments by expert", assignments, 1, 4),
        expert_tiles: rows(
            "tiles of assignments",
            1,
            MoeGroup::tiles_bytes(sizes.chunk, moe.experts as u32, moe.experts_per_token as u32) as usize,
            1,
        ),
        expert_tile_count: rows("tile count", 1, 1, 4),
        expert_h: rows("routed experts, inner", assignments, moe.expert_width / ranks, 2),
        expert_y: rows("routed experts, outer", assignments, moe.latent_size, 4),
        latent_sum: rows("latent sum", tokens, moe.latent_size, 2),
        latent_normed: rows("latent sum, normed", tokens, moe.latent_size, 2),
        logits: rows("logits", if sizes.all_logits { tokens } else { 1 }, config.vocab_size / ranks, 4),
    }
}

/// Residuals that are saved in one pass through the layers.
#[must_use]
pub fn saved_blocks(config: &Config) -> usize {
    (0..config.layers.len()).filter(|&index| config.restarts_residual(index)).count()
}
