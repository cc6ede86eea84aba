//! Types of fields that several formats share, and the macro that names a field's values.

use std::fmt;

use super::wire::FieldValue;

/// Gives the values of a field names. The first is the default.
macro_rules! named_values {
    (
        $(#[$meta:meta])* $name:ident {
            $(#[$first_meta:meta])* $first:ident = $first_value:literal $first_text:literal,
            $( $(#[$value_meta:meta])* $value:ident = $number:literal $text:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            #[default]
            $(#[$first_meta])* $first = $first_value,
            $( $(#[$value_meta])* $value = $number, )*
        }

        impl $name {
            /// Every value.
            pub const ALL: &[Self] = &[Self::$first $(, Self::$value)*];
        }

        impl $crate::packets::FieldValue for $name {
            fn to_bits(self) -> u64 { self as u64 }
            fn from_bits(bits: u64) -> Option<Self> {
                match bits { $first_value => Some(Self::$first), $( $number => Some(Self::$value), )* _ => None }
            }
            fn show(self, name: &str, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, " {name}={self}")
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { Self::$first => $first_text, $( Self::$value => $text, )* })
            }
        }
    };
}
pub(super) use named_values;

named_values! {
    /// How a polled value is compared with a reference: `(value & mask) OP reference`, unsigned (`soc15d.h`
    /// `WAIT_REG_MEM_FUNCTION`; SDMA's `POLL_REGMEM` has the same numbers).
    Compare {
        /// Passes at once.
        Always = 0 "always",
        /// Less.
        Less = 1 "<",
        /// Less or equal.
        LessOrEqual = 2 "<=",
        /// Equal.
        Equal = 3 "==",
        /// Not equal.
        NotEqual = 4 "!=",
        /// Greater or equal.
        GreaterOrEqual = 5 ">=",
        /// Greater.
        Greater = 6 ">",
    }
}

impl Compare {
    /// Whether a masked value passes.
    pub const fn holds(self, value: u64, reference: u64) -> bool {
        match self {
            Self::Always => true,
            Self::Less => value < reference,
            Self::LessOrEqual => value <= reference,
            Self::Equal => value == reference,
            Self::NotEqual => value != reference,
            Self::GreaterOrEqual => value >= reference,
            Self::Greater => value > reference,
        }
    }
}

/// A count that packets carry as one less: SDMA's byte counts, pitches and extents. Zero cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u32);

impl FieldValue for Count {
    fn to_bits(self) -> u64 {
        u64::from(self.0).wrapping_sub(1)
    }
    fn from_bits(bits: u64) -> Option<Self> {
        u32::try_from(bits.checked_add(1)?).ok().map(Self)
    }
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={:#x}", self.0)
    }
}

/// What an atomic does, apart from its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum AtomicKind {
    /// Stores the operand.
    Swap = 0x07,
    /// Stores the operand if memory equals the comparand.
    CompareSwap = 0x08,
    /// Adds, wrapping.
    Add = 0x0f,
    /// Subtracts, wrapping.
    Sub = 0x10,
    /// Signed minimum.
    SignedMin = 0x11,
    /// Unsigned minimum.
    UnsignedMin = 0x12,
    /// Signed maximum.
    SignedMax = 0x13,
    /// Unsigned maximum.
    UnsignedMax = 0x14,
    /// Bitwise and.
    And = 0x15,
    /// Bitwise or.
    Or = 0x16,
    /// Bitwise exclusive or.
    Xor = 0x17,
    /// Adds one, to zero past the operand.
    Increment = 0x18,
    /// Subtracts one, to the operand below zero or past it.
    Decrement = 0x19,
}

/// An atomic operation by its number in the texture cache (`enum TC_OP` of `vega10_enum.h`): bits 0..=4 say what,
/// bit 5 is set for 64 bits, bit 6 if memory's old value is not returned. Floating-point operations are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtomicOp(u8);

impl AtomicOp {
    /// Adds 32 bits, `TC_OP_ATOMIC_ADD_RTN_32`.
    pub const ADD_32: Self = Self::new(AtomicKind::Add, false, true);
    /// Adds 64 bits, `TC_OP_ATOMIC_ADD_RTN_64`.
    pub const ADD_64: Self = Self::new(AtomicKind::Add, true, true);
    /// Subtracts 64 bits, `TC_OP_ATOMIC_SUB_RTN_64`: how a signal is completed.
    pub const SUB_64: Self = Self::new(AtomicKind::Sub, true, true);
    /// Stores 64 bits, `TC_OP_ATOMIC_SWAP_RTN_64`.
    pub const SWAP_64: Self = Self::new(AtomicKind::Swap, true, true);

    /// The operation `kind` on 64 bits if `wide`, else 32; `returning` the old value or not.
    pub const fn new(kind: AtomicKind, wide: bool, returning: bool) -> Self {
        Self(kind as u8 | (wide as u8) << 5 | (!returning as u8) << 6)
    }

    /// What it does.
    pub const fn kind(self) -> AtomicKind {
        match self.0 & 0x1f {
            0x07 => AtomicKind::Swap,
            0x08 => AtomicKind::CompareSwap,
            0x0f => AtomicKind::Add,
            0x10 => AtomicKind::Sub,
            0x11 => AtomicKind::SignedMin,
            0x12 => AtomicKind::UnsignedMin,
            0x13 => AtomicKind::SignedMax,
            0x14 => AtomicKind::UnsignedMax,
            0x15 => AtomicKind::And,
            0x16 => AtomicKind::Or,
            0x17 => AtomicKind::Xor,
            0x18 => AtomicKind::Increment,
            // The constructors admit no other number.
            _ => AtomicKind::Decrement,
        }
    }

    /// Whether it works on 64 bits, not 32.
    pub const fn is_wide(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// Whether it returns memory's old value.
    pub const fn is_returning(self) -> bool {
        self.0 & 0x40 == 0
    }
}

impl Default for AtomicOp {
    fn default() -> Self {
        Self::ADD_32
    }
}

impl FieldValue for AtomicOp {
    fn to_bits(self) -> u64 {
        u64::from(self.0)
    }
    fn from_bits(bits: u64) -> Option<Self> {
        let known = matches!(bits & 0x1f, 0x07 | 0x08 | 0x0f..=0x19) && bits < 0x80;
        known.then_some(Self(bits as u8))
    }
    fn show(self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {name}={self}")
    }
}

impl fmt::Display for AtomicOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let returning = if self.is_returning() { "" } else { "-no-return" };
        write!(f, "{:?}{}{returning}", self.kind(), if self.is_wide() { 64 } else { 32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_have_the_numbers_of_the_kernels_enum() {
        assert_eq!(AtomicOp::ADD_32.to_bits(), 0x0f);
        assert_eq!(AtomicOp::ADD_64.to_bits(), 0x2f);
        assert_eq!(AtomicOp::SWAP_64.to_bits(), 0x27);
        assert_eq!(AtomicOp::new(AtomicKind::CompareSwap, false, false).to_bits(), 0x48);
        assert_eq!(AtomicOp::new(AtomicKind::Decrement, true, false).to_bits(), 0x79);
    }

    #[test]
    fn an_atomic_reads_back_as_what_it_was_built_from() {
        for bits in 0..0x100 {
            let Some(op) = AtomicOp::from_bits(bits) else { continue };
            assert_eq!(AtomicOp::new(op.kind(), op.is_wide(), op.is_returning()), op);
        }
    }

    #[test]
    fn cache_maintenance_numbers_are_not_atomics() {
        for tc_op in [0x00, 0x1a, 0x20, 0x2c, 0x3a, 0x40, 0x5b, 0x60, 0x80] {
            assert_eq!(AtomicOp::from_bits(tc_op), None, "{tc_op:#x}");
        }
    }

    #[test]
    fn every_comparison_means_what_its_sign_says() {
        let passing = |compare: Compare| [4, 5, 6].map(|value| compare.holds(value, 5));
        assert_eq!(passing(Compare::Always), [true, true, true]);
        assert_eq!(passing(Compare::Less), [true, false, false]);
        assert_eq!(passing(Compare::LessOrEqual), [true, true, false]);
        assert_eq!(passing(Compare::Equal), [false, true, false]);
        assert_eq!(passing(Compare::NotEqual), [true, false, true]);
        assert_eq!(passing(Compare::GreaterOrEqual), [false, true, true]);
        assert_eq!(passing(Compare::Greater), [false, false, true]);
    }
}
