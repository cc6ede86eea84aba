//! Floating-point arithmetic by definition: values are exact fixed-point numbers, and rounding picks one of the two
//! neighbouring numbers of the format, found by bisection.

use std::cmp::Ordering;

use crate::wave::Rounding;

/// Words of an exact number: two's complement, the lowest bit worth 2^-2200.
const WORDS: usize = 70;
const SCALE: i32 = 2200;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Exact([u64; WORDS]);

impl Exact {
    pub(super) const ZERO: Self = Self([0; WORDS]);

    /// magnitude * 2^exponent
    pub(super) fn new(negative: bool, magnitude: u128, exponent: i32) -> Self {
        let at = (exponent + SCALE) as usize;
        let mut words = [0; WORDS];
        for bit in (0..128).filter(|bit| magnitude >> bit & 1 == 1) {
            words[(at + bit) / 64] |= 1 << ((at + bit) % 64);
        }
        if negative { Self(words).negated() } else { Self(words) }
    }

    fn negated(self) -> Self {
        let mut carry = true;
        Self(self.0.map(|word| {
            let (word, overflow) = (!word).overflowing_add(carry.into());
            carry = overflow;
            word
        }))
    }

    pub(super) fn plus(self, other: Self) -> Self {
        let mut carry = false;
        Self(std::array::from_fn(|i| {
            let (sum, first) = self.0[i].overflowing_add(other.0[i]);
            let (sum, second) = sum.overflowing_add(carry.into());
            carry = first | second;
            sum
        }))
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.plus(other.negated())
    }

    pub(super) fn is_negative(self) -> bool {
        self.0[WORDS - 1] >> 63 == 1
    }

    pub(super) fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    fn compare(self, other: Self) -> Ordering {
        let difference = self.minus(other);
        match (difference.is_zero(), difference.is_negative()) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }
}

/// A format by its widths, and how to compute in it.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) mantissa: u32,
    pub(super) exponent: u32,
    pub(super) rounding: Rounding,
    pub(super) flush_inputs: bool,
    pub(super) flush_results: bool,
    pub(super) saturate: bool,
}

pub(super) const HALF: Format = Format::new(10, 5);
pub(super) const SINGLE: Format = Format::new(23, 8);
pub(super) const DOUBLE: Format = Format::new(52, 11);

impl Format {
    const fn new(mantissa: u32, exponent: u32) -> Self {
        let rounding = Rounding::NearestEven;
        Self { mantissa, exponent, rounding, flush_inputs: false, flush_results: false, saturate: false }
    }

    pub(super) fn sign(self) -> u64 {
        1 << (self.mantissa + self.exponent)
    }

    pub(super) fn infinity(self) -> u64 {
        self.sign() - (1 << self.mantissa)
    }

    pub(super) fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    pub(super) fn is_infinite(self, bits: u64) -> bool {
        bits & (self.sign() - 1) == self.infinity()
    }

    pub(super) fn is_denormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign() - 1);
        magnitude != 0 && magnitude < 1 << self.mantissa
    }

    pub(super) fn is_negative(self, bits: u64) -> bool {
        bits & self.sign() != 0
    }

    pub(super) fn quiet(self, bits: u64) -> u64 {
        bits | 1 << (self.mantissa - 1)
    }

    /// The NaN of invalid operations.
    pub(super) fn invalid(self) -> u64 {
        self.quiet(self.sign() | self.infinity())
    }

    pub(super) fn bits(self, value: u64) -> u64 {
        value & (self.sign() << 1).wrapping_sub(1)
    }

    /// An operand after flushing.
    pub(super) fn operand(self, bits: u64) -> u64 {
        let bits = self.bits(bits);
        if self.flush_inputs && self.is_denormal(bits) { bits & self.sign() } else { bits }
    }

    fn parts(self, bits: u64) -> (bool, u64, i32) {
        let field = (bits & (self.sign() - 1)) >> self.mantissa;
        let fraction = bits & ((1 << self.mantissa) - 1);
        let bias = (1 << (self.exponent - 1)) - 1;
        let implicit = if field == 0 { 0 } else { 1 << self.mantissa };
        (self.is_negative(bits), fraction | implicit, field.max(1) as i32 - bias - self.mantissa as i32)
    }

    /// The value; infinity is the next power of two.
    pub(super) fn exact(self, bits: u64) -> Exact {
        let (negative, magnitude, exponent) = self.parts(bits);
        Exact::new(negative, magnitude.into(), exponent)
    }

    pub(super) fn product(self, a: u64, b: u64) -> Exact {
        let (a, b) = (self.parts(a), self.parts(b));
        Exact::new(a.0 != b.0, u128::from(a.1) * u128::from(b.1), a.2 + b.2)
    }

    /// `value` rounded; `zero` is the sign of an exact zero.
    pub(super) fn round(self, value: Exact, zero: bool) -> u64 {
        if value.is_zero() {
            return if zero { self.sign() } else { 0 };
        }
        let negative = value.is_negative();
        let magnitude = if negative { value.negated() } else { value };
        // The largest magnitude that is not above; infinity's bits stand for the next power of two.
        let (mut low, mut high) = (0, self.infinity());
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.exact(middle).compare(magnitude) == Ordering::Greater { high = middle } else { low = middle }
        }
        let below = magnitude.minus(self.exact(low));
        let above = self.exact(high).minus(magnitude);
        let past_all = above.is_negative() || above.is_zero();
        let up = match self.rounding {
            _ if below.is_zero() => false,
            Rounding::NearestEven => match below.compare(above) {
                Ordering::Equal => low & 1 == 1,
                order => order == Ordering::Greater,
            },
            Rounding::Up => !negative,
            Rounding::Down => negative,
            Rounding::Zero => false,
        };
        let mut bits = if up || past_all && self.rounding == Rounding::NearestEven { high } else { low };
        if self.saturate {
            bits = bits.min(self.infinity() - 1);
        }
        if self.flush_results && self.is_denormal(bits) {
            bits = 0;
        }
        bits | if negative { self.sign() } else { 0 }
    }

    /// The first NaN of `operands`, quiet.
    pub(super) fn first_nan(self, operands: &[u64]) -> Option<u64> {
        operands.iter().map(|&bits| self.bits(bits)).find(|&bits| self.is_nan(bits)).map(|bits| self.quiet(bits))
    }

    /// Sign of a sum that is zero.
    fn zero_sum(self, a: bool, b: bool) -> bool {
        if a == b { a } else { self.rounding == Rounding::Down }
    }

    /// The number of a finite `bits` times a power of two, rounded.
    pub(super) fn scaled(self, bits: u64, power: i64) -> u64 {
        let (negative, magnitude, exponent) = self.parts(self.operand(bits));
        // What is cut off here is zero or infinite in every format.
        let exponent = (i64::from(exponent) + power).clamp(-2200, 1900);
        self.round(Exact::new(negative, magnitude.into(), exponent as i32), negative)
    }

    /// The exponent of a finite number's mantissa from 0.5 below 1.
    pub(super) fn exponent_of(self, bits: u64) -> i64 {
        let (_, magnitude, exponent) = self.parts(self.operand(bits));
        i64::from(exponent) + i64::from(64 - magnitude.leading_zeros())
    }

    pub(super) fn add(self, a: u64, b: u64) -> u64 {
        self.fma(a, self.one(), b)
    }

    pub(super) fn one(self) -> u64 {
        ((1 << (self.exponent - 1)) - 1) << self.mantissa
    }

    pub(super) fn mul(self, a: u64, b: u64) -> u64 {
        let negative = self.is_negative(self.bits(a)) != self.is_negative(self.bits(b));
        // Minus zero added to a product changes nothing, its sign included.
        let zero = if negative { self.sign() } else { 0 };
        self.fma(a, b, zero)
    }

    pub(super) fn fma(self, a: u64, b: u64, c: u64) -> u64 {
        if let Some(nan) = self.first_nan(&[a, b, c]) {
            return nan;
        }
        let [a, b, c] = [a, b, c].map(|bits| self.operand(bits));
        let product_negative = self.is_negative(a) != self.is_negative(b);
        let is_zero = |bits: u64| bits & (self.sign() - 1) == 0;
        if self.is_infinite(a) || self.is_infinite(b) {
            let invalid = is_zero(a) || is_zero(b) || self.is_infinite(c) && self.is_negative(c) != product_negative;
            let sign = if product_negative { self.sign() } else { 0 };
            return if invalid { self.invalid() } else { self.infinity() | sign };
        }
        if self.is_infinite(c) {
            return c;
        }
        let sum = self.product(a, b).plus(self.exact(c));
        self.round(sum, self.zero_sum(product_negative, self.is_negative(c)))
    }

    /// `bits` of this format in another one.
    pub(super) fn convert(self, to: Self, bits: u64) -> u64 {
        let bits = self.operand(bits);
        let sign = if self.is_negative(bits) { to.sign() } else { 0 };
        if self.is_nan(bits) {
            let fraction = bits & ((1 << self.mantissa) - 1);
            let moved = if to.mantissa > self.mantissa {
                fraction << (to.mantissa - self.mantissa)
            } else {
                fraction >> (self.mantissa - to.mantissa)
            };
            to.quiet(sign | to.infinity() | moved)
        } else if self.is_infinite(bits) {
            sign | to.infinity()
        } else {
            to.round(self.exact(bits), self.is_negative(bits))
        }
    }
}

#[test]
fn rounding_by_bisection_agrees_with_the_host() {
    for (a, b) in [(1.0f32, 3.0f32), (1e30, -1e-20), (f32::MIN_POSITIVE, 0.75), (f32::MAX, f32::MAX), (0.1, 0.2)] {
        let bits = |value: f32| u64::from(value.to_bits());
        assert_eq!(SINGLE.add(bits(a), bits(b)), bits(a + b));
        assert_eq!(SINGLE.mul(bits(a), bits(b)), bits(a * b));
        assert_eq!(SINGLE.fma(bits(a), bits(b), bits(0.3)), bits(a.mul_add(b, 0.3)));
    }
}
