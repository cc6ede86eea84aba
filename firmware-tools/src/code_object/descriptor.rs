//! The kernel descriptor: 64 bytes that tell the command processor how to start waves (AMDGPUUsage, "Kernel
//! Descriptor"; register fields as of gfx90a, which gfx942 and gfx950 share).
//!
//! ```text
//!  0 group_segment_fixed_size   16 kernel_code_entry_byte_offset   44 compute_pgm_rsrc3   56 kernel_code_properties
//!  4 private_segment_fixed_size 24 reserved                        48 compute_pgm_rsrc1   58 kernarg_preload
//!  8 kernarg_size                                                  52 compute_pgm_rsrc2   60 reserved
//! 12 reserved
//! ```

use zerocopy::little_endian::{I64, U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// A checked kernel descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelDescriptor {
    /// LDS bytes of a workgroup, what a dispatch adds not included.
    pub group_segment_fixed_size: u32,
    /// Scratch bytes of a work-item; with a dynamic stack the least.
    pub private_segment_fixed_size: u32,
    /// Bytes of the kernel arguments, implicit ones included.
    pub kernarg_size: u32,
    /// Bytes from the descriptor to the first instruction.
    pub code_entry_byte_offset: i64,
    /// Registers, rounding, denormals.
    pub rsrc1: ComputePgmRsrc1,
    /// Scratch, SGPRs and VGPRs set at the start, exceptions.
    pub rsrc2: ComputePgmRsrc2,
    /// AccVGPRs, workgroup splitting.
    pub rsrc3: ComputePgmRsrc3,
    /// User SGPRs, wave size, stack: `kernel_code_properties`, all bits.
    pub properties: u16,
    /// Dwords of kernel arguments put into user SGPRs at the start of a wave.
    pub kernarg_preload_length: u8,
    /// First of them, in dwords of the kernel arguments.
    pub kernarg_preload_offset: u16,
}

#[derive(FromBytes, Immutable, KnownLayout)]
#[repr(C)]
struct Raw {
    group_segment_fixed_size: U32,
    private_segment_fixed_size: U32,
    kernarg_size: U32,
    reserved_0: [u8; 4],
    kernel_code_entry_byte_offset: I64,
    reserved_1: [u8; 20],
    compute_pgm_rsrc3: U32,
    compute_pgm_rsrc1: U32,
    compute_pgm_rsrc2: U32,
    kernel_code_properties: U16,
    kernarg_preload: U16,
    reserved_2: [u8; 4],
}

/// Bits of `kernel_code_properties`.
mod property {
    pub(super) const PRIVATE_SEGMENT_BUFFER: u16 = 1 << 0;
    pub(super) const DISPATCH_PTR: u16 = 1 << 1;
    pub(super) const QUEUE_PTR: u16 = 1 << 2;
    pub(super) const KERNARG_SEGMENT_PTR: u16 = 1 << 3;
    pub(super) const DISPATCH_ID: u16 = 1 << 4;
    pub(super) const FLAT_SCRATCH_INIT: u16 = 1 << 5;
    pub(super) const PRIVATE_SEGMENT_SIZE: u16 = 1 << 6;
    pub(super) const WAVEFRONT_SIZE32: u16 = 1 << 10;
    pub(super) const USES_DYNAMIC_STACK: u16 = 1 << 11;
    pub(super) const RESERVED: u16 = 0b1111_0011_1000_0000;
}

impl KernelDescriptor {
    /// Length and alignment in bytes.
    pub const BYTES: u64 = 64;

    /// Reads a descriptor; says what is impossible about it.
    pub(super) fn from_bytes(bytes: &[u8; Self::BYTES as usize]) -> Result<Self, String> {
        let raw: Raw = zerocopy::transmute!(*bytes);
        let reserved = [&raw.reserved_0[..], &raw.reserved_1, &raw.reserved_2].concat();
        if reserved.iter().any(|&byte| byte != 0) {
            return Err("reserved bytes are not zero".into());
        }
        let properties = raw.kernel_code_properties.get();
        if properties & property::RESERVED != 0 {
            return Err(format!("reserved bits are set in kernel_code_properties {properties:#06x}"));
        }
        if properties & property::WAVEFRONT_SIZE32 != 0 {
            return Err("it asks for waves of 32, which this processor does not have".into());
        }
        let preload = raw.kernarg_preload.get();
        let descriptor = Self {
            group_segment_fixed_size: raw.group_segment_fixed_size.get(),
            private_segment_fixed_size: raw.private_segment_fixed_size.get(),
            kernarg_size: raw.kernarg_size.get(),
            code_entry_byte_offset: raw.kernel_code_entry_byte_offset.get(),
            rsrc1: ComputePgmRsrc1(raw.compute_pgm_rsrc1.get()),
            rsrc2: ComputePgmRsrc2(raw.compute_pgm_rsrc2.get()),
            rsrc3: ComputePgmRsrc3(raw.compute_pgm_rsrc3.get()),
            properties,
            kernarg_preload_length: (preload & 0x7f) as u8,
            kernarg_preload_offset: preload >> 7,
        };
        descriptor.check()
    }

    fn check(self) -> Result<Self, String> {
        let claimed = self.rsrc2.user_sgpr_count();
        let needed = self.user_sgprs().count;
        if needed > claimed {
            return Err(format!("it needs {needed} user SGPRs and claims {claimed}"));
        }
        if claimed > 16 {
            return Err(format!("it claims {claimed} user SGPRs, hardware has 16"));
        }
        if self.rsrc2.vgpr_workitem_id() == 3 {
            return Err("VGPR_WORKITEM_ID is 3, which has no meaning".into());
        }
        if self.rsrc2.granulated_lds_size() != 0 {
            return Err("GRANULATED_LDS_SIZE is set, which is the command processor's to fill in".into());
        }
        if self.rsrc1.priority() != 0 || self.rsrc1.is_privileged() {
            return Err("it asks for priority or privilege".into());
        }
        for (register, value, reserved) in [
            ("COMPUTE_PGM_RSRC1", self.rsrc1.0, ComputePgmRsrc1::RESERVED),
            ("COMPUTE_PGM_RSRC2", self.rsrc2.0, ComputePgmRsrc2::RESERVED),
            ("COMPUTE_PGM_RSRC3", self.rsrc3.0, ComputePgmRsrc3::RESERVED),
        ] {
            if value & reserved != 0 {
                return Err(format!("reserved bits {:#x} of {register} are set", value & reserved));
            }
        }
        if self.rsrc3.accum_offset() > self.rsrc1.vgpr_count() {
            let (offset, count) = (self.rsrc3.accum_offset(), self.rsrc1.vgpr_count());
            return Err(format!("AccVGPRs start at {offset}, beyond the {count} VGPRs of a wave"));
        }
        let preload_end = u32::from(self.kernarg_preload_offset) + u32::from(self.kernarg_preload_length);
        if self.kernarg_preload_length > 0 && preload_end * 4 > self.kernarg_size {
            return Err(format!("it preloads arguments up to dword {preload_end} of {} bytes", self.kernarg_size));
        }
        Ok(self)
    }

    /// Whether the size of the stack is known only at run time.
    pub const fn uses_dynamic_stack(&self) -> bool {
        self.properties & property::USES_DYNAMIC_STACK != 0
    }

    /// Work-items of a wave: 64 on these processors.
    pub const fn wavefront_size(&self) -> u32 {
        64
    }

    /// Which user SGPRs hold what at the start of a wave.
    pub fn user_sgprs(&self) -> UserSgprs {
        let mut next = 0;
        let mut take = |bit: u16, registers: u8| {
            (self.properties & bit != 0).then(|| {
                let first = next;
                next += registers;
                first
            })
        };
        let private_segment_buffer = take(property::PRIVATE_SEGMENT_BUFFER, 4);
        let dispatch_ptr = take(property::DISPATCH_PTR, 2);
        let queue_ptr = take(property::QUEUE_PTR, 2);
        let kernarg_segment_ptr = take(property::KERNARG_SEGMENT_PTR, 2);
        let dispatch_id = take(property::DISPATCH_ID, 2);
        let flat_scratch_init = take(property::FLAT_SCRATCH_INIT, 2);
        let private_segment_size = take(property::PRIVATE_SEGMENT_SIZE, 1);
        let kernarg_preload = (self.kernarg_preload_length > 0).then_some(next);
        UserSgprs {
            private_segment_buffer,
            dispatch_ptr,
            queue_ptr,
            kernarg_segment_ptr,
            dispatch_id,
            flat_scratch_init,
            private_segment_size,
            kernarg_preload,
            count: u32::from(next) + u32::from(self.kernarg_preload_length),
        }
    }
}

/// First user SGPR of each value a wave starts with, in the order hardware sets them; `None` where it is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserSgprs {
    /// Buffer resource of scratch, 4 SGPRs.
    pub private_segment_buffer: Option<u8>,
    /// Address of the AQL packet, 2.
    pub dispatch_ptr: Option<u8>,
    /// Address of the `amd_queue_t`, 2.
    pub queue_ptr: Option<u8>,
    /// Address of the kernel arguments, 2.
    pub kernarg_segment_ptr: Option<u8>,
    /// Number of the dispatch in its queue, 2.
    pub dispatch_id: Option<u8>,
    /// Flat scratch base and size, 2; not used where flat scratch is architected (gfx942 and gfx950).
    pub flat_scratch_init: Option<u8>,
    /// Scratch bytes of a work-item, 1.
    pub private_segment_size: Option<u8>,
    /// Preloaded kernel arguments, `kernarg_preload_length`.
    pub kernarg_preload: Option<u8>,
    /// All of them together.
    pub count: u32,
}

macro_rules! register {
    ($(#[$meta:meta])* $name:ident { $( $(#[$doc:meta])* $field:ident: $high:literal : $low:literal; )* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub u32);

        impl $name {
            $(
                $(#[$doc])*
                pub const fn $field(self) -> u32 {
                    self.0 >> $low & (u32::MAX >> (31 - $high + $low))
                }
            )*
        }
    };
}

register! {
    /// `COMPUTE_PGM_RSRC1`.
    ComputePgmRsrc1 {
        /// Blocks of 8 vector registers, minus one, AccVGPRs included.
        granulated_workitem_vgpr_count: 5:0;
        /// Blocks of 16 scalar registers, minus one, times two.
        granulated_wavefront_sgpr_count: 9:6;
        /// Must be zero.
        priority: 11:10;
        /// Rounding of 32-bit floats: 0 nearest even, 1 up, 2 down, 3 to zero.
        float_round_mode_32: 13:12;
        /// Rounding of 16- and 64-bit floats.
        float_round_mode_16_64: 15:14;
        /// Denormals of 32-bit floats: 0 flush both, 1 flush destination, 2 flush source, 3 keep.
        float_denorm_mode_32: 17:16;
        /// Denormals of 16- and 64-bit floats.
        float_denorm_mode_16_64: 19:18;
        /// Clamps NaN to zero.
        enable_dx10_clamp: 21:21;
        /// Quiets signalling NaNs and follows IEEE 754-2008 in min and max.
        enable_ieee_mode: 23:23;
        /// Overflow of 16-bit floats gives the largest value.
        fp16_ovfl: 26:26;
    }
}

impl ComputePgmRsrc1 {
    /// Bits that a descriptor for these processors leaves zero: debugging, and modes of gfx10.
    const RESERVED: u32 = 1 << 22 | 1 << 24 | 1 << 25 | 0x1f << 27;

    /// Vector registers of a wave, AccVGPRs included.
    pub const fn vgpr_count(self) -> u32 {
        (self.granulated_workitem_vgpr_count() + 1) * 8
    }

    /// Scalar registers of a wave.
    pub const fn sgpr_count(self) -> u32 {
        (self.granulated_wavefront_sgpr_count() / 2 + 1) * 16
    }

    /// Whether it asks for privileged waves.
    pub const fn is_privileged(self) -> bool {
        self.0 & 1 << 20 != 0
    }

    /// The low byte of the MODE register a wave starts with: rounding and denormals.
    pub const fn float_mode(self) -> u32 {
        self.0 >> 12 & 0xff
    }
}

register! {
    /// `COMPUTE_PGM_RSRC2`.
    ComputePgmRsrc2 {
        /// Scratch is set up.
        enable_private_segment: 0:0;
        /// SGPRs set before the system's.
        user_sgpr_count: 5:1;
        /// The kernel driver's trap handler is on.
        enable_trap_handler: 6:6;
        /// An SGPR holds the workgroup id in x.
        enable_sgpr_workgroup_id_x: 7:7;
        /// An SGPR holds the workgroup id in y.
        enable_sgpr_workgroup_id_y: 8:8;
        /// An SGPR holds the workgroup id in z.
        enable_sgpr_workgroup_id_z: 9:9;
        /// An SGPR holds workgroup information.
        enable_sgpr_workgroup_info: 10:10;
        /// Work-item ids in v0: 0 x, 1 x and y, 2 x, y and z, ten bits each.
        vgpr_workitem_id: 12:11;
        /// LDS, in the command processor's units; zero in a descriptor.
        granulated_lds_size: 23:15;
        /// Floating-point and integer exceptions that trap, from "invalid" up.
        enable_exceptions: 30:24;
    }
}

register! {
    /// `COMPUTE_PGM_RSRC3`.
    ComputePgmRsrc3 {
        /// First AccVGPR in units of 4 registers, minus one.
        granulated_accum_offset: 5:0;
        /// The waves of a workgroup may run on different CUs.
        tg_split: 16:16;
    }
}

impl ComputePgmRsrc2 {
    const RESERVED: u32 = 1 << 31;
}

impl ComputePgmRsrc3 {
    const RESERVED: u32 = 0x3ff << 6 | 0x7fff << 17;

    /// First AccVGPR among the vector registers of a wave.
    pub const fn accum_offset(self) -> u32 {
        (self.granulated_accum_offset() + 1) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(change: impl FnOnce(&mut [u8; 64])) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[8..12].copy_from_slice(&28_u32.to_le_bytes());
        bytes[16..24].copy_from_slice(&0x1080_i64.to_le_bytes());
        bytes[48..52].copy_from_slice(&0x00af_0040_u32.to_le_bytes());
        bytes[52..56].copy_from_slice(&0x84_u32.to_le_bytes());
        bytes[56..58].copy_from_slice(&8_u16.to_le_bytes());
        change(&mut bytes);
        bytes
    }

    #[test]
    fn a_plain_descriptor_reads_field_by_field() {
        let descriptor = KernelDescriptor::from_bytes(&bytes(|_| {})).unwrap();
        assert_eq!(descriptor.kernarg_size, 28);
        assert_eq!(descriptor.code_entry_byte_offset, 0x1080);
        assert_eq!((descriptor.rsrc1.vgpr_count(), descriptor.rsrc1.sgpr_count()), (8, 16));
        assert_eq!(descriptor.rsrc1.float_denorm_mode_32(), 3);
        assert_eq!(descriptor.rsrc1.float_denorm_mode_16_64(), 3);
        assert_eq!(descriptor.rsrc1.float_mode(), 0xf0);
        assert_eq!((descriptor.rsrc1.enable_ieee_mode(), descriptor.rsrc1.enable_dx10_clamp()), (1, 1));
        assert_eq!(descriptor.rsrc2.user_sgpr_count(), 2);
        assert_eq!(descriptor.rsrc2.enable_sgpr_workgroup_id_x(), 1);
        assert_eq!(descriptor.user_sgprs().kernarg_segment_ptr, Some(0));
        assert_eq!(descriptor.rsrc3.accum_offset(), 4);
    }

    #[test]
    fn user_sgprs_follow_each_other_in_hardware_order() {
        let all = bytes(|bytes| {
            bytes[52..56].copy_from_slice(&(16_u32 << 1).to_le_bytes());
            bytes[56..58].copy_from_slice(&0b100_1111_u16.to_le_bytes());
            bytes[58..60].copy_from_slice(&(1 << 7 | 5_u16).to_le_bytes());
        });
        let sgprs = KernelDescriptor::from_bytes(&all).unwrap().user_sgprs();
        assert_eq!(sgprs.private_segment_buffer, Some(0));
        assert_eq!(sgprs.dispatch_ptr, Some(4));
        assert_eq!(sgprs.queue_ptr, Some(6));
        assert_eq!(sgprs.kernarg_segment_ptr, Some(8));
        assert_eq!((sgprs.dispatch_id, sgprs.flat_scratch_init), (None, None));
        assert_eq!(sgprs.private_segment_size, Some(10));
        assert_eq!(sgprs.kernarg_preload, Some(11));
        assert_eq!(sgprs.count, 16);
    }

    #[test]
    fn impossible_descriptors_are_refused_with_the_reason() {
        let reason = |change: fn(&mut [u8; 64])| KernelDescriptor::from_bytes(&bytes(change)).unwrap_err();
        assert!(reason(|b| b[13] = 1).contains("reserved bytes"));
        assert!(reason(|b| b[43] = 1).contains("reserved bytes"));
        assert!(reason(|b| b[63] = 1).contains("reserved bytes"));
        assert!(reason(|b| b[57] = 0x80).contains("reserved bits"));
        assert!(reason(|b| b[57] = 0x04).contains("waves of 32"));
        assert!(reason(|b| b[56] = 0x0b).contains("user SGPRs"));
        assert!(reason(|b| b[52] = 17 << 1).contains("hardware has 16"));
        assert!(reason(|b| b[53] = 0x18).contains("VGPR_WORKITEM_ID"));
        assert!(reason(|b| b[54] = 1).contains("GRANULATED_LDS_SIZE"));
        assert!(reason(|b| b[49] |= 4).contains("priority"));
        assert!(reason(|b| b[51] = 0x80).contains("COMPUTE_PGM_RSRC1"));
        assert!(reason(|b| b[55] = 0x80).contains("COMPUTE_PGM_RSRC2"));
        assert!(reason(|b| b[47] = 1).contains("COMPUTE_PGM_RSRC3"));
        assert!(reason(|b| b[44] = 63).contains("AccVGPRs"));
        assert!(reason(|b| b[52..59].copy_from_slice(&[16 << 1, 0, 0, 0, 8, 0, 8])).contains("preloads"));
    }
}
