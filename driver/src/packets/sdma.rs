//! SDMA packets of the copy engines 4.4.x.
//!
//! ```text
//! dword 0   31:16              15:8           7:0
//!           by packet          sub-opcode     opcode
//! ```
//!
//! Field places are `vega10_sdma_pkt_open.h` of Linux, which describes SDMA 4.0. What 4.4 widened is `sdma_v4_4_2.c`:
//! byte counts of copies and fills have 30 bits, not 22.

use super::stream::{Format, Packets};
use super::value::{AtomicOp, Compare, Count, named_values};
use super::wire::{DecodeError, EncodeError, Packet, packet};
use crate::address::GpuVa;

/// Most bytes of one [`CopyLinear`] or [`ConstantFill`] (`copy_max_bytes` of `sdma_v4_4_2_buffer_funcs`).
pub const MAX_COPY_BYTES: u32 = 1 << 30;
/// Most dwords of one [`Write`].
pub const MAX_WRITE_DWORDS: usize = 1 << 20;
/// Largest x or y of a [`CopyLinearSubWindow`], in elements.
pub const MAX_SUB_WINDOW_EXTENT: u32 = 1 << 14;
/// Largest pitch of a [`CopyLinearSubWindow`], in elements.
pub const MAX_SUB_WINDOW_PITCH: u32 = 1 << 19;

/// Header bits the table fixes: opcode and sub-opcode.
const OPCODES: u32 = 0xffff;

/// How a packet's length is known from its first dwords.
#[derive(Clone, Copy)]
enum Payload {
    /// No payload.
    None,
    /// `count` dwords, a 14-bit count in bits 16..=29 of the header (`SDMA_PKT_NOP_HEADER_COUNT`).
    Header,
    /// `count + 1` dwords, a 20-bit count in dword 3 (`SDMA_PKT_WRITE_UNTILED_DW_3_COUNT`).
    Dword3,
}

impl Payload {
    const fn place(self) -> Option<(usize, u32, u32, u32)> {
        match self {
            Self::None => None,
            Self::Header => Some((0, 16, 0x3fff, 0)),
            Self::Dword3 => Some((3, 0, 0xf_ffff, 1)),
        }
    }

    /// Dwords of payload, `None` while the dword that tells is not there.
    fn dwords(self, packet: &[u32]) -> Option<usize> {
        let Some((dword, shift, mask, bias)) = self.place() else { return Some(0) };
        packet.get(dword).map(|word| (word >> shift & mask) as usize + bias as usize)
    }
}

/// The packets of a ring's stretch or of an indirect buffer, in order.
pub fn packets(dwords: &[u32]) -> Packets<'_, Sdma<'_>> {
    Packets::new(dwords)
}

macro_rules! sdma {
    ($a:lifetime; $(
        $(#[$meta:meta])*
        $name:ident $(<$life:lifetime>)? = $opcode:literal / $sub:literal $text:literal [$dwords:literal] $payload:ident
        { $($body:tt)* }
    )*) => {
        $(
            packet! {
                $a; $(#[$meta])*
                $name $(<$life>)? = $text [$dwords]
                fixed [(0, OPCODES, $opcode | $sub << 8)]
                { $($body)* }
            }

            impl $(<$life>)? $name $(<$life>)? {
                /// Opcode, bits 0..=7 of the header, and sub-opcode, bits 8..=15.
                pub const OPCODE: u32 = $opcode | $sub << 8;

                /// Appends the packet.
                pub fn encode(&self, out: &mut Vec<u32>) -> Result<(), EncodeError> {
                    encode(self, Payload::$payload, out)
                }
            }

            impl<$a> From<$name $(<$life>)?> for Sdma<$a> {
                fn from(packet: $name $(<$life>)?) -> Self { Self::$name(packet) }
            }
        )*

        /// Any SDMA packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Sdma<$a> {
            $(
                #[doc = concat!("`", $text, "`")]
                $name($name $(<$life>)?),
            )*
        }

        impl<$a> Sdma<$a> {
            /// Appends the packet.
            pub fn encode(&self, out: &mut Vec<u32>) -> Result<(), EncodeError> {
                match self { $( Self::$name(packet) => packet.encode(out) ),* }
            }

            /// Reads the packet from exactly its dwords.
            pub fn decode(dwords: &$a [u32]) -> Result<Self, DecodeError> {
                let (packet, length) = Self::first(dwords)?;
                if length != dwords.len() {
                    let packet = packet.name();
                    return Err(DecodeError::Length { packet, expected: dwords.len(), found: length });
                }
                Ok(packet)
            }

            /// The name AMD's headers give the packet.
            pub const fn name(&self) -> &'static str {
                match self { $( Self::$name(_) => $text ),* }
            }

            /// Every table row, for tests and documentation.
            pub const LAYOUTS: &'static [super::Layout] = &[$( $name::LAYOUT ),*];
        }

        /// The length in dwords of the packet that starts `dwords`, as far as its opcode and count tell: what an engine
        /// fetches before it decodes. `Truncated` says how many dwords it takes to know.
        pub fn length(dwords: &[u32]) -> Result<usize, DecodeError> {
            let available = dwords.len();
            let &header = dwords.first().ok_or(DecodeError::Truncated { packet: "SDMA", needed: 1, available })?;
            let (packet, fixed, payload) = match header & OPCODES {
                $( $name::OPCODE => ($text, $dwords, Payload::$payload), )*
                opcode => return Err(DecodeError::UnknownOpcode { format: "SDMA", opcode }),
            };
            match payload.dwords(dwords) {
                Some(more) => Ok(fixed + more),
                None => Err(DecodeError::Truncated { packet, needed: fixed, available }),
            }
        }

        impl<$a> Format<$a> for Sdma<$a> {
            fn first(dwords: &$a [u32]) -> Result<(Self, usize), DecodeError> {
                let needed = length(dwords)?;
                let header = dwords[0];
                match header & OPCODES {
                    $(
                        $name::OPCODE => {
                            let Some(own) = dwords.get(..needed) else {
                                let available = dwords.len();
                                return Err(DecodeError::Truncated { packet: $text, needed, available });
                            };
                            Ok((Self::$name(read(own, Payload::$payload)?), needed))
                        }
                    )*
                    opcode => Err(DecodeError::UnknownOpcode { format: "SDMA", opcode }),
                }
            }
        }

        impl std::fmt::Display for Sdma<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $( Self::$name(packet) => packet.fmt(f) ),* }
            }
        }
    };
}

fn read<'a, P: Packet<'a>>(own: &'a [u32], payload: Payload) -> Result<P, DecodeError> {
    let ignored = payload.place().map_or((0, 0), |(dword, shift, mask, _)| (dword, mask << shift));
    P::read(own, ignored)
}

fn encode<'a, P: Packet<'a>>(packet: &P, payload: Payload, out: &mut Vec<u32>) -> Result<(), EncodeError> {
    let start = out.len();
    packet.write(out)?;
    if let Some((dword, shift, mask, bias)) = payload.place() {
        let found = out.len() - start - P::LAYOUT.dwords;
        let (least, most) = (bias as usize, (mask + bias) as usize);
        if !(least..=most).contains(&found) {
            out.truncate(start);
            return Err(EncodeError::Payload { packet: P::LAYOUT.name, least, most, found });
        }
        out[start + dword] |= (found as u32 - bias) << shift;
    }
    Ok(())
}

sdma! {
    'a;

    /// Does nothing; its payload is skipped.
    Nop<'a> = 0 / 0 "NOP" [1] Header {
        .. payload: "Skipped.";
    }

    /// Copies bytes.
    CopyLinear = 1 / 0 "COPY_LINEAR" [7] None {
        /// How many, up to [`MAX_COPY_BYTES`].
        bytes: Count = 1[29:0];
        /// Byte swap of the destination: 0 none.
        dst_swap: u8 = 2[17:16];
        /// Byte swap of the source: 0 none.
        src_swap: u8 = 2[25:24];
        /// Where from, byte aligned.
        src: GpuVa = 3[63:0];
        /// Where to, byte aligned.
        dst: GpuVa = 5[63:0];
    }

    /// Copies a box out of one pitched array into another. Base addresses and pitches are multiples of 4 bytes: ROCr
    /// refuses others (`BlitSdma::BuildCopyRectCommand`).
    CopyLinearSubWindow = 1 / 4 "COPY_LINEAR_SUBWIN" [13] None {
        /// What coordinates count: elements of this size.
        element: ElementSize = 0[31:29];
        /// Source array.
        src: GpuVa = 1[63:0];
        /// First element of a row.
        src_x: u16 = 3[13:0];
        /// First row.
        src_y: u16 = 3[29:16];
        /// First slice.
        src_z: u16 = 4[10:0];
        /// Elements from row to row.
        src_pitch: Count = 4[31:13];
        /// Elements from slice to slice.
        src_slice_pitch: Count = 5[27:0];
        /// Destination array.
        dst: GpuVa = 6[63:0];
        /// See `src_x`.
        dst_x: u16 = 8[13:0];
        /// See `src_y`.
        dst_y: u16 = 8[29:16];
        /// See `src_z`.
        dst_z: u16 = 9[10:0];
        /// See `src_pitch`.
        dst_pitch: Count = 9[31:13];
        /// See `src_slice_pitch`.
        dst_slice_pitch: Count = 10[27:0];
        /// Elements of a row.
        rect_x: Count = 11[13:0];
        /// Rows.
        rect_y: Count = 11[29:16];
        /// Slices.
        rect_z: Count = 12[10:0];
        /// Byte swap of the destination: 0 none.
        dst_swap: u8 = 12[17:16];
        /// Byte swap of the source: 0 none.
        src_swap: u8 = 12[25:24];
    }

    /// Writes dwords that are in the packet.
    Write<'a> = 2 / 0 "WRITE_LINEAR" [4] Dword3 {
        /// Where to, 4-byte aligned.
        dst: GpuVa = 1[63:0];
        /// Byte swap: 0 none. Shares dword 3 with the count of the data.
        swap: u8 = 3[25:24];
        .. data: "What to write, one dword at least.";
    }

    /// Runs commands from another place. Must end on a multiple of 8 dwords in its ring (`sdma_v4_4_2_ring_emit_ib`).
    Indirect = 4 / 0 "INDIRECT" [6] None {
        /// Address space, from the kernel driver only.
        vmid: u8 = 0[19:16];
        /// Where, 32-byte aligned.
        ib_base: GpuVa = 1[63:0];
        /// Their length in dwords.
        ib_dwords: u32 = 3[19:0];
        /// Context save area, from the kernel driver only.
        csa_address: GpuVa = 4[63:0];
    }

    /// Writes a dword after everything before it has arrived.
    Fence = 5 / 0 "FENCE" [4] None {
        /// Where to, 4-byte aligned.
        address: GpuVa = 1[63:0];
        /// What to write.
        data: u32 = 3[31:0];
    }

    /// Interrupts the host.
    Trap = 6 / 0 "TRAP" [2] None {
        /// Context id: for KFD an event id.
        int_context: u32 = 1[27:0];
    }

    /// Waits until a dword of memory or a register compares well.
    PollRegMem = 8 / 0 "POLL_REGMEM" [6] None {
        /// Flushes HDP and waits for that: address and value are request and done registers.
        hdp_flush: bool = 0[26];
        /// The comparison.
        function: Compare = 0[30:28];
        /// Memory rather than a register.
        memory: bool = 0[31];
        /// The memory, or the register as a byte address.
        address: u64 = 1[63:0];
        /// What is compared with.
        reference: u32 = 3[31:0];
        /// Applied to the polled value.
        mask: u32 = 4[31:0];
        /// Clocks between polls.
        interval: u16 = 5[15:0];
        /// Polls before the engine gives up; 0xfff never does.
        retry_count: u16 = 5[27:16];
    }

    /// Skips dwords unless a dword in memory equals a reference.
    CondExe = 9 / 0 "COND_EXE" [5] None {
        /// The dword, 4-byte aligned.
        address: GpuVa = 1[63:0];
        /// What it must equal.
        reference: u32 = 3[31:0];
        /// How many dwords to skip.
        exec_count: u16 = 4[13:0];
    }

    /// An atomic operation on memory.
    Atomic = 10 / 0 "ATOMIC" [8] None {
        /// Repeats until the comparison succeeds.
        repeat: bool = 0[16];
        /// What it does.
        op: AtomicOp = 0[31:25];
        /// The memory, aligned to its width.
        address: GpuVa = 1[63:0];
        /// The operand.
        source: u64 = 3[63:0];
        /// The comparand.
        compare: u64 = 5[63:0];
        /// Clocks between repetitions.
        loop_interval: u16 = 7[12:0];
    }

    /// Fills memory with one value.
    ConstantFill = 11 / 0 "CONSTANT_FILL" [5] None {
        /// Byte swap: 0 none.
        swap: u8 = 0[17:16];
        /// Size of the value.
        fill_size: FillSize = 0[31:30];
        /// Where to, aligned to the value.
        dst: GpuVa = 1[63:0];
        /// The value, in the low bits.
        data: u32 = 3[31:0];
        /// How many bytes, up to [`MAX_COPY_BYTES`].
        bytes: Count = 4[29:0];
    }

    /// Sets the engine's own counter.
    TimestampSet = 13 / 0 "TIMESTAMP_SET" [3] None {
        /// To this.
        init_data: u64 = 1[63:0];
    }

    /// Writes the engine's own counter to memory.
    TimestampGet = 13 / 1 "TIMESTAMP_GET" [3] None {
        /// Where to, 8-byte aligned.
        address: GpuVa = 1[63:0];
    }

    /// Writes the GPU's 100 MHz counter to memory.
    TimestampGetGlobal = 13 / 2 "TIMESTAMP_GET_GLOBAL" [3] None {
        /// Where to, 8-byte aligned.
        address: GpuVa = 1[63:0];
    }
}

named_values! {
    /// Size of an element of a [`CopyLinearSubWindow`].
    ElementSize {
        /// 1 byte.
        B1 = 0 "1B",
        /// 2 bytes.
        B2 = 1 "2B",
        /// 4 bytes.
        B4 = 2 "4B",
        /// 8 bytes.
        B8 = 3 "8B",
        /// 16 bytes.
        B16 = 4 "16B",
    }
}

impl ElementSize {
    /// Bytes of an element.
    pub const fn bytes(self) -> u32 {
        1 << self as u32
    }
}

named_values! {
    /// Size of the value of a [`ConstantFill`].
    FillSize {
        /// 1 byte.
        B1 = 0 "1B",
        /// 2 bytes.
        B2 = 1 "2B",
        /// 4 bytes.
        B4 = 2 "4B",
    }
}
