//! Floating-point formats by their bits.

use super::element::Half;

/// An IEEE 754 binary format.
pub(crate) trait Real: Copy {
    /// What [`Self::order`] gives.
    type Order: Ord + Copy;
    /// Bits of the mantissa, without the implicit one.
    const MANTISSA_BITS: u32;
    /// Bits of the exponent.
    const EXPONENT_BITS: u32;
    /// The bits of the number, in the low ones.
    fn bits(self) -> u64;
    /// The number with these bits.
    fn with_bits(bits: u64) -> Self;

    /// The sign bit.
    const SIGN: u64 = 1 << (Self::MANTISSA_BITS + Self::EXPONENT_BITS);
    /// The bits of positive infinity.
    const INFINITY: u64 = Self::SIGN - (1 << Self::MANTISSA_BITS);
    /// The bit that makes a NaN quiet.
    const QUIET: u64 = 1 << (Self::MANTISSA_BITS - 1);
    /// Exponent of the smallest normal number.
    const LEAST_EXPONENT: i32 = 2 - (1 << (Self::EXPONENT_BITS - 1));

    /// The sign bit is set.
    #[inline(always)]
    fn is_negative(self) -> bool {
        self.bits() & Self::SIGN != 0
    }

    /// It is not a number.
    #[inline(always)]
    fn not_a_number(self) -> bool {
        self.bits() & !Self::SIGN > Self::INFINITY
    }

    /// A NaN that signals.
    #[inline(always)]
    fn is_signalling(self) -> bool {
        self.not_a_number() && self.bits() & Self::QUIET == 0
    }

    /// The quiet form of a NaN.
    #[inline(always)]
    fn quieted(self) -> Self {
        Self::with_bits(self.bits() | Self::QUIET)
    }

    /// The NaN that invalid operations give.
    #[inline(always)]
    fn invalid() -> Self {
        Self::with_bits(Self::SIGN | Self::INFINITY | Self::QUIET)
    }

    /// Infinity.
    #[inline(always)]
    fn infinity(negative: bool) -> Self {
        Self::with_bits(Self::INFINITY | if negative { Self::SIGN } else { 0 })
    }

    /// Zero.
    #[inline(always)]
    fn zero(negative: bool) -> Self {
        Self::with_bits(if negative { Self::SIGN } else { 0 })
    }

    /// One.
    #[inline(always)]
    fn one() -> Self {
        Self::with_bits(((1 - Self::LEAST_EXPONENT) as u64) << Self::MANTISSA_BITS)
    }

    /// It is a number and not infinite.
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.exponent_field() != (1 << Self::EXPONENT_BITS) - 1
    }

    /// The exponent field is neither all zeros nor all ones.
    #[inline(always)]
    fn is_normal(self) -> bool {
        let field = self.exponent_field();
        (field != 0) & (field != (1 << Self::EXPONENT_BITS) - 1)
    }

    /// A number that is not zero, times the least power of two that makes it normal, and that power.
    fn normalised(self) -> (Self, i32) {
        let fraction = self.bits() & ((1 << Self::MANTISSA_BITS) - 1);
        if self.exponent_field() != 0 {
            return (self, 0);
        }
        let shift = fraction.leading_zeros() - (63 - Self::MANTISSA_BITS);
        let bits = fraction << shift;
        (Self::with_bits(self.bits() & Self::SIGN | bits), shift as i32)
    }

    /// The exponent field.
    #[inline(always)]
    fn exponent_field(self) -> i32 {
        (self.bits() >> Self::MANTISSA_BITS) as i32 & ((1 << Self::EXPONENT_BITS) - 1)
    }

    /// A denormal becomes zero of the same sign.
    #[inline(always)]
    fn flushed(self) -> Self {
        if self.exponent_field() == 0 { Self::zero(self.is_negative()) } else { self }
    }

    /// It is the same number: zeros are, NaNs never.
    #[inline(always)]
    fn equals(self, other: Self) -> bool {
        let both_zero = (self.bits() | other.bits()) & !Self::SIGN == 0;
        !self.not_a_number() && (both_zero || self.bits() == other.bits())
    }

    /// An integer in the order of the numbers, with -0 below +0.
    fn order(self) -> Self::Order;
}

macro_rules! reals {
    ($($name:ty: $mantissa:literal, $exponent:literal, $order:ty, |$value:ident| $to:expr, |$bits:ident| $from:expr;)*) => {
        $(impl Real for $name {
            type Order = $order;
            const MANTISSA_BITS: u32 = $mantissa;
            const EXPONENT_BITS: u32 = $exponent;
            #[inline(always)]
            fn bits(self) -> u64 {
                let $value = self;
                $to
            }
            #[inline(always)]
            fn with_bits($bits: u64) -> Self {
                $from
            }
            #[inline(always)]
            fn order(self) -> $order {
                let bits = self.bits() as $order;
                bits ^ ((bits >> (<$order>::BITS - 1)) & <$order>::MAX)
            }
        })*
    };
}

reals! {
    Half: 10, 5, i16, |value| value.0.into(), |bits| Self(bits as u16);
    f32: 23, 8, i32, |value| value.to_bits().into(), |bits| Self::from_bits(bits as u32);
    f64: 52, 11, i64, |value| value.to_bits(), |bits| Self::from_bits(bits);
}
