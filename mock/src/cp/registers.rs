//! The COMPUTE_* registers of one queue on one XCC, and the dispatch they describe.

use driver::address::GpuVa;
use driver::packets::registers::{ShRegister, dispatch_initiator};

use crate::machine::launch::{LDS_GRANULE, LaunchShape, ProgramResources, Scratch};

/// Registers in the SH space that a compute queue has (0x2e00 to 0x2e6f).
const COUNT: usize = 0x70;
const FIRST: u32 = 0x2e00;

/// A register file, indexed by register number.
#[derive(Clone, Debug)]
pub(super) struct ComputeRegisters {
    values: [u32; COUNT],
}

impl Default for ComputeRegisters {
    fn default() -> Self {
        Self { values: [0; COUNT] }
    }
}

impl ComputeRegisters {
    /// Sets `values` from `first` on.
    ///
    /// # Errors
    /// The number of a register that is not a compute register.
    pub(super) fn set(&mut self, first: ShRegister, values: &[u32]) -> Result<(), u32> {
        for (number, &value) in (first.number()..).zip(values) {
            let slot = number.checked_sub(FIRST).and_then(|at| self.values.get_mut(at as usize)).ok_or(number)?;
            *slot = value;
        }
        Ok(())
    }

    fn get(&self, register: ShRegister) -> u32 {
        self.values[(register.number() - FIRST) as usize]
    }

    /// The dispatch of a packet with these dimensions and initiator, for XCC `xcc` of `xccs`.
    ///
    /// # Errors
    /// What about the registers makes no sense.
    pub(super) fn shape(
        &self,
        dimensions: [u32; 3],
        initiator: u32,
        xcc: usize,
        xccs: usize,
    ) -> Result<LaunchShape, String> {
        if initiator & dispatch_initiator::COMPUTE_SHADER_EN == 0 {
            return Err("COMPUTE_SHADER_EN is not set in the dispatch initiator".into());
        }
        let resources = ProgramResources {
            rsrc1: self.get(ShRegister::COMPUTE_PGM_RSRC1),
            rsrc2: self.get(ShRegister::COMPUTE_PGM_RSRC2),
            rsrc3: self.get(ShRegister::COMPUTE_PGM_RSRC3),
        };
        let threads =
            [ShRegister::COMPUTE_NUM_THREAD_X, ShRegister::COMPUTE_NUM_THREAD_Y, ShRegister::COMPUTE_NUM_THREAD_Z]
                .map(|register| self.get(register));
        let workgroup = threads.map(|threads| threads & 0xffff);
        if workgroup.contains(&0) {
            return Err(format!("COMPUTE_NUM_THREAD is {workgroup:?}"));
        }
        let start = if initiator & dispatch_initiator::FORCE_START_AT_000 != 0 {
            [0; 3]
        } else {
            [ShRegister::COMPUTE_START_X, ShRegister::COMPUTE_START_Y, ShRegister::COMPUTE_START_Z]
                .map(|register| self.get(register))
        };
        // The dimensions are end values, not counts: they include the start (Mesa, radv_emit_dispatch_packets).
        let mut grid = [0; 3];
        for d in 0..3 {
            grid[d] = if initiator & dispatch_initiator::USE_THREAD_DIMENSIONS != 0 {
                dimensions[d].checked_sub(start[d] * workgroup[d])
            } else {
                let groups = dimensions[d].checked_sub(start[d]);
                let partial = threads[d] >> 16;
                let missing = match initiator & dispatch_initiator::PARTIAL_TG_EN {
                    0 => 0,
                    _ if partial == 0 => 0,
                    _ => workgroup[d].saturating_sub(partial),
                };
                groups.and_then(|groups| groups.checked_mul(workgroup[d])).map(|items| items.saturating_sub(missing))
            }
            .ok_or_else(|| format!("dimensions {dimensions:?} with start {start:?} and {workgroup:?} work-items"))?;
        }
        let user_sgprs = resources.user_sgprs().min(16);
        let first_user = (ShRegister::COMPUTE_USER_DATA_0.number() - FIRST) as usize;
        let entry = address(self.get(ShRegister::COMPUTE_PGM_LO), self.get(ShRegister::COMPUTE_PGM_HI));
        let tmpring = self.get(ShRegister::COMPUTE_TMPRING_SIZE);
        let mut scratch = vec![Scratch::default(); xccs];
        if resources.scratch_enabled() {
            let base = address(
                self.get(ShRegister::COMPUTE_DISPATCH_SCRATCH_BASE_LO),
                self.get(ShRegister::COMPUTE_DISPATCH_SCRATCH_BASE_HI),
            );
            scratch[xcc] = tmpring_area(tmpring, base);
        }
        Ok(LaunchShape {
            entry: GpuVa::new(entry),
            resources,
            workgroup,
            grid,
            start,
            user_data: self.values[first_user..first_user + user_sgprs as usize].to_vec(),
            lds_bytes: resources.lds_granules() * LDS_GRANULE,
            scratch,
        })
    }
}

/// The 48-bit address whose bits 47 to 8 two registers hold.
fn address(low: u32, high: u32) -> u64 {
    (u64::from(low) | u64::from(high) << 32) << 8
}

/// The scratch area that COMPUTE_TMPRING_SIZE describes: WAVES 11:0, WAVESIZE 24:12 in KiB.
pub(super) fn tmpring_area(tmpring: u32, base: u64) -> Scratch {
    Scratch { base, bytes_per_wave: (tmpring >> 12 & 0x1fff) * 1024, waves: tmpring & 0xfff }
}
