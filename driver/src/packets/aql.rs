//! AQL packets: 64 bytes each, as the HSA system architecture defines them, and AMD's vendor packet for PM4.
//!
//! ```text
//! dword 0   31:16                15:13  12:11    10:9     8        7:0
//!           setup, or AMD format 0      release  acquire  barrier  type
//! ```
//!
//! A consumer reads a packet once its type is no longer [`PacketType::Invalid`]; so the half-word with the type is
//! stored last, with release ordering, and is turned invalid again by the consumer.
//!
//! Sources: HSA Runtime Programmer's Reference, "Architected Queuing Language packets"; `hsa_ext_amd.h` and
//! `amd_hsa_queue.h` of ROCr.

use super::value::named_values;
use super::wire::{DecodeError, EncodeError, Packet, packet};
use crate::address::GpuVa;

/// Dwords of every packet.
pub const DWORDS: usize = 16;
/// Bytes of every packet: one slot of a ring.
pub const BYTES: u64 = 64;

/// A packet as it lies in a ring.
pub type Slot = [u32; DWORDS];

/// `hsa_packet_type_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PacketType {
    /// AMD's own; bits 16..=23 of dword 0 say which.
    VendorSpecific = 0,
    /// An empty slot.
    Invalid = 1,
    /// A kernel.
    KernelDispatch = 2,
    /// Waits for all of five signals.
    BarrierAnd = 3,
    /// A host agent's function.
    AgentDispatch = 4,
    /// Waits for one of five signals.
    BarrierOr = 5,
}

impl PacketType {
    /// The type in dword 0 of a packet, `None` if it has no meaning.
    pub const fn of(dword_0: u32) -> Option<Self> {
        Some(match dword_0 & 0xff {
            0 => Self::VendorSpecific,
            1 => Self::Invalid,
            2 => Self::KernelDispatch,
            3 => Self::BarrierAnd,
            4 => Self::AgentDispatch,
            5 => Self::BarrierOr,
            _ => return None,
        })
    }
}

/// What an empty slot holds in its first half-word.
pub const INVALID_HEADER: u16 = PacketType::Invalid as u16;

/// `AMD_AQL_FORMAT_PM4_IB` of `amd_hsa_queue.h`.
const FORMAT_PM4_IB: u32 = 1;
/// A PM4 `INDIRECT_BUFFER` header.
const INDIRECT_BUFFER: u32 = 0xc002_3f00;
/// Dwords of the slot after the PM4 packet and its count.
const PM4_IB_REMAINING: u32 = 10;

named_values! {
    /// How far an acquire or release of a packet reaches (`hsa_fence_scope_t`).
    FenceScope {
        /// Nowhere.
        None = 0 "none",
        /// This GPU.
        Agent = 1 "agent",
        /// All GPUs and the host.
        System = 2 "system",
    }
}

macro_rules! aql {
    ($(
        $(#[$meta:meta])*
        $name:ident = ($mask:literal, $type:expr) $text:literal
        $(, $fixed_dword:literal: $fixed_value:expr)*
        => { $($body:tt)* }
    )*) => {
        $(
            packet! {
                'a; $(#[$meta])*
                $name = $text [16] fixed [(0, $mask, $type) $(, ($fixed_dword, u32::MAX, $fixed_value))*]
                {
                    /// Waits for all earlier packets of the queue to complete.
                    barrier: bool = 0[8];
                    /// Caches invalidated before it starts.
                    acquire: FenceScope = 0[10:9];
                    /// Caches written back after it ends.
                    release: FenceScope = 0[12:11];
                    $($body)*
                    /// Signal decremented by one when it is done; null for none.
                    completion_signal: GpuVa = 14[63:0];
                }
            }

            impl $name {
                /// The packet as it lies in a ring, type and all.
                pub fn encode(&self) -> Result<Slot, EncodeError> {
                    encode(self)
                }
            }

            impl From<$name> for Aql {
                fn from(packet: $name) -> Self { Self::$name(packet) }
            }
        )*

        /// Any AQL packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Aql {
            $( #[doc = $text] $name($name), )*
        }

        impl Aql {
            /// The packet as it lies in a ring, type and all.
            pub fn encode(&self) -> Result<Slot, EncodeError> {
                match self { $( Self::$name(packet) => packet.encode() ),* }
            }

            /// Reads a slot. An [`PacketType::Invalid`] one is empty and must not come here.
            pub fn decode(slot: &Slot) -> Result<Self, DecodeError> {
                $(
                    if slot[0] & $mask == $type {
                        return $name::read(slot, (0, 0)).map(Self::$name);
                    }
                )*
                let opcode = if slot[0] & 0xff == 0 { slot[0] & 0x00ff_00ff } else { slot[0] & 0xff };
                Err(DecodeError::UnknownOpcode { format: "AQL", opcode })
            }

            /// The signal decremented when the packet is done; null for none.
            pub const fn completion_signal(&self) -> GpuVa {
                match self { $( Self::$name(packet) => packet.completion_signal ),* }
            }

            /// Whether the packet waits for all earlier ones.
            pub const fn barrier(&self) -> bool {
                match self { $( Self::$name(packet) => packet.barrier ),* }
            }

            /// How far the packet acquires and releases.
            pub const fn scopes(&self) -> (FenceScope, FenceScope) {
                match self { $( Self::$name(packet) => (packet.acquire, packet.release) ),* }
            }

            /// Every table row, for tests and documentation.
            pub const LAYOUTS: &'static [super::Layout] = &[$( $name::LAYOUT ),*];
        }

        impl std::fmt::Display for Aql {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $( Self::$name(packet) => packet.fmt(f) ),* }
            }
        }
    };
}

fn encode<'a>(packet: &impl Packet<'a>) -> Result<Slot, EncodeError> {
    let mut dwords = Vec::with_capacity(DWORDS);
    packet.write(&mut dwords)?;
    Ok(dwords.try_into().expect("every AQL table row is 16 dwords long"))
}

aql! {
    /// Runs a kernel.
    KernelDispatch = (0xff, 2) "KERNEL_DISPATCH" => {
        /// Dimensions of the grid, 1 to 3.
        dimensions: u8 = 0[17:16];
        /// Work-items of a workgroup.
        workgroup_size_x: u16 = 1[15:0];
        /// See `workgroup_size_x`.
        workgroup_size_y: u16 = 1[31:16];
        /// See `workgroup_size_x`.
        workgroup_size_z: u16 = 2[15:0];
        /// Work-items of the grid: not workgroups.
        grid_size_x: u32 = 3[31:0];
        /// See `grid_size_x`.
        grid_size_y: u32 = 4[31:0];
        /// See `grid_size_x`.
        grid_size_z: u32 = 5[31:0];
        /// Scratch bytes of a work-item.
        private_segment_size: u32 = 6[31:0];
        /// LDS bytes of a workgroup, the kernel's own included.
        group_segment_size: u32 = 7[31:0];
        /// The kernel descriptor.
        kernel_object: GpuVa = 8[63:0];
        /// The kernel arguments.
        kernarg_address: GpuVa = 10[63:0];
    }

    /// Waits until all of its signals are zero; null ones are.
    BarrierAnd = (0xff, 3) "BARRIER_AND" => {
        /// Signal 0.
        dep_signal_0: GpuVa = 2[63:0];
        /// Signal 1.
        dep_signal_1: GpuVa = 4[63:0];
        /// Signal 2.
        dep_signal_2: GpuVa = 6[63:0];
        /// Signal 3.
        dep_signal_3: GpuVa = 8[63:0];
        /// Signal 4.
        dep_signal_4: GpuVa = 10[63:0];
    }

    /// Waits until one of its signals is zero; null ones do not count.
    BarrierOr = (0xff, 5) "BARRIER_OR" => {
        /// Signal 0.
        dep_signal_0: GpuVa = 2[63:0];
        /// Signal 1.
        dep_signal_1: GpuVa = 4[63:0];
        /// Signal 2.
        dep_signal_2: GpuVa = 6[63:0];
        /// Signal 3.
        dep_signal_3: GpuVa = 8[63:0];
        /// Signal 4.
        dep_signal_4: GpuVa = 10[63:0];
    }

    /// AMD's vendor packet that runs a PM4 indirect buffer.
    ///
    /// ```text
    /// dword 0       1..=4                    5               6..=13  14..=15
    ///       header  PM4 INDIRECT_BUFFER      dwords to come  0       completion signal
    /// ```
    Pm4Ib = (0x00ff_00ff, FORMAT_PM4_IB << 16) "PM4_IB", 1: INDIRECT_BUFFER, 5: PM4_IB_REMAINING => {
        /// Where the commands are, 4-byte aligned.
        ib_address: GpuVa = 2[63:0];
        /// Their length in dwords.
        ib_dwords: u32 = 4[19:0];
        /// Must be set.
        ib_valid: bool = 4[23];
    }
}

impl BarrierAnd {
    /// The signals it waits for, null ones included.
    pub const fn dep_signals(&self) -> [GpuVa; 5] {
        [self.dep_signal_0, self.dep_signal_1, self.dep_signal_2, self.dep_signal_3, self.dep_signal_4]
    }
}

impl BarrierOr {
    /// The signals it waits for, null ones included.
    pub const fn dep_signals(&self) -> [GpuVa; 5] {
        [self.dep_signal_0, self.dep_signal_1, self.dep_signal_2, self.dep_signal_3, self.dep_signal_4]
    }
}
