//! Number formats narrower than single precision: exact decoding, encoding with one rounding.
//!
//! Everything is branch-free and inlined with the format a constant, so that loops over lanes vectorise.
//! Sources: OCP 8-bit Floating Point and Microscaling Formats specifications; overflow and NaN rules of the conversions:
//! CDNA4 ISA section 7.3 and, where it is silent, AMD's HIP header `amd_hip_ocp_host.hpp`.

/// Which codes of a format are not numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Specials {
    /// None: every code is a number.
    Nothing,
    /// NaN is the code of all ones; there is no infinity.
    NanOnly,
    /// The highest exponent holds infinity and NaNs.
    Ieee,
}

/// What encoding gives for a value beyond the largest number of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// Infinity, or NaN where the format has no infinity. Formats that have neither saturate.
    Special,
    /// The largest number, for infinities too (MODE.FP16_OVFL set).
    Saturate,
}

/// A floating-point format with an implicit leading one and subnormals: sign, exponent, mantissa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    mantissa_bits: u32,
    exponent_bits: u32,
    specials: Specials,
}

const F32_MANTISSA_BITS: u32 = 23;
const F32_BIAS: u32 = 127;
const F32_MAGNITUDE: u32 = 0x7fff_ffff;
const F32_INFINITY: u32 = 0x7f80_0000;
const F32_QUIET_NAN: u32 = 0x7fc0_0000;

impl Format {
    /// OCP E4M3 ("fp8").
    pub(crate) const FP8: Self = Self { mantissa_bits: 3, exponent_bits: 4, specials: Specials::NanOnly };
    /// OCP E5M2 ("bf8").
    pub(crate) const BF8: Self = Self { mantissa_bits: 2, exponent_bits: 5, specials: Specials::Ieee };
    /// OCP E2M3 ("fp6").
    pub(crate) const FP6: Self = Self { mantissa_bits: 3, exponent_bits: 2, specials: Specials::Nothing };
    /// OCP E3M2 ("bf6").
    pub(crate) const BF6: Self = Self { mantissa_bits: 2, exponent_bits: 3, specials: Specials::Nothing };
    /// OCP E2M1 ("fp4").
    pub(crate) const FP4: Self = Self { mantissa_bits: 1, exponent_bits: 2, specials: Specials::Nothing };
    /// IEEE binary16.
    pub(crate) const F16: Self = Self { mantissa_bits: 10, exponent_bits: 5, specials: Specials::Ieee };
    /// bfloat16.
    pub(crate) const BF16: Self = Self { mantissa_bits: 7, exponent_bits: 8, specials: Specials::Ieee };

    /// Bits of a code.
    #[inline(always)]
    pub(crate) const fn bits(self) -> u32 {
        1 + self.exponent_bits + self.mantissa_bits
    }

    /// Explicit bits of the significand.
    #[inline(always)]
    pub(crate) const fn mantissa_bits(self) -> u32 {
        self.mantissa_bits
    }

    /// Code of the largest number.
    #[inline(always)]
    pub(crate) const fn max_code(self) -> u32 {
        match self.specials {
            Specials::Nothing => self.magnitude_mask(),
            Specials::NanOnly => self.magnitude_mask() - 1,
            Specials::Ieee => self.top_exponent() - 1,
        }
    }

    /// Code of the NaN that conversions give; formats without NaN have their largest number instead.
    #[inline(always)]
    const fn nan_code(self) -> u32 {
        match self.specials {
            Specials::Nothing => self.max_code(),
            Specials::NanOnly => self.magnitude_mask(),
            Specials::Ieee => self.top_exponent() | 1 << (self.mantissa_bits - 1),
        }
    }

    #[inline(always)]
    const fn overflow_code(self, overflow: Overflow) -> u32 {
        match (overflow, self.specials) {
            (Overflow::Saturate, _) | (_, Specials::Nothing) => self.max_code(),
            (Overflow::Special, Specials::NanOnly) => self.nan_code(),
            (Overflow::Special, Specials::Ieee) => self.top_exponent(),
        }
    }

    #[inline(always)]
    const fn magnitude_mask(self) -> u32 {
        (1 << (self.bits() - 1)) - 1
    }

    #[inline(always)]
    const fn top_exponent(self) -> u32 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    #[inline(always)]
    const fn bias(self) -> u32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// Mantissa bits of single precision that the format does not have.
    #[inline(always)]
    const fn dropped_bits(self) -> u32 {
        F32_MANTISSA_BITS - self.mantissa_bits
    }

    /// Difference between the exponent fields of single precision and of this format, in place in a code.
    #[inline(always)]
    const fn rebias(self) -> u32 {
        (F32_BIAS - self.bias()) << self.mantissa_bits
    }

    /// Exponent field of single precision for the smallest normal number.
    #[inline(always)]
    const fn least_exponent(self) -> u32 {
        1 + F32_BIAS - self.bias()
    }

    /// The value of the low [`Self::bits`] bits of `code`, exactly.
    #[inline(always)]
    pub(crate) fn decode(self, code: u32) -> f32 {
        if self.bias() == F32_BIAS {
            // A subnormal bfloat16 is a subnormal single.
            return f32::from_bits(code << self.dropped_bits());
        }
        let magnitude = code & self.magnitude_mask();
        let step = f32::from_bits((self.least_exponent() - self.mantissa_bits) << F32_MANTISSA_BITS);
        let normal = (magnitude + self.rebias()) << self.dropped_bits();
        let subnormal = (magnitude as i32 as f32 * step).to_bits();
        let mut bits = if magnitude < 1 << self.mantissa_bits { subnormal } else { normal };
        bits = match self.specials {
            Specials::Nothing => bits,
            Specials::NanOnly if magnitude == self.magnitude_mask() => F32_QUIET_NAN,
            Specials::Ieee if magnitude >= self.top_exponent() => F32_INFINITY | magnitude << self.dropped_bits(),
            _ => bits,
        };
        f32::from_bits(bits | code >> (self.bits() - 1) << 31)
    }

    /// The code nearest to `value`, ties to even.
    #[inline(always)]
    pub(crate) fn encode(self, value: f32, overflow: Overflow) -> u32 {
        let magnitude = value.to_bits() & F32_MAGNITUDE;
        let dropped = self.dropped_bits();
        let odd = magnitude >> dropped & 1;
        let normal = ((magnitude + (1 << (dropped - 1)) - 1 + odd) >> dropped).wrapping_sub(self.rebias());
        // Adding the number whose last place is the format's smallest step rounds to a multiple of that step.
        let ruler = (self.least_exponent() + dropped) << F32_MANTISSA_BITS;
        let subnormal = (f32::from_bits(magnitude) + f32::from_bits(ruler)).to_bits().wrapping_sub(ruler);
        self.finish(value, normal, subnormal, overflow)
    }

    /// The code below or above `value`, at random: the highest bits of `random` are added below the last place, as many
    /// as single precision has there, and the sum is truncated.
    #[inline(always)]
    pub(crate) fn encode_stochastic(self, value: f32, random: u32, overflow: Overflow) -> u32 {
        let magnitude = value.to_bits() & F32_MAGNITUDE;
        let dropped = self.dropped_bits();
        let random = random >> (32 - dropped);
        let normal = ((magnitude + random) >> dropped).wrapping_sub(self.rebias());
        let exponent = magnitude >> F32_MANTISSA_BITS;
        let mantissa = magnitude & ((1 << F32_MANTISSA_BITS) - 1);
        let significand = mantissa | u32::from(exponent != 0) << F32_MANTISSA_BITS;
        let shift = self.least_exponent().saturating_sub(exponent.max(1)).min(31);
        let subnormal = ((significand >> shift) + random) >> dropped;
        self.finish(value, normal, subnormal, overflow)
    }

    #[inline(always)]
    fn finish(self, value: f32, normal: u32, subnormal: u32, overflow: Overflow) -> u32 {
        let magnitude = value.to_bits() & F32_MAGNITUDE;
        let mut code = if magnitude < self.least_exponent() << F32_MANTISSA_BITS { subnormal } else { normal };
        code = if code > self.max_code() { self.overflow_code(overflow) } else { code };
        code = if magnitude > F32_INFINITY { self.nan_code() } else { code };
        code | value.to_bits() >> 31 << (self.bits() - 1)
    }
}

/// The power of two that an E8M0 scale stands for; code 255 is NaN.
#[inline(always)]
pub(crate) fn e8m0(code: u32) -> f32 {
    // Code 0 is 2^-127, a subnormal.
    let power = if code == 0 { 1 << (F32_MANTISSA_BITS - 1) } else { code << F32_MANTISSA_BITS };
    f32::from_bits(if code == 255 { F32_QUIET_NAN } else { power })
}

/// One over [`e8m0`].
#[inline(always)]
pub(crate) fn e8m0_reciprocal(code: u32) -> f32 {
    e8m0(if code == 255 { 255 } else { 254 - code })
}

#[cfg(test)]
mod tests;
