//! `v_trig_preop_f64`: 53 bits of 2 / pi, for reducing large angles.

use isa::Op;

use super::Answer;
use crate::exec::lanes::lanes;
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::softfloat::Rules;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    (b.inst.op == Op::VTrigPreopF64).then(|| b.lanes::<L, Segment>())?
}

lanes! {
    Segment(a: f64, b: u32) -> f64 = segment(a, b);
}

/// The first 1201 bits of 2 / pi = 0.101..., from the highest, with zeros behind them.
#[rustfmt::skip]
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0, 0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0, 0x0649_2eea_09d1_921c, 0xfe1d_eb1c_b129_a73e, 0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41, 0x3991_d639_8353_39f4, 0x9c84_5f8b_bdf9_283b, 0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f, 0x6d36_7ecf_27cb_09b7, 0x4f46_3f66_9e5f_ea2d, 0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea, 0x6bfb_5fb1_1f8d_5d08, 0x5603_3046_fc7b_0000,
];

/// Segment `b` of 53 bits, for an angle with the exponent of `a` (CDNA4 ISA, V_TRIG_PREOP_F64; the pseudo-code means the
/// bits behind the point after the shift).
fn segment(a: f64, b: u32) -> f64 {
    let exponent = a.exponent_field();
    let shift = 53 * (b & 31) + (exponent - 1077).max(0) as u32;
    let (word, bit) = ((shift / 64) as usize, shift % 64);
    let word_at = |i: usize| TWO_OVER_PI.get(i).copied().unwrap_or(0);
    let window = u128::from(word_at(word)) << 64 | u128::from(word_at(word + 1));
    let bits = (window << bit >> 75) as u64;
    let scale = -53 - shift as i32 + if exponent >= 1968 { 128 } else { 0 };
    Rules::USUAL.scale(bits as f64, scale)
}
