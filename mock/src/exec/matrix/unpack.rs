//! From registers to rows of numbers.

use super::layout::Shape;
use crate::exec::formats::Format;
use crate::wave::{LANES, Vreg};

/// The element type of A or B, with the number that an instruction keeps it under. Those of F8F6F4 operands are the codes
/// of CBSZ and BLGP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Element {
    Fp8 = 0,
    Bf8 = 1,
    Fp6 = 2,
    Bf6 = 3,
    Fp4 = 4,
    F16 = 5,
    Bf16 = 6,
}

impl Element {
    pub(super) const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Fp8,
            1 => Self::Bf8,
            2 => Self::Fp6,
            3 => Self::Bf6,
            4 => Self::Fp4,
            5 => Self::F16,
            6 => Self::Bf16,
            _ => return None,
        })
    }

    pub(super) const fn mantissa_bits(self) -> u32 {
        self.format().mantissa_bits()
    }

    const fn format(self) -> Format {
        match self {
            Self::Fp8 => Format::FP8,
            Self::Bf8 => Format::BF8,
            Self::Fp6 => Format::FP6,
            Self::Bf6 => Format::BF6,
            Self::Fp4 => Format::FP4,
            Self::F16 => Format::F16,
            Self::Bf16 => Format::BF16,
        }
    }

    /// Whether the type has 8 bits or fewer.
    pub(super) const fn is_narrow(self) -> bool {
        !matches!(self, Self::F16 | Self::Bf16)
    }
}

/// Unpacks an operand to `rows`, one for each block and k. `scales` holds a factor for each row of 32 neighbouring k,
/// `k / 32 * m + row`.
///
/// # Safety
/// `from` points to all registers of the operand.
#[inline(always)]
pub(super) unsafe fn floats(
    element: Element,
    shape: Shape,
    from: *const Vreg,
    scales: Option<&[f64; LANES]>,
    rows: &mut [f64],
) {
    // SAFETY: passed on.
    unsafe {
        match element {
            Element::Fp8 => decoded(Format::FP8, shape, from, rows),
            Element::Bf8 => decoded(Format::BF8, shape, from, rows),
            Element::Fp6 => decoded(Format::FP6, shape, from, rows),
            Element::Bf6 => decoded(Format::BF6, shape, from, rows),
            Element::Fp4 => decoded(Format::FP4, shape, from, rows),
            Element::F16 => decoded(Format::F16, shape, from, rows),
            Element::Bf16 => decoded(Format::BF16, shape, from, rows),
        }
    }
    if let Some(scales) = scales {
        for (i, values) in rows.as_chunks_mut::<CHUNK>().0.iter_mut().enumerate() {
            let (k, row) = (i * CHUNK / shape.m, i * CHUNK % shape.m);
            let Some(scales) = scales[k / 32 * shape.m + row..].first_chunk::<CHUNK>() else { return };
            *values = std::array::from_fn(|i| values[i] * scales[i]);
        }
    }
}

/// # Safety
/// As [`floats`].
#[inline(always)]
unsafe fn decoded(format: Format, shape: Shape, from: *const Vreg, rows: &mut [f64]) {
    let decode = |code: u32| f64::from(format.decode(code));
    // SAFETY: passed on.
    unsafe { elements(format.bits(), decode, shape, from, rows) }
}

/// Unpacks signed bytes.
///
/// # Safety
/// As [`floats`].
#[inline(always)]
pub(super) unsafe fn bytes(shape: Shape, from: *const Vreg, rows: &mut [i32]) {
    // SAFETY: passed on.
    unsafe { elements(8, |code| i32::from(code as i8), shape, from, rows) }
}

/// Unpacks singles.
///
/// # Safety
/// As [`floats`].
#[inline(always)]
pub(super) unsafe fn singles(shape: Shape, from: *const Vreg, rows: &mut [f32]) {
    // SAFETY: passed on.
    unsafe { elements(32, f32::from_bits, shape, from, rows) }
}

/// Lanes that are decoded at a time.
const CHUNK: usize = 16;

/// Applies `decode` to each element; bits above the `bits` of an element are not cleared.
///
/// # Safety
/// As [`floats`].
#[inline(always)]
unsafe fn elements<T: Copy + Default>(
    bits: u32,
    decode: impl Fn(u32) -> T,
    shape: Shape,
    from: *const Vreg,
    rows: &mut [T],
) {
    // Operands of eight registers lie as two halves of four, which hold the two halves of k (CDNA4 ISA sections 7.1.5.1 and
    // 7.5.1.3); all others lie in one piece.
    let halves = shape.items() * bits as usize == 8 * 32;
    for item in 0..shape.items() {
        let bit = item as u32 * bits;
        let (register, shift) = ((bit / 32) as usize, bit % 32);
        for chunk in 0..LANES / CHUNK {
            // SAFETY: the operand's registers hold `items` elements a lane; one that goes on past its register has a next.
            let (low, high) = unsafe {
                let low = from.add(register).cast::<[u32; CHUNK]>().add(chunk);
                let goes_on = shift + bits > 32;
                (low.read(), if goes_on { Some(low.add(LANES / CHUNK).read()) } else { None })
            };
            let mut values = [T::default(); CHUNK];
            match high {
                None => {
                    for i in 0..CHUNK {
                        values[i] = decode(low[i] >> shift);
                    }
                }
                Some(high) => {
                    for i in 0..CHUNK {
                        values[i] = decode(low[i] >> shift | high[i] << (32 - shift));
                    }
                }
            }
            let width = if shape.m < CHUNK { shape.m } else { CHUNK };
            for (i, values) in values.chunks_exact(width).enumerate() {
                let lane = chunk * CHUNK + i * width;
                let to = shape.unpacked(lane / shape.m, item, halves) + lane % shape.m;
                rows[to..to + width].copy_from_slice(values);
            }
        }
    }
}
