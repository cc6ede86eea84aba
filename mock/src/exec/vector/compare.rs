//! Comparisons. Their names say everything: predicate and type.

use std::cmp::Ordering;
use std::marker::PhantomData;

use super::Answer;
use crate::exec::element::{Element, Half};
use crate::exec::lanes::{Depends, Flags, Lane};
use crate::exec::level::Level;
use crate::exec::real::Real;
use crate::exec::translate::Builder;

pub(super) fn translate<L: Level>(b: &Builder<'_>) -> Answer {
    let name = b.info.name.strip_prefix("v_cmpx_").or_else(|| b.info.name.strip_prefix("v_cmp_"))?;
    match name.split_once('_')? {
        ("f", _) => b.lanes::<L, Constant<false>>(),
        ("t" | "tru", _) => b.lanes::<L, Constant<true>>(),
        ("class", "f16") => b.lanes::<L, Class<Half>>(),
        ("class", "f32") => b.lanes::<L, Class<f32>>(),
        ("class", "f64") => b.lanes::<L, Class<f64>>(),
        (predicate, "f16") => float::<L, Half>(b, predicate),
        (predicate, "f32") => float::<L, f32>(b, predicate),
        (predicate, "f64") => float::<L, f64>(b, predicate),
        (predicate, "i16") => integer::<L, i16>(b, predicate),
        (predicate, "u16") => integer::<L, u16>(b, predicate),
        (predicate, "i32") => integer::<L, i32>(b, predicate),
        (predicate, "u32") => integer::<L, u32>(b, predicate),
        (predicate, "i64") => integer::<L, i64>(b, predicate),
        (predicate, "u64") => integer::<L, u64>(b, predicate),
        _ => None,
    }
}

fn float<L: Level, R: Comparable>(b: &Builder<'_>, predicate: &str) -> Answer {
    match predicate {
        "lt" => b.lanes::<L, Floats<R, Lt>>(),
        "eq" => b.lanes::<L, Floats<R, Eq>>(),
        "le" => b.lanes::<L, Floats<R, Le>>(),
        "gt" => b.lanes::<L, Floats<R, Gt>>(),
        "lg" => b.lanes::<L, Floats<R, Lg>>(),
        "ge" => b.lanes::<L, Floats<R, Ge>>(),
        "o" => b.lanes::<L, Floats<R, Ordered>>(),
        "u" => b.lanes::<L, Floats<R, Not<Ordered>>>(),
        "nge" => b.lanes::<L, Floats<R, Not<Ge>>>(),
        "nlg" => b.lanes::<L, Floats<R, Not<Lg>>>(),
        "ngt" => b.lanes::<L, Floats<R, Not<Gt>>>(),
        "nle" => b.lanes::<L, Floats<R, Not<Le>>>(),
        "neq" => b.lanes::<L, Floats<R, Not<Eq>>>(),
        "nlt" => b.lanes::<L, Floats<R, Not<Lt>>>(),
        _ => None,
    }
}

fn integer<L: Level, T: Element + PartialOrd>(b: &Builder<'_>, predicate: &str) -> Answer {
    match predicate {
        "lt" => b.lanes::<L, Integers<T, Lt>>(),
        "eq" => b.lanes::<L, Integers<T, Eq>>(),
        "le" => b.lanes::<L, Integers<T, Le>>(),
        "gt" => b.lanes::<L, Integers<T, Gt>>(),
        "ne" => b.lanes::<L, Integers<T, Not<Eq>>>(),
        "ge" => b.lanes::<L, Integers<T, Ge>>(),
        _ => None,
    }
}

/// A relation between two numbers of the host.
trait Relation {
    fn holds<T: PartialOrd>(a: T, b: T) -> bool;
}

macro_rules! relations {
    ($($name:ident: |$a:ident, $b:ident| $holds:expr;)*) => {
        $(
            struct $name;

            impl Relation for $name {
                #[inline(always)]
                fn holds<T: PartialOrd>($a: T, $b: T) -> bool {
                    $holds
                }
            }
        )*
    };
}

relations! {
    Lt: |a, b| a < b;
    Eq: |a, b| a == b;
    Le: |a, b| a <= b;
    Gt: |a, b| a > b;
    Lg: |a, b| a.partial_cmp(&b).is_some_and(Ordering::is_ne);
    Ge: |a, b| a >= b;
    Ordered: |a, b| a.partial_cmp(&b).is_some();
}

struct Not<P>(PhantomData<P>);

impl<P: Relation> Relation for Not<P> {
    #[inline(always)]
    fn holds<T: PartialOrd>(a: T, b: T) -> bool {
        !P::holds(a, b)
    }
}

/// A floating-point operand that the host can compare.
trait Comparable: Element + Real {
    type Host: PartialOrd;
    fn host(self) -> Self::Host;
}

impl Comparable for f32 {
    type Host = Self;
    #[inline(always)]
    fn host(self) -> Self {
        self
    }
}

impl Comparable for f64 {
    type Host = Self;
    #[inline(always)]
    fn host(self) -> Self {
        self
    }
}

impl Comparable for Half {
    type Host = f32;
    #[inline(always)]
    fn host(self) -> f32 {
        self.single()
    }
}

struct Floats<R, P>(PhantomData<(R, P)>);

impl<R: Comparable, P: Relation> Lane for Floats<R, P> {
    type A = R;
    type B = R;
    type C = ();
    type D = bool;
    const DEPENDS: Depends = Depends::Mode;

    #[inline(always)]
    fn fast(_: u32, a: R, b: R, (): ()) -> bool {
        P::holds(a.host(), b.host())
    }

    #[inline(always)]
    fn general(flags: Flags, a: R, b: R, (): ()) -> bool {
        P::holds(flags.input(a).host(), flags.input(b).host())
    }
}

struct Integers<T, P>(PhantomData<(T, P)>);

impl<T: Element + PartialOrd, P: Relation> Lane for Integers<T, P> {
    type A = T;
    type B = T;
    type C = ();
    type D = bool;

    #[inline(always)]
    fn fast(_: u32, a: T, b: T, (): ()) -> bool {
        P::holds(a, b)
    }
}

/// True or false whatever is compared.
struct Constant<const VALUE: bool>;

impl<const VALUE: bool> Lane for Constant<VALUE> {
    type A = ();
    type B = ();
    type C = ();
    type D = bool;

    #[inline(always)]
    fn fast(_: u32, (): (), (): (), (): ()) -> bool {
        VALUE
    }
}

/// Whether the bit of `b` is set that stands for the class of `a`.
struct Class<R>(PhantomData<R>);

impl<R: Comparable> Lane for Class<R> {
    type A = R;
    type B = u32;
    type C = ();
    type D = bool;

    #[inline(always)]
    fn fast(_: u32, a: R, b: u32, (): ()) -> bool {
        let magnitude = a.bits() & !R::SIGN;
        let negative = a.bits() != magnitude;
        // Negative infinity, normal, denormal, zero are bits 2 to 5; the positive ones in reverse order bits 9 to 6.
        let kind = if magnitude == R::INFINITY {
            2
        } else if magnitude >= 1 << R::MANTISSA_BITS {
            3
        } else if magnitude != 0 {
            4
        } else {
            5
        };
        let number = if negative { kind } else { 11 - kind };
        let nan = if magnitude & R::QUIET == 0 { 0 } else { 1 };
        b >> (if magnitude > R::INFINITY { nan } else { number }) & 1 == 1
    }
}
