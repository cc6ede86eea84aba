//! Projections with BF16 weights.

use bytemuck::{Pod, Zeroable};

use crate::arguments::arguments;
use crate::limits::MAX_SEGMENTS;
use crate::{GpuVa, Kernel, Launch, kernels};

/// Sums longer than this are divided between the waves of a workgroup.
const LONG: u32 = 512;

/// Rows that a workgroup computes for sums over `depth` values: its four waves share the sums of 16, or each has 16 of its
/// own. The kernels go by the same rule (`gemm_group_rows` in gemm.h).
pub(crate) fn group_rows(depth: u32) -> u32 {
    if depth > LONG { 16 } else { 64 }
}

/// Tokens of a workgroup in the small and in the large form.
const FEW_TOKENS: u32 = 16;
const MANY_TOKENS: u32 = 128;

/// A weight matrix `[rows][depth]` BF16 in GPU memory, rows at multiples of 4 bytes. Where they are at multiples of 16 they
/// are read 16 bytes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matrix {
    /// First row.
    pub address: GpuVa,
    /// Rows.
    pub rows: u32,
    /// Bytes from one row to the next.
    pub pitch: u32,
}

/// An output `[tokens][rows]`, its first row and its pitch multiples of 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// First row.
    pub address: GpuVa,
    /// Bytes from one row to the next.
    pub pitch: u32,
    /// FP32 or BF16.
    pub precision: Precision,
}

/// How an output is stored; sums are FP32 in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Rounded once.
    Bf16,
    /// As summed.
    F32,
}

/// How a segment makes its output: the C enum `form`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain = 0,
    Situ = 1,
    Sum = 2,
    Gather = 3,
}

/// One output of a launch.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Segment {
    w: GpuVa,
    w2: GpuVa,
    x2: GpuVa,
    y: GpuVa,
    rows: u32,
    w_pitch: u32,
    w2_pitch: u32,
    x2_pitch: u32,
    depth2: u32,
    y_pitch: u32,
    y_f32: u32,
    form: u32,
}

impl Segment {
    /// `y = x w'`.
    pub fn plain(w: Matrix, y: Output) -> Self {
        Self {
            w: w.address,
            y: y.address,
            rows: w.rows,
            w_pitch: w.pitch,
            y_pitch: y.pitch,
            y_f32: u32::from(y.precision == Precision::F32),
            form: Form::Plain as u32,
            ..Self::default()
        }
    }

    /// `y = SiTU(x gate', x up')`: `gate` and `up` have the same rows, and `x` is the launch's.
    pub fn gated(x: Input, gate: Matrix, up: Matrix, y: Output) -> Self {
        Self::second(Self::plain(gate, y), x, up, Form::Situ)
    }

    /// `y = x w' + x2 w2'`: `w` and `w2` have the same rows.
    pub fn sum(w: Matrix, x2: Input, w2: Matrix, y: Output) -> Self {
        Self::second(Self::plain(w, y), x2, w2, Form::Sum)
    }

    /// `y = x w'` with the rows of all ranks, in rank order; `y` is BF16. In [`crate::project::MixProject`] only.
    pub fn gathered(w: Matrix, y: GpuVa) -> Self {
        let output = Output { address: y, pitch: 0, precision: Precision::Bf16 };
        Self { form: Form::Gather as u32, ..Self::plain(w, output) }
    }

    /// Rows of a 16-row tile of weights that give an output each: in a gated segment half are gate, half are up rows.
    pub(crate) fn outputs_per_tile(&self) -> u32 {
        if self.form == Form::Situ as u32 { 8 } else { 16 }
    }

    /// Outputs.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }

    fn second(first: Self, x: Input, w: Matrix, form: Form) -> Self {
        Self {
            w2: w.address,
            w2_pitch: w.pitch,
            x2: x.address,
            x2_pitch: x.pitch,
            depth2: x.depth,
            form: form as u32,
            ..first
        }
    }
}

/// An input `[tokens][depth]` BF16, rows at multiples of 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    /// First row.
    pub address: GpuVa,
    /// Bytes from one row to the next.
    pub pitch: u32,
    /// Values of a row: what is summed over. Any number; multiples of 8 are fast.
    pub depth: u32,
}

/// The betas of SiTU: `activation_situ_beta` and `activation_situ_linear_beta` of the config.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SituBetas {
    /// Of the gate.
    pub gate: f32,
    /// Of the linear branch.
    pub linear: f32,
}

arguments! {
    /// Multiplies one input by up to six matrices. Each weight is read once for 16 tokens or, above 16, for 128.
    Gemm for [GEMM_16, GEMM_128] {
        /// [`crate::Step`].
        step: GpuVa,
        /// The input, `[tokens][depth]` BF16.
        x: GpuVa,
        /// The outputs.
        segments: [Segment; MAX_SEGMENTS],
        /// How many there are.
        segment_count: u32,
        /// Bytes from one row of x to the next.
        x_pitch: u32,
        /// Values of a row of x.
        depth: u32,
        /// See [`SituBetas`].
        situ_beta: f32,
        /// See [`SituBetas`].
        situ_linear_beta: f32,
        /// Most tokens of a run; 1 for the head, whatever the run's count.
        tokens: u32,
    }
}

impl Gemm {
    /// A launch for at most `tokens` tokens.
    ///
    /// # Panics
    /// With no or more than [`MAX_SEGMENTS`] outputs: the graph is fixed when it is built.
    pub fn new(step: GpuVa, x: Input, outputs: &[Segment], betas: SituBetas, tokens: u32) -> Self {
        assert!(
            (1..=MAX_SEGMENTS).contains(&outputs.len()),
            "{} outputs, 1 to {MAX_SEGMENTS} are possible",
            outputs.len()
        );
        let mut segments = [Segment::default(); MAX_SEGMENTS];
        segments[..outputs.len()].copy_from_slice(outputs);
        Self {
            step,
            x: x.address,
            segments,
            segment_count: outputs.len() as u32,
            x_pitch: x.pitch,
            depth: x.depth,
            situ_beta: betas.gate,
            situ_linear_beta: betas.linear,
            tokens,
        }
    }
}

impl Launch for Gemm {
    fn kernel(&self) -> &'static Kernel {
        if self.tokens <= FEW_TOKENS { &kernels::GEMM_16 } else { &kernels::GEMM_128 }
    }

    fn workgroups(&self) -> [u32; 3] {
        let tokens = if self.tokens <= FEW_TOKENS { FEW_TOKENS } else { MANY_TOKENS };
        let groups = |segment: &Segment| segment.rows.div_ceil(group_rows(self.depth.max(segment.depth2)));
        [self.segments[..self.segment_count as usize].iter().map(groups).sum(), self.tokens.div_ceil(tokens), 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(tokens: u32, depth: u32, rows: &[u32]) -> Gemm {
        let y = Output { address: GpuVa(4096), pitch: 64, precision: Precision::Bf16 };
        let outputs: Vec<_> =
            rows.iter().map(|&rows| Segment::plain(Matrix { address: GpuVa(64), rows, pitch: depth * 2 }, y)).collect();
        let x = Input { address: GpuVa(256), pitch: depth * 2, depth };
        Gemm::new(GpuVa(0), x, &outputs, SituBetas { gate: 4.0, linear: 25.0 }, tokens)
    }

    #[test]
    fn each_output_has_workgroups_of_its_own() {
        assert_eq!(launch(1, 7168, &[1536, 128, 12]).workgroups(), [96 + 8 + 1, 1, 1]);
    }

    #[test]
    fn short_sums_are_not_divided() {
        assert_eq!(launch(1, 256, &[1536, 128, 12]).workgroups(), [24 + 2 + 1, 1, 1]);
    }

    #[test]
    fn sixteen_tokens_take_the_small_form_and_more_take_the_large_one() {
        assert_eq!(launch(16, 256, &[16]).kernel().name, "gemm_16");
        assert_eq!(launch(17, 256, &[16]).kernel().name, "gemm_128");
        assert_eq!(launch(2048, 256, &[16]).workgroups(), [1, 16, 1]);
    }

    #[test]
    #[should_panic(expected = "7 outputs")]
    fn more_outputs_than_the_arguments_hold_are_refused() {
        launch(1, 256, &[16; 7]);
    }
}
