//! What all blocks have in common: they start with a residual mix, a norm and projections of the normed row, and end with a
//! projection whose sum over the ranks goes to h.
//!
//! A chunk of tokens takes a launch for each of these; one token takes one launch for the start and one for the end.

use kernels::GpuVa;
use kernels::collective::{AllGather, AllReduce};
use kernels::gemm::{Gemm, Input, Matrix, Precision, Segment};
use kernels::limits::{MAX_EXPERT_INPUT, MAX_VECTOR, MAX_WIDTH, ROW_STEP};
use kernels::project::{MixProject, MixedInput, ProjectSum};
use kernels::signal::{SignalGather, SignalSend, SignalSum};
use model::config::Config;
use model::tensor::LayerTensor;

use super::{Builder, Collectives, Mixing};
use crate::plan::pitch;

/// What a block starts from.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockInput {
    /// A mix, which is then normed.
    Mixed(Mixing),
    /// Normed rows that are in x already.
    Given,
}

/// An output of a block's start that the ranks compute in parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    /// Columns of a rank.
    pub(super) width: usize,
    /// Which weights.
    pub(super) matrix: Matrix,
    /// This rank's columns, FP32, where they are stored apart.
    pub(super) part: GpuVa,
    /// `[tokens][ranks x width]` BF16.
    pub(super) whole: GpuVa,
}

/// Whether the kernels for one token hold a model of these sizes over `ranks` GPUs.
pub(super) fn fits(config: &Config, ranks: usize) -> bool {
    let (moe, mla) = (&config.moe, &config.mla);
    let (part, shared, dense) = (moe.latent_size / ranks, moe.shared_width / ranks, config.dense_width / ranks);
    let heads_widths = [config.kda.heads / ranks * config.kda.head_dim, mla.heads / ranks * mla.v_dim];
    let expert_input = moe.experts_per_token * (moe.expert_width / ranks).next_multiple_of(128);
    let padded = |width: usize| width.next_multiple_of(ROW_STEP as usize);
    let vectors = [padded(part) + padded(shared), padded(dense), heads_widths[0], heads_widths[1]];
    [config.hidden_size, moe.latent_size, mla.q_rank].iter().all(|&width| width <= MAX_WIDTH as usize)
        && vectors.iter().all(|&width| width <= MAX_VECTOR as usize)
        && [part, shared, dense].iter().all(|width| width % 8 == 0)
        && expert_input <= MAX_EXPERT_INPUT as usize
}

impl Builder<'_> {
    /// Mix, norm and projections of the normed row; `gathered` is one of them.
    pub(super) fn start_block(&mut self, input: BlockInput, outputs: &[Segment], gathered: Option<Gathered>) {
        if self.fused {
            let mut outputs = outputs.to_vec();
            let mut collective = 0;
            if let Some(gathered) = gathered {
                outputs.push(Segment::gathered(gathered.matrix, gathered.whole));
                collective = self.collective("latent");
            }
            let (step, mailbox) = (self.memory.step(), self.mailbox());
            let x = self.mixed_input(input);
            self.push(&MixProject::new(step, x, &outputs, self.betas(), mailbox, collective));
            return;
        }
        if let BlockInput::Mixed(mixing) = input {
            self.push_mix_norm(mixing, self.memory.x());
        }
        let mut outputs = outputs.to_vec();
        outputs.extend(gathered.map(|gathered| {
            Segment::plain(gathered.matrix, Self::output(gathered.part, gathered.width, Precision::F32))
        }));
        self.project(self.hidden_input(), &outputs);
        if let Some(gathered) = gathered {
            self.gather(gathered);
        }
    }

    /// `x w'` summed over the ranks into h, on top of what h holds if `add`.
    pub(super) fn end_block(&mut self, what: &'static str, x: Input, w: Matrix, add: bool) {
        if self.fused {
            let collective = self.collective(what);
            let (h, residual) = self.h_and_residual(add);
            self.push(&ProjectSum::plain(self.memory.step(), x, w, residual, h, self.mailbox(), collective));
            return;
        }
        self.project(x, &[Segment::plain(w, self.share())]);
        self.sum_into_h(what, add);
    }

    /// The same for the normed latent sum times this rank's columns of latent-up, plus shared-down.
    pub(super) fn end_moe(&mut self, sum: GpuVa, shared: Input, add: bool) {
        let latent = self.config.moe.latent_size;
        let part = latent / self.plan.sizes.ranks;
        let first = self.memory.rank * part as u32;
        let (up, down) = (self.layer_matrix(LayerTensor::LatentUp), self.layer_matrix(LayerTensor::SharedDown));
        let (step, weight, eps) =
            (self.memory.step(), self.layer_weight(LayerTensor::LatentNorm), self.config.rms_norm_eps);
        if self.fused {
            let collective = self.collective("block output");
            let (out, residual) = self.h_and_residual(add);
            self.push(&ProjectSum {
                step,
                x: sum,
                weight,
                w: up.address,
                x2: shared.address,
                w2: down.address,
                residual,
                out,
                mailbox: self.mailbox(),
                norm_width: latent as u32,
                first,
                depth: part as u32,
                depth2: shared.depth,
                w_pitch: up.pitch,
                w2_pitch: down.pitch,
                rows: up.rows,
                eps,
                collective,
                reserved: 0,
            });
            return;
        }
        let normed = self.memory.at(self.memory.places.latent_normed);
        self.push(&kernels::mix_norm::MixNorm {
            step,
            h: sum,
            blocks: GpuVa::NULL,
            save: GpuVa::NULL,
            norm: GpuVa::NULL,
            proj: GpuVa::NULL,
            weight,
            out: normed,
            block_stride: 0,
            block_count: 0,
            width: latent as u32,
            eps,
            last_only: 0,
            tokens: self.tokens,
            reserved: 0,
        });
        let own = GpuVa(normed.0 + u64::from(first) * 2);
        let x = Input { address: own, pitch: pitch(latent, 2), depth: part as u32 };
        self.project(x, &[Segment::sum(up, shared, down, self.share())]);
        self.sum_into_h("block output", add);
    }

    /// A projection of `x` alone.
    pub(super) fn project(&mut self, x: Input, outputs: &[Segment]) {
        let gemm = Gemm::new(self.memory.step(), x, outputs, self.betas(), self.tokens);
        self.push(&gemm);
    }

    fn mixed_input(&self, input: BlockInput) -> MixedInput {
        let memory = self.memory;
        let (block_stride, blocks) =
            (memory.block_stride(self.plan, self.config), memory.block(self.plan, self.config, 0));
        let (width, eps) = (self.config.hidden_size as u32, self.config.rms_norm_eps);
        match input {
            BlockInput::Mixed(mixing) => MixedInput {
                h: memory.h(),
                blocks,
                save: mixing.save,
                norm: mixing.norm,
                proj: mixing.proj,
                weight: mixing.weight,
                block_stride,
                block_count: mixing.blocks,
                width,
                eps,
            },
            BlockInput::Given => MixedInput {
                h: memory.x(),
                blocks,
                save: GpuVa::NULL,
                norm: GpuVa::NULL,
                proj: GpuVa::NULL,
                weight: GpuVa::NULL,
                block_stride,
                block_count: 0,
                width,
                eps,
            },
        }
    }

    fn h_and_residual(&self, add: bool) -> (GpuVa, GpuVa) {
        let h = self.memory.h();
        (h, if add { h } else { GpuVa::NULL })
    }

    /// This rank's share of a sum into h.
    fn share(&self) -> kernels::gemm::Output {
        Self::output(self.memory.partial(), self.config.hidden_size, Precision::F32)
    }

    /// Sums the ranks' shares into h.
    fn sum_into_h(&mut self, what: &'static str, add: bool) {
        let collective = self.collective(what);
        let (out, residual) = self.h_and_residual(add);
        let partial = self.memory.partial();
        let shape =
            AllReduceShape { partial, weights: GpuVa::NULL, residual, out, width: self.config.hidden_size, terms: 1 };
        self.all_reduce(shape, collective);
    }

    pub(super) fn all_reduce(&mut self, shape: AllReduceShape, collective: u32) {
        if self.collectives == Collectives::Signals {
            self.signal_send(shape.partial, shape.weights, shape.width, shape.terms, collective);
            self.push(&SignalSum {
                step: self.memory.step(),
                residual: shape.residual,
                out: shape.out,
                mailbox: self.mailbox(),
                width: shape.width as u32,
                collective,
                tokens: self.tokens,
                reserved: 0,
            });
            return;
        }
        let mailbox = self.mailbox();
        self.push(&AllReduce {
            step: self.memory.step(),
            partial: shape.partial,
            weights: shape.weights,
            residual: shape.residual,
            out: shape.out,
            mailboxes: mailbox.mailboxes,
            error: mailbox.error,
            words: mailbox.words,
            timeout: mailbox.timeout,
            partial_pitch: pitch(shape.width, 4),
            terms: shape.terms,
            width: shape.width as u32,
            rank: mailbox.rank,
            ranks: mailbox.ranks,
            collective,
            tokens: self.tokens,
            reserved: 0,
        });
    }

    /// Joins the ranks' columns.
    fn gather(&mut self, gathered: Gathered) {
        let collective = self.collective("latent");
        if self.collectives == Collectives::Signals {
            self.signal_send(gathered.part, GpuVa::NULL, gathered.width, 1, collective);
            self.push(&SignalGather {
                step: self.memory.step(),
                out: gathered.whole,
                mailbox: self.mailbox(),
                width: gathered.width as u32,
                collective,
                tokens: self.tokens,
                reserved: 0,
            });
            return;
        }
        let mailbox = self.mailbox();
        self.push(&AllGather {
            step: self.memory.step(),
            part: gathered.part,
            out: gathered.whole,
            mailboxes: mailbox.mailboxes,
            error: mailbox.error,
            words: mailbox.words,
            timeout: mailbox.timeout,
            part_pitch: pitch(gathered.width, 4),
            width: gathered.width as u32,
            rank: mailbox.rank,
            ranks: mailbox.ranks,
            collective,
            tokens: self.tokens,
        });
    }

    /// First launch of a collective with signals.
    fn signal_send(&mut self, partial: GpuVa, weights: GpuVa, width: usize, terms: u32, collective: u32) {
        self.push(&SignalSend {
            step: self.memory.step(),
            partial,
            weights,
            mailbox: self.mailbox(),
            partial_pitch: pitch(width, 4),
            terms,
            width: width as u32,
            collective,
            tokens: self.tokens,
            reserved: 0,
        });
    }
}

/// What an all-reduce sums.
pub(super) struct AllReduceShape {
    pub(super) partial: GpuVa,
    pub(super) weights: GpuVa,
    pub(super) residual: GpuVa,
    pub(super) out: GpuVa,
    pub(super) width: usize,
    pub(super) terms: u32,
}
