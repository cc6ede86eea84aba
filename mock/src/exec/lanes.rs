//! The vector engine: applies a pure function of one lane to all lanes of a wave.
//!
//! An instruction is described by a [`Lane`] implementation and nothing else; the engine derives its plain form (here)
//! and its form with modifiers (`modifiers.rs`). Lanes are worked on in chunks of sixteen that are read whole before
//! they are written, so a destination may be one of the sources.

use std::marker::PhantomData;

use super::level::Body;
use super::{Cx, Micro, Src, SrcKind};
use crate::wave::{LANES, Mode, Vreg};

/// Lanes per chunk: one AVX-512 register of dwords, two AVX2 registers.
pub(super) const CHUNK: usize = 16;
pub(super) const CHUNKS: usize = LANES / CHUNK;

/// The type of an operand in one lane: nothing, one dword or two.
pub(crate) trait Element: Copy + Default {
    /// Registers the operand takes.
    const DWORDS: usize;
    /// Puts the value together from its dwords; a missing one is zero.
    fn from_dwords(low: u32, high: u32) -> Self;
    /// Splits the value into dwords.
    fn to_dwords(self) -> (u32, u32);
}

impl Element for () {
    const DWORDS: usize = 0;
    #[inline(always)]
    fn from_dwords(_: u32, _: u32) -> Self {}
    #[inline(always)]
    fn to_dwords(self) -> (u32, u32) {
        (0, 0)
    }
}

impl Element for u32 {
    const DWORDS: usize = 1;
    #[inline(always)]
    fn from_dwords(low: u32, _: u32) -> Self {
        low
    }
    #[inline(always)]
    fn to_dwords(self) -> (u32, u32) {
        (self, 0)
    }
}

impl Element for u64 {
    const DWORDS: usize = 2;
    #[inline(always)]
    fn from_dwords(low: u32, high: u32) -> Self {
        u64::from(low) | u64::from(high) << 32
    }
    #[inline(always)]
    fn to_dwords(self) -> (u32, u32) {
        (self as u32, (self >> 32) as u32)
    }
}

impl Element for f32 {
    const DWORDS: usize = 1;
    #[inline(always)]
    fn from_dwords(low: u32, _: u32) -> Self {
        Self::from_bits(low)
    }
    #[inline(always)]
    fn to_dwords(self) -> (u32, u32) {
        (self.to_bits(), 0)
    }
}

impl Element for f64 {
    const DWORDS: usize = 2;
    #[inline(always)]
    fn from_dwords(low: u32, high: u32) -> Self {
        Self::from_bits(u64::from_dwords(low, high))
    }
    #[inline(always)]
    fn to_dwords(self) -> (u32, u32) {
        self.to_bits().to_dwords()
    }
}

/// How the modifiers of an instruction read its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Bits: `neg`, `abs`, `omod` and `clamp` do not apply.
    Bits,
    /// Integers: `clamp` saturates, which the lane function does itself (it sees [`Flags::clamp`]).
    Integer,
    /// Half precision in the low (or, by `op_sel`, high) half of a dword.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Two half-precision numbers in a dword (VOP3P).
    PackedF16,
    /// Two bfloat16 numbers in a dword (VOP3P).
    PackedBf16,
    /// Two 16-bit integers in a dword (VOP3P).
    PackedI16,
    /// Two single-precision numbers in a register pair (VOP3P).
    PackedF32,
    /// Bits in the low (or, by `op_sel` or SDWA, another) half of a dword.
    Bits16,
}

/// What a lane function may know besides its operands.
#[derive(Clone, Copy)]
pub(crate) struct Flags {
    /// MODE at the time of execution.
    pub(crate) mode: Mode,
    /// The instruction's clamp bit, for integer instructions.
    pub(crate) clamp: bool,
}

/// One instruction, as a function of one lane.
pub(crate) trait Lane {
    /// First source.
    type A: Element;
    /// Second source.
    type B: Element;
    /// Third source; for instructions that accumulate, the destination's old value.
    type C: Element;
    /// Result.
    type D: Element;
    /// What the sources are.
    const SOURCES: Numbers;
    /// What the result is.
    const RESULT: Numbers = Self::SOURCES;
    /// A 16-bit result keeps the other half of its register; most instructions clear it on gfx9 (LLVM
    /// `GCNSubtarget::zeroesHigh16BitsOfDest`).
    const KEEPS_HIGH_HALF: bool = false;
    /// The result with MODE as a compiled kernel finds it (round to nearest even, denormals kept) and no clamp.
    fn f(a: Self::A, b: Self::B, c: Self::C) -> Self::D;
    /// The result under any MODE, and with integer clamp.
    #[inline(always)]
    fn with_flags(_flags: Flags, a: Self::A, b: Self::B, c: Self::C) -> Self::D {
        Self::f(a, b, c)
    }
}

/// One comparison, as a predicate of one lane.
pub(crate) trait Compare {
    /// Both sources (the second is a class mask in the class tests).
    type A: Element;
    /// Second source.
    type B: Element;
    /// What the sources are.
    const SOURCES: Numbers;
    /// Whether the comparison holds.
    fn holds(flags: Flags, a: Self::A, b: Self::B) -> bool;
}

/// Declares lane functions: `Name(a: A, b: B, c: C) -> D [numbers of the sources => of the result] = expression`.
macro_rules! lanes {
    ($(
        $(#[$meta:meta])*
        $name:ident($a:ident: $ta:ty $(, $b:ident: $tb:ty $(, $c:ident: $tc:ty)?)?) -> $td:ty
        [$sources:ident $(=> $result:ident)?] = $body:expr;
    )*) => {
        $(
            $(#[$meta])*
            pub(crate) struct $name;

            impl $crate::exec::lanes::Lane for $name {
                type A = $ta;
                type B = $crate::exec::lanes::or_unit!($($tb)?);
                type C = $crate::exec::lanes::or_unit!($($($tc)?)?);
                type D = $td;
                const SOURCES: $crate::exec::lanes::Numbers = $crate::exec::lanes::Numbers::$sources;
                $(const RESULT: $crate::exec::lanes::Numbers = $crate::exec::lanes::Numbers::$result;)?

                #[inline(always)]
                #[allow(unused_variables)]
                fn f($a: Self::A, b: Self::B, c: Self::C) -> Self::D {
                    $(let $b = b; $(let $c = c;)?)?
                    $body
                }
            }
        )*
    };
}
pub(super) use lanes;

macro_rules! or_unit {
    () => {
        ()
    };
    ($t:ty) => {
        $t
    };
}
pub(super) use or_unit;

/// The plain form of `L`: no modifiers, MODE as compiled kernels find it.
pub(crate) struct Plain<L>(PhantomData<L>);

impl<L: Lane> Body for Plain<L> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        if !cx.w.mode.is_usual() {
            // SAFETY: passed on.
            return unsafe { super::modifiers::Modified::<L>::go(cx, m) };
        }
        let exec = cx.exec();
        // SAFETY: `translate` checked the register numbers against this wave's file.
        unsafe {
            let a = source::<L::A>(cx, m.src[0], 0);
            let b = source::<L::B>(cx, m.src[1], 2);
            let c = source::<L::C>(cx, m.src[2], 4);
            let d = cx.vgpr.add(m.dst as usize);
            if exec == u64::MAX {
                for chunk in 0..CHUNKS {
                    let out = apply::<L>(load(a, chunk), load(b, chunk), load(c, chunk));
                    store(d, chunk, &out);
                }
            } else {
                for chunk in 0..CHUNKS {
                    let mask = (exec >> (CHUNK * chunk)) as u16;
                    let out = apply::<L>(load(a, chunk), load(b, chunk), load(c, chunk));
                    store_masked(d, chunk, mask, &out);
                }
            }
        }
    }
}

#[inline(always)]
fn apply<L: Lane>(a: [L::A; CHUNK], b: [L::B; CHUNK], c: [L::C; CHUNK]) -> [L::D; CHUNK] {
    let mut out = [L::D::default(); CHUNK];
    for i in 0..CHUNK {
        out[i] = L::f(a[i], b[i], c[i]);
    }
    out
}

/// The plain form of comparison `P`: lanes that are off give 0. `EXEC_TOO` is the `v_cmpx` form.
pub(crate) struct PlainCompare<P, const EXEC_TOO: bool>(PhantomData<P>);

impl<P: Compare, const EXEC_TOO: bool> Body for PlainCompare<P, EXEC_TOO> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let flags = Flags { mode: cx.w.mode, clamp: false };
        let mut bits = 0u64;
        // SAFETY: as in `Plain`.
        unsafe {
            let a = source::<P::A>(cx, m.src[0], 0);
            let b = source::<P::B>(cx, m.src[1], 2);
            for chunk in 0..CHUNKS {
                let (a, b) = (load::<P::A>(a, chunk), load::<P::B>(b, chunk));
                let mut holds = [0u32; CHUNK];
                for i in 0..CHUNK {
                    holds[i] = if P::holds(flags, a[i], b[i]) { u32::MAX } else { 0 };
                }
                bits |= u64::from(sign_bits(&holds)) << (CHUNK * chunk);
            }
        }
        bits &= cx.exec();
        cx.write_sgpr64(m.dst, bits);
        if EXEC_TOO {
            cx.set_exec(bits);
        }
    }
}

/// Bit `i` is the sign bit of `lanes[i]`.
#[inline(always)]
pub(super) fn sign_bits(lanes: &[u32; CHUNK]) -> u16 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_loadu_ps, _mm_movemask_ps};
        let mut bits = 0;
        for quarter in 0..CHUNK / 4 {
            // SAFETY: four dwords of `lanes` from `4 * quarter` on; SSE is part of x86-64.
            let four = unsafe { _mm_movemask_ps(_mm_loadu_ps(lanes.as_ptr().add(4 * quarter).cast())) };
            bits |= (four as u16) << (4 * quarter);
        }
        bits
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        lanes.iter().enumerate().fold(0, |bits, (i, lane)| bits | ((lane >> 31) as u16) << i)
    }
}

/// The registers that hold source `src` for all lanes: the wave's own, or staging filled with a uniform value.
///
/// # Safety
/// `src` was checked by `translate` against the wave's register file; `slot + E::DWORDS` is at most the number of
/// staging registers.
#[inline(always)]
pub(super) unsafe fn source<E: Element>(cx: &mut Cx<'_>, src: Src, slot: usize) -> *const Vreg {
    if E::DWORDS == 0 {
        return cx.vgpr;
    }
    if src.kind == SrcKind::Vgpr {
        // SAFETY: in range by the function's contract.
        return unsafe { cx.vgpr.add(src.index as usize) };
    }
    let (low, high) = if E::DWORDS == 2 { cx.scalar64(src) } else { (cx.scalar32(src), 0) };
    cx.staging[slot].0 = [low; LANES];
    if E::DWORDS == 2 {
        cx.staging[slot + 1].0 = [high; LANES];
    }
    &cx.staging[slot]
}

/// Chunk `chunk` of the operand whose first register is `at`.
///
/// # Safety
/// `at` points to `E::DWORDS` registers.
#[inline(always)]
pub(super) unsafe fn load<E: Element>(at: *const Vreg, chunk: usize) -> [E; CHUNK] {
    let mut out = [E::default(); CHUNK];
    if E::DWORDS == 0 {
        return out;
    }
    // SAFETY: `chunk < CHUNKS`, so the chunk lies in the registers that the caller vouches for.
    unsafe {
        let low = at.cast::<[u32; CHUNK]>().add(chunk).read();
        let high = if E::DWORDS == 2 { at.add(1).cast::<[u32; CHUNK]>().add(chunk).read() } else { [0; CHUNK] };
        for i in 0..CHUNK {
            out[i] = E::from_dwords(low[i], high[i]);
        }
    }
    out
}

/// Writes a chunk.
///
/// # Safety
/// `at` points to `E::DWORDS` registers.
#[inline(always)]
pub(super) unsafe fn store<E: Element>(at: *mut Vreg, chunk: usize, values: &[E; CHUNK]) {
    let mut low = [0; CHUNK];
    let mut high = [0; CHUNK];
    for i in 0..CHUNK {
        (low[i], high[i]) = values[i].to_dwords();
    }
    // SAFETY: as in `load`.
    unsafe {
        if E::DWORDS >= 1 {
            at.cast::<[u32; CHUNK]>().add(chunk).write(low);
        }
        if E::DWORDS == 2 {
            at.add(1).cast::<[u32; CHUNK]>().add(chunk).write(high);
        }
    }
}

/// Writes the lanes of a chunk whose bit in `mask` is set.
///
/// # Safety
/// `at` points to `E::DWORDS` registers.
#[inline(always)]
pub(super) unsafe fn store_masked<E: Element>(at: *mut Vreg, chunk: usize, mask: u16, values: &[E; CHUNK]) {
    // SAFETY: as in `load`.
    unsafe {
        let old = load::<E>(at, chunk);
        let mut new = old;
        for i in 0..CHUNK {
            new[i] = if mask >> i & 1 == 1 { values[i] } else { old[i] };
        }
        store(at, chunk, &new);
    }
}
