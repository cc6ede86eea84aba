//! Scratch memory: how much a dispatch needs, and how hardware is told.
//!
//! Waves take scratch from a pool of slots, one pool per XCC. The numbers are those of ROCr and tinygrad for gfx9.

use crate::address::{Bytes, GpuVa};
use crate::topology::GpuNode;

/// Scratch of a wave comes in units of 1 KiB (`COMPUTE_TMPRING_SIZE.WAVESIZE` of gfx9).
const WAVE_UNIT: u32 = 1024;
const LANES: u32 = 64;
/// Largest values of the fields of `COMPUTE_TMPRING_SIZE`.
const MAX_WAVES: u32 = 0xfff;
const MAX_WAVE_UNITS: u32 = 0x1fff;

/// Scratch for kernels of up to some bytes per work-item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScratchLayout {
    /// Bytes of a work-item, rounded up to the hardware's unit.
    pub bytes_per_lane: u32,
    /// Waves of one XCC that may have scratch at a time.
    pub waves: u32,
    /// Units of 1 KiB of a wave.
    pub wave_units: u32,
    /// Bytes of one XCC; XCC `i` starts `i` times that from the start.
    pub bytes_per_xcc: u64,
    /// Bytes of all XCCs.
    pub total: Bytes,
}

impl ScratchLayout {
    /// The layout for `private_segment_bytes` per work-item; `None` if that is zero or more than a wave can have.
    pub fn new(node: &GpuNode, private_segment_bytes: u32) -> Option<Self> {
        let bytes_per_lane = private_segment_bytes.checked_next_multiple_of(WAVE_UNIT / LANES)?;
        let wave_units = bytes_per_lane / (WAVE_UNIT / LANES);
        if !(1..=MAX_WAVE_UNITS).contains(&wave_units) {
            return None;
        }
        let waves = node.max_scratch_slots_per_cu.checked_mul(node.cu_per_xcc())?.min(MAX_WAVES);
        let bytes_per_xcc = u64::from(waves) * u64::from(wave_units) * u64::from(WAVE_UNIT);
        let total = Bytes::new(bytes_per_xcc.checked_mul(node.xcc_count.into())?);
        Some(Self { bytes_per_lane, waves, wave_units, bytes_per_xcc, total })
    }

    /// Value of `COMPUTE_TMPRING_SIZE`.
    pub const fn tmpring_size(&self) -> u32 {
        self.wave_units << 12 | self.waves
    }

    /// Buffer resource of the scratch of XCC 0 at `base`: 32-bit elements, swizzled by lane (`SQ_BUF_RSRC_WORD0..3` as
    /// ROCr's `AqlQueue::InitScratchSRD` fills them for gfx9).
    pub fn resource(&self, base: GpuVa) -> [u32; 4] {
        const SWIZZLE_ENABLE: u32 = 1 << 31;
        const SELECT_XYZW: u32 = 4 | 5 << 3 | 6 << 6 | 7 << 9;
        const NUM_FORMAT_UINT: u32 = 4 << 12;
        const DATA_FORMAT_32: u32 = 4 << 15;
        const ELEMENT_4_BYTES: u32 = 1 << 19;
        const INDEX_STRIDE_64: u32 = 3 << 21;
        const ADD_TID_ENABLE: u32 = 1 << 23;
        let word_3 =
            SELECT_XYZW | NUM_FORMAT_UINT | DATA_FORMAT_32 | ELEMENT_4_BYTES | INDEX_STRIDE_64 | ADD_TID_ENABLE;
        [base.low(), base.high() & 0xffff | SWIZZLE_ENABLE, self.bytes_per_xcc as u32, word_3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::example_node;

    #[test]
    fn scratch_of_128_bytes_is_laid_out_as_the_captured_client_lays_it_out() {
        let layout = ScratchLayout::new(&example_node(), 128).unwrap();
        assert_eq!(layout.tmpring_size(), 0x8400);
        assert_eq!(layout.bytes_per_xcc, 0x80_0000);
        assert_eq!(layout.total.get(), 0x400_0000);
    }

    #[test]
    fn a_work_item_gets_at_least_what_it_asks_for() {
        let layout = ScratchLayout::new(&example_node(), 132).unwrap();
        assert_eq!((layout.bytes_per_lane, layout.wave_units), (144, 9));
        assert_eq!(ScratchLayout::new(&example_node(), 0), None);
        assert_eq!(ScratchLayout::new(&example_node(), u32::MAX), None);
        assert_eq!(ScratchLayout::new(&example_node(), 0x1fff * 16).map(|l| l.wave_units), Some(0x1fff));
        assert_eq!(ScratchLayout::new(&example_node(), 0x1fff * 16 + 1), None);
    }
}
