//! Routed experts.
//!
//! Order of launches: [`RouterTopk`] and [`MoeGroup`], or for few tokens [`MoeRoute`] alone; [`MoeUp`], [`MoeDown`]. The
//! weighted sum over a token's experts is part of [`crate::collective::AllReduce`].

use crate::arguments::arguments;
use crate::gemm::group_rows;
use crate::{GpuVa, Kernel, Launch, kernels};

/// Assignments of a tile of [`MoeGroup`]: most tokens for which an expert's weights are read once.
pub const TILE: u32 = 64;

/// Bytes of an entry of `tiles`.
const TILE_BYTES: u64 = 16;

/// Most tiles that assignments of `tokens` tokens can make, whatever the router chooses: every expert in use may leave one
/// tile that is not full.
pub fn max_tiles(tokens: u32, experts: u32, top_k: u32) -> u32 {
    let assignments = tokens * top_k;
    let used = experts.min(assignments);
    used + (assignments - used) / TILE
}

arguments! {
    /// Chooses the experts of each token and their weights.
    RouterTopk for [ROUTER_TOPK] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][experts]` FP32: output of the router's gate.
        logits: GpuVa,
        /// `[experts]` FP32: e_score_correction_bias.
        bias: GpuVa,
        /// `[tokens][top_k]` u32: the chosen experts, best first.
        ids: GpuVa,
        /// `[tokens][top_k]` FP32: their weights.
        weights: GpuVa,
        /// Bytes from one token to the next in logits.
        logit_pitch: u32,
        /// Experts, at most [`crate::limits::MAX_EXPERTS`].
        experts: u32,
        /// Experts of a token, at most [`crate::limits::MAX_TOP_K`].
        top_k: u32,
        /// `routed_scaling_factor` of the config.
        scale: f32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for RouterTopk {
    fn kernel(&self) -> &'static Kernel {
        &kernels::ROUTER_TOPK
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.tokens, 1, 1]
    }
}

arguments! {
    /// Lists the assignments (token x top_k + choice) by expert and cuts the list into tiles of one expert.
    MoeGroup for [MOE_GROUP] {
        /// [`crate::Step`].
        step: GpuVa,
        /// `[tokens][top_k]` u32 of [`RouterTopk`].
        ids: GpuVa,
        /// `[tokens x top_k]` u32.
        list: GpuVa,
        /// `[max_tiles]` of 16 bytes ([`MoeGroup::tiles_bytes`]).
        tiles: GpuVa,
        /// u32: tiles of this run.
        tile_count: GpuVa,
        /// Experts.
        experts: u32,
        /// Experts of a token.
        top_k: u32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl MoeGroup {
    /// Bytes of `tiles`.
    pub fn tiles_bytes(tokens: u32, experts: u32, top_k: u32) -> u64 {
        u64::from(max_tiles(tokens, experts, top_k)) * TILE_BYTES
    }
}

impl Launch for MoeGroup {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MOE_GROUP
    }

    fn workgroups(&self) -> [u32; 3] {
        [1, 1, 1]
    }
}

arguments! {
    /// [`RouterTopk`] and [`MoeGroup`] in one launch of one workgroup, four tokens at a time: for few tokens.
    MoeRoute for [MOE_ROUTE] {
        /// [`crate::Step`].
        step: GpuVa,
        /// As in [`RouterTopk`].
        logits: GpuVa,
        /// As in [`RouterTopk`].
        bias: GpuVa,
        /// As in [`RouterTopk`].
        ids: GpuVa,
        /// As in [`RouterTopk`].
        weights: GpuVa,
        /// As in [`MoeGroup`].
        list: GpuVa,
        /// As in [`MoeGroup`].
        tiles: GpuVa,
        /// As in [`MoeGroup`].
        tile_count: GpuVa,
        /// As in [`RouterTopk`].
        logit_pitch: u32,
        /// As in [`RouterTopk`].
        experts: u32,
        /// As in [`RouterTopk`].
        top_k: u32,
        /// As in [`RouterTopk`].
        scale: f32,
        /// Most tokens of a run.
        tokens: u32,
    }
    not passed {
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for MoeRoute {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MOE_ROUTE
    }

    fn workgroups(&self) -> [u32; 3] {
        [1, 1, 1]
    }
}

arguments! {
    /// Gate and up of the routed experts with SiTU, MXFP4 weights and BF16 activations.
    MoeUp for [MOE_UP] {
        /// Of [`MoeGroup`].
        list: GpuVa,
        /// Of [`MoeGroup`].
        tiles: GpuVa,
        /// Of [`MoeGroup`].
        tile_count: GpuVa,
        /// Expert 0 of the layer.
        experts: GpuVa,
        /// `[tokens][depth]` BF16: the latent z.
        z: GpuVa,
        /// `[tokens x top_k][columns]` BF16.
        h: GpuVa,
        /// Bytes from one expert to the next.
        stride: u64,
        /// Offset of w1 (gate) in an expert, packed values `[columns][depth / 2]`.
        w1_packed: u32,
        /// Offset of its scales `[columns][depth / 32]`.
        w1_scale: u32,
        /// Likewise w3 (up).
        w3_packed: u32,
        /// Offset of its scales.
        w3_scale: u32,
        /// Bytes from one row to the next in packed values, a multiple of 16.
        packed_pitch: u32,
        /// Likewise in scales; any number.
        scale_pitch: u32,
        /// Bytes from one token to the next in z.
        z_pitch: u32,
        /// Bytes from one assignment to the next in h.
        h_pitch: u32,
        /// Width of the latent, a multiple of 32.
        depth: u32,
        /// Columns of an expert on this rank, a multiple of 32.
        columns: u32,
        /// Experts of a token.
        top_k: u32,
        /// See [`crate::gemm::SituBetas`].
        situ_beta: f32,
        /// See [`crate::gemm::SituBetas`].
        situ_linear_beta: f32,
    }
    not passed {
        /// Grid: [`max_tiles`].
        max_tiles: u32,
    }
}

impl Launch for MoeUp {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MOE_UP
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.columns.div_ceil(group_rows(self.depth)), self.max_tiles, 1]
    }
}

arguments! {
    /// Down projection of the routed experts, one row an assignment.
    MoeDown for [MOE_DOWN] {
        /// Of [`MoeGroup`].
        list: GpuVa,
        /// Of [`MoeGroup`].
        tiles: GpuVa,
        /// Of [`MoeGroup`].
        tile_count: GpuVa,
        /// Expert 0 of the layer.
        experts: GpuVa,
        /// `[tokens x top_k][depth]` BF16: output of [`MoeUp`].
        h: GpuVa,
        /// `[tokens x top_k][rows]` FP32, this rank's part of each sum.
        y: GpuVa,
        /// Bytes from one expert to the next.
        stride: u64,
        /// Offset of w2 in an expert, packed values `[rows][depth / 2]`.
        w2_packed: u32,
        /// Offset of its scales `[rows][depth / 32]`.
        w2_scale: u32,
        /// Bytes from one row to the next in packed values, a multiple of 16.
        packed_pitch: u32,
        /// Likewise in scales; any number.
        scale_pitch: u32,
        /// Bytes from one assignment to the next in h.
        h_pitch: u32,
        /// Likewise in y.
        y_pitch: u32,
        /// Columns of an expert on this rank, a multiple of 32.
        depth: u32,
        /// Width of the latent, a multiple of 32.
        rows: u32,
    }
    not passed {
        /// Grid: [`max_tiles`].
        max_tiles: u32,
        /// Fills the struct up to a multiple of 8 bytes.
        reserved: u32,
    }
}

impl Launch for MoeDown {
    fn kernel(&self) -> &'static Kernel {
        &kernels::MOE_DOWN
    }

    fn workgroups(&self) -> [u32; 3] {
        [self.rows.div_ceil(64), self.max_tiles, 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles of a run in which expert e has `counts[e]` assignments.
    fn tiles(counts: &[u32]) -> u32 {
        counts.iter().map(|count| count.div_ceil(TILE)).sum()
    }

    #[test]
    fn one_token_makes_one_tile_an_expert_it_chose() {
        assert_eq!(max_tiles(1, 896, 16), 16);
        assert_eq!(max_tiles(1, 16, 4), 4);
    }

    #[test]
    fn the_worst_distribution_over_experts_fills_the_grid_and_no_more() {
        for (tokens, experts, top_k) in [(128, 16, 4), (128, 896, 16), (65, 3, 2), (2048, 896, 16)] {
            let assignments = tokens * top_k;
            let used = experts.min(assignments);
            // All experts in use have one assignment more than fills their tiles.
            let mut counts = vec![1; used as usize];
            let mut left = assignments - used;
            for i in 0.. {
                let more = left.min(TILE);
                counts[i % used as usize] += more;
                left -= more;
                if left == 0 {
                    break;
                }
            }
            assert_eq!(counts.iter().sum::<u32>(), assignments);
            assert_eq!(tiles(&counts), max_tiles(tokens, experts, top_k));
        }
    }
}
