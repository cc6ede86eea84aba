use super::*;
use crate::random::Random;

/// A format written down again from the OCP specification: exponent bits, mantissa bits, largest number, first code that is
/// no number.
struct Spec {
    format: Format,
    exponent_bits: u32,
    mantissa_bits: u32,
    largest: f64,
    first_special: u32,
}

const SPECS: [Spec; 7] = [
    spec(Format::FP8, 4, 3, 448.0, 0x7f),
    spec(Format::BF8, 5, 2, 57344.0, 0x7c),
    spec(Format::FP6, 2, 3, 7.5, 0x20),
    spec(Format::BF6, 3, 2, 28.0, 0x20),
    spec(Format::FP4, 2, 1, 6.0, 0x8),
    spec(Format::F16, 5, 10, 65504.0, 0x7c00),
    spec(Format::BF16, 8, 7, f64::from_bits(0x47ef_e000_0000_0000), 0x7f80),
];

const fn spec(format: Format, exponent_bits: u32, mantissa_bits: u32, largest: f64, first_special: u32) -> Spec {
    Spec { format, exponent_bits, mantissa_bits, largest, first_special }
}

impl Spec {
    fn sign(&self) -> u32 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// (-1)^s * 2^(e - bias) * 1.m, or 2^(1 - bias) * 0.m.
    fn value(&self, code: u32) -> f64 {
        let bias = (1i32 << (self.exponent_bits - 1)) - 1;
        let exponent = (code >> self.mantissa_bits & ((1 << self.exponent_bits) - 1)) as i32;
        let mantissa = f64::from(code & ((1 << self.mantissa_bits) - 1));
        let unit = f64::from(1u32 << self.mantissa_bits);
        let magnitude = if exponent == 0 {
            mantissa / unit * 2f64.powi(1 - bias)
        } else {
            (1.0 + mantissa / unit) * 2f64.powi(exponent - bias)
        };
        if code & self.sign() != 0 { -magnitude } else { magnitude }
    }

    /// The nearest magnitude code by exact comparison; past the largest number the next code stands for overflow.
    fn nearest(&self, magnitude: f64) -> u32 {
        let below = self.below(magnitude);
        let (low, high) = (self.value(below), self.value_past(below + 1));
        let (down, up) = (magnitude - low, high - magnitude);
        if down < up || (down == up && below.is_multiple_of(2)) { below } else { below + 1 }
    }

    /// The last code whose value is not above `magnitude`.
    fn below(&self, magnitude: f64) -> u32 {
        let (mut low, mut high) = (0, self.first_special);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.value(middle) <= magnitude { low = middle } else { high = middle }
        }
        low
    }

    /// [`Self::value`] continued to the code after the largest number.
    fn value_past(&self, code: u32) -> f64 {
        if code < self.first_special { self.value(code) } else { 2.0 * self.value(code - 1) - self.value(code - 2) }
    }

    fn overflow(&self, mode: Overflow) -> u32 {
        match (self.format, mode) {
            (Format::FP8, Overflow::Special) => 0x7f,
            (Format::BF8 | Format::F16 | Format::BF16, Overflow::Special) => self.first_special,
            _ => self.first_special - 1,
        }
    }
}

#[test]
fn every_code_decodes_to_the_value_of_its_fields() {
    for spec in &SPECS {
        for code in 0..2 * spec.sign() {
            let decoded = spec.format.decode(code);
            if code % spec.sign() < spec.first_special {
                assert_eq!(f64::from(decoded).to_bits(), spec.value(code).to_bits(), "{:?} {code:#x}", spec.format);
            } else if spec.format != Format::FP8 && code % spec.sign() == spec.first_special {
                assert_eq!(decoded, if code < spec.sign() { f32::INFINITY } else { f32::NEG_INFINITY });
            } else {
                assert!(decoded.is_nan(), "{:?} {code:#x}", spec.format);
            }
        }
        assert_eq!(spec.value(spec.first_special - 1), spec.largest);
        assert_eq!(spec.format.max_code(), spec.first_special - 1);
        assert_eq!(1 << spec.format.bits(), 2 * spec.sign());
    }
}

#[test]
fn what_was_decoded_encodes_to_the_same_code() {
    for spec in &SPECS {
        for code in (0..2 * spec.sign()).filter(|code| code % spec.sign() < spec.first_special) {
            let value = spec.format.decode(code);
            for overflow in [Overflow::Special, Overflow::Saturate] {
                assert_eq!(spec.format.encode(value, overflow), code);
                assert_eq!(spec.format.encode_stochastic(value, u32::MAX, overflow), code);
            }
        }
    }
}

/// Values at, just below and just above each code and each midpoint, and random bits; none is a NaN.
fn interesting(spec: &Spec) -> Vec<f32> {
    let mut values = vec![0.0, 1e-45, f32::MIN_POSITIVE, 1e-30, 1e30, f32::MAX, f32::INFINITY];
    let stride = (spec.first_special / 2000).max(1);
    for code in (0..spec.first_special).step_by(stride as usize) {
        let (low, high) = (spec.value(code), spec.value_past(code + 1));
        for exact in [low, (low + high) / 2.0, low * 0.75 + high * 0.25] {
            let value = exact as f32;
            values.extend([
                value,
                f32::from_bits(value.to_bits() + 1),
                f32::from_bits(value.to_bits().saturating_sub(1)),
            ]);
        }
    }
    let mut random = Random::new(7);
    values.extend((0..4000).map(|_| f32::from_bits(random.next())));
    values.retain(|value| !value.is_nan());
    values
}

#[test]
fn encoding_gives_the_nearest_code_and_ties_go_to_even() {
    for spec in &SPECS {
        for value in interesting(spec) {
            for overflow in [Overflow::Special, Overflow::Saturate] {
                let mut expected =
                    if value.is_finite() { spec.nearest(f64::from(value.abs())) } else { spec.first_special };
                if expected == spec.first_special {
                    expected = spec.overflow(overflow);
                }
                assert_eq!(spec.format.encode(value.abs(), overflow), expected, "{:?} {value:e}", spec.format);
                assert_eq!(spec.format.encode(-value.abs(), overflow), expected | spec.sign());
            }
        }
    }
}

#[test]
fn stochastic_encoding_adds_the_random_bits_and_truncates() {
    let mut random = Random::new(8);
    for spec in &SPECS {
        let places = 23 - spec.mantissa_bits;
        for value in interesting(spec).into_iter().filter(|value| value.is_finite()) {
            let value = f64::from(value.abs());
            let seed = random.next();
            // The step between codes at this value: that of its binade, or of the subnormals.
            let bias = (1i32 << (spec.exponent_bits - 1)) - 1;
            let exponent = if value == 0.0 { i32::MIN } else { value.log2().floor() as i32 };
            let exponent = exponent.max(1 - bias);
            let steps = value / 2f64.powi(exponent - spec.mantissa_bits as i32);
            // Bits of the value further down than the random bits reach are dropped.
            let unit = f64::from(1u32 << places);
            let sum = (steps * unit).floor() + f64::from(seed >> (32 - places));
            let count = (sum / unit).floor();
            let result = count * 2f64.powi(exponent - spec.mantissa_bits as i32);
            let expected = if result > spec.largest { spec.overflow(Overflow::Special) } else { spec.below(result) };
            let code = spec.format.encode_stochastic(value as f32, seed, Overflow::Special);
            assert_eq!(code, expected, "{:?} {value:e} {seed:#x}", spec.format);
            let saturated = spec.format.encode_stochastic(-value as f32, seed, Overflow::Saturate);
            assert_eq!(saturated, expected.min(spec.first_special - 1) | spec.sign());
        }
    }
}

#[test]
fn nan_stays_nan_or_becomes_the_largest_number_where_there_is_none() {
    for spec in &SPECS {
        for overflow in [Overflow::Special, Overflow::Saturate] {
            for bits in [0x7fc0_0000, 0x7f80_0001, 0xffc0_0000, 0xffff_ffff] {
                let nan = f32::from_bits(bits);
                for code in [spec.format.encode(nan, overflow), spec.format.encode_stochastic(nan, 0, overflow)] {
                    assert_eq!(code & spec.sign() != 0, bits >> 31 == 1);
                    match spec.format {
                        Format::FP4 | Format::FP6 | Format::BF6 => {
                            assert_eq!(code % spec.sign(), spec.first_special - 1);
                        }
                        _ => assert!(spec.format.decode(code).is_nan(), "{:?} {code:#x}", spec.format),
                    }
                }
            }
        }
    }
}

#[test]
fn sixteen_bit_formats_agree_with_the_half_crate() {
    let mut random = Random::new(9);
    for _ in 0..100_000 {
        let value = f32::from_bits(random.next());
        if !value.is_nan() {
            assert_eq!(Format::F16.encode(value, Overflow::Special), half::f16::from_f32(value).to_bits().into());
            assert_eq!(Format::BF16.encode(value, Overflow::Special), half::bf16::from_f32(value).to_bits().into());
        }
    }
}

#[test]
fn scales_are_powers_of_two() {
    for code in 0..255 {
        assert_eq!(f64::from(e8m0(code)), 2f64.powi(code as i32 - 127));
        assert_eq!(f64::from(e8m0_reciprocal(code)), 2f64.powi(127 - code as i32));
    }
    assert!(e8m0(255).is_nan() && e8m0_reciprocal(255).is_nan());
}
