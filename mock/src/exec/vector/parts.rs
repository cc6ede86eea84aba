//! Rounding to integers, fractions, exponents and mantissas of floating-point numbers.

use std::marker::PhantomData;

use isa::Op;

use super::Answer;
use crate::exec::element::{Element, Half};
use crate::exec::lanes::{Depends, Flags, Lane};
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    match b.inst.op {
        Op::VFloorF16 => b.lanes::<L, ToInteger<Half, Floor>>(),
        Op::VFloorF32 => b.lanes::<L, ToInteger<f32, Floor>>(),
        Op::VFloorF64 => b.lanes::<L, ToInteger<f64, Floor>>(),
        Op::VCeilF16 => b.lanes::<L, ToInteger<Half, Ceil>>(),
        Op::VCeilF32 => b.lanes::<L, ToInteger<f32, Ceil>>(),
        Op::VCeilF64 => b.lanes::<L, ToInteger<f64, Ceil>>(),
        Op::VTruncF16 => b.lanes::<L, ToInteger<Half, Trunc>>(),
        Op::VTruncF32 => b.lanes::<L, ToInteger<f32, Trunc>>(),
        Op::VTruncF64 => b.lanes::<L, ToInteger<f64, Trunc>>(),
        Op::VRndneF16 => b.lanes::<L, ToInteger<Half, NearestEven>>(),
        Op::VRndneF32 => b.lanes::<L, ToInteger<f32, NearestEven>>(),
        Op::VRndneF64 => b.lanes::<L, ToInteger<f64, NearestEven>>(),
        Op::VFractF16 => b.lanes::<L, Fraction<Half>>(),
        Op::VFractF32 => b.lanes::<L, Fraction<f32>>(),
        Op::VFractF64 => b.lanes::<L, Fraction<f64>>(),
        Op::VFrexpMantF16 => b.lanes::<L, Mantissa<Half>>(),
        Op::VFrexpMantF32 => b.lanes::<L, Mantissa<f32>>(),
        Op::VFrexpMantF64 => b.lanes::<L, Mantissa<f64>>(),
        Op::VFrexpExpI16F16 => b.lanes::<L, Exponent<Half, i16>>(),
        Op::VFrexpExpI32F32 => b.lanes::<L, Exponent<f32, i32>>(),
        Op::VFrexpExpI32F64 => b.lanes::<L, Exponent<f64, i32>>(),
        Op::VLdexpF16 => b.lanes::<L, Scale<Half, i16>>(),
        Op::VLdexpF32 => b.lanes::<L, Scale<f32, i32>>(),
        Op::VLdexpF64 => b.lanes::<L, Scale<f64, i32>>(),
        _ => None,
    }
}

/// A floating-point type in which the host computes.
pub(super) trait Host: Copy {
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    fn round_ties_even(self) -> Self;
    fn minus(self, other: Self) -> Self;
}

macro_rules! hosts {
    ($($name:ident)*) => {
        $(impl Host for $name {
            #[inline(always)]
            fn floor(self) -> Self {
                $name::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $name::ceil(self)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                $name::trunc(self)
            }
            #[inline(always)]
            fn round_ties_even(self) -> Self {
                $name::round_ties_even(self)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self - other
            }
        })*
    };
}

hosts!(f32 f64);

/// A floating-point operand and the host's type for it.
trait Operand: Element + Real {
    type Host: Host;
    fn host(self) -> Self::Host;
    /// The nearest operand, for numbers.
    fn from_host(value: Self::Host) -> Self;
}

impl Operand for f32 {
    type Host = Self;
    #[inline(always)]
    fn host(self) -> Self {
        self
    }
    #[inline(always)]
    fn from_host(value: Self) -> Self {
        value
    }
}

impl Operand for f64 {
    type Host = Self;
    #[inline(always)]
    fn host(self) -> Self {
        self
    }
    #[inline(always)]
    fn from_host(value: Self) -> Self {
        value
    }
}

impl Operand for Half {
    type Host = f32;
    #[inline(always)]
    fn host(self) -> f32 {
        self.single()
    }
    #[inline(always)]
    fn from_host(value: f32) -> Self {
        Self::nearest(value)
    }
}

/// A rounding to an integer.
trait Direction {
    fn round<T: Host>(value: T) -> T;
}

macro_rules! directions {
    ($($name:ident: $round:ident;)*) => {
        $(
            struct $name;

            impl Direction for $name {
                #[inline(always)]
                fn round<T: Host>(value: T) -> T {
                    value.$round()
                }
            }
        )*
    };
}

directions! {
    Floor: floor;
    Ceil: ceil;
    Trunc: trunc;
    NearestEven: round_ties_even;
}

struct ToInteger<R, D>(PhantomData<(R, D)>);

impl<R: Operand, D: Direction> Lane for ToInteger<R, D> {
    type A = R;
    type B = ();
    type C = ();
    type D = R;
    const DEPENDS: Depends = Depends::Mode;
    const HAS_RARE: bool = true;

    #[inline(always)]
    fn fast(_: u32, a: R, (): (), (): ()) -> R {
        R::from_host(D::round(a.host()))
    }

    #[inline(always)]
    fn rare(a: R, (): (), (): (), _: R) -> bool {
        a.not_a_number()
    }

    #[inline(always)]
    fn general(flags: Flags, a: R, (): (), (): ()) -> R {
        if a.not_a_number() { a.quieted() } else { R::from_host(D::round(flags.input(a).host())) }
    }
}

/// What is above the next lower integer, below one even where rounding says one.
struct Fraction<R>(PhantomData<R>);

impl<R: Operand> Fraction<R> {
    #[inline(always)]
    fn below_one(value: R) -> R {
        let one = R::one();
        if value.order() >= one.order() { R::with_bits(one.bits() - 1) } else { value }
    }
}

impl<R: Operand> Lane for Fraction<R> {
    type A = R;
    type B = ();
    type C = ();
    type D = R;
    const DEPENDS: Depends = Depends::Mode;
    const HAS_RARE: bool = true;

    #[inline(always)]
    fn fast(_: u32, a: R, (): (), (): ()) -> R {
        let a = a.host();
        Self::below_one(R::from_host(a.minus(a.floor())))
    }

    #[inline(always)]
    fn rare(a: R, (): (), (): (), _: R) -> bool {
        !a.is_finite()
    }

    #[inline(always)]
    fn general(flags: Flags, a: R, (): (), (): ()) -> R {
        let floor = R::from_host(flags.input(a).host().floor());
        let fraction = flags.sub(a, floor);
        if fraction.not_a_number() { fraction } else { Self::below_one(fraction) }
    }
}

/// The mantissa as a number from 0.5 below 1.
struct Mantissa<R>(PhantomData<R>);

impl<R: Operand> Lane for Mantissa<R> {
    type A = R;
    type B = ();
    type C = ();
    type D = R;
    const DEPENDS: Depends = Depends::Mode;
    const HAS_RARE: bool = true;

    #[inline(always)]
    fn fast(_: u32, a: R, (): (), (): ()) -> R {
        let half = R::one().bits() - (1 << R::MANTISSA_BITS);
        R::with_bits(a.bits() & !R::INFINITY | half)
    }

    #[inline(always)]
    fn rare(a: R, (): (), (): (), _: R) -> bool {
        !a.is_normal()
    }

    #[inline(always)]
    fn general(flags: Flags, a: R, (): (), (): ()) -> R {
        let a = flags.input(a);
        if a.not_a_number() {
            a.quieted()
        } else if a.bits() & !R::SIGN == R::INFINITY || a.bits() & !R::SIGN == 0 {
            a
        } else {
            Self::fast(0, a.normalised().0, (), ())
        }
    }
}

/// The exponent that goes with [`Mantissa`]; zero for zeros, infinities and NaN.
struct Exponent<R, I>(PhantomData<(R, I)>);

impl<R: Operand, I: Element> Lane for Exponent<R, I> {
    type A = R;
    type B = ();
    type C = ();
    type D = I;
    const DEPENDS: Depends = Depends::Mode;
    const HAS_RARE: bool = true;

    #[inline(always)]
    fn fast(_: u32, a: R, (): (), (): ()) -> I {
        I::from_parts((a.exponent_field() + R::LEAST_EXPONENT) as u32, 0, false)
    }

    #[inline(always)]
    fn rare(a: R, (): (), (): (), _: I) -> bool {
        !a.is_normal()
    }

    #[inline(always)]
    fn general(flags: Flags, a: R, (): (), (): ()) -> I {
        let a = flags.input(a);
        let magnitude = a.bits() & !R::SIGN;
        if magnitude >= R::INFINITY || magnitude == 0 {
            return I::default();
        }
        let (normal, shift) = a.normalised();
        I::from_parts((normal.exponent_field() + R::LEAST_EXPONENT - shift) as u32, 0, false)
    }
}

/// Multiplies by a power of two.
struct Scale<R, I>(PhantomData<(R, I)>);

impl<R: Operand, I: Element + Into<i32>> Lane for Scale<R, I> {
    type A = R;
    type B = I;
    type C = ();
    type D = R;
    const DEPENDS: Depends = Depends::Mode;
    const HAS_RARE: bool = true;

    #[inline(always)]
    fn fast(_: u32, a: R, b: I, (): ()) -> R {
        let power: i32 = b.into();
        R::with_bits(a.bits().wrapping_add((i64::from(power) << R::MANTISSA_BITS) as u64))
    }

    #[inline(always)]
    fn rare(a: R, b: I, (): (), _: R) -> bool {
        let power: i32 = b.into();
        let field = a.exponent_field().saturating_add(power);
        !a.is_normal() | (field <= 0) | (field >= (1 << R::EXPONENT_BITS) - 1)
    }

    #[inline(always)]
    fn general(flags: Flags, a: R, b: I, (): ()) -> R {
        flags.rules::<R>().scale(a, b.into())
    }
}
