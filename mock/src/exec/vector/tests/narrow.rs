//! bfloat16, the 8-bit formats, stochastic rounding.

use super::exact::SINGLE;
use super::float::SINGLES;
use super::*;

/// A format by its fields and its largest number; the codes from `nan` on, and `infinity` if there is one.
#[derive(Clone, Copy)]
struct Narrow {
    mantissa: u32,
    bias: i32,
    largest: u32,
    infinity: Option<u32>,
    nan: u32,
}

/// OCP 8-bit formats (CDNA4 ISA table 30), binary16, bfloat16.
const FP8: Narrow = Narrow { mantissa: 3, bias: 7, largest: 0x7e, infinity: None, nan: 0x7f };
const BF8: Narrow = Narrow { mantissa: 2, bias: 15, largest: 0x7b, infinity: Some(0x7c), nan: 0x7e };
const F16: Narrow = Narrow { mantissa: 10, bias: 15, largest: 0x7bff, infinity: Some(0x7c00), nan: 0x7e00 };
const BF16: Narrow = Narrow { mantissa: 7, bias: 127, largest: 0x7f7f, infinity: Some(0x7f80), nan: 0x7fc0 };

impl Narrow {
    fn value(self, code: u32) -> f64 {
        let fraction = f64::from(code & ((1 << self.mantissa) - 1)) / f64::from(1 << self.mantissa);
        match (code >> self.mantissa) as i32 {
            0 => fraction * 2f64.powi(1 - self.bias),
            exponent => (1.0 + fraction) * 2f64.powi(exponent - self.bias),
        }
    }

    /// The largest code that is not above `magnitude`.
    fn below(self, magnitude: f64) -> u32 {
        let (mut low, mut high) = (0, self.largest + 2);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if self.value(middle) <= magnitude { low = middle } else { high = middle }
        }
        low
    }

    fn finished(self, code: u32, saturates: bool) -> u32 {
        match () {
            () if code <= self.largest => code,
            () if saturates => self.largest,
            () => self.infinity.unwrap_or(self.nan),
        }
    }

    fn nearest(self, bits: u64, saturates: bool) -> u32 {
        let value = f32::from_bits(bits as u32);
        let magnitude = f64::from(value.abs());
        let code = if value.is_nan() {
            self.nan
        } else if value.is_infinite() {
            self.finished(self.largest + 1, saturates)
        } else {
            let below = self.below(magnitude);
            let (down, up) = (magnitude - self.value(below), self.value(below + 1) - magnitude);
            let up = down > up || down == up && below & 1 == 1;
            self.finished(below + u32::from(up), saturates)
        };
        code | self.sign(value)
    }

    fn sign(self, value: f32) -> u32 {
        u32::from(value.is_sign_negative()) << if self.mantissa + 1 < 7 { 7 } else { 15 }
    }
}

fn edges() -> Vec<u64> {
    let around = |value: f32| [-1i32, 0, 1].map(|step| u64::from((value.to_bits() as i32 + step) as u32));
    let ties =
        [448.0, 464.0, 480.0, 57344.0, 61440.0, 65536.0, 0.001953125, 0.0009765625, 0.015625, 17.0, 9.0, 65520.0];
    let ties: Vec<u64> = ties.into_iter().flat_map(around).collect();
    [&SINGLES[..], &ties, &ties.iter().map(|bits| bits | 0x8000_0000).collect::<Vec<_>>()].concat()
}

#[test]
fn eight_bit_formats_widen_exactly() {
    fn wide(format: Narrow, code: u64) -> u32 {
        let (magnitude, negative) = (code as u32 & 0x7f, code & 0x80 != 0);
        let sign = u32::from(negative) << 31;
        if magnitude > format.largest && Some(magnitude) != format.infinity {
            return 0x7fc0_0000 | sign;
        }
        let value = if Some(magnitude) == format.infinity { f32::INFINITY } else { format.value(magnitude) as f32 };
        value.to_bits() | sign
    }
    let codes: Vec<u64> =
        (0..256).map(|code| code | (255 - code) << 8 | (code ^ 0x55) << 16 | (code ^ 0xaa) << 24).collect();
    for codes in codes.chunks(64) {
        check::<u32>(
            codes,
            &[
                ("v_cvt_f32_fp8 d, a", |i| wide(FP8, i.a & 0xff)),
                ("v_cvt_f32_fp8_sdwa d, a src0_sel:BYTE_1", |i| wide(FP8, i.a >> 8 & 0xff)),
                ("v_cvt_f32_fp8_sdwa d, a src0_sel:BYTE_3", |i| wide(FP8, i.a >> 24 & 0xff)),
            ],
        );
        check::<u64>(
            codes,
            &[
                ("v_cvt_pk_f32_fp8 D, a", |i| {
                    u64::from(wide(FP8, i.a & 0xff)) | u64::from(wide(FP8, i.a >> 8 & 0xff)) << 32
                }),
                ("v_cvt_pk_f32_fp8_sdwa D, a src0_sel:WORD_1", |i| {
                    u64::from(wide(FP8, i.a >> 16 & 0xff)) | u64::from(wide(FP8, i.a >> 24 & 0xff)) << 32
                }),
            ],
        );
    }
    // NaN codes of E5M2 keep their payload.
    let numbers: Vec<u64> = (0..0x7d).flat_map(|code| [code, code | 0x80]).collect();
    for codes in numbers.chunks(64) {
        check_values(codes, "v_cvt_f32_bf8 v1, v0", |code| wide(BF8, code & 0xff));
        check_values(codes, "v_cvt_pk_f32_bf8 v[2:3], v0\nv_mov_b32 v1, v2", |code| wide(BF8, code & 0xff));
        let high = "v_lshlrev_b32 v4, 8, v0\nv_cvt_pk_f32_bf8 v[2:3], v4\nv_mov_b32 v1, v3";
        check_values(codes, high, |code| wide(BF8, code & 0xff));
    }
}

fn check_values(values: &[u64], code: &str, expected: impl Fn(u64) -> u32) {
    let mut bench = Bench::new();
    *bench.v(0) = std::array::from_fn(|lane| values[lane % values.len()] as u32);
    if bench.run(code) {
        for lane in 0..LANES {
            assert_eq!(
                bench.v(1)[lane],
                expected(values[lane % values.len()]),
                "{code} of {:#x}",
                values[lane % values.len()]
            );
        }
    }
}

#[test]
fn eight_bit_formats_round_to_nearest_even() {
    fn pair(format: Narrow, i: In, saturates: bool) -> u32 {
        format.nearest(i.a, saturates) | format.nearest(i.b, saturates) << 8
    }
    check::<u32>(
        &edges(),
        &[
            ("v_cvt_pk_fp8_f32 d, a, b", |i| i.old as u32 & 0xffff_0000 | pair(FP8, i, false)),
            ("v_cvt_pk_bf8_f32 d, a, b", |i| i.old as u32 & 0xffff_0000 | pair(BF8, i, false)),
            ("v_cvt_pk_fp8_f32 d, a, b op_sel:[0,0,1]", |i| i.old as u32 & 0xffff | pair(FP8, i, false) << 16),
            ("v_cvt_pk_bf8_f32 d, -a, |b|", |i| {
                let i = In { a: i.a ^ 0x8000_0000, b: i.b & 0x7fff_ffff, ..i };
                i.old as u32 & 0xffff_0000 | pair(BF8, i, false)
            }),
        ],
    );
    // MODE.FP16_OVFL makes overflow, infinity included, the largest number.
    check_in::<u32>(
        USUAL | 1 << 23,
        &edges(),
        &[
            ("v_cvt_pk_fp8_f32 d, a, b", |i| i.old as u32 & 0xffff_0000 | pair(FP8, i, true)),
            ("v_cvt_pk_bf8_f32 d, a, b", |i| i.old as u32 & 0xffff_0000 | pair(BF8, i, true)),
        ],
    );
}

#[test]
fn bfloat16_is_half_of_a_single() {
    fn narrow(bits: u64) -> u32 {
        if SINGLE.is_nan(SINGLE.bits(bits)) {
            // The upper part of the payload stays.
            return (bits as u32 >> 16) & 0xffff | 0x40;
        }
        BF16.nearest(bits, false)
    }
    check::<u32>(
        &edges(),
        &[
            ("v_cvt_pk_bf16_f32 d, a, b", |i| narrow(i.a) | narrow(i.b) << 16),
            ("v_cvt_f32_bf16 d, a", |i| i.a32() << 16),
            ("v_cvt_f32_bf16_sdwa d, a src0_sel:WORD_1", |i| i.a32() & 0xffff_0000),
        ],
    );
}

/// The code at or next to the value, up with the chance that the random number gives: its highest bits, as many as the
/// format drops of a single's mantissa, are added to what is dropped.
fn stochastic(format: Narrow, bits: u64, random: u64, saturates: bool) -> u32 {
    let value = f32::from_bits(bits as u32);
    if value.is_nan() || value.is_infinite() {
        return format.nearest(bits, saturates);
    }
    let magnitude = f64::from(value.abs());
    let below = format.below(magnitude).min(format.largest);
    let step = format.value(below + 1) - format.value(below);
    let dropped = 23 - format.mantissa;
    // What is left of the value above the code, in units of the dropped bits, truncated.
    let rest = ((magnitude - format.value(below)) / step * f64::from(1 << dropped)) as u64;
    let random = (random & 0xffff_ffff) >> (32 - dropped);
    let up = magnitude >= format.value(format.largest + 1) || rest + random >= 1 << dropped;
    format.finished(below + u32::from(up), saturates) | format.sign(value)
}

#[test]
fn stochastic_rounding_adds_random_bits_below_the_last_place() {
    fn byte(i: In, code: u32, n: u32) -> u32 {
        i.old as u32 & !(0xff << (8 * n)) | code << (8 * n)
    }
    let edges: Vec<u64> =
        edges().into_iter().filter(|bits| !SINGLE.is_nan(*bits)).chain([0xffff_ffff, 0x1fff_ffff]).collect();
    check::<u32>(
        &edges,
        &[
            ("v_cvt_sr_fp8_f32 d, a, b", |i| byte(i, stochastic(FP8, i.a, i.b, false), 0)),
            ("v_cvt_sr_fp8_f32 d, a, b op_sel:[0,0,1,0]", |i| byte(i, stochastic(FP8, i.a, i.b, false), 1)),
            ("v_cvt_sr_bf8_f32 d, a, b op_sel:[0,0,0,1]", |i| byte(i, stochastic(BF8, i.a, i.b, false), 2)),
            ("v_cvt_sr_bf8_f32 d, a, b op_sel:[0,0,1,1]", |i| byte(i, stochastic(BF8, i.a, i.b, false), 3)),
            ("v_cvt_sr_f16_f32 d, a, b", |i| i.old as u32 & 0xffff_0000 | stochastic(F16, i.a, i.b, false)),
            ("v_cvt_sr_f16_f32 d, a, b op_sel:[0,0,1]", |i| {
                i.old as u32 & 0xffff | stochastic(F16, i.a, i.b, false) << 16
            }),
            ("v_cvt_sr_bf16_f32 d, a, b", |i| i.old as u32 & 0xffff_0000 | stochastic(BF16, i.a, i.b, false)),
        ],
    );
}

#[test]
fn stochastic_rounding_is_fair() {
    // A value 5/16 above a code goes up for 5/16 of evenly spread random numbers.
    let mut ups = 0;
    for batch in 0..16u32 {
        let mut bench = Bench::new();
        *bench.v(0) = [(1.0f32 + 5.0 / 16.0 / 8.0).to_bits(); LANES];
        *bench.v(1) = std::array::from_fn(|lane| (batch * 64 + lane as u32) << 22);
        if !bench.run("v_cvt_sr_fp8_f32 v2, v0, v1") {
            return;
        }
        ups += bench.v(2).iter().filter(|&&code| code & 0xff == 0x39).count();
        assert!(bench.v(2).iter().all(|code| [0x38, 0x39].contains(&(code & 0xff))));
    }
    assert_eq!(ups, 1024 * 5 / 16);
}
