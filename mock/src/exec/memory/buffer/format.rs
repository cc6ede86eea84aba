//! Data formats of typed buffer accesses (CDNA4 ISA table "Data Formats").
//!
//! The manual names the formats and leaves the conversions open; they are modelled after Direct3D, for which the unit was
//! made: integers are clamped to the format when stored, normalised and scaled numbers rounded to nearest even.

use half::f16;

/// How the bits of a component are understood (NFMT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Unorm,
    Snorm,
    Uscaled,
    Sscaled,
    Uint,
    Sint,
    Float,
}

/// A format: what each component is, and its bits from the lowest up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    pub(super) number: Number,
    /// Bits of X, Y, Z and W.
    widths: [u32; 4],
}

impl Format {
    /// The format of DFMT and NFMT, if there is such a one.
    pub(super) fn new(data_format: u8, number_format: u8) -> Option<Self> {
        let widths = match data_format {
            1 => [8, 0, 0, 0],
            2 => [16, 0, 0, 0],
            3 => [8, 8, 0, 0],
            4 => [32, 0, 0, 0],
            5 => [16, 16, 0, 0],
            // Names list components from the highest bit down.
            6 => [11, 11, 10, 0],
            7 => [10, 11, 11, 0],
            8 => [2, 10, 10, 10],
            9 => [10, 10, 10, 2],
            10 => [8; 4],
            11 => [32, 32, 0, 0],
            12 => [16; 4],
            13 => [32, 32, 32, 0],
            14 => [32; 4],
            _ => return None,
        };
        let number = match number_format {
            0 => Number::Unorm,
            1 => Number::Snorm,
            2 => Number::Uscaled,
            3 => Number::Sscaled,
            4 => Number::Uint,
            5 => Number::Sint,
            7 => Number::Float,
            _ => return None,
        };
        Some(Self { number, widths })
    }

    /// Bytes of one element.
    pub(super) fn bytes(self) -> usize {
        self.widths.iter().sum::<u32>() as usize / 8
    }

    /// The components of an element as 32-bit integers or floats; missing ones are zero.
    pub(super) fn unpack(self, element: u128) -> [u32; 4] {
        let mut low = 0;
        self.widths.map(|width| {
            let bits = (element >> low) as u64 & ((1 << width) - 1);
            low += width;
            if width == 0 { 0 } else { self.widen(bits as u32, width) }
        })
    }

    /// The element of 32-bit integers or floats.
    pub(super) fn pack(self, components: [u32; 4]) -> u128 {
        let mut low = 0;
        let mut element = 0;
        for (component, width) in components.into_iter().zip(self.widths) {
            if width > 0 {
                element |= u128::from(self.narrow(component, width)) << low;
            }
            low += width;
        }
        element
    }

    fn widen(self, bits: u32, width: u32) -> u32 {
        let signed = (bits << (32 - width)) as i32 >> (32 - width);
        match self.number {
            Number::Unorm => (f64::from(bits) / unsigned_limit(width)) as f32,
            Number::Snorm => (f64::from(signed) / signed_limit(width)).max(-1.0) as f32,
            Number::Uscaled => bits as f32,
            Number::Sscaled => signed as f32,
            Number::Uint => return bits,
            Number::Sint => return signed as u32,
            Number::Float => match width {
                32 => return bits,
                16 => f16::from_bits(bits as u16).to_f32(),
                // Unsigned floats with the exponent of half precision and fewer mantissa bits.
                _ => f16::from_bits((bits << (15 - width)) as u16).to_f32(),
            },
        }
        .to_bits()
    }

    fn narrow(self, component: u32, width: u32) -> u32 {
        let value = f64::from(f32::from_bits(component));
        let keep = |integer: f64| (integer as i64 as u32) & (u32::MAX >> (32 - width));
        let (least, most) = (-signed_limit(width) - 1.0, signed_limit(width));
        // `as` makes NaN zero.
        match self.number {
            Number::Unorm => keep((value.clamp(0.0, 1.0) * unsigned_limit(width)).round_ties_even()),
            Number::Snorm => keep((value.clamp(-1.0, 1.0) * most).round_ties_even()),
            Number::Uscaled => keep(value.clamp(0.0, unsigned_limit(width)).trunc()),
            Number::Sscaled => keep(value.clamp(least, most).trunc()),
            Number::Uint => component.min(u32::MAX >> (32 - width)),
            Number::Sint => keep(f64::from(component as i32).clamp(least, most)),
            Number::Float => match width {
                32 => component,
                16 => f16::from_f32(value as f32).to_bits().into(),
                _ => small_float(value, width),
            },
        }
    }
}

fn unsigned_limit(width: u32) -> f64 {
    2f64.powi(width as i32) - 1.0
}

fn signed_limit(width: u32) -> f64 {
    2f64.powi(width as i32 - 1) - 1.0
}

/// An unsigned float of 10 or 11 bits; negative numbers become zero.
fn small_float(value: f64, width: u32) -> u32 {
    // There are no floats of 2 bits: what the hardware stores for such a descriptor is not defined.
    let Some(mantissa) = width.checked_sub(5) else { return 0 };
    let infinity = 0x1f << mantissa;
    if value.is_nan() {
        return infinity | 1 << (mantissa - 1);
    }
    if value <= 0.0 {
        return 0;
    }
    // Unbiased exponent, not below the one of denormals.
    let exponent = ((value.to_bits() >> 52) as i32 - 1023).clamp(-14, 16);
    let steps = (value / 2f64.powi(exponent - mantissa as i32)).round_ties_even();
    (steps + f64::from((exponent + 14) << mantissa)).min(infinity.into()) as u32
}
