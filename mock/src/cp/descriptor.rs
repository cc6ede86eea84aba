//! The kernel descriptor as the command processor reads it (AMDGPUUsage, "Kernel Descriptor").

/// Which user SGPRs a kernel asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) private_segment_buffer: bool,
    pub(super) dispatch_ptr: bool,
    pub(super) queue_ptr: bool,
    pub(super) kernarg_segment_ptr: bool,
    pub(super) dispatch_id: bool,
    pub(super) flat_scratch_init: bool,
    pub(super) private_segment_size: bool,
}

/// The fields a dispatch needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelDescriptor {
    /// Entry point, relative to the descriptor.
    pub(super) entry_offset: i64,
    pub(super) rsrc1: u32,
    pub(super) rsrc2: u32,
    pub(super) rsrc3: u32,
    pub(super) properties: Properties,
    pub(super) kernarg_preload_dwords: u32,
    /// In dwords.
    pub(super) kernarg_preload_offset: u32,
}

impl KernelDescriptor {
    pub(super) const BYTES: usize = 64;

    pub(super) fn parse(bytes: &[u8; Self::BYTES]) -> Result<Self, String> {
        let dword = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let half = |at: usize| u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let code = half(56);
        if code >> 10 & 1 == 1 {
            return Err("ENABLE_WAVEFRONT_SIZE32 is set; gfx950 runs waves of 64".into());
        }
        let bit = |n: u32| code >> n & 1 == 1;
        let preload = half(58);
        Ok(Self {
            entry_offset: i64::from(dword(16)) | i64::from(dword(20) as i32) << 32,
            rsrc3: dword(44),
            rsrc1: dword(48),
            rsrc2: dword(52),
            properties: Properties {
                private_segment_buffer: bit(0),
                dispatch_ptr: bit(1),
                queue_ptr: bit(2),
                kernarg_segment_ptr: bit(3),
                dispatch_id: bit(4),
                flat_scratch_init: bit(5),
                private_segment_size: bit(6),
            },
            kernarg_preload_dwords: preload & 0x7f,
            kernarg_preload_offset: preload >> 7,
        })
    }
}
