//! How many waves of a kernel a compute unit holds.

use driver::address::Bytes;
use firmware_tools::code_object::KernelDescriptor;

/// SIMDs of a compute unit (CDNA 4 ISA, section 1.1).
const SIMDS: u32 = 4;
/// Wave slots of a SIMD (KFD topology, `max_waves_per_simd` of gfx950).
const SLOTS: u32 = 8;
/// Vector registers of a lane of a SIMD, AccVGPRs included.
const REGISTERS: u32 = 512;
/// LDS of a compute unit, and the unit it is given out in (LLVM AMDGPUUsage, gfx950).
const LDS: Bytes = Bytes::new(160 * 1024);
const LDS_GRANULE: u32 = 1280;

/// What limits a kernel's waves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Occupancy {
    /// Vector registers of a lane, AccVGPRs included.
    pub vector_registers: u32,
    /// Scalar registers of a wave, as the descriptor has them.
    pub scalar_registers: u32,
    /// LDS bytes of a workgroup.
    pub lds_bytes: u32,
    /// Scratch bytes of a work-item: a kernel with any has spilt registers.
    pub scratch_bytes: u32,
    /// Waves of a compute unit at most.
    pub waves_per_cu: u32,
}

impl Occupancy {
    /// Of workgroups of `work_items` work-items.
    #[must_use]
    pub fn of(descriptor: &KernelDescriptor, work_items: u32) -> Self {
        let waves = work_items.div_ceil(descriptor.wavefront_size());
        let vector_registers = descriptor.rsrc1.vgpr_count();
        let lds_bytes = descriptor.group_segment_fixed_size;
        let slots = SIMDS * SLOTS.min(REGISTERS / vector_registers);
        let workgroups = match lds_bytes {
            0 => u32::MAX,
            bytes => LDS.get() as u32 / bytes.next_multiple_of(LDS_GRANULE),
        };
        Self {
            vector_registers,
            scalar_registers: descriptor.rsrc1.sgpr_count(),
            lds_bytes,
            scratch_bytes: descriptor.private_segment_fixed_size,
            waves_per_cu: (slots / waves).min(workgroups) * waves,
        }
    }
}

#[cfg(test)]
mod tests {
    use firmware_tools::code_object::CodeObject;

    use super::*;

    #[test]
    fn no_kernel_spills_and_each_fits_a_compute_unit() {
        for kernel in kernels::kernels::ALL {
            let object = CodeObject::parse(kernel.code_object.bytes).unwrap();
            let descriptor = object.kernel(kernel.name).unwrap().descriptor;
            let occupancy = Occupancy::of(&descriptor, kernel.workgroup);
            assert_eq!(occupancy.scratch_bytes, 0, "{}", kernel.name);
            assert!(occupancy.waves_per_cu >= kernel.workgroup / 64, "{}: {occupancy:?}", kernel.name);
            assert!(occupancy.waves_per_cu <= SIMDS * SLOTS);
        }
    }
}
