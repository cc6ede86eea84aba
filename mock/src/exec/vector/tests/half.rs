//! Half-precision arithmetic and `v_fma_mix`.

use super::exact::{Format, HALF, SINGLE};
use super::float::{HALVES, SINGLES, absolute, extreme, extreme3, median, negated, subtracted};
use super::*;

fn half(bits: u64) -> u32 {
    u32::from(bits as u16)
}

fn kept(i: In, bits: u64) -> u32 {
    i.old as u32 & 0xffff_0000 | half(bits)
}

fn both(f: impl Fn(u32) -> u64) -> u32 {
    half(f(0)) | half(f(16)) << 16
}

/// Multiply-add that rounds twice and flushes denormals.
fn mad(a: u64, b: u64, c: u64) -> u64 {
    const FLUSHING: Format = Format { flush_inputs: true, flush_results: true, ..HALF };
    HALF.first_nan(&[a, b, c]).unwrap_or_else(|| FLUSHING.add(FLUSHING.mul(a, b), c))
}

/// Edges in both halves.
fn packed() -> Vec<u64> {
    HALVES.iter().enumerate().map(|(i, bits)| bits | HALVES[(7 * i + 3) % HALVES.len()] << 16).collect()
}

#[test]
fn half_precision_arithmetic_is_correctly_rounded() {
    check::<u32>(
        &packed(),
        &[
            ("v_add_f16 d, a, b", |i| half(HALF.add(i.a, i.b))),
            ("v_sub_f16 d, a, b", |i| half(subtracted(HALF, i.a, i.b, false))),
            ("v_subrev_f16 d, a, b", |i| half(subtracted(HALF, i.a, i.b, true))),
            ("v_mul_f16 d, a, b", |i| half(HALF.mul(i.a, i.b))),
            ("v_fma_f16 d, a, b, c", |i| kept(i, HALF.fma(i.a, i.b, i.c))),
            ("v_fma_f16 d, a, -b, |c| op_sel:[1,0,1,0]", |i| {
                kept(i, HALF.fma(i.a >> 16, negated(HALF, i.b), absolute(HALF, i.c >> 16)))
            }),
            ("v_fma_f16 d, a, b, c op_sel:[0,0,0,1]", |i| i.old as u32 & 0xffff | half(HALF.fma(i.a, i.b, i.c)) << 16),
            ("v_fma_legacy_f16 d, a, b, c", |i| half(HALF.fma(i.a, i.b, i.c))),
            ("v_mad_f16 d, a, b, c", |i| kept(i, mad(i.a, i.b, i.c))),
            ("v_mad_legacy_f16 d, a, b, c", |i| half(mad(i.a, i.b, i.c))),
            ("v_mac_f16 d, a, b", |i| half(mad(i.a, i.b, i.old))),
            ("v_madmk_f16 d, a, 0x3e00, b", |i| half(mad(i.a, 0x3e00, i.b))),
            ("v_madak_f16 d, a, b, 0x3e00", |i| half(mad(i.a, i.b, 0x3e00))),
            ("v_pack_b32_f16 d, a, b", |i| half(i.a) | half(i.b) << 16),
            ("v_pack_b32_f16 d, -a, |b| op_sel:[1,0,0]", |i| {
                half(negated(HALF, i.a >> 16)) | half(absolute(HALF, i.b)) << 16
            }),
            ("v_min_f16 d, a, b", |i| half(extreme(HALF, i.a, i.b, false))),
            ("v_max_f16 d, a, b", |i| half(extreme(HALF, i.a, i.b, true))),
            ("v_min3_f16 d, a, b, c", |i| half(extreme(HALF, extreme(HALF, i.a, i.b, false), i.c, false))),
            ("v_max3_f16 d, a, b, c", |i| half(extreme(HALF, extreme(HALF, i.a, i.b, true), i.c, true))),
            ("v_med3_f16 d, a, b, c", |i| half(median(HALF, i.a, i.b, i.c))),
        ],
    );
}

#[test]
fn packed_half_precision_works_half_by_half() {
    check::<u32>(
        &packed(),
        &[
            ("v_pk_add_f16 d, a, b", |i| both(|h| HALF.add(i.a >> h, i.b >> h))),
            ("v_pk_mul_f16 d, a, b", |i| both(|h| HALF.mul(i.a >> h, i.b >> h))),
            ("v_pk_fma_f16 d, a, b, c", |i| both(|h| HALF.fma(i.a >> h, i.b >> h, i.c >> h))),
            ("v_pk_fmac_f16 d, a, b", |i| both(|h| HALF.fma(i.a >> h, i.b >> h, i.old >> h))),
            ("v_pk_min_f16 d, a, b", |i| both(|h| extreme(HALF, i.a >> h, i.b >> h, false))),
            ("v_pk_max_f16 d, a, b", |i| both(|h| extreme(HALF, i.a >> h, i.b >> h, true))),
            ("v_pk_minimum3_f16 d, a, b, c", |i| both(|h| extreme3(HALF, [i.a >> h, i.b >> h, i.c >> h], false))),
            ("v_pk_maximum3_f16 d, a, b, c", |i| both(|h| extreme3(HALF, [i.a >> h, i.b >> h, i.c >> h], true))),
            ("v_pk_add_f16 d, a, b op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[1,0] neg_hi:[0,1]", |i| {
                both(|h| match h {
                    0 => HALF.add(negated(HALF, i.a), i.b >> 16),
                    _ => HALF.add(i.a >> 16, negated(HALF, i.b)),
                })
            }),
            // An inline constant is in the low half only.
            ("v_pk_mul_f16 d, 2.0, b", |i| both(|h| HALF.mul(if h == 0 { 0x4000 } else { 0 }, i.b >> h))),
            ("v_pk_mul_f16 d, 2.0, b op_sel_hi:[0,1]", |i| both(|h| HALF.mul(0x4000, i.b >> h))),
        ],
    );
}

#[test]
fn mixed_multiply_adds_take_single_or_half_operands() {
    fn wide(bits: u64) -> u64 {
        HALF.convert(SINGLE, HALF.bits(bits))
    }
    // A sum in single precision is rounded to a half.
    fn narrow(bits: u64) -> u64 {
        SINGLE.convert(HALF, bits)
    }
    check::<u32>(
        &[&SINGLES[..], &packed()].concat(),
        &[
            ("v_fma_mix_f32 d, a, b, c", |i| SINGLE.fma(i.a, i.b, i.c) as u32),
            ("v_fma_mix_f32 d, a, b, c op_sel_hi:[1,0,1]", |i| SINGLE.fma(wide(i.a), i.b, wide(i.c)) as u32),
            ("v_fma_mix_f32 d, a, b, c op_sel:[1,0,0] op_sel_hi:[1,1,0]", |i| {
                SINGLE.fma(wide(i.a >> 16), wide(i.b), i.c) as u32
            }),
            ("v_fma_mix_f32 d, -a, |b|, -|c| op_sel_hi:[0,1,0]", |i| {
                let c = negated(SINGLE, absolute(SINGLE, i.c));
                SINGLE.fma(negated(SINGLE, i.a), absolute(SINGLE, wide(i.b)), c) as u32
            }),
            ("v_fma_mix_f32 d, 2.0, b, c op_sel_hi:[1,0,0]", |i| SINGLE.fma(0x4000_0000, i.b, i.c) as u32),
            ("v_fma_mixlo_f16 d, a, b, c op_sel_hi:[0,1,0]", |i| kept(i, narrow(SINGLE.fma(i.a, wide(i.b), i.c)))),
            ("v_fma_mixhi_f16 d, a, b, c op_sel_hi:[0,1,0]", |i| {
                i.old as u32 & 0xffff | half(narrow(SINGLE.fma(i.a, wide(i.b), i.c))) << 16
            }),
        ],
    );
}
