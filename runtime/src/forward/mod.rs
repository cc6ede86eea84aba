//! The forward pass as a list of kernel launches, built once for each rank and size of run.
//!
//! Each block is a method here that appends its launches; the order, the maths and the rounding are those of the model's
//! modelling code. All kernels wait for the one before, so the list is the whole dependency graph.

mod attention;
mod block;
mod experts;
mod feed_forward;
mod rank;
#[cfg(test)]
mod tests;

use block::BlockInput;
use kernels::collective::Mailbox;
use kernels::embed::Embed;
use kernels::gemm::{Gemm, Input, Output, Precision, Segment, SituBetas};
use kernels::head::{Advance, Sample};
use kernels::mix_norm::MixNorm;
use kernels::{GpuVa, Kernel, Launch};
use model::config::Config;
use model::layout::Layout;
use model::tensor::{LayerTensor, ModelTensor, TensorId};

use crate::plan::{MemoryPlan, RING_ENTRIES, pitch};

pub use rank::RankMemory;

/// One kernel launch, with its arguments as bytes.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// Workgroups in x, y and z.
    pub workgroups: [u32; 3],
    /// The kernel-argument segment.
    pub kernarg: Vec<u8>,
    /// The layer it belongs to; `None` before the first and after the last.
    pub layer: Option<usize>,
}

/// What a collective of a graph exchanges, to name it in errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveName {
    /// The layer, `None` after the last.
    pub layer: Option<usize>,
    /// What is exchanged.
    pub what: &'static str,
}

impl std::fmt::Display for CollectiveName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.layer {
            Some(layer) => write!(f, "layer {layer}, {}", self.what),
            None => f.write_str(self.what),
        }
    }
}

/// The launches of one rank.
#[derive(Clone, Debug, Default)]
pub struct Launches {
    /// In order.
    pub kernels: Vec<KernelLaunch>,
    /// Collectives by their number in the graph.
    pub collectives: Vec<CollectiveName>,
}

/// Which tokens of a run get logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logits {
    /// The last valid one.
    Last,
    /// Every one.
    All,
}

/// How ranks exchange values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collectives {
    /// In one launch, or inside the kernel that has the values: every word carries its flag.
    #[default]
    OneShot,
    /// In two launches with one signal a peer: the fallback, with the same bits where the launches before are the same.
    Signals,
}

/// Builds the launches of one rank for runs of at most `tokens` tokens.
pub struct Builder<'a> {
    config: &'a Config,
    layout: &'a Layout,
    plan: &'a MemoryPlan,
    memory: &'a RankMemory,
    tokens: u32,
    /// One token, with kernels that do the work of several launches ([`block`]).
    fused: bool,
    collectives: Collectives,
    layer: Option<usize>,
    launches: Launches,
}

impl<'a> Builder<'a> {
    /// Starts an empty list.
    #[must_use]
    pub fn new(
        config: &'a Config,
        layout: &'a Layout,
        plan: &'a MemoryPlan,
        memory: &'a RankMemory,
        tokens: u32,
    ) -> Self {
        let fused = tokens == 1 && block::fits(config, plan.sizes.ranks);
        let collectives = Collectives::OneShot;
        Self { config, layout, plan, memory, tokens, fused, collectives, layer: None, launches: Launches::default() }
    }

    /// Exchanges values that way. Signals have launches of their own, so no kernel for one token is used.
    #[must_use]
    pub fn with(self, collectives: Collectives) -> Self {
        Self { fused: self.fused && collectives == Collectives::OneShot, collectives, ..self }
    }

    /// The whole forward pass: embedding, all layers, head, choice of the token, advance.
    #[must_use]
    pub fn forward(mut self, logits: Logits) -> Launches {
        self.embed();
        let mut blocks = 0;
        for layer in 0..self.config.layers.len() {
            blocks = self.layer(layer, blocks);
        }
        self.layer = None;
        self.head(blocks, logits);
        self.sample(logits);
        self.advance(true);
        self.launches
    }

    /// The attention block of `layer` alone: from the block's input in [`RankMemory::x`] to its output in
    /// [`RankMemory::h`], then an advance. For tests of one block.
    #[must_use]
    pub fn attention_alone(mut self, layer: usize) -> Launches {
        self.layer = Some(layer);
        self.attention(layer, BlockInput::Given, false);
        self.advance(false);
        self.launches
    }

    /// The feed-forward block of `layer` alone, as [`Self::attention_alone`].
    #[must_use]
    pub fn feed_forward_alone(mut self, layer: usize) -> Launches {
        self.layer = Some(layer);
        self.feed_forward(layer, BlockInput::Given, false);
        self.advance(false);
        self.launches
    }

    /// One layer; gives the number of saved blocks after it.
    fn layer(&mut self, layer: usize, mut blocks: u32) -> u32 {
        self.layer = Some(layer);
        let restarts = self.config.restarts_residual(layer);
        let mix = [LayerTensor::SelfAttentionResNorm, LayerTensor::SelfAttentionResProj];
        let input = self.mixing(blocks, mix, LayerTensor::InputLayernorm, restarts.then_some(blocks));
        blocks += u32::from(restarts);
        self.attention(layer, BlockInput::Mixed(input), !restarts);
        let mix = [LayerTensor::MlpResNorm, LayerTensor::MlpResProj];
        let input = self.mixing(blocks, mix, LayerTensor::PostAttentionLayernorm, None);
        self.feed_forward(layer, BlockInput::Mixed(input), true);
        blocks
    }

    fn push(&mut self, launch: &impl Launch) {
        self.launches.kernels.push(KernelLaunch {
            kernel: launch.kernel(),
            workgroups: launch.workgroups(),
            kernarg: launch.kernarg().to_vec(),
            layer: self.layer,
        });
    }

    /// Numbers the next collective.
    fn collective(&mut self, what: &'static str) -> u32 {
        self.launches.collectives.push(CollectiveName { layer: self.layer, what });
        self.launches.collectives.len() as u32 - 1
    }

    fn embed(&mut self) {
        let rows = self.config.vocab_size / self.plan.sizes.ranks;
        self.push(&Embed {
            step: self.memory.step(),
            ids: self.memory.ids(),
            table: self.memory.embeddings,
            h: self.memory.h(),
            error: self.memory.error(),
            rank: self.memory.rank,
            rows_per_rank: rows as u32,
            ranks: self.plan.sizes.ranks as u32,
            hidden: self.config.hidden_size as u32,
            tokens: self.tokens,
            reserved: 0,
        });
    }

    /// The mix of the saved blocks and the running sum that the current layer's block starts with; the running sum is
    /// saved as block `save`.
    fn mixing(&self, blocks: u32, mix: [LayerTensor; 2], norm: LayerTensor, save: Option<u32>) -> Mixing {
        let [mix_norm, proj] = mix.map(|tensor| self.layer_weight(tensor));
        let save = save.map_or(GpuVa::NULL, |block| self.memory.block(self.plan, self.config, block));
        Mixing { blocks, norm: mix_norm, proj, weight: self.layer_weight(norm), save, last_only: false }
    }

    fn push_mix_norm(&mut self, mixing: Mixing, out: GpuVa) {
        self.push(&MixNorm {
            step: self.memory.step(),
            h: self.memory.h(),
            blocks: self.memory.block(self.plan, self.config, 0),
            save: mixing.save,
            norm: mixing.norm,
            proj: mixing.proj,
            weight: mixing.weight,
            out,
            block_stride: self.memory.block_stride(self.plan, self.config),
            block_count: mixing.blocks,
            width: self.config.hidden_size as u32,
            eps: self.config.rms_norm_eps,
            last_only: u32::from(mixing.last_only),
            tokens: self.tokens,
            reserved: 0,
        });
    }

    fn mailbox(&self) -> Mailbox {
        self.memory.mailbox(self.plan)
    }

    fn head(&mut self, blocks: u32, logits: Logits) {
        let last_only = logits == Logits::Last;
        let mixing = Mixing {
            blocks,
            norm: self.weight(TensorId::Model(ModelTensor::OutputAttnResNorm)),
            proj: self.weight(TensorId::Model(ModelTensor::OutputAttnResProj)),
            weight: self.weight(TensorId::Model(ModelTensor::Norm)),
            save: GpuVa::NULL,
            last_only,
        };
        self.push_mix_norm(mixing, self.memory.x());
        let matrix = self.matrix(TensorId::Model(ModelTensor::LmHead));
        let segment = Segment::plain(matrix, self.logits_output());
        let tokens = if last_only { 1 } else { self.tokens };
        self.push(&Gemm::new(self.memory.step(), self.hidden_input(), &[segment], self.betas(), tokens));
    }

    fn sample(&mut self, logits: Logits) {
        let collective = self.collective("choice of the token");
        self.push(&Sample {
            step: self.memory.step(),
            logits: self.memory.logits(),
            mailbox: self.mailbox(),
            row_pitch: self.logits_output().pitch,
            rows: (self.config.vocab_size / self.plan.sizes.ranks) as u32,
            last_row: u32::from(logits == Logits::All),
            collective,
            tokens: self.tokens,
            reserved: 0,
        });
    }

    fn advance(&mut self, has_token: bool) {
        self.push(&Advance {
            step: self.memory.step(),
            ids: self.memory.ids(),
            ring: self.memory.ring,
            error: self.memory.error(),
            ring_mask: RING_ENTRIES - 1,
            collectives: self.launches.collectives.len() as u32,
            has_token: u32::from(has_token),
            tokens: self.tokens,
        });
    }

    fn logits_output(&self) -> Output {
        let rows = self.config.vocab_size / self.plan.sizes.ranks;
        Output { address: self.memory.logits(), pitch: pitch(rows, 4), precision: Precision::F32 }
    }

    /// The block input as a projection's input.
    fn hidden_input(&self) -> Input {
        let depth = self.config.hidden_size;
        Input { address: self.memory.x(), pitch: pitch(depth, 2), depth: depth as u32 }
    }

    fn betas(&self) -> SituBetas {
        SituBetas { gate: self.config.situ_beta, linear: self.config.situ_linear_beta }
    }

    fn layer_number(&self) -> u16 {
        self.layer.map_or(0, |layer| layer as u16)
    }

    /// Address of a weight of this rank.
    fn weight(&self, id: TensorId) -> GpuVa {
        GpuVa(self.memory.weights.get() + self.region(id).offset)
    }

    /// A weight of the current layer.
    fn layer_weight(&self, tensor: LayerTensor) -> GpuVa {
        self.weight(TensorId::Layer(self.layer_number(), tensor))
    }

    /// A weight matrix of the current layer.
    fn layer_matrix(&self, tensor: LayerTensor) -> kernels::gemm::Matrix {
        self.matrix(TensorId::Layer(self.layer_number(), tensor))
    }

    fn matrix(&self, id: TensorId) -> kernels::gemm::Matrix {
        let region = self.region(id);
        kernels::gemm::Matrix {
            address: GpuVa(self.memory.weights.get() + region.offset),
            rows: region.rows as u32,
            pitch: region.pitch as u32,
        }
    }

    fn region(&self, id: TensorId) -> model::layout::Region {
        self.layout.region(id).expect("the layout was made from the same config, so it has every tensor of the model")
    }

    /// An output of `width` values a token, packed but for the padding of rows.
    fn output(address: GpuVa, width: usize, precision: Precision) -> Output {
        let bytes = if precision == Precision::F32 { 4 } else { 2 };
        Output { address, pitch: pitch(width, bytes), precision }
    }
}

/// What a residual mix reads.
#[derive(Clone, Copy, Debug)]
struct Mixing {
    blocks: u32,
    norm: GpuVa,
    proj: GpuVa,
    weight: GpuVa,
    save: GpuVa,
    last_only: bool,
}
