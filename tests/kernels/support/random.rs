//! Random data, the same in every run.

use super::{Bf16, bf16s};

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number in 0..end.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        (self.bits() % u64::from(end)) as u32
    }

    /// Roughly normal, mean 0: the sum of twelve uniform numbers.
    pub(crate) fn normal(&mut self, deviation: f32) -> f32 {
        let sum: f32 = (0..12).map(|_| (self.bits() >> 40) as f32 / (1 << 24) as f32).sum();
        (sum - 6.0) * deviation
    }

    pub(crate) fn normals(&mut self, count: usize, deviation: f32) -> Vec<f32> {
        (0..count).map(|_| self.normal(deviation)).collect()
    }

    pub(crate) fn bf16s(&mut self, count: usize, deviation: f32) -> Vec<Bf16> {
        bf16s(&self.normals(count, deviation))
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.bits() as u8).collect()
    }
}
