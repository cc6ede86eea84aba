use super::*;

fn bit(value: u64, n: u64) -> u64 {
    value >> n & 1
}

/// A number made of bits, the lowest first.
fn from_bits(count: u64, f: impl Fn(u64) -> u64) -> u64 {
    (0..count).fold(0, |value, n| value | f(n) << n)
}

fn byte(value: u64, n: u64) -> u64 {
    value >> (8 * n) & 0xff
}

#[test]
fn logic_works_bit_by_bit() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_not_b32 d, a", |i| from_bits(32, |n| 1 - bit(i.a, n)) as u32),
            ("v_and_b32 d, a, b", |i| from_bits(32, |n| bit(i.a, n) * bit(i.b, n)) as u32),
            ("v_or_b32 d, a, b", |i| from_bits(32, |n| bit(i.a, n).max(bit(i.b, n))) as u32),
            ("v_xor_b32 d, a, b", |i| from_bits(32, |n| (bit(i.a, n) + bit(i.b, n)) % 2) as u32),
            ("v_xnor_b32 d, a, b", |i| from_bits(32, |n| (1 + bit(i.a, n) + bit(i.b, n)) % 2) as u32),
            ("v_and_or_b32 d, a, b, c", |i| from_bits(32, |n| (bit(i.a, n) * bit(i.b, n)).max(bit(i.c, n))) as u32),
            ("v_or3_b32 d, a, b, c", |i| from_bits(32, |n| bit(i.a, n).max(bit(i.b, n)).max(bit(i.c, n))) as u32),
            ("v_bfi_b32 d, a, b, c", |i| {
                from_bits(32, |n| if bit(i.a, n) == 1 { bit(i.b, n) } else { bit(i.c, n) }) as u32
            }),
            ("v_bitop3_b32 d, a, b, c bitop3:0x96", |i| {
                from_bits(32, |n| (bit(i.a, n) + bit(i.b, n) + bit(i.c, n)) % 2) as u32
            }),
            ("v_bitop3_b32 d, a, b, c bitop3:0x1d", |i| {
                from_bits(32, |n| 0x1d >> (4 * bit(i.a, n) + 2 * bit(i.b, n) + bit(i.c, n)) & 1) as u32
            }),
            ("v_bitop3_b32 d, a, b, c bitop3:0xea", |i| {
                from_bits(32, |n| (bit(i.a, n) * bit(i.b, n)).max(bit(i.c, n))) as u32
            }),
            ("v_bitop3_b16 d, a, b, c bitop3:0x6c", |i| {
                from_bits(16, |n| 0x6c >> (4 * bit(i.a, n) + 2 * bit(i.b, n) + bit(i.c, n)) & 1) as u32
            }),
            ("v_bitop3_b16 d, a, b, c bitop3:0xc6 op_sel:[0,1,0,1]", |i| {
                let half = from_bits(16, |n| 0xc6 >> (4 * bit(i.a, n) + 2 * bit(i.b, n + 16) + bit(i.c, n)) & 1);
                i.old as u32 & 0xffff | (half as u32) << 16
            }),
            ("v_bfrev_b32 d, a", |i| from_bits(32, |n| bit(i.a, 31 - n)) as u32),
            ("v_prng_b32 d, a", |i| {
                // A step of the shift register with the polynomial x^32 + x^7 + x^6 + x^2 + 1.
                from_bits(32, |n| {
                    let shifted = if n == 0 { 0 } else { bit(i.a, n - 1) };
                    let tap = if [0, 2, 6, 7].contains(&n) { bit(i.a, 31) } else { 0 };
                    (shifted + tap) % 2
                }) as u32
            }),
        ],
    );
}

#[test]
fn every_truth_table_of_bitop3_is_looked_up() {
    for table in 0..256u64 {
        let mut bench = Bench::new();
        *bench.v(0) = [0xf0; LANES];
        *bench.v(1) = [0xcc; LANES];
        *bench.v(2) = [0xaa; LANES];
        if bench.run(&format!("v_bitop3_b32 v3, v0, v1, v2 bitop3:{table:#x}")) {
            // The operands count through the table.
            assert_eq!(u64::from(bench.v(3)[9] & 0xff), table);
        }
    }
}

#[test]
fn fields_are_extracted_inserted_and_made() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_bfe_u32 d, a, b, c", |i| {
                let (offset, width) = (i.b % 32, i.c % 32);
                from_bits(width, |n| if offset + n < 32 { bit(i.a, offset + n) } else { 0 }) as u32
            }),
            ("v_bfe_i32 d, a, b, c", |i| {
                let (offset, width) = (i.b % 32, i.c % 32);
                let sign = |n: u64| bit(i.a, (offset + n).min(31));
                from_bits(32, |n| if width == 0 { 0 } else { sign(n.min(width - 1)) }) as u32
            }),
            ("v_bfm_b32 d, a, b", |i| from_bits(32, |n| u64::from(n >= i.b % 32 && n < i.b % 32 + i.a % 32)) as u32),
            ("v_alignbit_b32 d, a, b, c", |i| {
                let all = i128::from(i.a as u32) << 32 | i128::from(i.b as u32);
                (all / (1 << (i.c % 32))) as u32
            }),
            ("v_alignbyte_b32 d, a, b, c", |i| {
                let bytes = |n: u64| if n < 4 { byte(i.b, n) } else { byte(i.a, n - 4) };
                (0..4).fold(0, |out, n| out | (bytes(n + i.c % 4) as u32) << (8 * n))
            }),
            ("v_perm_b32 d, a, b, c", |i| {
                let bytes = |n: u64| if n < 4 { byte(i.b, n) } else { byte(i.a, n - 4) };
                (0..4).fold(0, |out, place| {
                    let chosen = match byte(i.c, place) {
                        selector @ 0..8 => bytes(selector),
                        selector @ 8..12 => 255 * (bytes(2 * (selector - 8) + 1) >> 7),
                        12 => 0,
                        _ => 255,
                    };
                    out | (chosen as u32) << (8 * place)
                })
            }),
        ],
    );
}

#[test]
fn selectors_of_perm_cover_all_their_meanings() {
    let selectors: Vec<u64> = (0..20).map(|n| n | ((n + 3) % 16) << 8 | (19 - n) << 16 | (7 * n % 256) << 24).collect();
    check::<u32>(
        &selectors,
        &[("v_perm_b32 d, a, b, c", |i| {
            let eight = (i.a << 32) | i.b & 0xffff_ffff;
            let byte_of = |selector: u64| match selector {
                0..8 => eight.to_le_bytes()[selector as usize],
                8..12 => {
                    if (eight.to_le_bytes()[2 * selector as usize - 15] as i8) < 0 {
                        255
                    } else {
                        0
                    }
                }
                12 => 0,
                _ => 255,
            };
            u32::from_le_bytes((i.c as u32).to_le_bytes().map(|selector| byte_of(selector.into())))
        })],
    );
}

#[test]
fn bits_are_counted_and_found() {
    fn first(from_top: bool, differs_from: u64, value: u64) -> u32 {
        (0..32).find(|&n| bit(value, if from_top { 31 - n } else { n }) != differs_from).map_or(u32::MAX, |n| n as u32)
    }
    check::<u32>(
        &INTEGERS,
        &[
            ("v_ffbh_u32 d, a", |i| first(true, 0, i.a)),
            ("v_ffbl_b32 d, a", |i| first(false, 0, i.a)),
            ("v_ffbh_i32 d, a", |i| first(true, bit(i.a, 31), i.a)),
            ("v_bcnt_u32_b32 d, a, b", |i| ((0..32).map(|n| bit(i.a, n)).sum::<u64>().wrapping_add(i.b)) as u32),
            ("v_mbcnt_lo_u32_b32 d, a, b", |i| {
                ((0..32.min(i.lane as u64)).map(|n| bit(i.a, n)).sum::<u64>().wrapping_add(i.b)) as u32
            }),
            ("v_mbcnt_hi_u32_b32 d, a, b", |i| {
                ((32..(i.lane as u64).max(32)).map(|n| bit(i.a, n - 32)).sum::<u64>().wrapping_add(i.b)) as u32
            }),
        ],
    );
}

#[test]
fn shifts_use_the_low_bits_of_their_count() {
    check::<u32>(
        &INTEGERS,
        &[
            ("v_lshlrev_b32 d, a, b", |i| (i128::from(i.b as u32) << (i.a % 32)) as u32),
            ("v_lshrrev_b32 d, a, b", |i| (i128::from(i.b as u32) >> (i.a % 32)) as u32),
            ("v_ashrrev_i32 d, a, b", |i| (i128::from(i.b as i32) >> (i.a % 32)) as u32),
            ("v_lshl_or_b32 d, a, b, c", |i| (i128::from(i.a as u32) << (i.b % 32)) as u32 | i.c32()),
        ],
    );
    check::<u64>(
        &INTEGERS,
        &[
            ("v_lshlrev_b64 D, a, B", |i| (i128::from(i.b) << (i.a % 64)) as u64),
            ("v_lshrrev_b64 D, a, B", |i| (i128::from(i.b) >> (i.a % 64)) as u64),
            ("v_ashrrev_i64 D, a, B", |i| (i128::from(i.b as i64) >> (i.a % 64)) as u64),
        ],
    );
}
