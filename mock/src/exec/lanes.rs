//! The vector engine: applies a pure function of one lane to all lanes of a wave.
//!
//! An instruction is described by a [`Lane`] and nothing else. The engine works on chunks of sixteen lanes, which are
//! read whole before they are written, so a destination may be one of the sources. It calls the lane's fast function, which vectorises, and goes to its general
//! one for a MODE other than the usual, for integer clamp, and for the values that the fast function does not cover. Modifiers change the sources before and the result after
//! (`modifiers.rs`).

use std::array;
use std::marker::PhantomData;

use super::element::{Element, Numbers};
use super::level::{Body, Level};
use super::modifiers::{Finish, Stage};
use super::real::Real;
use super::softfloat::Rules;
use super::{Cx, Micro, Src, SrcKind};
use crate::wave::{LANES, Mode, Vreg};

/// Lanes per chunk: one AVX-512 register of dwords, two AVX2 registers.
pub(super) const CHUNK: usize = 16;
pub(super) const CHUNKS: usize = LANES / CHUNK;

/// First staging register of the result.
pub(super) const RESULT: usize = 6;

/// [`Micro::aux`] of a vector instruction: the result of all lanes goes to staging registers, whatever EXEC says.
pub(super) const TO_STAGING: u32 = 1;
/// [`Micro::aux`]: the clamp bit is set on an instruction whose lane function clamps.
pub(super) const CLAMP: u32 = 2;
/// [`Micro::aux`]: the lane mask goes to EXEC too (`v_cmpx`).
pub(super) const EXEC_TOO: u32 = 4;

/// What a lane function depends on besides its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depends {
    /// Nothing.
    Nothing,
    /// Rounding, denormals and half-precision overflow of MODE.
    Mode,
    /// Those and MODE.IEEE, which the fast function takes to be set.
    ModeAndIeee,
    /// The clamp bit of the instruction.
    Clamp,
}

/// MODE and the instruction's own constants, for general lane functions.
#[derive(Clone, Copy)]
pub(crate) struct Flags {
    /// MODE at the time of execution.
    pub(crate) mode: Mode,
    /// The instruction's [`Micro::imm`].
    pub(crate) imm: u32,
}

impl Flags {
    /// How MODE says to compute with numbers of type `R`.
    pub(crate) fn rules<R: Real>(self) -> Rules {
        Rules::of::<R>(self.mode)
    }
}

/// The part of its register that a result takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// All of it.
    Whole,
    /// The low half; the high half stays.
    LowHalf,
    /// The high half; the low half stays.
    HighHalf,
}

impl Place {
    /// A dword of the destination after `new` was written over `old`.
    #[inline(always)]
    pub(super) const fn merged(self, old: u32, new: u32) -> u32 {
        match self {
            Self::Whole => new,
            Self::LowHalf => old & 0xffff_0000 | new & 0xffff,
            Self::HighHalf => old & 0xffff | new << 16,
        }
    }
}

/// One instruction, as a function of one lane. Comparisons have `bool` as their result.
pub(crate) trait Lane {
    /// First source.
    type A: Element;
    /// Second source.
    type B: Element;
    /// Third source; for instructions that accumulate, the destination's old value.
    type C: Element;
    /// Result.
    type D: Element;
    /// What calls for [`Self::general`].
    const DEPENDS: Depends = Depends::Nothing;
    /// Whether there are values that [`Self::fast`] does not cover.
    const HAS_RARE: bool = false;
    /// Where the result goes in its register; most 16-bit results clear the other half on gfx9 (LLVM
    /// `GCNSubtarget::zeroesHigh16BitsOfDest`).
    const PLACE: Place = Place::Whole;

    /// The result with MODE as a compiled kernel finds it (round to nearest even, denormals kept, IEEE) and no clamp,
    /// for all values that are not [`Self::rare`]. `imm` is [`Micro::imm`].
    fn fast(imm: u32, a: Self::A, b: Self::B, c: Self::C) -> Self::D;

    /// Whether `d`, which [`Self::fast`] gave, is not to be used.
    #[inline(always)]
    fn rare(_a: Self::A, _b: Self::B, _c: Self::C, _d: Self::D) -> bool {
        false
    }

    /// The result under any MODE and for all values; with clamp, if the lane [`Depends::Clamp`].
    #[inline(always)]
    fn general(flags: Flags, a: Self::A, b: Self::B, c: Self::C) -> Self::D {
        Self::fast(flags.imm, a, b, c)
    }
}

/// Declares lanes:
/// `Name[imm](a: A, b: B, c: C) -> D = fast, option, option;` with these options:
/// - `rare |d| condition`: the fast function does not cover this; `nan`: nor a result `d` that is NaN;
/// - `exact |flags| general`: the general function for those;
/// - `mode |flags| general`, `ieee |flags| general`, `clamp |flags| general`: the general function and what calls for it;
/// - `low`, `high`: a 16-bit result goes there and keeps the other half of its register.
macro_rules! lanes {
    ($(
        $(#[$meta:meta])*
        $name:ident $([$imm:ident])? ($a:ident: $ta:ty $(, $b:ident: $tb:ty $(, $c:ident: $tc:ty)?)?) -> $td:ty = $fast:expr
        $(, $option:ident $(|$v:ident| $value:expr)?)*;
    )*) => {
        $(
            $(#[$meta])*
            pub(crate) struct $name;

            impl $crate::exec::lanes::Lane for $name {
                type A = $ta;
                type B = $crate::exec::lanes::or_unit!($($tb)?);
                type C = $crate::exec::lanes::or_unit!($($($tc)?)?);
                type D = $td;

                #[inline(always)]
                #[allow(unused_variables)]
                fn fast(imm: u32, $a: Self::A, b: Self::B, c: Self::C) -> Self::D {
                    $(let $imm = imm;)?
                    $(let $b = b; $(let $c = c;)?)?
                    $fast
                }

                $crate::exec::lanes::lane_options! {
                    ($($imm)?, $a $(, $b $(, $c)?)?) $(, $option $(|$v| $value)?)*
                }
            }
        )*
    };
}
pub(super) use lanes;

/// The options of [`lanes`], one after the other.
macro_rules! lane_options {
    ($names:tt) => {};
    ($names:tt, nan $($rest:tt)*) => {
        $crate::exec::lanes::lane_options! { $names, rare |d| d.is_nan() $($rest)* }
    };
    ($names:tt, low $($rest:tt)*) => {
        const PLACE: $crate::exec::lanes::Place = $crate::exec::lanes::Place::LowHalf;
        $crate::exec::lanes::lane_options! { $names $($rest)* }
    };
    ($names:tt, high $($rest:tt)*) => {
        const PLACE: $crate::exec::lanes::Place = $crate::exec::lanes::Place::HighHalf;
        $crate::exec::lanes::lane_options! { $names $($rest)* }
    };
    (($($imm:ident)?, $a:ident $(, $b:ident $(, $c:ident)?)?), rare |$d:ident| $condition:expr $(, $($rest:tt)*)?) => {
        const HAS_RARE: bool = true;
        #[inline(always)]
        #[allow(unused_variables)]
        fn rare($a: Self::A, b: Self::B, c: Self::C, $d: Self::D) -> bool {
            $(let $b = b; $(let $c = c;)?)?
            $condition
        }
        $crate::exec::lanes::lane_options! { ($($imm)?, $a $(, $b $(, $c)?)?) $(, $($rest)*)? }
    };
    (($($imm:ident)?, $a:ident $(, $b:ident $(, $c:ident)?)?), $depends:ident |$flags:ident| $general:expr $(, $($rest:tt)*)?) => {
        const DEPENDS: $crate::exec::lanes::Depends = $crate::exec::lanes::depends!($depends);
        #[inline(always)]
        #[allow(unused_variables)]
        fn general($flags: $crate::exec::lanes::Flags, $a: Self::A, b: Self::B, c: Self::C) -> Self::D {
            $(let $imm = $flags.imm;)?
            $(let $b = b; $(let $c = c;)?)?
            $general
        }
        $crate::exec::lanes::lane_options! { ($($imm)?, $a $(, $b $(, $c)?)?) $(, $($rest)*)? }
    };
}
pub(super) use lane_options;

macro_rules! depends {
    (exact) => {
        $crate::exec::lanes::Depends::Nothing
    };
    (mode) => {
        $crate::exec::lanes::Depends::Mode
    };
    (ieee) => {
        $crate::exec::lanes::Depends::ModeAndIeee
    };
    (clamp) => {
        $crate::exec::lanes::Depends::Clamp
    };
}
pub(super) use depends;

macro_rules! or_unit {
    () => {
        ()
    };
    ($t:ty) => {
        $t
    };
}
pub(super) use or_unit;

/// What the engine needs to know about a source's type.
#[derive(Clone, Copy)]
pub(crate) struct Operand {
    pub(super) numbers: Numbers,
    pub(super) dwords: usize,
    /// It takes a bit of VCC too.
    with_vcc: bool,
}

impl Operand {
    const fn of<E: Element>() -> Self {
        let with_vcc = E::HAS_BIT && !matches!(E::NUMBERS, Numbers::Mask);
        Self { numbers: E::NUMBERS, dwords: E::DWORDS, with_vcc }
    }
}

/// What the modifiers need to know about a lane function.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(super) sources: [Operand; 3],
    pub(super) result: Numbers,
    pub(super) result_dwords: usize,
    pub(super) result_has_bit: bool,
    pub(super) place: Place,
    pub(super) clamps: bool,
}

impl Shape {
    pub(super) const NONE: Self = Self {
        sources: [Operand::of::<()>(); 3],
        result: Numbers::None,
        result_dwords: 0,
        result_has_bit: false,
        place: Place::Whole,
        clamps: false,
    };

    pub(super) const fn of<L: Lane>() -> Self {
        Self {
            sources: [Operand::of::<L::A>(), Operand::of::<L::B>(), Operand::of::<L::C>()],
            result: L::D::NUMBERS,
            result_dwords: L::D::DWORDS,
            result_has_bit: L::D::HAS_BIT,
            place: L::PLACE,
            clamps: matches!(L::DEPENDS, Depends::Clamp),
        }
    }
}

/// Where the lanes of one source are.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    /// Its first register.
    pub(super) at: *const Vreg,
    /// A bit a lane, for masks.
    pub(super) bits: u64,
}

/// The handler of lane `L` at level `V`.
pub(crate) struct Lanes<V, L>(PhantomData<(V, L)>);

impl<V: Level, L: Lane> Body for Lanes<V, L> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: `translate` checked the register numbers against this wave's file; the code around is for level `V`.
        unsafe {
            if !is_usual::<L>(cx, m) {
                return general::<L>(cx, m);
            }
            let sources = sources(cx, m, const { &Shape::of::<L>() });
            let exec = cx.exec();
            let staged = m.aux & TO_STAGING != 0;
            let direct = exec == u64::MAX && !staged;
            let out = if direct { cx.vgpr.add(m.dst as usize) } else { &raw mut cx.staging[RESULT] };
            let flags = Flags { mode: cx.w.mode, imm: m.imm as u32 };
            let bits = run::<L>(&sources, flags, out);
            if L::D::HAS_BIT {
                write_mask(cx, m, bits & exec);
            }
            if L::D::DWORDS != 0 && !direct && !staged {
                write_active::<L>(cx, m, exec);
            }
        }
    }
}

/// The handler of lane `L` with modifiers.
pub(crate) struct Modified<V, L>(PhantomData<(V, L)>);

impl<V: Level, L: Lane> Body for Modified<V, L> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        // SAFETY: as in `Lanes`; `Stage` leaves registers within the wave's or the staging ones.
        unsafe {
            cx.modified.shape = const { &Shape::of::<L>() };
            V::handler::<Stage>()(cx, m);
            let micro = cx.modified.micro;
            V::handler::<Lanes<V, L>>()(cx, &micro);
            V::handler::<Finish>()(cx, m);
        }
    }
}

#[inline(always)]
fn is_usual<L: Lane>(cx: &Cx<'_>, m: &Micro) -> bool {
    let (bits, usual) = const { usual_mode(L::DEPENDS) };
    cx.w.mode.0 & bits == usual && !(matches!(L::DEPENDS, Depends::Clamp) && m.aux & CLAMP != 0)
}

/// The bits of MODE that must be as the fast function takes them to be, and their value.
const fn usual_mode(depends: Depends) -> (u32, u32) {
    match depends {
        Depends::Nothing | Depends::Clamp => (0, 0),
        Depends::Mode => (Mode::USUAL_BITS, Mode::USUAL),
        Depends::ModeAndIeee => (Mode::USUAL_BITS | Mode::IEEE, Mode::USUAL | Mode::IEEE),
    }
}

/// Applies the fast function to all lanes, the result from `out` on, and gives the lane mask. A destination that keeps a
/// part of itself gets what is in `out` there.
///
/// # Safety
/// The registers of the sources are readable, and those from `out` on writable.
#[inline(always)]
unsafe fn run<L: Lane>(sources: &[Source; 3], flags: Flags, out: *mut Vreg) -> u64 {
    let mut bits = 0;
    for chunk in 0..CHUNKS {
        // SAFETY: passed on.
        unsafe {
            let a = load::<L::A>(sources[0], chunk);
            let b = load::<L::B>(sources[1], chunk);
            let c = load::<L::C>(sources[2], chunk);
            let mut d = [L::D::default(); CHUNK];
            for i in 0..CHUNK {
                d[i] = L::fast(flags.imm, a[i], b[i], c[i]);
            }
            if L::HAS_RARE && any_pair(|i| L::rare(a[i], b[i], c[i], d[i])) {
                bits |= redo::<L>(sources, flags, out, chunk);
                continue;
            }
            store::<L>(out, chunk, &d);
            if L::D::HAS_BIT {
                bits |= u64::from(gather_bits(&d)) << (CHUNK * chunk);
            }
        }
    }
    bits
}

/// Whether `is` holds for any lane of a chunk.
///
/// Lanes are taken in pairs half a chunk apart, and the pairs compared as a whole: that compiles to one comparison of two
/// vector registers and one test, where a fold over the lanes shuffles them first.
#[inline(always)]
fn any_pair(is: impl Fn(usize) -> bool) -> bool {
    const HALF: usize = CHUNK / 2;
    let mut pairs = [false; HALF];
    for (i, pair) in pairs.iter_mut().enumerate() {
        *pair = is(i) | is(i + HALF);
    }
    pairs != [false; HALF]
}

/// Does a chunk again that has rare lanes.
///
/// # Safety
/// As for [`run`].
#[cold]
#[inline(never)]
unsafe fn redo<L: Lane>(sources: &[Source; 3], flags: Flags, out: *mut Vreg, chunk: usize) -> u64 {
    // SAFETY: passed on.
    unsafe {
        one_by_one::<L>(sources, out, 0xffff << (CHUNK * chunk), |a, b, c| {
            let d = L::fast(flags.imm, a, b, c);
            if L::rare(a, b, c, d) { L::general(flags, a, b, c) } else { d }
        })
    }
}

/// The handler for everything that [`Lane::fast`] is not made for. It is the same at all host levels.
///
/// # Safety
/// As for a handler.
#[inline(never)]
unsafe fn general<L: Lane>(cx: &mut Cx<'_>, m: &Micro) {
    // SAFETY: passed on from the handler.
    unsafe {
        let sources = sources(cx, m, const { &Shape::of::<L>() });
        let (out, mask) = if m.aux & TO_STAGING != 0 {
            (&raw mut cx.staging[RESULT], u64::MAX)
        } else {
            (cx.vgpr.add(m.dst as usize), cx.exec())
        };
        let flags = Flags { mode: cx.w.mode, imm: m.imm as u32 };
        let bits = one_by_one::<L>(&sources, out, mask, |a, b, c| L::general(flags, a, b, c));
        if L::D::HAS_BIT {
            write_mask(cx, m, bits & cx.exec());
        }
    }
}

/// Applies `f` to the lanes of `mask`; all sources of a lane are read before it is written.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn one_by_one<L: Lane>(
    sources: &[Source; 3],
    out: *mut Vreg,
    mask: u64,
    f: impl Fn(L::A, L::B, L::C) -> L::D,
) -> u64 {
    let mut bits = 0;
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 == 1) {
        // SAFETY: passed on.
        unsafe {
            let a = load_one::<L::A>(sources[0], lane);
            let b = load_one::<L::B>(sources[1], lane);
            let c = load_one::<L::C>(sources[2], lane);
            let (low, high, bit) = f(a, b, c).to_parts();
            if L::D::DWORDS >= 1 {
                let place = &mut (*out).0[lane];
                *place = L::PLACE.merged(*place, low);
            }
            if L::D::DWORDS == 2 {
                (*out.add(1)).0[lane] = high;
            }
            bits |= u64::from(bit) << lane;
        }
    }
    bits
}

/// Writes the lane mask of an instruction that has one.
#[inline(always)]
fn write_mask(cx: &mut Cx<'_>, m: &Micro, bits: u64) {
    cx.write_sgpr64(m.dst2, bits);
    if m.aux & EXEC_TOO != 0 {
        cx.set_exec(bits);
    }
}

/// Writes the result from staging registers to the active lanes.
///
/// # Safety
/// As for a handler.
#[inline(always)]
unsafe fn write_active<L: Lane>(cx: &mut Cx<'_>, m: &Micro, exec: u64) {
    // SAFETY: passed on.
    unsafe {
        let dst = cx.vgpr.add(m.dst as usize);
        write_lanes(&mut *dst, &cx.staging[RESULT], exec, L::PLACE);
        if L::D::DWORDS == 2 {
            write_lanes(&mut *dst.add(1), &cx.staging[RESULT + 1], exec, Place::Whole);
        }
    }
}

/// Where the sources of an instruction are.
///
/// # Safety
/// `translate` checked the registers of `m` for lanes of this shape.
#[inline(always)]
unsafe fn sources(cx: &mut Cx<'_>, m: &Micro, shape: &Shape) -> [Source; 3] {
    // SAFETY: passed on; slots 0, 2 and 4 have two staging registers each.
    unsafe {
        [
            source(cx, m.src[0], shape.sources[0], 0),
            source(cx, m.src[1], shape.sources[1], 2),
            source(cx, m.src[2], shape.sources[2], 4),
        ]
    }
}

/// Each lane's number.
static LANE_NUMBERS: Vreg = {
    let mut lanes = [0; LANES];
    let mut i = 0;
    while i < LANES {
        lanes[i] = i as u32;
        i += 1;
    }
    Vreg(lanes)
};

/// Where the lanes of `src` are: in the wave's registers, or in staging registers filled with a uniform value.
///
/// # Safety
/// `src` was checked by `translate` against the wave's register file; `slot` and the register behind it are staging
/// registers.
#[inline(always)]
pub(super) unsafe fn source(cx: &mut Cx<'_>, src: Src, operand: Operand, slot: usize) -> Source {
    let bits = if operand.with_vcc { cx.vcc() } else { 0 };
    let at = |at| Source { at, bits };
    match operand.numbers {
        Numbers::None => at(cx.vgpr),
        Numbers::LaneIndex => at(&LANE_NUMBERS),
        Numbers::Mask => {
            let (low, high) = cx.scalar64(src);
            Source { at: cx.vgpr, bits: u64::from(low) | u64::from(high) << 32 }
        }
        // SAFETY: in range by the function's contract.
        _ if src.kind == SrcKind::Vgpr => at(unsafe { cx.vgpr.add(src.index as usize) }),
        _ if src.kind == SrcKind::Staging => at(&cx.staging[src.index as usize]),
        _ => {
            let (low, high) = if operand.dwords == 2 { cx.scalar64(src) } else { (cx.scalar32(src), 0) };
            cx.staging[slot].0 = [low; LANES];
            if operand.dwords == 2 {
                cx.staging[slot + 1].0 = [high; LANES];
            }
            at(&cx.staging[slot])
        }
    }
}

/// The registers of a source of up to two dwords.
///
/// # Safety
/// As for [`source`].
#[inline(always)]
pub(super) unsafe fn registers(cx: &mut Cx<'_>, src: Src, dwords: usize, slot: usize) -> *const Vreg {
    // SAFETY: passed on.
    unsafe { source(cx, src, Operand { numbers: Numbers::Bits, dwords, with_vcc: false }, slot).at }
}

/// A chunk of a register.
///
/// # Safety
/// `at` points to a register, and `chunk < CHUNKS`.
#[inline(always)]
pub(super) unsafe fn load_chunk(at: *const Vreg, chunk: usize) -> [u32; CHUNK] {
    // SAFETY: passed on.
    unsafe { at.cast::<[u32; CHUNK]>().add(chunk).read() }
}

/// Writes the lanes of a chunk whose bit in `mask` is set.
///
/// # Safety
/// As for [`load_chunk`].
#[inline(always)]
pub(super) unsafe fn store_masked(at: *mut Vreg, chunk: usize, mask: u16, values: &[u32; CHUNK]) {
    // SAFETY: passed on.
    unsafe {
        let place = at.cast::<[u32; CHUNK]>().add(chunk);
        let old = place.read();
        place.write(array::from_fn(|i| if mask & 1 << i != 0 { values[i] } else { old[i] }));
    }
}

/// Chunk `chunk` of a source.
///
/// # Safety
/// The source has `E::DWORDS` registers.
#[inline(always)]
unsafe fn load<E: Element>(source: Source, chunk: usize) -> [E; CHUNK] {
    let bits = (source.bits >> (CHUNK * chunk)) as u32;
    // SAFETY: passed on.
    let (low, high) = unsafe {
        (
            if E::DWORDS >= 1 { load_chunk(source.at, chunk) } else { [0; CHUNK] },
            if E::DWORDS == 2 { load_chunk(source.at.add(1), chunk) } else { [0; CHUNK] },
        )
    };
    array::from_fn(|i| E::from_parts(low[i], high[i], bits & 1 << i != 0))
}

/// One lane of a source.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
unsafe fn load_one<E: Element>(source: Source, lane: usize) -> E {
    // SAFETY: passed on.
    unsafe {
        let low = if E::DWORDS >= 1 { (*source.at).0[lane] } else { 0 };
        let high = if E::DWORDS == 2 { (*source.at.add(1)).0[lane] } else { 0 };
        E::from_parts(low, high, source.bits >> lane & 1 == 1)
    }
}

/// Writes a chunk of results.
///
/// # Safety
/// `at` points to the registers of the result.
#[inline(always)]
unsafe fn store<L: Lane>(at: *mut Vreg, chunk: usize, values: &[L::D; CHUNK]) {
    let parts = values.map(Element::to_parts);
    // SAFETY: as in `load`.
    unsafe {
        if L::D::DWORDS >= 1 {
            let place = at.cast::<[u32; CHUNK]>().add(chunk);
            let old = if L::PLACE == Place::Whole { [0; CHUNK] } else { place.read() };
            place.write(array::from_fn(|i| L::PLACE.merged(old[i], parts[i].0)));
        }
        if L::D::DWORDS == 2 {
            at.add(1).cast::<[u32; CHUNK]>().add(chunk).write(parts.map(|part| part.1));
        }
    }
}

/// Bit `i` is the mask bit of `lanes[i]`.
#[inline(always)]
fn gather_bits<E: Element>(lanes: &[E; CHUNK]) -> u16 {
    let wide = lanes.map(|lane| if lane.to_parts().2 { u32::MAX } else { 0 });
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_loadu_ps, _mm_movemask_ps};
        let mut bits = 0;
        for quarter in 0..CHUNK / 4 {
            // SAFETY: four dwords of `wide` from `4 * quarter` on; SSE is part of x86-64.
            let four = unsafe { _mm_movemask_ps(_mm_loadu_ps(wide.as_ptr().add(4 * quarter).cast())) };
            bits |= (four as u16) << (4 * quarter);
        }
        bits
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        wide.iter().enumerate().fold(0, |bits, (i, lane)| bits | ((lane >> 31) as u16) << i)
    }
}

/// Writes the lanes of `mask`.
#[inline(always)]
pub(super) fn write_lanes(register: &mut Vreg, result: &Vreg, mask: u64, place: Place) {
    for chunk in 0..CHUNKS {
        let mask = (mask >> (CHUNK * chunk)) as u32;
        for i in 0..CHUNK {
            let lane = CHUNK * chunk + i;
            let old = register.0[lane];
            register.0[lane] = if mask & 1 << i != 0 { place.merged(old, result.0[lane]) } else { old };
        }
    }
}
