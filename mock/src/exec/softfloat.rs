//! Floating-point arithmetic under any MODE: exact in integers, then rounded once.
//!
//! Lanes come here for what the host's own arithmetic does not do: other roundings than to nearest, flushed denormals,
//! half precision that saturates, and NaN results, whose payload is that of the first NaN operand.

use super::element::Half;
use super::lanes::Flags;
use super::real::Real;
use crate::wave::{Mode, Rounding};

/// How to compute with one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// How results are rounded.
    pub(crate) rounding: Rounding,
    /// Denormal operands are not zero.
    pub(crate) keeps_inputs: bool,
    /// Denormal results are not zero.
    pub(crate) keeps_results: bool,
    /// Overflow gives the largest number whatever the rounding.
    pub(crate) saturates: bool,
}

impl Rules {
    /// Round to nearest even, all denormals kept.
    pub(crate) const USUAL: Self =
        Self { rounding: Rounding::NearestEven, keeps_inputs: true, keeps_results: true, saturates: false };

    /// What `mode` says for numbers of type `R`.
    pub(crate) fn of<R: Real>(mode: Mode) -> Self {
        if R::MANTISSA_BITS == f32::MANTISSA_BITS {
            Self {
                rounding: mode.round_f32(),
                keeps_inputs: mode.keeps_input_denormals_f32(),
                keeps_results: mode.keeps_output_denormals_f32(),
                saturates: false,
            }
        } else {
            Self {
                rounding: mode.round_f16_f64(),
                keeps_inputs: mode.keeps_input_denormals_f16_f64(),
                keeps_results: mode.keeps_output_denormals_f16_f64(),
                saturates: R::MANTISSA_BITS == Half::MANTISSA_BITS && mode.fp16_overflow(),
            }
        }
    }

    /// An operand as the instruction sees it.
    pub(crate) fn input<R: Real>(self, value: R) -> R {
        if self.keeps_inputs { value } else { value.flushed() }
    }

    fn open<R: Real>(self, value: R) -> Value<R> {
        let value = self.input(value);
        let fraction = value.bits() & ((1 << R::MANTISSA_BITS) - 1);
        let negative = value.is_negative();
        let field = value.exponent_field();
        if value.not_a_number() {
            Value::Nan(value.quieted())
        } else if field == (1 << R::EXPONENT_BITS) - 1 {
            Value::Infinity(negative)
        } else {
            let implicit = u64::from(field != 0) << R::MANTISSA_BITS;
            let exponent = field.max(1) - 1 + R::LEAST_EXPONENT - R::MANTISSA_BITS as i32;
            Value::Number(Number { negative, magnitude: (fraction | implicit).into(), exponent })
        }
    }

    /// Rounds to type `R`.
    pub(crate) fn close<R: Real>(self, number: Number) -> R {
        let Number { negative, magnitude, exponent } = number;
        if magnitude == 0 {
            return R::zero(negative);
        }
        let mantissa = R::MANTISSA_BITS as i32;
        let sign = R::zero(negative).bits();
        let leading = exponent + 127 - magnitude.leading_zeros() as i32;
        let unit = leading.max(R::LEAST_EXPONENT) - mantissa;
        // A carry out of the mantissa, or into it from a denormal, adds to the exponent field by itself.
        let field = (unit + mantissa - R::LEAST_EXPONENT) as u64;
        let too_large = leading > 1 - R::LEAST_EXPONENT;
        let bits = if too_large {
            R::INFINITY
        } else {
            (field << R::MANTISSA_BITS) + number.rounded_to(unit, self.rounding) as u64
        };
        if bits >= R::INFINITY {
            let to_infinity = match self.rounding {
                Rounding::NearestEven => true,
                Rounding::Up => !negative,
                Rounding::Down => negative,
                Rounding::Zero => false,
            };
            return R::with_bits(sign | (R::INFINITY - u64::from(self.saturates || !to_infinity)));
        }
        let result = R::with_bits(sign | bits);
        if self.keeps_results { result } else { result.flushed() }
    }

    /// a + b
    pub(crate) fn add<R: Real>(self, a: R, b: R) -> R {
        self.sum(a, b, false, false)
    }

    /// The sum, with either operand negated unless it is NaN.
    fn sum<R: Real>(self, a: R, b: R, negate_a: bool, negate_b: bool) -> R {
        match (self.open(a).negated_if(negate_a), self.open(b).negated_if(negate_b)) {
            (Value::Nan(nan), _) | (_, Value::Nan(nan)) => nan,
            (Value::Infinity(x), Value::Infinity(y)) if x != y => R::invalid(),
            (Value::Infinity(x), _) | (_, Value::Infinity(x)) => R::infinity(x),
            (Value::Number(x), Value::Number(y)) => self.close(x.plus(y, self.rounding)),
        }
    }

    /// a * b
    pub(crate) fn mul<R: Real>(self, a: R, b: R) -> R {
        match (self.open(a), self.open(b)) {
            (Value::Nan(nan), _) | (_, Value::Nan(nan)) => nan,
            (Value::Number(x), Value::Number(y)) => self.close(x.times(y)),
            (x, y) if x.is_zero() || y.is_zero() => R::invalid(),
            (x, y) => R::infinity(x.is_negative() ^ y.is_negative()),
        }
    }

    /// (a * b + c) * 2^scale, rounded once.
    pub(crate) fn fma<R: Real>(self, a: R, b: R, c: R, scale: i32) -> R {
        let (x, y, z) = (self.open(a), self.open(b), self.open(c));
        match (x, y, z) {
            (Value::Nan(nan), _, _) | (_, Value::Nan(nan), _) => nan,
            (Value::Number(x), Value::Number(y), Value::Number(z)) => {
                let sum = x.times(y).plus(z, self.rounding);
                self.close(Number { exponent: sum.exponent + scale, ..sum })
            }
            (_, _, Value::Nan(nan)) => nan,
            (Value::Number(_), Value::Number(_), Value::Infinity(negative)) => R::infinity(negative),
            _ if x.is_zero() || y.is_zero() => R::invalid(),
            _ => {
                let negative = x.is_negative() ^ y.is_negative();
                let opposite = matches!(z, Value::Infinity(z) if z != negative);
                if opposite { R::invalid() } else { R::infinity(negative) }
            }
        }
    }

    /// value * 2^power
    pub(crate) fn scale<R: Real>(self, value: R, power: i32) -> R {
        match self.open(value) {
            Value::Nan(nan) => nan,
            Value::Infinity(negative) => R::infinity(negative),
            Value::Number(x) => {
                // More than twice the exponents of double precision changes nothing.
                self.close(Number { exponent: x.exponent + power.clamp(-5000, 5000), ..x })
            }
        }
    }

    /// `value` in the format `S`, whose rules these are; those of `R` are `from`.
    pub(crate) fn convert<R: Real, S: Real>(self, from: Self, value: R) -> S {
        match from.open(value) {
            Value::Nan(nan) => {
                let payload = nan.bits() & (R::SIGN - 1);
                let moved = payload << (63 - R::MANTISSA_BITS) >> (63 - S::MANTISSA_BITS);
                S::with_bits(S::zero(nan.is_negative()).bits() | S::INFINITY | moved)
            }
            Value::Infinity(negative) => S::infinity(negative),
            Value::Number(x) => self.close(x),
        }
    }
}

impl Flags {
    /// a + b under MODE.
    pub(crate) fn add<R: Real>(self, a: R, b: R) -> R {
        self.rules::<R>().add(a, b)
    }

    /// a - b under MODE.
    pub(crate) fn sub<R: Real>(self, a: R, b: R) -> R {
        self.rules::<R>().sum(a, b, false, true)
    }

    /// b - a under MODE; a NaN in `a` still goes first.
    pub(crate) fn sub_reversed<R: Real>(self, a: R, b: R) -> R {
        self.rules::<R>().sum(a, b, true, false)
    }

    /// a * b under MODE.
    pub(crate) fn mul<R: Real>(self, a: R, b: R) -> R {
        self.rules::<R>().mul(a, b)
    }

    /// a * b + c under MODE, rounded once.
    pub(crate) fn fma<R: Real>(self, a: R, b: R, c: R) -> R {
        self.rules::<R>().fma(a, b, c, 0)
    }

    /// An operand as MODE shows it.
    pub(crate) fn input<R: Real>(self, value: R) -> R {
        self.rules::<R>().input(value)
    }

    /// A result that needed no rounding, as MODE lets it out.
    pub(crate) fn output<R: Real>(self, value: R) -> R {
        if self.rules::<R>().keeps_results { value } else { value.flushed() }
    }

    /// An integer as a floating-point number under MODE.
    pub(crate) fn integer<R: Real>(self, value: i64) -> R {
        self.rules::<R>().close(Number::from(value))
    }
}

/// A floating-point value taken apart. NaNs are quiet.
#[derive(Clone, Copy)]
enum Value<R> {
    Nan(R),
    Infinity(bool),
    Number(Number),
}

impl<R> Value<R> {
    fn negated_if(self, negate: bool) -> Self {
        match self {
            Self::Nan(nan) => Self::Nan(nan),
            Self::Infinity(negative) => Self::Infinity(negative ^ negate),
            Self::Number(number) => Self::Number(Number { negative: number.negative ^ negate, ..number }),
        }
    }

    fn is_zero(&self) -> bool {
        matches!(self, Self::Number(Number { magnitude: 0, .. }))
    }

    fn is_negative(&self) -> bool {
        match self {
            Self::Nan(_) => false,
            Self::Infinity(negative) | Self::Number(Number { negative, .. }) => *negative,
        }
    }
}

/// A number: `magnitude` times two to the `exponent`. The lowest bit of a magnitude of more than 110 bits may stand for
/// a non-zero rest below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    negative: bool,
    magnitude: u128,
    exponent: i32,
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self { negative: value < 0, magnitude: value.unsigned_abs().into(), exponent: 0 }
    }
}

impl Number {
    fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative ^ other.negative,
            magnitude: self.magnitude * other.magnitude,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The sum; a zero has the sign that IEEE 754 gives it in this rounding.
    fn plus(self, other: Self, rounding: Rounding) -> Self {
        if self.magnitude == 0 || other.magnitude == 0 {
            let sum = if self.magnitude == 0 { other } else { self };
            let both_zero = sum.magnitude == 0;
            let differ = self.negative != other.negative;
            let negative = if both_zero && differ { rounding == Rounding::Down } else { sum.negative };
            return Self { negative, ..sum };
        }
        let (x, y) = (self.normalised(), other.normalised());
        let (high, low) = if x.exponent >= y.exponent { (x, y) } else { (y, x) };
        let low_magnitude = shifted_right(low.magnitude, (high.exponent - low.exponent) as u32);
        let exponent = high.exponent;
        if high.negative == low.negative {
            return Self { negative: high.negative, magnitude: high.magnitude + low_magnitude, exponent };
        }
        let magnitude = high.magnitude.abs_diff(low_magnitude);
        let negative = match high.magnitude.cmp(&low_magnitude) {
            std::cmp::Ordering::Greater => high.negative,
            std::cmp::Ordering::Less => low.negative,
            std::cmp::Ordering::Equal => rounding == Rounding::Down,
        };
        Self { negative, magnitude, exponent }
    }

    /// The same number with its highest bit at 124: room for a carry above, for the last bits of any product below.
    fn normalised(self) -> Self {
        let shift = self.magnitude.leading_zeros() - 3;
        Self { magnitude: self.magnitude << shift, exponent: self.exponent - shift as i32, ..self }
    }

    /// The magnitude as a multiple of two to the `unit`.
    pub(crate) fn rounded_to(self, unit: i32, rounding: Rounding) -> u128 {
        let shift = unit - self.exponent;
        if shift <= 0 {
            return self.magnitude << -shift;
        }
        let magnitude = shifted_right(self.magnitude, (shift as u32).saturating_sub(120));
        let shift = shift.min(120);
        let whole = magnitude >> shift;
        let rest = magnitude & ((1 << shift) - 1);
        let half = 1 << (shift - 1);
        let up = match rounding {
            Rounding::NearestEven => rest > half || rest == half && whole & 1 == 1,
            Rounding::Up => rest != 0 && !self.negative,
            Rounding::Down => rest != 0 && self.negative,
            Rounding::Zero => false,
        };
        whole + u128::from(up)
    }
}

/// A shift that keeps a lost non-zero rest in the lowest bit.
fn shifted_right(magnitude: u128, shift: u32) -> u128 {
    if shift >= 128 {
        return u128::from(magnitude != 0);
    }
    let shifted = magnitude >> shift;
    shifted | u128::from(shifted << shift != magnitude)
}
