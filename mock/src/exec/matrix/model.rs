//! The order and width in which matrix instructions accumulate: modelled, as gfx950's is not documented.
//!
//! What is known: single and double precision shapes are chains of fused multiply-adds on CDNA1 to CDNA3, and CDNA3 adds
//! the products of 16-bit and 8-bit shapes in groups, with truncation (MMA-Sim, arXiv 2511.10909, measured). Results whose
//! partial sums are all representable are the same in every order.

use std::str::FromStr;

use super::exact;

/// How the products of one result element are added to it.
///
/// Products of single- and double-precision matrices are chains of fused multiply-adds whatever this says, except that
/// `Pairwise` holds for single precision too. Those of bytes are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MfmaOrder {
    /// The sum is exact and rounded once. It does not depend on an order, and no hardware is more accurate.
    #[default]
    Exact,
    /// One product after the other is added to C, each sum rounded to single precision.
    Sequential,
    /// Products, rounded to single precision, are added in pairs, pairs in pairs and so on, rounding each sum; C comes
    /// last.
    Pairwise,
    /// As measured on CDNA3: groups of 8 products (16 for formats of 8 bits and fewer, even and odd ones apart) are aligned
    /// to the largest and truncated to 24 fraction bits, then C is added and the sum rounded. Subnormal inputs are
    /// normalised first, which CDNA3 does not do.
    Cdna3,
}

impl FromStr for MfmaOrder {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        match word {
            "default" | "exact" => Ok(Self::Exact),
            "sequential" => Ok(Self::Sequential),
            "pairwise" => Ok(Self::Pairwise),
            "cdna3" => Ok(Self::Cdna3),
            _ => Err(()),
        }
    }
}

/// The model function: `c` plus the sum of the products of `terms`, in `order`.
///
/// Products must be exact in double precision. `narrow` says that both inputs have 8 bits or fewer; with `saturate`
/// (MODE.FP16_OVFL) a finite sum that overflows gives the largest number.
pub(super) fn accumulate(
    order: MfmaOrder,
    terms: impl Iterator<Item = (f64, f64)> + Clone,
    c: f32,
    narrow: bool,
    saturate: bool,
) -> f32 {
    let products = || terms.clone().map(|(a, b)| a * b);
    let plain = products().fold(f64::from(c), |sum, product| sum + product);
    if !plain.is_finite() {
        return special(plain, terms, c);
    }
    let sum = match order {
        MfmaOrder::Exact => exact::sum(std::iter::once(f64::from(c)).chain(products())),
        MfmaOrder::Sequential => products().fold(c, |sum, product| exact::add(f64::from(sum), product)),
        MfmaOrder::Pairwise => pairwise(products().map(|product| product as f32)) + c,
        MfmaOrder::Cdna3 => cdna3(terms, c, narrow),
    };
    if saturate { sum.clamp(f32::MIN, f32::MAX) } else { sum }
}

/// A sum that infinities or NaNs among its terms decide: the first NaN, made quiet, or an infinity.
#[cold]
fn special(plain: f64, terms: impl Iterator<Item = (f64, f64)>, c: f32) -> f32 {
    if plain.is_infinite() {
        return plain as f32;
    }
    let nan = terms.flat_map(|(a, b)| [a, b]).chain([f64::from(c)]).find(|value| value.is_nan());
    let bits = nan.map_or(0x7fc0_0000, |nan| (nan as f32).to_bits());
    f32::from_bits(bits | 0x0040_0000)
}

fn pairwise(values: impl Iterator<Item = f32>) -> f32 {
    let mut values: Vec<f32> = values.collect();
    while values.len() > 1 {
        values = values.chunks(2).map(|pair| pair.iter().copied().reduce(|a, b| a + b).unwrap_or_default()).collect();
    }
    values.first().copied().unwrap_or_default()
}

/// Fraction bits that aligned products and C keep, and that their sum keeps while C is added.
const PRODUCT_BITS: i32 = 24;
const SUM_BITS: i32 = 31;

fn cdna3(terms: impl Iterator<Item = (f64, f64)>, c: f32, narrow: bool) -> f32 {
    let terms: Vec<(f64, f64)> = terms.collect();
    terms.chunks(if narrow { 16 } else { 8 }).fold(c, |c, group| {
        let (sum, exponent) = if narrow {
            let (even, even_top) = aligned(group.iter().step_by(2));
            let (odd, odd_top) = aligned(group.iter().skip(1).step_by(2));
            let top = even_top.max(odd_top);
            ((even * power_of_two(even_top - top)).floor() + (odd * power_of_two(odd_top - top)).floor(), top)
        } else {
            aligned(group.iter())
        };
        let c_exponent = exponent_of(c.into());
        let top = exponent.max(c_exponent);
        let sum = (sum * power_of_two(SUM_BITS - PRODUCT_BITS + exponent - top)).floor();
        let unreached = narrow && c_exponent < top - PRODUCT_BITS - 1;
        let c = if unreached { 0.0 } else { (f64::from(c) * power_of_two(PRODUCT_BITS - top)).floor() };
        ((sum + c * power_of_two(SUM_BITS - PRODUCT_BITS)) * power_of_two(top - SUM_BITS)) as f32
    })
}

/// The sum of products, each truncated to `PRODUCT_BITS` fraction bits under the largest exponent, in units of the last
/// of these bits; and that exponent.
fn aligned<'a>(terms: impl Iterator<Item = &'a (f64, f64)> + Clone) -> (f64, i32) {
    let exponents = terms.clone().map(|(a, b)| exponent_of(*a) + exponent_of(*b));
    let top = exponents.max().unwrap_or(2 * LEAST_EXPONENT);
    let unit = power_of_two(PRODUCT_BITS - top);
    (terms.map(|(a, b)| (a * b * unit).trunc()).sum(), top)
}

/// What the measured hardware takes for the exponent of zero.
const LEAST_EXPONENT: i32 = -126;

fn exponent_of(value: f64) -> i32 {
    if value == 0.0 { LEAST_EXPONENT } else { (value.to_bits() >> 52 & 0x7ff) as i32 - 1023 }
}

fn power_of_two(exponent: i32) -> f64 {
    2f64.powi(exponent)
}
