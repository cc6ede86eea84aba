//! What a code object is for: ELF header flags and ABI version (AMDGPUUsage, "Header").

use std::fmt;

use super::error::Error;

/// Version of the code-object format: `EI_ABIVERSION` plus 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AbiVersion {
    /// `ELFABIVERSION_AMDGPU_HSA_V3`.
    V3 = 3,
    /// `ELFABIVERSION_AMDGPU_HSA_V4`.
    V4 = 4,
    /// `ELFABIVERSION_AMDGPU_HSA_V5`.
    V5 = 5,
    /// `ELFABIVERSION_AMDGPU_HSA_V6`.
    V6 = 6,
}

impl AbiVersion {
    pub(super) fn from_elf(version: u8) -> Result<Self, Error> {
        Ok(match version {
            1 => Self::V3,
            2 => Self::V4,
            3 => Self::V5,
            4 => Self::V6,
            other => return Err(Error::AbiVersion(other)),
        })
    }
}

/// A GPU whose kernel descriptors this crate understands: the gfx90a family, whose register fields are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Processor {
    /// MI200.
    Gfx90a,
    /// MI300.
    Gfx942,
    /// MI350.
    Gfx950,
}

impl Processor {
    /// The name LLVM gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx950 => "gfx950",
        }
    }
}

/// Whether code relies on a feature of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureSetting {
    /// The processor has no such feature.
    Unsupported,
    /// Runs whichever way the feature is set.
    Any,
    /// Runs only with the feature off.
    Off,
    /// Runs only with the feature on.
    On,
}

/// A processor and the settings code assumes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which GPU.
    pub processor: Processor,
    /// Page faults that are retried.
    pub xnack: FeatureSetting,
    /// Error correction of on-chip memory.
    pub sramecc: FeatureSetting,
}

/// `EF_AMDGPU_MACH`.
const MACHINE: u32 = 0xff;

impl Target {
    pub(super) fn from_elf_flags(flags: u32, abi: AbiVersion) -> Result<Self, Error> {
        let machine = flags & MACHINE;
        let processor = match machine {
            0x3f => Processor::Gfx90a,
            0x4c => Processor::Gfx942,
            0x4f => Processor::Gfx950,
            _ => return Err(Error::Target { name: other_processor(machine), machine }),
        };
        let setting = |on_v3: u32, shift_v4: u32| {
            if abi == AbiVersion::V3 {
                return if flags & on_v3 != 0 { FeatureSetting::On } else { FeatureSetting::Off };
            }
            match flags >> shift_v4 & 3 {
                0 => FeatureSetting::Unsupported,
                1 => FeatureSetting::Any,
                2 => FeatureSetting::Off,
                _ => FeatureSetting::On,
            }
        };
        Ok(Self { processor, xnack: setting(0x100, 8), sramecc: setting(0x200, 10) })
    }
}

impl fmt::Display for Target {
    /// As the target id of `amdhsa.target`: settings that do not matter are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.processor.name())?;
        for (feature, setting) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match setting {
                FeatureSetting::On => write!(f, ":{feature}+")?,
                FeatureSetting::Off => write!(f, ":{feature}-")?,
                FeatureSetting::Any | FeatureSetting::Unsupported => {}
            }
        }
        Ok(())
    }
}

/// Names of the other machines people try, for the message that refuses them: what clang 22.1.8 writes for each `-mcpu`.
fn other_processor(machine: u32) -> &'static str {
    match machine {
        0x2c => "gfx900",
        0x2d => "gfx902",
        0x2e => "gfx904",
        0x2f => "gfx906",
        0x30 => "gfx908",
        0x31 => "gfx909",
        0x32 => "gfx90c",
        0x33 => "gfx1010",
        0x34 => "gfx1011",
        0x35 => "gfx1012",
        0x36 => "gfx1030",
        0x37 => "gfx1031",
        0x38 => "gfx1032",
        0x39 => "gfx1033",
        0x3d => "gfx1035",
        0x3e => "gfx1034",
        0x41 => "gfx1100",
        0x43 => "gfx1150",
        0x44 => "gfx1103",
        0x45 => "gfx1036",
        0x46 => "gfx1101",
        0x47 => "gfx1102",
        0x48 => "gfx1200",
        0x49 => "gfx1250",
        0x4a => "gfx1151",
        0x4e => "gfx1201",
        0x51 => "gfx9-generic",
        0x52 => "gfx10-1-generic",
        0x53 => "gfx10-3-generic",
        0x54 => "gfx11-generic",
        0x55 => "gfx1152",
        0x58 => "gfx1153",
        0x59 => "gfx12-generic",
        0x5a => "gfx1251",
        0x5f => "gfx9-4-generic",
        _ => "a GPU this program does not know",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_the_pinned_compiler_read_as_gfx950_with_any_settings() {
        let target = Target::from_elf_flags(0x54f, AbiVersion::V6).unwrap();
        assert_eq!(target.processor, Processor::Gfx950);
        assert_eq!((target.xnack, target.sramecc), (FeatureSetting::Any, FeatureSetting::Any));
        assert_eq!(target.to_string(), "gfx950");
    }

    #[test]
    fn settings_are_two_bits_from_version_4_and_one_before() {
        let v4 = Target::from_elf_flags(0xc00 | 0x200 | 0x4c, AbiVersion::V4).unwrap();
        assert_eq!(v4.to_string(), "gfx942:sramecc+:xnack-");
        let v3 = Target::from_elf_flags(0x100 | 0x3f, AbiVersion::V3).unwrap();
        assert_eq!(v3.to_string(), "gfx90a:sramecc-:xnack+");
    }

    #[test]
    fn another_gpu_is_refused_by_name() {
        let error = Target::from_elf_flags(0x41, AbiVersion::V5).unwrap_err();
        assert!(error.to_string().contains("gfx1100"), "{error}");
    }
}
