//! Which register and lane holds which matrix element.
//!
//! Sources: AMD's matrix instruction calculator (`InstCalcGfx9`) for the general rules, CDNA4 ISA section 7.1.5.1 for 8-bit
//! F8F6F4 operands. Where they differ (results of the f64 4x4x4 shape, CBSZ on fewer blocks than there are) the
//! calculator is right: it agrees with AMD's earlier manuals and lab notes.

use crate::wave::LANES;

/// The shape of an instruction: `BLOCKS` products of an M x K by a K x M matrix.
///
/// Operands are unpacked to one row of M values for each block and k: `(block * K + k) * M + row`. A's rows are the
/// matrix's, B's are its columns.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) blocks: usize,
}

impl Shape {
    /// Elements that one lane holds of A or B.
    #[inline(always)]
    pub(super) const fn items(self) -> usize {
        self.k * self.m * self.blocks / LANES
    }

    /// Place in an unpacked operand of the first row of `item` in the lanes of `group`. With `halves`, the first half of
    /// a lane's items belongs to the first half of k.
    #[inline(always)]
    pub(super) const fn unpacked(self, group: usize, item: usize, halves: bool) -> usize {
        let (block, group) = (group % self.blocks, group / self.blocks);
        let k = if halves {
            let run = self.items() / 2;
            item / run * (self.k / 2) + group * run + item % run
        } else {
            group * self.items() + item
        };
        (block * self.k + k) * self.m
    }

    /// Register (or, for f64, register pair) of the result's row `row`, and the lane of its first column. Results are
    /// written in strips of `height` rows.
    #[inline(always)]
    pub(super) const fn result(self, block: usize, row: usize, height: usize) -> (usize, usize) {
        let strips = LANES / self.m;
        let blocks_in_register = LANES.div_ceil(self.m * self.m / height);
        let register = block * (self.m * self.m / LANES) + row / (height * strips) * height + row % height;
        let strip = block % blocks_in_register + row / height % strips * blocks_in_register;
        (register, strip * self.m)
    }

    /// Lane that A is read from in place of `lane`: CBSZ broadcasts one of every 2^CBSZ blocks, which ABID names.
    #[inline(always)]
    pub(super) const fn broadcast(self, lane: usize, cbsz: u32, abid: u32) -> usize {
        let group = lane / self.m;
        let block = group % self.blocks;
        // A block number past the last is undefined; it wraps here.
        let source = ((block >> cbsz << cbsz) + abid as usize) % self.blocks;
        (group - block + source) * self.m + lane % self.m
    }
}

/// Lane that B is read from in place of `lane` (CDNA4 ISA table 29).
#[inline(always)]
pub(super) const fn lane_pattern(lane: usize, blgp: u32) -> usize {
    match blgp {
        0 => lane,
        1 => lane % 32,
        2 => lane % 32 + 32,
        3 => (lane + 16) % LANES,
        _ => lane % 16 + 16 * (blgp as usize - 4),
    }
}
