//! What launches have to move and compute, read off their arguments.
//!
//! A launch names buffers by address. The memory plan and the layout of the weights say what is at an address, so a
//! kernel that is given other buffers, or several kernels made one, are counted right without a word about them here.
//! Each byte counts once a launch: what a kernel requests twice is its own affair, and reported apart.

use std::ops::Range;

use model::config::Config;
use model::layout::Layout;
use model::tensor::{ExpertMatrix, ExpertPart, ModelTensor, TensorId};

use crate::forward::{KernelLaunch, RankMemory};
use crate::plan::{LayerState, MemoryPlan};

/// The least that a launch moves and computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Work {
    /// Bytes of weights and scales.
    pub weight_bytes: u64,
    /// Bytes of latents, KDA states and convolution histories, read and written.
    pub state_bytes: u64,
    /// Bytes of activations: every buffer that is named, once.
    pub activation_bytes: u64,
    /// Multiplications and additions of the matrices, of attention and of the recurrence.
    pub flops: u64,
}

impl Work {
    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.weight_bytes + self.state_bytes + self.activation_bytes
    }
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.weight_bytes += other.weight_bytes;
        self.state_bytes += other.state_bytes;
        self.activation_bytes += other.activation_bytes;
        self.flops += other.flops;
    }
}

impl std::iter::Sum for Work {
    fn sum<I: Iterator<Item = Self>>(works: I) -> Self {
        works.fold(Self::default(), |mut sum, work| {
            sum += work;
            sum
        })
    }
}

/// A run whose work is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Tokens of the run.
    pub tokens: u32,
    /// Tokens in the caches before it.
    pub position: u32,
    /// Different experts that the run's tokens choose, in each layer.
    pub experts: u64,
}

impl Run {
    /// A run whose tokens choose experts at random, which gives so many different ones on average.
    #[must_use]
    pub fn with_random_choice(config: &Config, tokens: u32, position: u32) -> Self {
        let (experts, chosen) = (config.moe.experts as f64, config.moe.experts_per_token as f64);
        let missed = (1.0 - chosen / experts).powf(tokens.into());
        Self { tokens, position, experts: (experts * (1.0 - missed)).round() as u64 }
    }

    /// Pairs of a token and a cached token that it sees, itself included.
    fn attended(self) -> u64 {
        let (tokens, position) = (u64::from(self.tokens), u64::from(self.position));
        tokens * position + tokens * (tokens + 1) / 2
    }
}

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// A weight of that many elements, multiplied with every token or with the last one.
    Weight { bytes: u64, elements: u64, last_only: bool },
    /// The embedding, of which each token reads a row.
    Embedding { row_bytes: u64 },
    /// The experts of a layer.
    Experts { layer: usize },
    /// The recurrent state of a KDA layer, FP32.
    Recurrent { bytes: u64 },
    /// Convolution histories.
    History { bytes: u64 },
    /// Latents of an MLA layer.
    Latents,
    /// The saved residuals.
    Blocks,
    /// Anything else that changes from token to token.
    Activation { bytes: u64 },
}

/// What is where in one rank's memory.
pub struct Catalogue<'a> {
    config: &'a Config,
    layout: &'a Layout,
    plan: &'a MemoryPlan,
    /// By first byte.
    ranges: Vec<(Range<u64>, Content)>,
}

impl<'a> Catalogue<'a> {
    /// Everything that `memory` has a place for.
    #[must_use]
    pub fn new(config: &'a Config, layout: &'a Layout, plan: &'a MemoryPlan, memory: &RankMemory) -> Self {
        let mut catalogue = Self { config, layout, plan, ranges: Vec::new() };
        catalogue.add_weights(memory.weights.get());
        catalogue.add_states(memory.state.get(), memory.cache.get());
        let blocks = memory.places.blocks.get();
        for part in plan.workspace.parts() {
            let bytes = part.bytes.get();
            let content = if part.offset == blocks { Content::Blocks } else { Content::Activation { bytes } };
            catalogue.add(memory.workspace.get() + part.offset, bytes, content);
        }
        catalogue.ranges.sort_by_key(|(range, _)| range.start);
        catalogue
    }

    fn add(&mut self, start: u64, bytes: u64, content: Content) {
        self.ranges.push((start..start + bytes, content));
    }

    fn add_weights(&mut self, base: u64) {
        let layers = (0..self.config.layers.len()).flat_map(|layer| self.layout.inventory().layer(layer));
        let ids = self.layout.inventory().outside_layers().chain(layers);
        for id in ids.filter(|id| !matches!(id, TensorId::Expert(_))) {
            let element_bytes = self.layout.inventory().spec(id).map_or(1, |spec| spec.element_bytes());
            let Some(region) = self.layout.region(id) else { continue };
            let content = match id {
                TensorId::Model(ModelTensor::EmbedTokens) => Content::Embedding { row_bytes: region.row_bytes },
                _ => Content::Weight {
                    bytes: region.weight_bytes(),
                    elements: region.weight_bytes() / element_bytes,
                    last_only: id == TensorId::Model(ModelTensor::LmHead) && !self.plan.sizes.all_logits,
                },
            };
            self.add(base + region.offset, region.bytes(), content);
        }
        for layer in 0..self.config.layers.len() {
            for half in self.layout.kv_b(layer).into_iter().flat_map(|kv_b| [kv_b.key, kv_b.value]) {
                // BF16, as all matrices besides the experts.
                let (bytes, elements) = (half.weight_bytes(), half.weight_bytes() / 2);
                self.add(base + half.offset, half.bytes(), Content::Weight { bytes, elements, last_only: false });
            }
            if let Some(table) = self.layout.experts(layer) {
                self.add(base + table.offset, table.count * table.stride, Content::Experts { layer });
            }
        }
    }

    fn add_states(&mut self, state: u64, cache: u64) {
        let bytes_at = |section: &crate::plan::Section, offset: u64| {
            section.parts().iter().find(|part| part.offset == offset).map_or(0, |part| part.bytes.get())
        };
        for layer in &self.plan.states {
            match layer {
                LayerState::Kda(kda) => {
                    let bytes = bytes_at(&self.plan.state, kda.recurrent.get());
                    self.add(state + kda.recurrent.get(), bytes, Content::Recurrent { bytes });
                    for history in kda.histories {
                        let bytes = bytes_at(&self.plan.state, history.get());
                        self.add(state + history.get(), bytes, Content::History { bytes });
                    }
                }
                LayerState::Mla(latents) => {
                    let bytes = bytes_at(&self.plan.cache, latents.get());
                    self.add(cache + latents.get(), bytes, Content::Latents);
                }
            }
        }
    }

    /// Index of what is at `address`.
    fn find(&self, address: u64) -> Option<usize> {
        let index = self.ranges.partition_point(|(range, _)| range.start <= address).checked_sub(1)?;
        self.ranges[index].0.contains(&address).then_some(index)
    }

    /// The least that `launch` moves and computes in `run`.
    #[must_use]
    pub fn work(&self, launch: &KernelLaunch, run: Run) -> Work {
        let (words, _) = launch.kernarg.as_chunks::<8>();
        let mut named: Vec<usize> = words.iter().filter_map(|word| self.find(u64::from_le_bytes(*word))).collect();
        named.sort_unstable();
        named.dedup();
        named.into_iter().map(|index| self.content_work(self.ranges[index].1, launch, run)).sum()
    }

    fn content_work(&self, content: Content, launch: &KernelLaunch, run: Run) -> Work {
        let tokens = u64::from(run.tokens);
        match content {
            Content::Weight { bytes, elements, last_only } => {
                let flops = 2 * elements * if last_only { 1 } else { tokens };
                Work { weight_bytes: bytes, flops, ..Work::default() }
            }
            Content::Embedding { row_bytes } => Work { weight_bytes: tokens * row_bytes, ..Work::default() },
            Content::Experts { layer } => self.expert_work(layer, launch, run),
            // Decay, the product with k, the update, the product with q: 1 + 2 + 2 + 2 for an element of the state.
            Content::Recurrent { bytes } => {
                Work { state_bytes: 2 * bytes, flops: 7 * bytes / 4 * tokens, ..Work::default() }
            }
            Content::History { bytes } => Work { state_bytes: 2 * bytes, ..Work::default() },
            Content::Latents => self.latent_work(launch, run),
            Content::Blocks => {
                let last = launch.layer.unwrap_or(self.config.layers.len() - 1);
                let saved = (0..=last).filter(|&layer| self.config.restarts_residual(layer)).count() as u64;
                let bytes = saved * tokens * self.config.hidden_size as u64 * 2;
                Work { activation_bytes: bytes, ..Work::default() }
            }
            Content::Activation { bytes } => Work { activation_bytes: bytes, ..Work::default() },
        }
    }

    fn expert_work(&self, layer: usize, launch: &KernelLaunch, run: Run) -> Work {
        let Some(table) = self.layout.experts(layer) else { return Work::default() };
        let assignments = u64::from(run.tokens) * self.config.moe.experts_per_token as u64;
        let mut work = Work::default();
        for &matrix in expert_matrices(launch.kernel.name) {
            let packed = table.inside(matrix, ExpertPart::Packed);
            let bytes = packed.weight_bytes() + table.inside(matrix, ExpertPart::Scale).weight_bytes();
            work.weight_bytes += run.experts * bytes;
            // Two elements a byte, a multiplication and an addition each.
            work.flops += 4 * packed.weight_bytes() * assignments;
        }
        work
    }

    /// A launch that attends reads all latents of the context; any other only appends those of its tokens.
    fn latent_work(&self, launch: &KernelLaunch, run: Run) -> Work {
        let mla = &self.config.mla;
        let token_bytes = 2 * (mla.kv_rank + mla.rope_dim) as u64;
        let tokens = u64::from(run.tokens);
        if !launch.kernel.name.contains("attention") {
            return Work { state_bytes: tokens * token_bytes, ..Work::default() };
        }
        let heads = (mla.heads / self.plan.sizes.ranks) as u64;
        let flops = 2 * heads * run.attended() * (2 * mla.kv_rank + mla.rope_dim) as u64;
        Work { state_bytes: (u64::from(run.position) + tokens) * token_bytes, flops, ..Work::default() }
    }
}

/// Matrices of an expert that a kernel reads: it is given the whole table.
fn expert_matrices(kernel: &str) -> &'static [ExpertMatrix] {
    if kernel.contains("up") {
        &[ExpertMatrix::W1, ExpertMatrix::W3]
    } else if kernel.contains("down") {
        &[ExpertMatrix::W2]
    } else {
        &[ExpertMatrix::W1, ExpertMatrix::W2, ExpertMatrix::W3]
    }
}
