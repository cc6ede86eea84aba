//! What atomic instructions make of a value in memory (CDNA4 ISA section 9.2), for memory and for LDS.

use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, BitXor, Not};
use std::sync::atomic::Ordering;

use half::{bf16, f16};

use crate::memory::{MemoryFault, View};
use crate::wave::Mode;

/// Where an operation is carried out.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// The L2 cache. It keeps denormals: the manual has it flush those of single precision, but LLVM lowers IEEE additions
    /// to it on gfx940 and later (`FeatureMemoryAtomicFAddF32DenormalSupport`), which it does not where they are flushed.
    Memory,
    /// LDS, under the wave's MODE.
    Lds(Mode),
}

/// An atomic operation.
pub(super) trait Combine {
    /// The value in memory.
    type Word: Word;
    /// The value after the operation, from the one before and one or two operands.
    fn combine(unit: Unit, old: Self::Word, a: Self::Word, b: Self::Word) -> Self::Word;
}

/// What an operation works on: a dword or a quadword.
pub(super) trait Word:
    Copy + Ord + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + Not<Output = Self>
{
    const BYTES: usize;
    const ZERO: Self;
    fn from_dwords(low: u32, high: u32) -> Self;
    fn to_dwords(self) -> [u32; 2];
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn one() -> Self;
    fn is_less_signed(self, other: Self) -> bool;
    /// Changes the value at `address` in one step, and gives the one before.
    fn update(view: &mut View<'_>, address: u64, change: impl Fn(Self) -> Self) -> Result<Self, MemoryFault>;
}

macro_rules! word {
    ($($word:ident, $signed:ident, $cell:ident, $bytes:literal;)*) => {
        $(impl Word for $word {
            const BYTES: usize = $bytes;
            const ZERO: Self = 0;
            fn from_dwords(low: u32, high: u32) -> Self {
                (u64::from(low) | u64::from(high) << 32) as Self
            }
            fn to_dwords(self) -> [u32; 2] {
                let wide = u64::from(self);
                [wide as u32, (wide >> 32) as u32]
            }
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            fn one() -> Self {
                1
            }
            fn is_less_signed(self, other: Self) -> bool {
                (self as $signed) < other as $signed
            }
            fn update(view: &mut View<'_>, address: u64, change: impl Fn(Self) -> Self) -> Result<Self, MemoryFault> {
                let cell = view.$cell(address)?;
                // AcqRel: whoever sees the new value sees what the wave did before; a wait count is no fence on the host.
                let changed = cell.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| Some(change(old)));
                Ok(changed.unwrap_or_else(|old| old))
            }
        })*
    };
}

word! {
    u32, i32, atomic_u32, 4;
    u64, i64, atomic_u64, 8;
}

/// Declares operations on dwords and quadwords alike: `Name(old, a, b) = new`.
macro_rules! integers {
    ($($(#[$meta:meta])* $name:ident($old:ident, $a:ident, $b:ident) = $value:expr;)*) => {
        $(
            $(#[$meta])*
            pub(super) struct $name<T>(PhantomData<T>);

            impl<T: Word> Combine for $name<T> {
                type Word = T;
                #[inline(always)]
                fn combine(_: Unit, $old: T, $a: T, $b: T) -> T {
                    let _ = ($old, $a, $b);
                    $value
                }
            }
        )*
    };
}

integers! {
    Swap(old, a, b) = a;
    /// Compares with the second operand.
    CompareSwap(old, a, b) = if old == b { a } else { old };
    Add(old, a, b) = old.plus(a);
    Sub(old, a, b) = old.minus(a);
    ReverseSub(old, a, b) = a.minus(old);
    SignedMin(old, a, b) = if a.is_less_signed(old) { a } else { old };
    SignedMax(old, a, b) = if a.is_less_signed(old) { old } else { a };
    UnsignedMin(old, a, b) = old.min(a);
    UnsignedMax(old, a, b) = old.max(a);
    And(old, a, b) = old & a;
    Or(old, a, b) = old | a;
    Xor(old, a, b) = old ^ a;
    /// Counts up to the operand, then starts again at zero.
    Increment(old, a, b) = if old >= a { T::ZERO } else { old.plus(T::one()) };
    /// Counts down to zero, then starts again at the operand.
    Decrement(old, a, b) = if old == T::ZERO || old > a { a } else { old.minus(T::one()) };
    /// The second operand in the bits of the first.
    MaskedOr(old, a, b) = old & !a | b;
    /// Takes the first operand away, or adds the second if that would go below zero.
    Wrap(old, a, b) = if old >= a { old.minus(a) } else { old.plus(b) };
}

/// Declares floating-point operations on bits: `Name: word (unit, old, a, b) = new`.
macro_rules! floats {
    ($($(#[$meta:meta])* $name:ident: $word:ty, ($unit:ident, $old:ident, $a:ident, $b:ident) = $value:expr;)*) => {
        $(
            $(#[$meta])*
            pub(super) struct $name;

            impl Combine for $name {
                type Word = $word;
                fn combine($unit: Unit, $old: $word, $a: $word, $b: $word) -> $word {
                    let _ = ($unit, $b);
                    $value
                }
            }
        )*
    };
}

floats! {
    AddF32: u32, (unit, old, a, b) = add_f32(unit, old, a);
    AddF64: u64, (unit, old, a, b) = add_f64(old, a);
    PkAddF16: u32, (unit, old, a, b) = halves(old, a, |old, a| add_f16(unit, old, a));
    PkAddBf16: u32, (unit, old, a, b) = halves(old, a, |old, a| add_bf16(unit, old, a));
    MinF32: u32, (unit, old, a, b) = extreme(unit.compared_f32(), F32, old.into(), a.into(), false) as u32;
    MaxF32: u32, (unit, old, a, b) = extreme(unit.compared_f32(), F32, old.into(), a.into(), true) as u32;
    MinF64: u64, (unit, old, a, b) = extreme(unit.compared_f64(), F64, old, a, false);
    MaxF64: u64, (unit, old, a, b) = extreme(unit.compared_f64(), F64, old, a, true);
    /// Compares with the second operand as numbers.
    CompareSwapF32: u32, (unit, old, a, b) =
        compare_swap(unit.compared_f32(), F32, old.into(), a.into(), b.into()) as u32;
    /// Compares with the second operand as numbers.
    CompareSwapF64: u64, (unit, old, a, b) = compare_swap(unit.compared_f64(), F64, old, a, b);
}

impl Unit {
    fn mode(self) -> Option<Mode> {
        match self {
            Self::Memory => None,
            Self::Lds(mode) => Some(mode),
        }
    }

    /// Whether comparisons keep single-precision denormals.
    fn compared_f32(self) -> bool {
        self.mode().is_none_or(Mode::keeps_input_denormals_f32)
    }

    /// Whether comparisons keep double-precision denormals.
    fn compared_f64(self) -> bool {
        self.mode().is_none_or(Mode::keeps_input_denormals_f16_f64)
    }
}

/// Layout of a format: bits of the mantissa and of the whole.
#[derive(Clone, Copy)]
struct Layout {
    mantissa: u32,
    bits: u32,
}

const F16: Layout = Layout { mantissa: 10, bits: 16 };
const BF16: Layout = Layout { mantissa: 7, bits: 16 };
const F32: Layout = Layout { mantissa: 23, bits: 32 };
const F64: Layout = Layout { mantissa: 52, bits: 64 };

impl Layout {
    fn sign(self) -> u64 {
        1 << (self.bits - 1)
    }

    /// Plus infinity.
    fn infinity(self) -> u64 {
        self.sign() - (1 << self.mantissa)
    }

    fn quiet_bit(self) -> u64 {
        1 << (self.mantissa - 1)
    }

    fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign() > self.infinity()
    }

    fn is_signalling(self, bits: u64) -> bool {
        self.is_nan(bits) && bits & self.quiet_bit() == 0
    }

    /// `bits`, or zero of its sign if it is a denormal that is not kept.
    fn flushed(self, keep: bool, bits: u64) -> u64 {
        if keep || bits & self.infinity() != 0 { bits } else { bits & self.sign() }
    }

    /// A number that grows with the value; minus zero is below plus zero.
    fn rank(self, bits: u64) -> i64 {
        let magnitude = (bits & !self.sign()) as i64;
        if bits & self.sign() != 0 { -1 - magnitude } else { magnitude }
    }

    /// The NaN that adding `old` and `a` gives, if one of them is NaN or they are opposite infinities.
    fn nan_of_sum(self, old: u64, a: u64) -> Option<u64> {
        let opposite = old ^ a == self.sign() && old & !self.sign() == self.infinity();
        if self.is_nan(old) {
            Some(old | self.quiet_bit())
        } else if self.is_nan(a) {
            Some(a | self.quiet_bit())
        } else {
            opposite.then_some(self.infinity() | self.quiet_bit())
        }
    }
}

fn add_f32(unit: Unit, old: u32, a: u32) -> u32 {
    if let Some(nan) = F32.nan_of_sum(old.into(), a.into()) {
        return nan as u32;
    }
    let keeps_input = unit.mode().is_none_or(Mode::keeps_input_denormals_f32);
    let keeps_output = unit.mode().is_none_or(Mode::keeps_output_denormals_f32);
    let [old, a] = [old, a].map(|bits| f32::from_bits(F32.flushed(keeps_input, bits.into()) as u32));
    F32.flushed(keeps_output, (old + a).to_bits().into()) as u32
}

/// Never flushes denormals (CDNA4 ISA table 53).
fn add_f64(old: u64, a: u64) -> u64 {
    F64.nan_of_sum(old, a).unwrap_or_else(|| (f64::from_bits(old) + f64::from_bits(a)).to_bits())
}

fn add_f16(unit: Unit, old: u16, a: u16) -> u16 {
    // Rounding the single-precision sum again is as good as rounding once: it has more than 2 * 11 + 1 bits.
    add_half(unit, F16, old, a, |old, a| {
        f16::from_f32(f16::from_bits(old).to_f32() + f16::from_bits(a).to_f32()).to_bits()
    })
}

fn add_bf16(unit: Unit, old: u16, a: u16) -> u16 {
    add_half(unit, BF16, old, a, |old, a| {
        bf16::from_f32(bf16::from_bits(old).to_f32() + bf16::from_bits(a).to_f32()).to_bits()
    })
}

fn add_half(unit: Unit, layout: Layout, old: u16, a: u16, add: fn(u16, u16) -> u16) -> u16 {
    if let Some(nan) = layout.nan_of_sum(old.into(), a.into()) {
        return nan as u16;
    }
    let keeps_input = unit.mode().is_none_or(Mode::keeps_input_denormals_f16_f64);
    let keeps_output = unit.mode().is_none_or(Mode::keeps_output_denormals_f16_f64);
    let [old, a] = [old, a].map(|bits| layout.flushed(keeps_input, bits.into()) as u16);
    layout.flushed(keeps_output, add(old, a).into()) as u16
}

fn halves(old: u32, a: u32, add: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(add(old as u16, a as u16)) | u32::from(add((old >> 16) as u16, (a >> 16) as u16)) << 16
}

/// Minimum or maximum: a signalling NaN becomes quiet, a quiet one loses against a number. Denormals that are not kept
/// count as zero, but the result is one of the operands as it was.
fn extreme(keep: bool, layout: Layout, old: u64, a: u64, largest: bool) -> u64 {
    if let Some(nan) = [old, a].into_iter().find(|&bits| layout.is_signalling(bits)) {
        return nan | layout.quiet_bit();
    }
    if layout.is_nan(a) {
        return old;
    }
    let [old_rank, rank] = [old, a].map(|bits| layout.rank(layout.flushed(keep, bits)));
    let better = if largest { rank > old_rank } else { rank < old_rank };
    if layout.is_nan(old) || better { a } else { old }
}

/// Stores `a` if the value before equals `compare` as a number; a denormal that is not kept is stored as zero.
fn compare_swap(keep: bool, layout: Layout, old: u64, a: u64, compare: u64) -> u64 {
    let [left, right] = [old, compare].map(|bits| layout.flushed(keep, bits));
    let zeros = (left | right) & !layout.sign() == 0;
    if !layout.is_nan(left) && (left == right || zeros) { layout.flushed(keep, a) } else { old }
}
