//! What limits how many workgroups a compute unit holds: wave slots, vector registers, LDS.
//!
//! Scalar registers don't limit occupancy on this part: each of the eight wave slots of a SIMD has its full set.

use super::launch::{LDS_GRANULE, LaunchShape};

/// SIMDs of a compute unit.
pub(crate) const SIMDS: usize = 4;
/// Wave slots of a SIMD (KFD topology `max_waves_per_simd` of gfx950).
pub(crate) const WAVES_PER_SIMD: u32 = 8;
/// Vector registers of a SIMD lane, both kinds together.
pub(crate) const VGPRS_PER_SIMD: u32 = 512;
/// LDS bytes of a compute unit (160 KiB on gfx950).
pub(crate) const LDS_BYTES: u32 = 160 * 1024;

/// Free resources of one compute unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ComputeUnit {
    waves: [u32; SIMDS],
    vgprs: [u32; SIMDS],
    lds: u32,
}

/// What one workgroup holds of a compute unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Waves of the workgroup.
    pub waves: u32,
    /// Vector registers of each wave.
    pub vgprs: u32,
    /// LDS bytes, in whole granules.
    pub lds: u32,
}

impl Needs {
    /// What each workgroup of `shape` needs.
    #[must_use]
    pub(crate) fn of(shape: &LaunchShape) -> Self {
        Self {
            waves: shape.waves_per_workgroup(),
            vgprs: shape.resources.vgprs(),
            lds: shape.lds_bytes.next_multiple_of(LDS_GRANULE),
        }
    }
}

impl Default for ComputeUnit {
    fn default() -> Self {
        Self { waves: [WAVES_PER_SIMD; SIMDS], vgprs: [VGPRS_PER_SIMD; SIMDS], lds: LDS_BYTES }
    }
}

impl ComputeUnit {
    /// Takes what a workgroup needs, waves going to the SIMDs in turn from `first_simd` on; `false` (and nothing taken)
    /// if it does not fit now.
    pub(crate) fn admit(&mut self, needs: Needs, first_simd: usize) -> bool {
        let mut after = self.clone();
        if after.lds < needs.lds {
            return false;
        }
        after.lds -= needs.lds;
        for wave in 0..needs.waves as usize {
            let simd = (first_simd + wave) % SIMDS;
            if after.waves[simd] == 0 || after.vgprs[simd] < needs.vgprs {
                return false;
            }
            after.waves[simd] -= 1;
            after.vgprs[simd] -= needs.vgprs;
        }
        *self = after;
        true
    }

    /// Gives back what `admit` took with the same arguments.
    pub(crate) fn release(&mut self, needs: Needs, first_simd: usize) {
        self.lds += needs.lds;
        for wave in 0..needs.waves as usize {
            let simd = (first_simd + wave) % SIMDS;
            self.waves[simd] += 1;
            self.vgprs[simd] += needs.vgprs;
        }
    }
}

/// How many such workgroups an empty compute unit holds.
pub(crate) fn workgroups(needs: Needs) -> u32 {
    let (mut unit, mut count) = (ComputeUnit::default(), 0);
    while needs.waves > 0 && unit.admit(needs, (count * needs.waves) as usize % SIMDS) {
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_decides() {
        assert_eq!(workgroups(Needs { waves: 4, vgprs: 32, lds: 0 }), 8, "wave slots");
        assert_eq!(workgroups(Needs { waves: 4, vgprs: 256, lds: 0 }), 2, "vector registers");
        assert_eq!(workgroups(Needs { waves: 1, vgprs: 8, lds: 80 * 1024 }), 2, "LDS");
        assert_eq!(workgroups(Needs { waves: 1, vgprs: 8, lds: LDS_BYTES + LDS_GRANULE }), 0, "too much LDS");
        assert_eq!(workgroups(Needs { waves: 16, vgprs: 136, lds: 0 }), 0, "four waves of 136 registers a SIMD");
        assert_eq!(workgroups(Needs { waves: 16, vgprs: 128, lds: 0 }), 1);
    }

    #[test]
    fn what_is_released_can_be_admitted_again() {
        let needs = Needs { waves: 6, vgprs: 104, lds: 2560 };
        let mut cu = ComputeUnit::default();
        assert!(cu.admit(needs, 3));
        cu.release(needs, 3);
        assert_eq!(cu, ComputeUnit::default());
    }
}
