//! Logic, bit fields, bit counts, shifts and byte permutation.

use isa::Op;

use super::Answer;
use crate::exec::element::LaneIndex;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    let truth_table = u32::from(b.inst.mods.bitop3);
    match b.inst.op {
        Op::VNotB32 => b.lanes::<L, Not>(),
        Op::VAndB32 => b.lanes::<L, And>(),
        Op::VOrB32 => b.lanes::<L, Or>(),
        Op::VXorB32 => b.lanes::<L, Xor>(),
        Op::VXnorB32 => b.lanes::<L, Xnor>(),
        Op::VAndOrB32 => b.lanes::<L, AndOr>(),
        Op::VOr3B32 => b.lanes::<L, Or3>(),
        Op::VBitop3B32 => b.lanes_with::<L, Bitop3>(truth_table),
        Op::VBitop3B16 => b.lanes_with::<L, Bitop3Half>(truth_table),
        Op::VBfeU32 => b.lanes::<L, ExtractUnsigned>(),
        Op::VBfeI32 => b.lanes::<L, ExtractSigned>(),
        Op::VBfiB32 => b.lanes::<L, Insert>(),
        Op::VBfmB32 => b.lanes::<L, FieldMask>(),
        Op::VBfrevB32 => b.lanes::<L, Reverse>(),
        Op::VFfbhU32 => b.lanes::<L, FirstHigh>(),
        Op::VFfblB32 => b.lanes::<L, FirstLow>(),
        Op::VFfbhI32 => b.lanes::<L, FirstHighSigned>(),
        Op::VBcntU32B32 => b.lanes::<L, Count>(),
        Op::VMbcntLoU32B32 => b.lanes::<L, CountBelowLow>(),
        Op::VMbcntHiU32B32 => b.lanes::<L, CountBelowHigh>(),
        Op::VAlignbitB32 => b.lanes::<L, AlignBit>(),
        Op::VAlignbyteB32 => b.lanes::<L, AlignByte>(),
        Op::VPermB32 => b.lanes::<L, Permute>(),
        Op::VPrngB32 => b.lanes::<L, Random>(),
        Op::VLshlrevB32 => b.lanes::<L, ShiftLeft>(),
        Op::VLshrrevB32 => b.lanes::<L, ShiftRight>(),
        Op::VAshrrevI32 => b.lanes::<L, ShiftRightSigned>(),
        Op::VLshlrevB64 => b.lanes::<L, ShiftLeft64>(),
        Op::VLshrrevB64 => b.lanes::<L, ShiftRight64>(),
        Op::VAshrrevI64 => b.lanes::<L, ShiftRightSigned64>(),
        Op::VLshlrevB16 => b.lanes::<L, ShiftLeft16>(),
        Op::VLshrrevB16 => b.lanes::<L, ShiftRight16>(),
        Op::VAshrrevI16 => b.lanes::<L, ShiftRightSigned16>(),
        Op::VLshlOrB32 => b.lanes::<L, ShiftLeftOr>(),
        _ => None,
    }
}

lanes! {
    Not(a: u32) -> u32 = !a;
    And(a: u32, b: u32) -> u32 = a & b;
    Or(a: u32, b: u32) -> u32 = a | b;
    Xor(a: u32, b: u32) -> u32 = a ^ b;
    Xnor(a: u32, b: u32) -> u32 = !(a ^ b);
    AndOr(a: u32, b: u32, c: u32) -> u32 = a & b | c;
    Or3(a: u32, b: u32, c: u32) -> u32 = a | b | c;
    Bitop3[table](a: u32, b: u32, c: u32) -> u32 = look_up(table, a, b, c);
    Bitop3Half[table](a: u16, b: u16, c: u16) -> u16 = look_up(table, a.into(), b.into(), c.into()) as u16;
    ExtractUnsigned(a: u32, b: u32, c: u32) -> u32 = a >> (b & 31) & ((1 << (c & 31)) - 1);
    ExtractSigned(a: i32, b: u32, c: u32) -> i32 = sign_extended(a >> (b & 31), c & 31);
    Insert(a: u32, b: u32, c: u32) -> u32 = a & b | !a & c;
    FieldMask(a: u32, b: u32) -> u32 = ((1 << (a & 31)) - 1) << (b & 31);
    Reverse(a: u32) -> u32 = a.reverse_bits();
    FirstHigh(a: u32) -> u32 = if a == 0 { u32::MAX } else { a.leading_zeros() };
    FirstLow(a: u32) -> u32 = if a == 0 { u32::MAX } else { a.trailing_zeros() };
    FirstHighSigned(a: i32) -> u32 = first_high_signed(a);
    Count(a: u32, b: u32) -> u32 = a.count_ones().wrapping_add(b);
    CountBelowLow(a: u32, b: u32, lane: LaneIndex) -> u32 = (a & below(lane.0)).count_ones().wrapping_add(b);
    CountBelowHigh(a: u32, b: u32, lane: LaneIndex) -> u32 =
        (a & below(lane.0.saturating_sub(32))).count_ones().wrapping_add(b);
    AlignBit(a: u32, b: u32, c: u32) -> u32 = (joined(a, b) >> (c & 31)) as u32;
    AlignByte(a: u32, b: u32, c: u32) -> u32 = (joined(a, b) >> (8 * (c & 3))) as u32;
    Permute(a: u32, b: u32, c: u32) -> u32 = permuted(joined(a, b), c);
    Random(a: u32) -> u32 = a << 1 ^ if a >> 31 == 1 { 197 } else { 0 };
    ShiftLeft(a: u32, b: u32) -> u32 = b << (a & 31);
    ShiftRight(a: u32, b: u32) -> u32 = b >> (a & 31);
    ShiftRightSigned(a: u32, b: i32) -> i32 = b >> (a & 31);
    ShiftLeft64(a: u32, b: u64) -> u64 = b << (a & 63);
    ShiftRight64(a: u32, b: u64) -> u64 = b >> (a & 63);
    ShiftRightSigned64(a: u32, b: i64) -> i64 = b >> (a & 63);
    ShiftLeft16(a: u16, b: u16) -> u16 = b << (a & 15);
    ShiftRight16(a: u16, b: u16) -> u16 = b >> (a & 15);
    ShiftRightSigned16(a: u16, b: i16) -> i16 = b >> (a & 15);
    ShiftLeftOr(a: u32, b: u32, c: u32) -> u32 = a << (b & 31) | c;
}

/// Each bit of the result is the bit of `table` whose number the bits of `a`, `b` and `c` form.
#[inline(always)]
fn look_up(table: u32, a: u32, b: u32, c: u32) -> u32 {
    let entry = |n: u32| 0u32.wrapping_sub(table >> n & 1);
    let choose = |bit: u32, one: u32, zero: u32| bit & one | !bit & zero;
    let without_a = choose(b, choose(c, entry(3), entry(2)), choose(c, entry(1), entry(0)));
    let with_a = choose(b, choose(c, entry(7), entry(6)), choose(c, entry(5), entry(4)));
    choose(a, with_a, without_a)
}

/// The low `width` bits of `value` as a signed number; no bits are zero.
#[inline(always)]
fn sign_extended(value: i32, width: u32) -> i32 {
    let unused = (32 - width) & 31;
    if width == 0 { 0 } else { value << unused >> unused }
}

/// How many bits from the top are like the highest, -1 if all are.
#[inline(always)]
fn first_high_signed(value: i32) -> u32 {
    let changes = (value ^ value >> 31) as u32;
    if changes == 0 { u32::MAX } else { changes.leading_zeros() }
}

/// A bit for each number below `lane`, all from 32 on.
#[inline(always)]
fn below(lane: u32) -> u32 {
    if lane >= 32 { u32::MAX } else { (1 << (lane & 31)) - 1 }
}

#[inline(always)]
fn joined(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Four bytes, each chosen by a byte of `selectors`: 0 to 7 a byte of `bytes`, 8 to 11 the sign of byte 1, 3, 5 or 7, 12
/// zero, above all ones.
#[inline(always)]
fn permuted(bytes: u64, selectors: u32) -> u32 {
    let mut out = 0;
    for place in 0..4 {
        let selector = selectors >> (8 * place) & 0xff;
        let byte = (bytes >> (8 * (selector & 7))) as u32 & 0xff;
        let sign = (bytes >> (16 * (selector & 3) + 15)) as u32 & 1;
        let chosen = match selector {
            0..=7 => byte,
            8..=11 => 0xff * sign,
            12 => 0,
            _ => 0xff,
        };
        out |= chosen << (8 * place);
    }
    out
}
