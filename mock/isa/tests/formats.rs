//! One instruction of each encoding, decoded and printed.

#![allow(clippy::unwrap_used)]

use isa::{Encoding, decode};

fn check(words: &[u32], encoding: Encoding, text: &str) {
    let inst = decode(words).unwrap();
    assert_eq!((inst.encoding, usize::from(inst.dwords), inst.to_string().as_str()), (encoding, words.len(), text));
}

#[test]
fn each_encoding_is_recognised() {
    check(&[0xbe85_0001], Encoding::Sop1, "s_mov_b32 s5, s1");
    check(&[0x8005_0201], Encoding::Sop2, "s_add_u32 s5, s1, s2");
    check(&[0xb005_3141], Encoding::Sopk, "s_movk_i32 s5, 0x3141");
    check(&[0xbf00_0201], Encoding::Sopc, "s_cmp_eq_i32 s1, s2");
    check(&[0xbf8c_c07f], Encoding::Sopp, "s_waitcnt lgkmcnt(0)");
    check(&[0xc002_0141, 0x0000_0040], Encoding::Smem, "s_load_dword s5, s[2:3], 0x40");
    check(&[0x7e0a_0301], Encoding::Vop1, "v_mov_b32_e32 v5, v1");
    check(&[0x020a_0501], Encoding::Vop2, "v_add_f32_e32 v5, v1, v2");
    check(&[0x7c82_0501], Encoding::Vopc, "v_cmp_lt_f32_e32 vcc, v1, v2");
    check(&[0xd1cb_0005, 0x040e_0501], Encoding::Vop3, "v_fma_f32 v5, v1, v2, v3");
    check(&[0xd38f_4005, 0x1802_0501], Encoding::Vop3p, "v_pk_add_f16 v5, v1, v2");
    check(&[0xd3b5_0000, 0x0412_0902], Encoding::Mai, "v_mfma_f32_16x16x32_bf16 v[0:3], v[2:5], v[4:7], v[4:7]");
    check(&[0xd86c_0000, 0x0500_0001], Encoding::Ds, "ds_read_b32 v5, v1");
    check(&[0xdc5c_8010, 0x0402_0001], Encoding::Global, "global_load_dwordx4 v[4:7], v1, s[2:3] offset:16");
}
