//! Projections of one token with what comes before and after them, each in one launch: decode.

use crate::arguments::arguments;
use crate::collective::Mailbox;
use crate::gemm::{Input, Matrix, Segment, SituBetas};
use crate::limits::{MAX_SEGMENTS, ROW_STEP};
use crate::{GpuVa, Kernel, Launch, kernels};

/// Waves of a workgroup.
const WAVES: u32 = 8;
/// Rows of weights of a tile.
const TILE: u32 = 16;
/// Compute units of a GPU: more workgroups than these would only repeat the mix.
const COMPUTE_UNITS: u32 = 256;

/// Whether the waves of a workgroup share the sums of one tile, or each has a tile of its own: the rule of `rows_share` in
/// rows.h.
fn rows_share(steps: u32) -> bool {
    steps > 8
}

/// Tiles of a workgroup at a time, for sums over parts of these depths.
fn tiles_at_once(depths: &[u32]) -> u32 {
    if rows_share(depths.iter().map(|depth| depth.div_ceil(ROW_STEP)).sum()) { 1 } else { WAVES }
}

/// What is mixed and normed before a projection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MixedInput {
    /// `[width]` BF16: the running sum, or whatever is to be normed.
    pub h: GpuVa,
    /// `[block_count]` saved blocks, each `[width]` BF16; unused without blocks.
    pub blocks: GpuVa,
    /// Where to save the unmixed `h`, or null. Not one of `blocks`.
    pub save: GpuVa,
    /// `[width]` BF16: norm weight of the mix; unused without blocks.
    pub norm: GpuVa,
    /// `[width]` BF16: projection of the mix; unused without blocks.
    pub proj: GpuVa,
    /// `[width]` BF16: weight of the norm, or null to take the mix as it is.
    pub weight: GpuVa,
    /// Bytes from one block to the next.
    pub block_stride: u64,
    /// Saved blocks, at most [`crate::limits::MAX_BLOCKS`].
    pub block_count: u32,
    /// Values of a row, a multiple of 8, at most [`crate::limits::MAX_WIDTH`].
    pub width: u32,
    /// `rms_norm_eps` of the config.
    pub eps: f32,
}

arguments! {
    /// Residual mix, norm and up to six projections of the normed row, of which one may be gathered over the ranks.
    MixProject for [MIX_PROJECT] {
        /// [`crate::Step`].
        step: GpuVa,
        /// See [`MixedInput`].
        h: GpuVa,
        /// See [`MixedInput`].
        blocks: GpuVa,
        /// See [`MixedInput`].
        save: GpuVa,
        /// See [`MixedInput`].
        norm: GpuVa,
        /// See [`MixedInput`].
        proj: GpuVa,
        /// See [`MixedInput`].
        weight: GpuVa,
        /// The outputs: plain, gated or gathered.
        segments: [Segment; MAX_SEGMENTS],
        /// Used by a gathered output only.
        mailbox: Mailbox,
        /// See [`MixedInput`].
        block_stride: u64,
        /// See [`MixedInput`].
        block_count: u32,
        /// See [`MixedInput`].
        width: u32,
        /// See [`MixedInput`].
        eps: f32,
        /// How many segments there are.
        segment_count: u32,
        /// See [`SituBetas`].
        situ_beta: f32,
        /// See [`SituBetas`].
        situ_linear_beta: f32,
        /// Number of the collective, if an output is gathered.
        collective: u32,
        /// Workgroups.
        groups: u32,
    }
}

impl MixProject {
    /// A launch.
    ///
    /// # Panics
    /// With no or more than [`MAX_SEGMENTS`] outputs: the graph is fixed when it is built.
    pub fn new(
        step: GpuVa,
        x: MixedInput,
        outputs: &[Segment],
        betas: SituBetas,
        mailbox: Mailbox,
        collective: u32,
    ) -> Self {
        assert!(
            (1..=MAX_SEGMENTS).contains(&outputs.len()),
            "{} outputs, 1 to {MAX_SEGMENTS} are possible",
            outputs.len()
        );
        let mut segments = [Segment::default(); MAX_SEGMENTS];
        segments[..outputs.len()].copy_from_slice(outputs);
        let at_once = tiles_at_once(&[x.width]);
        let shares: u32 =
            outputs.iter().map(|segment| segment.rows().div_ceil(at_once * segment.outputs_per_tile())).sum();
        // As many to each workgroup as it takes to keep within the compute units.
        let groups = shares.div_ceil(shares.div_ceil(COMPUTE_UNITS));
        Self {
            step,
            h: x.h,
            blocks: x.blocks,
            save: x.save,
            norm: x.norm,
            proj: x.proj,
            weight: x.weight,
            segments,
            mailbox,
            block_stride: x.block_stride,
            block_count: x.block_count,
            width: x.width,
            eps: x.eps,
            segment_count: outputs.len() as u32,
            situ_beta: betas.gate,
            situ_linear_beta: betas.linear,
            collective,
            groups,
        }
    }
}

impl Launch for MixProject {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MIX_PROJECT
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.groups, 1, 1]
    }
}

arguments! {
    /// `out = sum over ranks of (w x + w2 x2) + residual`, rounded once to BF16: the same bits on every rank. Sends `rows`
    /// words. An infinity or a NaN sets the error word and names the rank it came from.
    ProjectSum for [PROJECT_SUM] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[norm_width]` BF16, of which this rank multiplies `depth` values from `first` on.
        x: GpuVa,
        /// `[norm_width]` BF16: weight of a norm of x, or null for none.
        weight: GpuVa,
        /// `[rows][depth]` BF16.
        w: GpuVa,
        /// `[depth2]` BF16, taken as it is.
        x2: GpuVa,
        /// `[rows][depth2]` BF16.
        w2: GpuVa,
        /// `[rows]` BF16 to add, or null.
        residual: GpuVa,
        /// `[rows]` BF16; may be `residual`.
        out: GpuVa,
        /// See [`Mailbox`].
        mailbox: Mailbox,
        /// Values of x, a multiple of 8, at most [`crate::limits::MAX_WIDTH`].
        norm_width: u32,
        /// First value of x that is multiplied, a multiple of 8.
        first: u32,
        /// Values of x that are multiplied, a multiple of 8.
        depth: u32,
        /// Values of x2, a multiple of 8; may be 0.
        depth2: u32,
        /// Bytes from one row of w to the next, a multiple of 16.
        w_pitch: u32,
        /// Likewise w2.
        w2_pitch: u32,
        /// Rows of w and w2.
        rows: u32,
        /// Of the norm.
        eps: f32,
        /// Number of this collective in the graph.
        collective: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl ProjectSum {
    /// The sum of `w x` over ranks, with `x` as it is.
    pub fn plain(
        step: GpuVa,
        x: Input,
        w: Matrix,
        residual: GpuVa,
        out: GpuVa,
        mailbox: Mailbox,
        collective: u32,
    ) -> Self {
        Self {
            step,
            x: x.address,
            weight: GpuVa::NULL,
            w: w.address,
            x2: GpuVa::NULL,
            w2: w.address,
            residual,
            out,
            mailbox,
            norm_width: x.depth,
            first: 0,
            depth: x.depth,
            depth2: 0,
            w_pitch: w.pitch,
            w2_pitch: 0,
            rows: w.rows,
            eps: 0.0,
            collective,
            reserved: 0,
        }
    }
}

impl Launch for ProjectSum {
    fn kernel(&self) -> &'static Kernel {
        &kernels::PROJECT_SUM
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.rows.div_ceil(tiles_at_once(&[self.depth, self.depth2]) * TILE), 1, 1]
    }
}

/// Workgroups of a launch for `rows` outputs of sums over `depth` values.
pub(crate) fn row_groups(rows: u32, depth: u32) -> u32 {
    rows.div_ceil(tiles_at_once(&[depth]) * TILE)
}
