//! PM4 packets of the compute command processor (MEC) of gfx9.4.3 and gfx9.5.0.
//!
//! ```text
//! dword 0   31:30  29:16                15:8    7:2  1            0
//!           3      dwords after it - 1  opcode  0    shader type  predicate
//! ```
//!
//! Field places are `soc15d.h` and `kfd_pm4_headers_ai.h` of Linux; the few packets those lack are AMD's PAL,
//! `gfx9_plus_merged_f32_mec_pm4_packets.h`. Dword 0 is the header here; AMD's "ordinal" numbers are one higher.
//!
//! On a GPU of several XCCs behind one queue every XCC reads every packet. What must happen once goes under
//! [`PredExec`] for one XCC, and that is obeyed only inside an indirect buffer, not in a ring.

mod value;

use super::stream::{Format, Packets};
use super::wire::{DecodeError, EncodeError, Ignored, Packet};

/// Header bits the table fixes: type and opcode.
const TYPE_AND_OPCODE: u32 = 3 << 30 | 0xff << 8;
/// Header bits without a table entry: the count, and the shader type, which the MEC does not look at.
const COUNT_AND_SHADER_TYPE: Ignored = (0, 0x3fff << 16 | 1 << 1);
/// Most dwords a header can count after itself.
const MOST_AFTER_HEADER: usize = 0x3fff;
/// A NOP with this count is one dword long (`PACKET3(PACKET3_NOP, 0x3FFF)` fills rings in `gfx_v9_4_3.c`).
const NOP_ALONE: u32 = 0x3fff;

/// The length that a header states, in dwords with the header: what a command processor fetches before it decodes.
pub fn length(header: u32) -> Result<usize, DecodeError> {
    if header >> 30 != 3 {
        return Err(DecodeError::PacketType(header >> 30));
    }
    let count = header >> 16 & 0x3fff;
    if header >> 8 & 0xff == Nop::OPCODE && count == NOP_ALONE { Ok(1) } else { Ok(count as usize + 2) }
}

/// The packets of an indirect buffer or of a stretch of ring, in order.
pub fn packets(dwords: &[u32]) -> Packets<'_, Pm4<'_>> {
    Packets::new(dwords)
}

macro_rules! pm4 {
    ($a:lifetime; $(
        $(#[$meta:meta])*
        $name:ident $(<$life:lifetime>)? = $opcode:literal $text:literal [$dwords:literal] { $($body:tt)* }
    )*) => {
        $(
            super::super::wire::packet! {
                $a; $(#[$meta])*
                $name $(<$life>)? = $text [$dwords]
                fixed [(0, TYPE_AND_OPCODE, 3 << 30 | $opcode << 8)]
                { $($body)* }
            }

            impl $(<$life>)? $name $(<$life>)? {
                /// Opcode, bits 8..=15 of the header.
                pub const OPCODE: u32 = $opcode;

                /// Appends the packet.
                pub fn encode(&self, out: &mut Vec<u32>) -> Result<(), EncodeError> {
                    encode(self, out)
                }
            }

            impl<$a> From<$name $(<$life>)?> for Pm4<$a> {
                fn from(packet: $name $(<$life>)?) -> Self { Self::$name(packet) }
            }
        )*

        /// Any PM4 packet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Pm4<$a> {
            $(
                #[doc = concat!("`", $text, "`")]
                $name($name $(<$life>)?),
            )*
        }

        impl<$a> Pm4<$a> {
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

            pub(super) fn read(dwords: &$a [u32]) -> Result<Self, DecodeError> {
                match dwords[0] >> 8 & 0xff {
                    $( $opcode => $name::read(dwords, COUNT_AND_SHADER_TYPE).map(Self::$name), )*
                    opcode => Err(DecodeError::UnknownOpcode { format: "PM4", opcode }),
                }
            }

            /// The name of an opcode, if the table has it.
            pub const fn opcode_name(opcode: u32) -> Option<&'static str> {
                match opcode { $( $opcode => Some($text), )* _ => None }
            }

            /// Every table row, for tests and documentation.
            pub const LAYOUTS: &'static [$crate::packets::Layout] = &[$( $name::LAYOUT ),*];
        }

        impl std::fmt::Display for Pm4<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $( Self::$name(packet) => packet.fmt(f) ),* }
            }
        }
    };
}

impl<'a> Format<'a> for Pm4<'a> {
    fn first(dwords: &'a [u32]) -> Result<(Self, usize), DecodeError> {
        let &header = dwords.first().ok_or(DecodeError::Truncated { packet: "PM4", needed: 1, available: 0 })?;
        let needed = length(header)?;
        let Some(own) = dwords.get(..needed) else {
            let packet = Self::opcode_name(header >> 8 & 0xff).unwrap_or("PM4");
            return Err(DecodeError::Truncated { packet, needed, available: dwords.len() });
        };
        Ok((Self::read(own)?, needed))
    }
}

fn encode<'a, P: Packet<'a>>(packet: &P, out: &mut Vec<u32>) -> Result<(), EncodeError> {
    let start = out.len();
    packet.write(out)?;
    // The header of a lone NOP wraps round to NOP_ALONE, which is what the format wants of it.
    let after_header = out.len() - start - 1;
    if after_header > MOST_AFTER_HEADER {
        let (fixed, found) = (P::LAYOUT.dwords, out.len() - start - P::LAYOUT.dwords);
        out.truncate(start);
        let most = MOST_AFTER_HEADER + 1 - fixed;
        return Err(EncodeError::Payload { packet: P::LAYOUT.name, least: 0, most, found });
    }
    out[start] |= ((after_header as u32).wrapping_sub(1) & 0x3fff) << 16;
    Ok(())
}

mod table;

pub use table::*;
pub use value::*;
