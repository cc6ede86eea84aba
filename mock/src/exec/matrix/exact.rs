//! Sums without an intermediate rounding.

/// `s + error` is `a + b` exactly, and `s` its nearest double (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let virtual_b = s - a;
    (s, (a - (s - virtual_b)) + (b - virtual_b))
}

/// The single nearest to `s + error`, where `s` is the double nearest to that sum.
#[inline(always)]
fn round(s: f64, error: f64) -> f32 {
    // Rounding to odd first: an odd last bit can't be mistaken for a tie when 53 bits become 24.
    let bits = s.to_bits();
    let away = (error > 0.0) == (s > 0.0);
    let towards = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let odd = if error != 0.0 && bits & 1 == 0 { towards } else { bits };
    f64::from_bits(odd) as f32
}

/// `a + b` rounded once to single precision.
#[inline(always)]
pub(super) fn add(a: f64, b: f64) -> f32 {
    let (s, error) = two_sum(a, b);
    // Infinities and NaNs have no error term.
    if s.is_finite() { round(s, error) } else { s as f32 }
}

/// The sum of `terms` rounded once to single precision. The terms must be finite, and their magnitudes such that partial
/// sums neither overflow nor lose bits to underflow: products of the formats here lie between 2^-320 and 2^300.
pub(super) fn sum(terms: impl Iterator<Item = f64> + Clone) -> f32 {
    // Shewchuk's expansion: parts that don't overlap, smallest first, whose sum is exact.
    let mut parts: Vec<f64> = Vec::with_capacity(8);
    for term in terms.clone() {
        let mut carry = term;
        let mut kept = 0;
        for i in 0..parts.len() {
            let (s, error) = two_sum(carry, parts[i]);
            carry = s;
            if error != 0.0 {
                parts[kept] = error;
                kept += 1;
            }
        }
        parts.truncate(kept);
        parts.push(carry);
    }
    let mut total = 0.0;
    while let Some(part) = parts.pop() {
        let (s, error) = two_sum(total, part);
        if error != 0.0 {
            return round(s, error);
        }
        total = s;
    }
    if total == 0.0 {
        // A zero sum is negative only if nothing but negative zeros was added.
        return if terms.clone().all(|term| term == 0.0 && term.is_sign_negative()) { -0.0 } else { 0.0 };
    }
    total as f32
}
