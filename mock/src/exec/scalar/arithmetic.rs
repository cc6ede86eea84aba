//! Integer arithmetic and comparisons (CDNA4 ISA sections 5.4 and 5.6).

use super::salu;

salu! {
    flagged(cx): flagged;
    SAddU32(a: u32, b: u32) = a.overflowing_add(b);
    SSubU32(a: u32, b: u32) = a.overflowing_sub(b);
    SAddI32 | SAddkI32(a: i32, b: i32) = a.overflowing_add(b);
    SSubI32(a: i32, b: i32) = a.overflowing_sub(b);
    SAddcU32(a: u32, b: u32) = a.carrying_add(b, cx.w.scc);
    SSubbU32(a: u32, b: u32) = a.borrowing_sub(b, cx.w.scc);
    // SCC tells whether the first source was chosen, and equal sources choose the second.
    SMinI32(a: i32, b: i32) = (a.min(b), a < b);
    SMinU32(a: u32, b: u32) = (a.min(b), a < b);
    SMaxI32(a: i32, b: i32) = (a.max(b), a > b);
    SMaxU32(a: u32, b: u32) = (a.max(b), a > b);
    SLshl1AddU32(a: u32, b: u32) = shift_add(a, 1, b);
    SLshl2AddU32(a: u32, b: u32) = shift_add(a, 2, b);
    SLshl3AddU32(a: u32, b: u32) = shift_add(a, 3, b);
    SLshl4AddU32(a: u32, b: u32) = shift_add(a, 4, b);
}

salu! {
    nonzero(cx): nonzero;
    SAbsdiffI32(a: i32, b: i32) = a.wrapping_sub(b).wrapping_abs();
    SAbsI32(a: i32) = a.wrapping_abs();
}

salu! {
    plain(cx): plain;
    SMulI32 | SMulkI32(a: i32, b: i32) = a.wrapping_mul(b);
    SMulHiU32(a: u32, b: u32) = ((u64::from(a) * u64::from(b)) >> 32) as u32;
    SMulHiI32(a: i32, b: i32) = ((i64::from(a) * i64::from(b)) >> 32) as i32;
    SSextI32I8(a: u32) = i32::from(a as i8);
    SSextI32I16(a: u32) = i32::from(a as i16);
}

salu! {
    compared(cx): compared;
    SCmpEqI32 | SCmpEqU32 | SCmpkEqI32 | SCmpkEqU32(a: u32, b: u32) = a == b;
    SCmpLgI32 | SCmpLgU32 | SCmpkLgI32 | SCmpkLgU32(a: u32, b: u32) = a != b;
    SCmpGtI32 | SCmpkGtI32(a: i32, b: i32) = a > b;
    SCmpGeI32 | SCmpkGeI32(a: i32, b: i32) = a >= b;
    SCmpLtI32 | SCmpkLtI32(a: i32, b: i32) = a < b;
    SCmpLeI32 | SCmpkLeI32(a: i32, b: i32) = a <= b;
    SCmpGtU32 | SCmpkGtU32(a: u32, b: u32) = a > b;
    SCmpGeU32 | SCmpkGeU32(a: u32, b: u32) = a >= b;
    SCmpLtU32 | SCmpkLtU32(a: u32, b: u32) = a < b;
    SCmpLeU32 | SCmpkLeU32(a: u32, b: u32) = a <= b;
    SCmpEqU64(a: u64, b: u64) = a == b;
    SCmpLgU64(a: u64, b: u64) = a != b;
}

fn shift_add(a: u32, shift: u32, b: u32) -> (u32, bool) {
    let sum = (u64::from(a) << shift) + u64::from(b);
    (sum as u32, sum >> 32 != 0)
}
