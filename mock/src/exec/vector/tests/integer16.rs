use super::*;

/// A half of a register as an unsigned number.
fn u(value: u64, half: u32) -> i64 {
    i64::from((value >> (16 * half)) as u16)
}

/// A half of a register as a signed number.
fn s(value: u64, half: u32) -> i64 {
    i64::from((value >> (16 * half)) as i16)
}

fn zeroed(value: i64) -> u32 {
    u32::from(value as u16)
}

fn kept(i: In, value: i64) -> u32 {
    i.old as u32 & 0xffff_0000 | zeroed(value)
}

fn saturated(value: i64) -> i64 {
    value.clamp(0, 0xffff)
}

fn saturated_signed(value: i64) -> i64 {
    value.clamp(-0x8000, 0x7fff)
}

fn median(mut values: [i64; 3]) -> i64 {
    values.sort_unstable();
    values[1]
}

/// Both halves of a result.
fn both(f: impl Fn(u32) -> i64) -> u32 {
    zeroed(f(0)) | zeroed(f(1)) << 16
}

/// Halves with different edges in one register.
const EDGES: [u64; 24] = [
    0,
    1,
    0xffff,
    0x7fff,
    0x8000,
    0x8001,
    0xff,
    0x100,
    15,
    16,
    17,
    0xffff_ffff,
    0x8000_8000,
    0x7fff_7fff,
    0x8000_7fff,
    0x7fff_8000,
    0x0001_ffff,
    0xffff_0001,
    0x000f_0010,
    0x0010_000f,
    0x1234_5678,
    0xfedc_ba98,
    0x0002_8000,
    0x8000_0002,
];

#[test]
fn arithmetic_of_16_bits_clears_the_high_half() {
    check::<u32>(
        &EDGES,
        &[
            ("v_add_u16 d, a, b", |i| zeroed(u(i.a, 0) + u(i.b, 0))),
            ("v_sub_u16 d, a, b", |i| zeroed(u(i.a, 0) - u(i.b, 0))),
            ("v_subrev_u16 d, a, b", |i| zeroed(u(i.b, 0) - u(i.a, 0))),
            ("v_add_u16_e64 d, a, b clamp", |i| zeroed(saturated(u(i.a, 0) + u(i.b, 0)))),
            ("v_sub_u16_e64 d, a, b clamp", |i| zeroed(saturated(u(i.a, 0) - u(i.b, 0)))),
            ("v_subrev_u16_e64 d, a, b clamp", |i| zeroed(saturated(u(i.b, 0) - u(i.a, 0)))),
            ("v_add_i16 d, a, b", |i| zeroed(s(i.a, 0) + s(i.b, 0))),
            ("v_sub_i16 d, a, b", |i| zeroed(s(i.a, 0) - s(i.b, 0))),
            ("v_add_i16 d, a, b clamp", |i| zeroed(saturated_signed(s(i.a, 0) + s(i.b, 0)))),
            ("v_sub_i16 d, a, b clamp", |i| zeroed(saturated_signed(s(i.a, 0) - s(i.b, 0)))),
            ("v_mul_lo_u16 d, a, b", |i| zeroed(u(i.a, 0) * u(i.b, 0))),
            ("v_min_u16 d, a, b", |i| zeroed(u(i.a, 0).min(u(i.b, 0)))),
            ("v_max_u16 d, a, b", |i| zeroed(u(i.a, 0).max(u(i.b, 0)))),
            ("v_min_i16 d, a, b", |i| zeroed(s(i.a, 0).min(s(i.b, 0)))),
            ("v_max_i16 d, a, b", |i| zeroed(s(i.a, 0).max(s(i.b, 0)))),
            ("v_min3_u16 d, a, b, c", |i| zeroed(u(i.a, 0).min(u(i.b, 0)).min(u(i.c, 0)))),
            ("v_max3_u16 d, a, b, c", |i| zeroed(u(i.a, 0).max(u(i.b, 0)).max(u(i.c, 0)))),
            ("v_med3_u16 d, a, b, c", |i| zeroed(median([i.a, i.b, i.c].map(|x| u(x, 0))))),
            ("v_min3_i16 d, a, b, c", |i| zeroed(s(i.a, 0).min(s(i.b, 0)).min(s(i.c, 0)))),
            ("v_max3_i16 d, a, b, c", |i| zeroed(s(i.a, 0).max(s(i.b, 0)).max(s(i.c, 0)))),
            ("v_med3_i16 d, a, b, c", |i| zeroed(median([i.a, i.b, i.c].map(|x| s(x, 0))))),
            ("v_mad_legacy_u16 d, a, b, c", |i| zeroed(u(i.a, 0) * u(i.b, 0) + u(i.c, 0))),
            ("v_mad_legacy_i16 d, a, b, c", |i| zeroed(s(i.a, 0) * s(i.b, 0) + s(i.c, 0))),
            ("v_mad_legacy_u16 d, a, b, c clamp", |i| zeroed(saturated(u(i.a, 0) * u(i.b, 0) + u(i.c, 0)))),
            ("v_mad_legacy_i16 d, a, b, c clamp", |i| zeroed(saturated_signed(s(i.a, 0) * s(i.b, 0) + s(i.c, 0)))),
            ("v_lshlrev_b16 d, a, b", |i| zeroed(u(i.b, 0) << (i.a % 16))),
            ("v_lshrrev_b16 d, a, b", |i| zeroed(u(i.b, 0) >> (i.a % 16))),
            ("v_ashrrev_i16 d, a, b", |i| zeroed(s(i.b, 0) >> (i.a % 16))),
        ],
    );
}

#[test]
fn the_multiply_adds_of_gfx9_keep_the_other_half() {
    check::<u32>(
        &EDGES,
        &[
            ("v_mad_u16 d, a, b, c", |i| kept(i, u(i.a, 0) * u(i.b, 0) + u(i.c, 0))),
            ("v_mad_i16 d, a, b, c", |i| kept(i, s(i.a, 0) * s(i.b, 0) + s(i.c, 0))),
            ("v_mad_u16 d, a, b, c clamp", |i| kept(i, saturated(u(i.a, 0) * u(i.b, 0) + u(i.c, 0)))),
            ("v_mad_i16 d, a, b, c clamp", |i| kept(i, saturated_signed(s(i.a, 0) * s(i.b, 0) + s(i.c, 0)))),
            ("v_mad_u16 d, a, b, c op_sel:[1,0,1,0]", |i| kept(i, u(i.a, 1) * u(i.b, 0) + u(i.c, 1))),
            ("v_mad_u16 d, a, b, c op_sel:[0,1,0,1]", |i| {
                i.old as u32 & 0xffff | zeroed(u(i.a, 0) * u(i.b, 1) + u(i.c, 0)) << 16
            }),
            ("v_add_i16 d, a, b op_sel:[0,1,1]", |i| i.old as u32 & 0xffff | zeroed(s(i.a, 0) + s(i.b, 1)) << 16),
            ("v_max3_i16 d, a, b, c op_sel:[1,1,0,0]", |i| zeroed(s(i.a, 1).max(s(i.b, 1)).max(s(i.c, 0)))),
        ],
    );
}

#[test]
fn packed_arithmetic_works_half_by_half() {
    check::<u32>(
        &EDGES,
        &[
            ("v_pk_add_u16 d, a, b", |i| both(|h| u(i.a, h) + u(i.b, h))),
            ("v_pk_sub_u16 d, a, b", |i| both(|h| u(i.a, h) - u(i.b, h))),
            ("v_pk_add_i16 d, a, b", |i| both(|h| s(i.a, h) + s(i.b, h))),
            ("v_pk_sub_i16 d, a, b", |i| both(|h| s(i.a, h) - s(i.b, h))),
            ("v_pk_add_u16 d, a, b clamp", |i| both(|h| saturated(u(i.a, h) + u(i.b, h)))),
            ("v_pk_sub_u16 d, a, b clamp", |i| both(|h| saturated(u(i.a, h) - u(i.b, h)))),
            ("v_pk_add_i16 d, a, b clamp", |i| both(|h| saturated_signed(s(i.a, h) + s(i.b, h)))),
            ("v_pk_sub_i16 d, a, b clamp", |i| both(|h| saturated_signed(s(i.a, h) - s(i.b, h)))),
            ("v_pk_mul_lo_u16 d, a, b", |i| both(|h| u(i.a, h) * u(i.b, h))),
            ("v_pk_mad_u16 d, a, b, c", |i| both(|h| u(i.a, h) * u(i.b, h) + u(i.c, h))),
            ("v_pk_mad_i16 d, a, b, c", |i| both(|h| s(i.a, h) * s(i.b, h) + s(i.c, h))),
            ("v_pk_mad_u16 d, a, b, c clamp", |i| both(|h| saturated(u(i.a, h) * u(i.b, h) + u(i.c, h)))),
            ("v_pk_mad_i16 d, a, b, c clamp", |i| both(|h| saturated_signed(s(i.a, h) * s(i.b, h) + s(i.c, h)))),
            ("v_pk_min_u16 d, a, b", |i| both(|h| u(i.a, h).min(u(i.b, h)))),
            ("v_pk_max_u16 d, a, b", |i| both(|h| u(i.a, h).max(u(i.b, h)))),
            ("v_pk_min_i16 d, a, b", |i| both(|h| s(i.a, h).min(s(i.b, h)))),
            ("v_pk_max_i16 d, a, b", |i| both(|h| s(i.a, h).max(s(i.b, h)))),
            ("v_pk_lshlrev_b16 d, a, b", |i| both(|h| u(i.b, h) << (u(i.a, h) % 16))),
            ("v_pk_lshrrev_b16 d, a, b", |i| both(|h| u(i.b, h) >> (u(i.a, h) % 16))),
            ("v_pk_ashrrev_i16 d, a, b", |i| both(|h| s(i.b, h) >> (u(i.a, h) % 16))),
            ("v_pk_sub_i16 d, a, b op_sel:[1,0] op_sel_hi:[0,1]", |i| both(|h| s(i.a, 1 - h) - s(i.b, h))),
            ("v_pk_add_u16 d, a, b op_sel_hi:[1,0]", |i| both(|h| u(i.a, h) + u(i.b, 0))),
            // Inline integers are sign-extended to 32 bits, so their high half is all sign.
            ("v_pk_add_u16 d, -4, b", |i| both(|h| u(i.b, h) + [-4, -1][h as usize])),
            ("v_pk_add_u16 d, 7, b", |i| both(|h| u(i.b, h) + [7, 0][h as usize])),
            ("v_pk_add_u16 d, 7, b op_sel_hi:[0,1]", |i| both(|h| u(i.b, h) + 7)),
        ],
    );
}
