//! The machinery below the packet tables: where a field sits, and the macro that turns a table row into a type.

use std::fmt;

use crate::address::GpuVa;

/// Where one field of a packet sits.
///
/// Dword 0 is the header. A field wider than its dword goes on in the next, low half first, as addresses do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, as in the struct.
    pub name: &'static str,
    /// First dword.
    pub dword: usize,
    /// Lowest bit in that dword.
    pub low: u32,
    /// Bits, 1 to 64.
    pub width: u32,
}

impl Field {
    /// The field at bits `high..=low` of `dword`, as AMD's documents write places: `dword[high:low]`.
    pub const fn new(name: &'static str, dword: usize, high: u32, low: u32) -> Self {
        assert!(low < 32 && high >= low && high - low < 64 && high < 64);
        Self { name, dword, low, width: high - low + 1 }
    }

    /// The bits of dword number `dword` that belong to this field.
    pub const fn mask_in(&self, dword: usize) -> u32 {
        let mask = (u64::MAX >> (64 - self.width)) << self.low;
        if dword == self.dword {
            mask as u32
        } else if dword == self.dword + 1 {
            (mask >> 32) as u32
        } else {
            0
        }
    }

    fn get(&self, dwords: &[u32]) -> u64 {
        let low = u64::from(dwords[self.dword]);
        let high = if self.low + self.width > 32 { u64::from(dwords[self.dword + 1]) } else { 0 };
        (high << 32 | low) >> self.low & (u64::MAX >> (64 - self.width))
    }

    fn put(&self, dwords: &mut [u32], value: u64) {
        dwords[self.dword] |= (value << self.low) as u32;
        if self.low + self.width > 32 {
            dwords[self.dword + 1] |= (value << self.low >> 32) as u32;
        }
    }
}

/// Bits of a packet that always hold the same value: its type, opcode or format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// Which dword.
    pub dword: usize,
    /// Which bits.
    pub mask: u32,
    /// What they hold.
    pub value: u32,
}

/// The table row of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The name AMD's headers give it.
    pub name: &'static str,
    /// Length in dwords, header included, payload not.
    pub dwords: usize,
    /// Whether a payload of any length follows.
    pub has_payload: bool,
    /// Bits that never change.
    pub fixed: &'static [Fixed],
    /// Everything else; bits neither list names are reserved and zero.
    pub fields: &'static [Field],
}

impl Layout {
    /// Checks everything that does not need a field's meaning: length, fixed and reserved bits. `ignored` are bits
    /// that the format itself has dealt with.
    fn check(&self, dwords: &[u32], ignored: Ignored) -> Result<(), DecodeError> {
        if dwords.len() < self.dwords || (dwords.len() > self.dwords && !self.has_payload) {
            return Err(DecodeError::Length { packet: self.name, expected: self.dwords, found: dwords.len() });
        }
        for (index, &word) in dwords[..self.dwords].iter().enumerate() {
            let mut known = if index == ignored.0 { ignored.1 } else { 0 };
            for fixed in self.fixed.iter().filter(|fixed| fixed.dword == index) {
                known |= fixed.mask;
                if word & fixed.mask != fixed.value {
                    let (expected, found) = (fixed.value, word & fixed.mask);
                    return Err(DecodeError::FixedBits { packet: self.name, dword: index, expected, found });
                }
            }
            known |= self.fields.iter().fold(0, |mask, field| mask | field.mask_in(index));
            if word & !known != 0 {
                return Err(DecodeError::ReservedBits { packet: self.name, dword: index, bits: word & !known });
            }
        }
        Ok(())
    }
}

/// Bits of one dword that a format deals with itself, such as a count: dword and mask.
pub type Ignored = (usize, u32);

/// Why dwords are not the packet they claim to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The stream ends inside a packet.
    #[error("{packet} needs {needed} dwords, {available} are left")]
    Truncated {
        /// Name, or the format's where the opcode is not readable.
        packet: &'static str,
        /// Dwords it takes.
        needed: usize,
        /// Dwords there are.
        available: usize,
    },
    /// A packet the tables do not have.
    #[error("{format} opcode {opcode:#x} is not one this driver knows")]
    UnknownOpcode {
        /// PM4, SDMA or AQL.
        format: &'static str,
        /// For SDMA the sub-opcode is in bits 8..=15, for AQL vendor packets the format.
        opcode: u32,
    },
    /// A PM4 packet of type 0, 1 or 2, none of which compute queues take.
    #[error("PM4 packet type {0} is not accepted by the compute command processor, only type 3")]
    PacketType(u32),
    /// The header states another length than the packet has.
    #[error("{packet} is {expected} dwords long, the header says {found}")]
    Length {
        /// Name.
        packet: &'static str,
        /// By the table.
        expected: usize,
        /// By the header.
        found: usize,
    },
    /// A bit is set that no field claims.
    #[error("{packet} has reserved bits {bits:#x} set in dword {dword}")]
    ReservedBits {
        /// Name.
        packet: &'static str,
        /// Where, counted from the header.
        dword: usize,
        /// Which.
        bits: u32,
    },
    /// Bits that make the packet what it is hold something else.
    #[error("{packet} must hold {expected:#x} in dword {dword}, not {found:#x}")]
    FixedBits {
        /// Name.
        packet: &'static str,
        /// Where, counted from the header.
        dword: usize,
        /// By the table.
        expected: u32,
        /// As found.
        found: u32,
    },
    /// A field holds a value without a name.
    #[error("{packet} field {field} holds {value:#x}, which has no meaning")]
    Value {
        /// Name of the packet.
        packet: &'static str,
        /// Name of the field.
        field: &'static str,
        /// What it holds.
        value: u64,
    },
}

/// Why a packet cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A value does not fit its field.
    #[error("{packet} field {field} has {bits} bits, {value:#x} does not fit")]
    FieldTooNarrow {
        /// Name of the packet.
        packet: &'static str,
        /// Name of the field.
        field: &'static str,
        /// What was to be written.
        value: u64,
        /// Width of the field.
        bits: u32,
    },
    /// A payload is longer than the header can say, or absent where one is needed.
    #[error("{packet} takes a payload of {least} to {most} dwords, not {found}")]
    Payload {
        /// Name of the packet.
        packet: &'static str,
        /// Shortest.
        least: usize,
        /// Longest.
        most: usize,
        /// As given.
        found: usize,
    },
}

/// A type that a field may have.
pub trait FieldValue: Copy + PartialEq {
    /// The value as bits; wider than the field if it cannot be expressed.
    fn to_bits(self) -> u64;
    /// The value of `bits`, `None` if they have no meaning.
    fn from_bits(bits: u64) -> Option<Self>;
    /// Writes ` name=value`, or nothing where the value is the unremarkable one.
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

macro_rules! unsigned_field {
    ($($type:ty),*) => {$(
        impl FieldValue for $type {
            fn to_bits(self) -> u64 { u64::from(self) }
            fn from_bits(bits: u64) -> Option<Self> { Self::try_from(bits).ok() }
            fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if self == 0 { Ok(()) } else { write!(f, " {name}={self:#x}") }
            }
        }
    )*};
}
unsigned_field!(u8, u16, u32, u64);

impl FieldValue for bool {
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
    fn from_bits(bits: u64) -> Option<Self> {
        Some(bits != 0)
    }
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self { write!(f, " {name}") } else { Ok(()) }
    }
}

impl FieldValue for GpuVa {
    fn to_bits(self) -> u64 {
        self.get()
    }
    fn from_bits(bits: u64) -> Option<Self> {
        Some(Self::new(bits))
    }
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

/// One packet of a table.
pub trait Packet<'a>: Sized + fmt::Display {
    /// Its table row.
    const LAYOUT: Layout;

    /// Reads the packet from exactly its dwords, header included. `ignored` are bits the format has dealt with.
    fn read(dwords: &'a [u32], ignored: Ignored) -> Result<Self, DecodeError>;

    /// Appends the packet, payload included, with those bits zero that the format fills in.
    fn write(&self, out: &mut Vec<u32>) -> Result<(), EncodeError>;
}

/// Takes the fields of a packet in the order of its table.
pub(super) struct Reader<'a> {
    layout: &'static Layout,
    dwords: &'a [u32],
    next: usize,
}

impl<'a> Reader<'a> {
    /// Checks length, fixed and reserved bits; see [`Packet::read`].
    pub(super) fn new(layout: &'static Layout, dwords: &'a [u32], ignored: Ignored) -> Result<Self, DecodeError> {
        layout.check(dwords, ignored)?;
        Ok(Self { layout, dwords, next: 0 })
    }

    pub(super) fn take<T: FieldValue>(&mut self) -> Result<T, DecodeError> {
        let field = &self.layout.fields[self.next];
        self.next += 1;
        let value = field.get(self.dwords);
        T::from_bits(value).ok_or(DecodeError::Value { packet: self.layout.name, field: field.name, value })
    }

    pub(super) fn payload(&self) -> &'a [u32] {
        &self.dwords[self.layout.dwords..]
    }
}

/// Puts the fields of a packet in the order of its table. On an error the packet leaves no trace.
pub(super) struct Writer<'v> {
    layout: &'static Layout,
    out: &'v mut Vec<u32>,
    start: usize,
    next: usize,
}

impl<'v> Writer<'v> {
    pub(super) fn new(layout: &'static Layout, out: &'v mut Vec<u32>) -> Self {
        let start = out.len();
        out.resize(start + layout.dwords, 0);
        for fixed in layout.fixed {
            out[start + fixed.dword] |= fixed.value;
        }
        Self { layout, out, start, next: 0 }
    }

    pub(super) fn put<T: FieldValue>(&mut self, value: T) -> Result<(), EncodeError> {
        let field = &self.layout.fields[self.next];
        self.next += 1;
        let value = value.to_bits();
        if value > u64::MAX >> (64 - field.width) {
            self.out.truncate(self.start);
            let (packet, bits) = (self.layout.name, field.width);
            return Err(EncodeError::FieldTooNarrow { packet, field: field.name, value, bits });
        }
        field.put(&mut self.out[self.start..], value);
        Ok(())
    }

    pub(super) fn payload(&mut self, payload: &[u32]) {
        self.out.extend_from_slice(payload);
    }
}

/// Writes ` payload=[...]`, cut short: an error message is not a dump.
pub(super) fn show_payload(name: &str, payload: &[u32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, " {name}=[")?;
    for (index, word) in payload.iter().take(8).enumerate() {
        write!(f, "{}{word:#x}", if index == 0 { "" } else { " " })?;
    }
    if payload.len() > 8 {
        write!(f, " .. {} dwords", payload.len())?;
    }
    f.write_str("]")
}

/// One table row: turns it into a struct that can be read, written and shown.
///
/// ```text
/// 'a; Name<'a> = "AMD_NAME" [dwords] fixed [(dword, mask, value), ..] { field: Type = dword[high:low]; .. payload: "doc"; }
/// ```
macro_rules! packet {
    (
        $a:lifetime;
        $(#[$meta:meta])*
        $name:ident $(<$life:lifetime>)? = $text:literal [$dwords:literal]
        fixed [$(($fixed_dword:expr, $fixed_mask:expr, $fixed_value:expr)),*]
        {
            $( $(#[$field_meta:meta])* $field:ident : $type:ty = $dword:literal [$high:literal $(: $low:literal)?]; )*
            $( .. $payload:ident : $payload_doc:literal; )?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name $(<$life>)? {
            $( $(#[$field_meta])* pub $field: $type, )*
            $( #[doc = $payload_doc] pub $payload: &$life [u32], )?
        }

        impl<$a> $crate::packets::Packet<$a> for $name $(<$life>)? {
            const LAYOUT: $crate::packets::Layout = $crate::packets::Layout {
                name: $text,
                dwords: $dwords,
                has_payload: false $( || !stringify!($payload).is_empty() )?,
                fixed: &[$( $crate::packets::Fixed {
                    dword: $fixed_dword, mask: $fixed_mask, value: $fixed_value
                } ),*],
                fields: &[$(
                    $crate::packets::Field::new(
                        stringify!($field), $dword, $high, $crate::packets::wire::low_bit!($high $($low)?)
                    )
                ),*],
            };

            #[allow(unused_mut, unused_variables, reason = "a packet without fields reads none")]
            fn read(dwords: &$a [u32], ignored: $crate::packets::Ignored) -> Result<Self, $crate::packets::DecodeError> {
                let mut fields = $crate::packets::wire::Reader::new(&Self::LAYOUT, dwords, ignored)?;
                Ok(Self { $( $field: fields.take()?, )* $( $payload: fields.payload() )? })
            }

            #[allow(unused_mut, unused_variables, reason = "a packet without fields writes none")]
            fn write(&self, out: &mut Vec<u32>) -> Result<(), $crate::packets::EncodeError> {
                let Self { $($field,)* $($payload)? } = *self;
                let mut fields = $crate::packets::wire::Writer::new(&Self::LAYOUT, out);
                $( fields.put($field)?; )*
                $( fields.payload($payload); )?
                Ok(())
            }
        }

        impl $(<$life>)? std::fmt::Display for $name $(<$life>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Self { $($field,)* $($payload)? } = *self;
                f.write_str($text)?;
                $( $crate::packets::FieldValue::show($field, stringify!($field), f)?; )*
                $( $crate::packets::wire::show_payload(stringify!($payload), $payload, f)?; )?
                Ok(())
            }
        }
    };
}
pub(super) use packet;

/// The low bit of a place: a place of one number is one bit.
macro_rules! low_bit {
    ($high:literal) => {
        $high
    };
    ($high:literal $low:literal) => {
        $low
    };
}
pub(super) use low_bit;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_may_go_on_in_the_next_dword() {
        let field = Field::new("pitch", 0, 35, 28);
        let mut dwords = [0, 0];
        field.put(&mut dwords, 0xa5);
        assert_eq!(dwords, [0x5000_0000, 0xa]);
        assert_eq!(field.get(&dwords), 0xa5);
        assert_eq!((field.mask_in(0), field.mask_in(1), field.mask_in(2)), (0xf000_0000, 0xf, 0));
    }

    #[test]
    fn a_64_bit_field_takes_both_dwords_whole() {
        let field = Field::new("addr", 1, 63, 0);
        let mut dwords = [7, 0, 0];
        field.put(&mut dwords, 0x1234_5678_9abc_def0);
        assert_eq!(dwords, [7, 0x9abc_def0, 0x1234_5678]);
    }
}
