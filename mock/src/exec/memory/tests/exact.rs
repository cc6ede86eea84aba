//! What atomic operations mean, over integers and exactly rounded numbers.

pub(super) fn by_sign(bits: u32, old: u64, a: u64, choose: fn(i128, i128) -> i128) -> u64 {
    let signed = |value: u64| i128::from(value) - if value >> (bits - 1) == 1 { 1i128 << bits } else { 0 };
    choose(signed(old), signed(a)).rem_euclid(1i128 << bits) as u64
}

pub(super) fn bitwise(a: u64, b: u64, f: fn(bool, bool) -> bool) -> u64 {
    (0..64).map(|at| u64::from(f(a >> at & 1 == 1, b >> at & 1 == 1)) << at).sum()
}

/// A floating-point format: bits, bits of the mantissa, exponent of the smallest normal number.
#[derive(Clone, Copy)]
pub(super) struct Format(u32, i32, i32);

pub(super) const F16: Format = Format(16, 10, -14);
pub(super) const BF16: Format = Format(16, 7, -126);
pub(super) const F32: Format = Format(32, 23, -126);
pub(super) const F64: Format = Format(64, 52, -1022);

impl Format {
    fn infinity(self) -> u64 {
        ((1 << (self.0 - 1)) - 1) >> self.1 << self.1
    }

    fn is_nan(self, bits: u64) -> bool {
        bits % (1 << (self.0 - 1)) > self.infinity()
    }

    fn quiet(self, bits: u64) -> u64 {
        bits | 1 << (self.1 - 1)
    }
}

/// The value of a number of at most 32 bits.
pub(super) fn number(format: Format, bits: u64) -> f64 {
    let Format(width, mantissa, least) = format;
    let sign = if bits >> (width - 1) == 1 { -1.0 } else { 1.0 };
    let magnitude = bits % (1 << (width - 1));
    let (exponent, fraction) = ((magnitude >> mantissa) as i32, (magnitude % (1 << mantissa)) as f64);
    let ulp = |exponent: i32| 2f64.powi(exponent - mantissa);
    sign * match exponent {
        _ if format.is_nan(bits) => f64::NAN,
        _ if magnitude == format.infinity() => f64::INFINITY,
        0 => fraction * ulp(least),
        e => (fraction + 2f64.powi(mantissa)) * ulp(least + e - 1),
    }
}

/// The bits of the number nearest to `value`, ties to even.
pub(super) fn nearest(format: Format, value: f64) -> u64 {
    let Format(width, mantissa, least) = format;
    let sign = u64::from(value.is_sign_negative()) << (width - 1);
    let magnitude = value.abs();
    if magnitude == 0.0 || magnitude.is_infinite() {
        return sign | if magnitude == 0.0 { 0 } else { format.infinity() };
    }
    let exponent = (((magnitude.to_bits() >> 52) as i32) - 1023).max(least);
    let steps = (magnitude / 2f64.powi(exponent - mantissa)).round_ties_even() as u64;
    // A carry out of the mantissa counts into the exponent, and out of that to infinity.
    let bits = steps + ((exponent - least) as u64) * (1 << mantissa);
    sign | bits.min(format.infinity())
}

fn nan_rule(format: Format, old: u64, a: u64) -> Option<u64> {
    let nan = [old, a].into_iter().find(|&bits| format.is_nan(bits)).map(|bits| format.quiet(bits));
    let opposite = old != a && [old, a].iter().all(|&bits| bits % (1 << (format.0 - 1)) == format.infinity());
    nan.or(opposite.then_some(format.quiet(format.infinity())))
}

/// A sum of numbers of at most 32 bits: double precision has room for two roundings to be as good as one.
pub(super) fn add(format: Format, old: u64, a: u64) -> u64 {
    nan_rule(format, old, a).unwrap_or_else(|| nearest(format, number(format, old) + number(format, a)))
}

/// A sum of doubles over integers: the smaller one, if far below, only breaks ties.
pub(super) fn add_f64(old: u64, a: u64) -> u64 {
    if let Some(nan) = nan_rule(F64, old, a) {
        return nan;
    }
    let split = |bits: u64| {
        let exponent = (bits >> 52 & 0x7ff) as i32;
        let mantissa = i128::from(bits % (1 << 52)) + if exponent > 0 { 1 << 52 } else { 0 };
        (if bits >> 63 == 1 { -mantissa } else { mantissa }, exponent.max(1))
    };
    if let Some(infinite) = [old, a].into_iter().find(|bits| bits % (1 << 63) == F64.infinity()) {
        return infinite;
    }
    let ((mut big, high), (mut small, low)) =
        if split(old).1 >= split(a).1 { (split(old), split(a)) } else { (split(a), split(old)) };
    // 64 extra bits below the unit of the larger one.
    big <<= 64;
    small = if high - low > 64 { small.signum() } else { small << (64 - (high - low)) };
    let sum = big + small;
    if sum == 0 {
        return if old >> 63 == 1 && a >> 63 == 1 { 1 << 63 } else { 0 };
    }
    let (sign, magnitude) = (u64::from(sum < 0) << 63, sum.unsigned_abs());
    // Bring the leading bit to bit 52 plus `shift`, not below the exponent of denormals.
    let shift = (128 - magnitude.leading_zeros() as i32 - 53).max(64 + 1 - high);
    let (kept, rest) =
        if shift > 0 { (magnitude >> shift, magnitude % (1 << shift)) } else { (magnitude << -shift, 0) };
    let half = if shift > 0 { 1u128 << (shift - 1) } else { 1 };
    let rounded = kept + u128::from(rest > half || (rest == half && kept % 2 == 1));
    let exponent = high - 64 + shift;
    let bits = rounded as u64 + ((exponent - 1) as u64) * (1 << 52);
    sign | bits.min(F64.infinity())
}

pub(super) fn halves(old: u64, a: u64, add: fn(u64, u64) -> u64) -> u64 {
    add(old % 65536, a % 65536) + 65536 * add(old / 65536, a / 65536)
}

/// Minimum (`way` -1) or maximum (1) in the order of the ISA document: -inf, -float, -0, +0, +float, +inf, with quiet NaN
/// outside the end that is sought.
pub(super) fn extreme(format: Format, old: u64, a: u64, way: i128) -> u64 {
    let signalling = |bits: &u64| format.is_nan(*bits) && format.quiet(*bits) != *bits;
    if let Some(nan) = [old, a].into_iter().find(signalling) {
        return format.quiet(nan);
    }
    let place = |bits: u64| {
        let magnitude = i128::from(bits % (1 << (format.0 - 1)));
        match bits >> (format.0 - 1) {
            _ if format.is_nan(bits) => -way * (1 << 70),
            1 => -magnitude - 1,
            _ => magnitude,
        }
    };
    if way * (place(a) - place(old)) > 0 { a } else { old }
}
