//! Comparing a buffer with what a case expects.

use std::str::FromStr;

use super::file::Tolerance;

/// Type of the elements of a file or buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// Unsigned integer of so many bytes.
    Unsigned(usize),
    /// Signed integer of so many bytes.
    Signed(usize),
    /// IEEE float of so many bytes: 2, 4 or 8.
    Float(usize),
    /// bfloat16.
    Bfloat16,
    /// OCP E4M3: no infinities, NaN is all ones.
    Float8E4m3,
    /// OCP E5M2.
    Float8E5m2,
}

impl FromStr for ElementType {
    type Err = String;

    /// Reads numpy's spelling (`<f4`, `|u1`) or a name (`float32`, `bfloat16`).
    fn from_str(text: &str) -> Result<Self, String> {
        let short = text.trim_start_matches(['<', '|', '=']);
        Ok(match short {
            "u1" | "uint8" | "b1" | "bool" => Self::Unsigned(1),
            "u2" | "uint16" => Self::Unsigned(2),
            "u4" | "uint32" => Self::Unsigned(4),
            "u8" | "uint64" => Self::Unsigned(8),
            "i1" | "int8" => Self::Signed(1),
            "i2" | "int16" => Self::Signed(2),
            "i4" | "int32" => Self::Signed(4),
            "i8" | "int64" => Self::Signed(8),
            "f2" | "float16" => Self::Float(2),
            "f4" | "float32" => Self::Float(4),
            "f8" | "float64" => Self::Float(8),
            "bfloat16" | "bf16" => Self::Bfloat16,
            "float8_e4m3fn" => Self::Float8E4m3,
            "float8_e5m2" => Self::Float8E5m2,
            _ => return Err(format!("dtype `{text}` is not known")),
        })
    }
}

impl ElementType {
    /// Bytes of one element.
    #[must_use]
    pub fn bytes(self) -> usize {
        match self {
            Self::Unsigned(bytes) | Self::Signed(bytes) | Self::Float(bytes) => bytes,
            Self::Bfloat16 => 2,
            Self::Float8E4m3 | Self::Float8E5m2 => 1,
        }
    }

    /// Element `index` of little-endian `data`. Exact for all types but 64-bit integers past 2^53.
    fn value(self, data: &[u8], index: usize) -> f64 {
        let bytes = &data[index * self.bytes()..(index + 1) * self.bytes()];
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(wide);
        match self {
            Self::Unsigned(_) => bits as f64,
            Self::Signed(bytes) => {
                let shift = 64 - 8 * bytes as u32;
                ((bits << shift) as i64 >> shift) as f64
            }
            Self::Float(2) => half::f16::from_bits(bits as u16).to_f64(),
            Self::Float(4) => f64::from(f32::from_bits(bits as u32)),
            Self::Float(_) => f64::from_bits(bits),
            Self::Bfloat16 => half::bf16::from_bits(bits as u16).to_f64(),
            Self::Float8E4m3 => e4m3(bits as u8),
            // The upper half of a binary16.
            Self::Float8E5m2 => half::f16::from_bits((bits as u16) << 8).to_f64(),
        }
    }

    fn is_float(self) -> bool {
        !matches!(self, Self::Unsigned(_) | Self::Signed(_))
    }
}

fn e4m3(bits: u8) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f64::from(bits & 7) / 8.0);
    let magnitude = match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => fraction * 2f64.powi(-6),
        _ => (1.0 + fraction) * 2f64.powi(exponent - 7),
    };
    if bits & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The first element that is out of tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Index of the element.
    pub index: usize,
    /// What the buffer holds.
    pub found: f64,
    /// What it should hold.
    pub expected: f64,
}

/// What a comparison found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The largest error, in the measure of the tolerance. Infinite if an element is NaN on one side only.
    pub max_error: f64,
    /// Elements out of tolerance.
    pub differing: usize,
    /// The first of them.
    pub first: Option<Difference>,
}

/// Compares `found`, of elements `own`, with `expected`, of elements `element`.
#[must_use]
pub(super) fn compare(
    found: &[u8],
    own: Option<ElementType>,
    expected: &[u8],
    element: ElementType,
    tolerance: Tolerance,
) -> Comparison {
    let own = own.filter(|own| own.bytes() < element.bytes()).unwrap_or(element);
    let count = expected.len() / element.bytes();
    let (limit, scale) = match tolerance {
        Tolerance::Abs(limit) => (limit, 1.0),
        Tolerance::RelToMax(limit) => {
            let largest = (0..count)
                .map(|i| element.value(expected, i).abs())
                .filter(|value| value.is_finite())
                .fold(0.0, f64::max);
            (limit, if largest > 0.0 { largest } else { 1.0 })
        }
    };
    let mut result = Comparison { max_error: 0.0, differing: 0, first: None };
    for index in 0..count {
        let same_bits = own == element
            && found[index * element.bytes()..][..element.bytes()]
                == expected[index * element.bytes()..][..element.bytes()];
        if same_bits {
            continue;
        }
        let (a, b) = (own.value(found, index), element.value(expected, index));
        let error = match (a.is_nan(), b.is_nan()) {
            (true, true) => 0.0,
            (false, false) if a == b && element.is_float() && limit > 0.0 => 0.0,
            // With no tolerance bits count: zeros of different sign, and 64-bit integers that round alike, differ.
            (false, false) if a == b => {
                if own == element {
                    f64::MIN_POSITIVE
                } else {
                    0.0
                }
            }
            (false, false) if a.is_infinite() || b.is_infinite() => f64::INFINITY,
            (false, false) => (a - b).abs() / scale,
            _ => f64::INFINITY,
        };
        result.max_error = result.max_error.max(error);
        if error > limit {
            result.differing += 1;
            result.first.get_or_insert(Difference { index, found: a, expected: b });
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn compare_f32(found: &[f32], expected: &[f32], tolerance: Tolerance) -> Comparison {
        compare(&f32s(found), None, &f32s(expected), ElementType::Float(4), tolerance)
    }

    #[test]
    fn without_tolerance_bits_count() {
        assert_eq!(compare_f32(&[1.0, f32::NAN], &[1.0, f32::NAN], Tolerance::Abs(0.0)).differing, 0);
        assert_eq!(compare_f32(&[0.0], &[-0.0], Tolerance::Abs(0.0)).differing, 1);
        assert_eq!(compare_f32(&[0.0], &[-0.0], Tolerance::Abs(1e-9)).differing, 0);
    }

    #[test]
    fn nan_on_one_side_is_never_within_tolerance() {
        assert_eq!(compare_f32(&[f32::NAN], &[1.0], Tolerance::Abs(1e30)).differing, 1);
        assert_eq!(compare_f32(&[1.0], &[f32::NAN], Tolerance::RelToMax(1e30)).differing, 1);
        assert_eq!(compare_f32(&[f32::INFINITY], &[1.0], Tolerance::Abs(1e30)).differing, 1);
    }

    #[test]
    fn a_relative_tolerance_is_relative_to_the_largest_expected_value() {
        let result = compare_f32(&[100.0, 1.5], &[100.0, 1.0], Tolerance::RelToMax(0.01));
        assert_eq!(result.differing, 0);
        assert!((result.max_error - 0.005).abs() < 1e-12);
        assert_eq!(compare_f32(&[100.0, 1.5], &[100.0, 1.0], Tolerance::RelToMax(0.001)).first.unwrap().index, 1);
    }

    #[test]
    fn a_narrow_buffer_is_widened() {
        let narrow: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| half::bf16::from_f32(*v).to_le_bytes()).collect();
        let result = compare(
            &narrow,
            Some(ElementType::Bfloat16),
            &f32s(&[1.5, -2.0]),
            ElementType::Float(4),
            Tolerance::Abs(0.0),
        );
        assert_eq!(result.differing, 0);
    }

    #[test]
    fn bytes_that_are_floats_are_compared_by_value() {
        let values =
            |kind: ElementType, bytes: &[u8]| -> Vec<f64> { (0..bytes.len()).map(|i| kind.value(bytes, i)).collect() };
        let e4m3 = values(ElementType::Float8E4m3, &[0x38, 0xb8, 0x01, 0x7e, 0x08]);
        assert_eq!(e4m3, [1.0, -1.0, 2f64.powi(-9), 448.0, 2f64.powi(-6)]);
        assert!(values(ElementType::Float8E4m3, &[0x7f])[0].is_nan());
        assert_eq!(values(ElementType::Float8E5m2, &[0x3c, 0xfc, 0x01]), [1.0, f64::NEG_INFINITY, 2f64.powi(-16)]);
    }

    #[test]
    fn large_integers_are_compared_by_their_bits() {
        let (a, b) = (((1u64 << 60) + 1).to_le_bytes(), (1u64 << 60).to_le_bytes());
        let result = compare(&a, None, &b, ElementType::Unsigned(8), Tolerance::Abs(0.0));
        assert_eq!(result.differing, 1);
    }
}
