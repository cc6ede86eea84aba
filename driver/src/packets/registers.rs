//! Registers that compute packets address, by dword number.
//!
//! Numbers: `gc_9_4_3_offset.h` of Linux, each plus the base of its segment in the graphics core (GC), which IP
//! discovery gives as 0x2000 for segment 0 and 0xa000 for segment 1; gfx950 has the same map.

use std::fmt;

use super::wire::FieldValue;

/// A kind of register that one SET packet reaches.
macro_rules! register_space {
    ($(#[$meta:meta])* $name:ident, $base:literal..$end:literal, $packet:literal {
        $($register:ident = $number:literal $(; $doc:literal)?,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            $(
                #[doc = concat!("`", stringify!($register), "`" $(, ": ", $doc)?)]
                pub const $register: Self = Self($number);
            )*

            /// First register of the space, dword number.
            pub const BASE: u32 = $base;
            /// One past the last.
            pub const END: u32 = $end;

            /// The named registers.
            pub const NAMED: &[(Self, &'static str)] = &[$((Self::$register, stringify!($register))),*];

            #[doc = concat!("The register with dword number `number`, if ", $packet, " reaches it.")]
            pub const fn new(number: u32) -> Option<Self> {
                if number >= $base && number < $end { Some(Self(number)) } else { None }
            }

            /// The dword number.
            pub const fn number(self) -> u32 {
                self.0
            }

            /// The name, if the table has it.
            pub fn name(self) -> Option<&'static str> {
                Self::NAMED.iter().find(|(register, _)| *register == self).map(|&(_, name)| name)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self(Self::BASE)
            }
        }

        impl FieldValue for $name {
            fn to_bits(self) -> u64 {
                u64::from(self.0 - Self::BASE)
            }
            fn from_bits(bits: u64) -> Option<Self> {
                Self::new(Self::BASE.checked_add(u32::try_from(bits).ok()?)?)
            }
            fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, " {name}={self}")
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}

register_space! {
    /// A persistent shader register, set by `SET_SH_REG` (`PACKET3_SET_SH_REG_START` and `_END` of `soc15d.h`).
    ShRegister, 0x2c00..0x3000, "`SET_SH_REG`" {
        COMPUTE_DISPATCH_INITIATOR = 0x2e00; "starts a dispatch; written by dispatch packets",
        COMPUTE_DIM_X = 0x2e01,
        COMPUTE_DIM_Y = 0x2e02,
        COMPUTE_DIM_Z = 0x2e03,
        COMPUTE_START_X = 0x2e04; "first workgroup",
        COMPUTE_START_Y = 0x2e05,
        COMPUTE_START_Z = 0x2e06,
        COMPUTE_NUM_THREAD_X = 0x2e07; "workgroup size: full in bits 0..=15, partial in 16..=31",
        COMPUTE_NUM_THREAD_Y = 0x2e08,
        COMPUTE_NUM_THREAD_Z = 0x2e09,
        COMPUTE_PIPELINESTAT_ENABLE = 0x2e0a,
        COMPUTE_PERFCOUNT_ENABLE = 0x2e0b,
        COMPUTE_PGM_LO = 0x2e0c; "address of the code, in 256-byte units",
        COMPUTE_PGM_HI = 0x2e0d,
        COMPUTE_DISPATCH_PKT_ADDR_LO = 0x2e0e,
        COMPUTE_DISPATCH_PKT_ADDR_HI = 0x2e0f,
        COMPUTE_DISPATCH_SCRATCH_BASE_LO = 0x2e10; "scratch memory of this XCC, in 256-byte units",
        COMPUTE_DISPATCH_SCRATCH_BASE_HI = 0x2e11,
        COMPUTE_PGM_RSRC1 = 0x2e12,
        COMPUTE_PGM_RSRC2 = 0x2e13,
        COMPUTE_VMID = 0x2e14,
        COMPUTE_RESOURCE_LIMITS = 0x2e15,
        COMPUTE_STATIC_THREAD_MGMT_SE0 = 0x2e16; "which CUs may be used, two bits halves per shader engine",
        COMPUTE_STATIC_THREAD_MGMT_SE1 = 0x2e17,
        COMPUTE_TMPRING_SIZE = 0x2e18; "scratch: waves in bits 0..=11, KiB per wave in 12..=24",
        COMPUTE_STATIC_THREAD_MGMT_SE2 = 0x2e19,
        COMPUTE_STATIC_THREAD_MGMT_SE3 = 0x2e1a,
        COMPUTE_RESTART_X = 0x2e1b,
        COMPUTE_RESTART_Y = 0x2e1c,
        COMPUTE_RESTART_Z = 0x2e1d,
        COMPUTE_THREAD_TRACE_ENABLE = 0x2e1e,
        COMPUTE_MISC_RESERVED = 0x2e1f,
        COMPUTE_DISPATCH_ID = 0x2e20,
        COMPUTE_THREADGROUP_ID = 0x2e21,
        COMPUTE_RELAUNCH = 0x2e22,
        COMPUTE_WAVE_RESTORE_ADDR_LO = 0x2e23,
        COMPUTE_WAVE_RESTORE_ADDR_HI = 0x2e24,
        COMPUTE_TG_CHUNK_SIZE = 0x2e27; "workgroups an XCC takes in a row",
        COMPUTE_SHADER_CHKSUM = 0x2e2c,
        COMPUTE_PGM_RSRC3 = 0x2e2d; "ACCUM_OFFSET in bits 0..=5, TG_SPLIT in 16",
        COMPUTE_USER_DATA_0 = 0x2e40; "user SGPRs, sixteen in a row",
        COMPUTE_USER_DATA_1 = 0x2e41,
        COMPUTE_USER_DATA_2 = 0x2e42,
        COMPUTE_USER_DATA_3 = 0x2e43,
        COMPUTE_USER_DATA_4 = 0x2e44,
        COMPUTE_USER_DATA_5 = 0x2e45,
        COMPUTE_USER_DATA_6 = 0x2e46,
        COMPUTE_USER_DATA_7 = 0x2e47,
        COMPUTE_USER_DATA_8 = 0x2e48,
        COMPUTE_USER_DATA_9 = 0x2e49,
        COMPUTE_USER_DATA_10 = 0x2e4a,
        COMPUTE_USER_DATA_11 = 0x2e4b,
        COMPUTE_USER_DATA_12 = 0x2e4c,
        COMPUTE_USER_DATA_13 = 0x2e4d,
        COMPUTE_USER_DATA_14 = 0x2e4e,
        COMPUTE_USER_DATA_15 = 0x2e4f,
        COMPUTE_DISPATCH_END = 0x2e7e,
        COMPUTE_NOWHERE = 0x2e7f,
    }
}

register_space! {
    /// A user configuration register, set by `SET_UCONFIG_REG`. `soc15d.h` ends the space at 0xc400, but performance
    /// counters above are set by the same packet, whose offset has 16 bits.
    UconfigRegister, 0xc000..0x1c000, "`SET_UCONFIG_REG`" {
        GRBM_GFX_INDEX = 0xc200; "which instance, shader engine and array later register accesses mean",
    }
}

/// The HDP flush request and done registers of NBIO 7.9 (`regBIF_BX_PF0_GPU_HDP_FLUSH_REQ`, `_DONE`): dword numbers, as
/// `WAIT_REG_MEM` takes them.
pub const GPU_HDP_FLUSH_REQ: u32 = 0x0e26;
/// See [`GPU_HDP_FLUSH_REQ`].
pub const GPU_HDP_FLUSH_DONE: u32 = 0x0e27;

/// Bits of `COMPUTE_DISPATCH_INITIATOR` (`gc_9_4_3_sh_mask.h`).
pub mod dispatch_initiator {
    /// Runs the dispatch.
    pub const COMPUTE_SHADER_EN: u32 = 1 << 0;
    /// The last workgroup of a dimension may be partial, as `COMPUTE_NUM_THREAD_*` says.
    pub const PARTIAL_TG_EN: u32 = 1 << 1;
    /// Starts at workgroup (0, 0, 0), whatever `COMPUTE_START_*` holds.
    pub const FORCE_START_AT_000: u32 = 1 << 2;
    /// Dimensions count work-items, not workgroups.
    pub const USE_THREAD_DIMENSIONS: u32 = 1 << 5;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_registers_are_in_their_space_and_told_apart() {
        for (index, (register, name)) in ShRegister::NAMED.iter().enumerate() {
            assert!(ShRegister::new(register.number()).is_some(), "{name}");
            assert!(index == 0 || ShRegister::NAMED[index - 1].0 < *register, "{name} is out of order");
        }
        assert_eq!(ShRegister::COMPUTE_USER_DATA_0.to_bits(), 0x240);
        assert_eq!(ShRegister::COMPUTE_USER_DATA_0.to_string(), "COMPUTE_USER_DATA_0");
    }

    #[test]
    fn a_number_outside_the_space_is_no_register_of_it() {
        assert_eq!(ShRegister::new(0x2bff), None);
        assert_eq!(ShRegister::new(0x3000), None);
        assert_eq!(ShRegister::from_bits(0x400), None);
        assert_eq!(UconfigRegister::from_bits(0x200), Some(UconfigRegister::GRBM_GFX_INDEX));
    }
}
