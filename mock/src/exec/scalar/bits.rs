//! Bits: logic, shifts, fields, counts (CDNA4 ISA section 5.7).

use super::salu;

salu! {
    nonzero(cx): nonzero;
    SNotB32(a: u32) = !a;
    SNotB64(a: u64) = !a;
    SAndB32(a: u32, b: u32) = a & b;
    SAndB64(a: u64, b: u64) = a & b;
    SOrB32(a: u32, b: u32) = a | b;
    SOrB64(a: u64, b: u64) = a | b;
    SXorB32(a: u32, b: u32) = a ^ b;
    SXorB64(a: u64, b: u64) = a ^ b;
    SAndn2B32(a: u32, b: u32) = a & !b;
    SAndn2B64(a: u64, b: u64) = a & !b;
    SOrn2B32(a: u32, b: u32) = a | !b;
    SOrn2B64(a: u64, b: u64) = a | !b;
    SNandB32(a: u32, b: u32) = !(a & b);
    SNandB64(a: u64, b: u64) = !(a & b);
    SNorB32(a: u32, b: u32) = !(a | b);
    SNorB64(a: u64, b: u64) = !(a | b);
    SXnorB32(a: u32, b: u32) = !(a ^ b);
    SXnorB64(a: u64, b: u64) = !(a ^ b);
    SLshlB32(a: u32, b: u32) = a << (b & 31);
    SLshlB64(a: u64, b: u32) = a << (b & 63);
    SLshrB32(a: u32, b: u32) = a >> (b & 31);
    SLshrB64(a: u64, b: u32) = a >> (b & 63);
    SAshrI32(a: i32, b: u32) = a >> (b & 31);
    SAshrI64(a: i64, b: u32) = a >> (b & 63);
    SBfeU32(a: u32, b: u32) = unsigned_field((a >> (b & 31)).into(), width(b)) as u32;
    SBfeU64(a: u64, b: u32) = unsigned_field(a >> (b & 63), width(b));
    SBfeI32(a: i32, b: u32) = signed_field((a >> (b & 31)).into(), width(b)) as i32;
    SBfeI64(a: i64, b: u32) = signed_field(a >> (b & 63), width(b));
    SBcnt0I32B32(a: u32) = a.count_zeros();
    SBcnt0I32B64(a: u64) = a.count_zeros();
    SBcnt1I32B32(a: u32) = a.count_ones();
    SBcnt1I32B64(a: u64) = a.count_ones();
    SWqmB32(a: u32) = quads_with_a_bit(a.into()) as u32 * 0xf;
    SWqmB64(a: u64) = quads_with_a_bit(a) * 0xf;
    SQuadmaskB32(a: u32) = one_bit_a_quad(a.into()) as u32;
    SQuadmaskB64(a: u64) = one_bit_a_quad(a);
}

salu! {
    plain(cx): plain;
    SBrevB32(a: u32) = a.reverse_bits();
    SBrevB64(a: u64) = a.reverse_bits();
    SFf0I32B32(a: u32) = found(a.trailing_ones(), 32);
    SFf0I32B64(a: u64) = found(a.trailing_ones(), 64);
    SFf1I32B32(a: u32) = found(a.trailing_zeros(), 32);
    SFf1I32B64(a: u64) = found(a.trailing_zeros(), 64);
    SFlbitI32B32(a: u32) = found(a.leading_zeros(), 32);
    SFlbitI32B64(a: u64) = found(a.leading_zeros(), 64);
    SFlbitI32(a: i32) = found((a ^ a >> 31).leading_zeros(), 32);
    SFlbitI32I64(a: i64) = found((a ^ a >> 63).leading_zeros(), 64);
    SBfmB32(a: u32, b: u32) = ((1u32 << (a & 31)) - 1) << (b & 31);
    SBfmB64(a: u32, b: u32) = ((1u64 << (a & 63)) - 1) << (b & 63);
    SBitreplicateB64B32(a: u32) = doubled_bits(a);
    SPackLlB32B16(a: u32, b: u32) = a & 0xffff | b << 16;
    SPackLhB32B16(a: u32, b: u32) = a & 0xffff | b & 0xffff_0000;
    SPackHhB32B16(a: u32, b: u32) = a >> 16 | b & 0xffff_0000;
}

salu! {
    compared(cx): compared;
    SBitcmp0B32(a: u32, b: u32) = a >> (b & 31) & 1 == 0;
    SBitcmp1B32(a: u32, b: u32) = a >> (b & 31) & 1 == 1;
    SBitcmp0B64(a: u64, b: u32) = a >> (b & 63) & 1 == 0;
    SBitcmp1B64(a: u64, b: u32) = a >> (b & 63) & 1 == 1;
}

/// Width of a bit field, in bits 22:16 of the operand that describes it.
fn width(field: u32) -> u32 {
    field >> 16 & 0x7f
}

fn unsigned_field(shifted: u64, width: u32) -> u64 {
    if width >= 64 { shifted } else { shifted & ((1 << width) - 1) }
}

fn signed_field(shifted: i64, width: u32) -> i64 {
    match width {
        0 => 0,
        1..64 => shifted << (64 - width) >> (64 - width),
        _ => shifted,
    }
}

/// A bit position, or all ones if the search ran off the operand.
fn found(position: u32, bits: u32) -> u32 {
    if position == bits { u32::MAX } else { position }
}

/// The lowest bit of each group of four that has a bit set.
fn quads_with_a_bit(mask: u64) -> u64 {
    (mask | mask >> 1 | mask >> 2 | mask >> 3) & 0x1111_1111_1111_1111
}

fn one_bit_a_quad(mask: u64) -> u64 {
    let quads = quads_with_a_bit(mask);
    (0..16).fold(0, |packed, quad| packed | (quads >> (4 * quad) & 1) << quad)
}

fn doubled_bits(value: u32) -> u64 {
    (0..32).fold(0, |doubled, bit| doubled | (u64::from(value >> bit & 1) * 3) << (2 * bit))
}
