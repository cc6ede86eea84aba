//! Dot products.

use super::exact::{Format, HALF, SINGLE};
use super::float::{HALVES, SINGLES, negated};
use super::*;

fn fields(value: u64, bits: u32, signed: bool) -> Vec<i64> {
    (0..32 / bits)
        .map(|n| {
            let field = (value >> (bits * n)) as i64 & ((1 << bits) - 1);
            if signed && field >> (bits - 1) == 1 { field - (1 << bits) } else { field }
        })
        .collect()
}

fn dot(i: In, c: u64, bits: u32, signed: bool) -> i64 {
    let c = if signed { i64::from(c as i32) } else { i64::from(c as u32) };
    fields(i.a, bits, signed).iter().zip(fields(i.b, bits, signed)).map(|(a, b)| a * b).sum::<i64>() + c
}

#[test]
fn integer_dot_products_wrap_or_saturate() {
    fn signed(value: i64) -> u32 {
        value.clamp(i32::MIN.into(), i32::MAX.into()) as u32
    }
    fn unsigned(value: i64) -> u32 {
        value.clamp(0, u32::MAX.into()) as u32
    }
    let edges =
        [&INTEGERS[..], &[0x8000_8000, 0x7fff_8000, 0x8080_8080, 0x7f80_7f80, 0x8888_8888, 0x7878_7878]].concat();
    check::<u32>(
        &edges,
        &[
            ("v_dot2_i32_i16 d, a, b, c", |i| dot(i, i.c, 16, true) as u32),
            ("v_dot2_u32_u16 d, a, b, c", |i| dot(i, i.c, 16, false) as u32),
            ("v_dot4_i32_i8 d, a, b, c", |i| dot(i, i.c, 8, true) as u32),
            ("v_dot4_u32_u8 d, a, b, c", |i| dot(i, i.c, 8, false) as u32),
            ("v_dot8_i32_i4 d, a, b, c", |i| dot(i, i.c, 4, true) as u32),
            ("v_dot8_u32_u4 d, a, b, c", |i| dot(i, i.c, 4, false) as u32),
            ("v_dot2_i32_i16 d, a, b, c clamp", |i| signed(dot(i, i.c, 16, true))),
            ("v_dot2_u32_u16 d, a, b, c clamp", |i| unsigned(dot(i, i.c, 16, false))),
            ("v_dot4_i32_i8 d, a, b, c clamp", |i| signed(dot(i, i.c, 8, true))),
            ("v_dot4_u32_u8 d, a, b, c clamp", |i| unsigned(dot(i, i.c, 8, false))),
            ("v_dot8_i32_i4 d, a, b, c clamp", |i| signed(dot(i, i.c, 4, true))),
            ("v_dot8_u32_u4 d, a, b, c clamp", |i| unsigned(dot(i, i.c, 4, false))),
            ("v_dot2c_i32_i16 d, a, b", |i| dot(i, i.old, 16, true) as u32),
            ("v_dot4c_i32_i8 d, a, b", |i| dot(i, i.old, 8, true) as u32),
            ("v_dot8c_i32_i4 d, a, b", |i| dot(i, i.old, 4, true) as u32),
        ],
    );
}

/// Denormals of single precision do not exist for the floating-point dot products.
const FLUSHING: Format = Format { flush_inputs: true, flush_results: true, ..SINGLE };

fn halves(value: u64) -> [u64; 2] {
    [value, value >> 16].map(|half| HALF.convert(SINGLE, HALF.bits(half)))
}

fn bfloats(value: u64) -> [u64; 2] {
    [value << 16 & 0xffff_0000, value & 0xffff_0000]
}

/// c, then the low and the high product added.
fn chain(a: [u64; 2], b: [u64; 2], c: u64) -> u32 {
    FLUSHING.fma(a[1], b[1], FLUSHING.fma(a[0], b[0], c)) as u32
}

#[test]
fn floating_point_dot_products_round_each_sum_and_flush_denormals() {
    let halves_edges = HALVES.iter().enumerate().map(|(i, bits)| bits | HALVES[(11 * i + 5) % HALVES.len()] << 16);
    let edges: Vec<u64> = halves_edges.chain(SINGLES).collect();
    check::<u32>(
        &edges,
        &[
            ("v_dot2_f32_f16 d, a, b, c", |i| chain(halves(i.a), halves(i.b), SINGLE.bits(i.c))),
            ("v_dot2c_f32_f16 d, a, b", |i| chain(halves(i.a), halves(i.b), SINGLE.bits(i.old))),
            ("v_dot2c_f32_bf16 d, a, b", |i| chain(bfloats(i.a), bfloats(i.b), SINGLE.bits(i.old))),
            ("v_dot2_f32_bf16 d, a, b, c", |i| {
                let (a, b) = (bfloats(i.a), bfloats(i.b));
                let products = FLUSHING.fma(a[1], b[1], FLUSHING.mul(a[0], b[0]));
                FLUSHING.add(products, SINGLE.bits(i.c)) as u32
            }),
            ("v_dot2_f32_f16 d, a, b, c neg_lo:[1,0,1] neg_hi:[0,1,0]", |i| {
                let (a, b) = (halves(i.a), halves(i.b));
                chain([negated(SINGLE, a[0]), a[1]], [b[0], negated(SINGLE, b[1])], negated(SINGLE, i.c))
            }),
        ],
    );
}
