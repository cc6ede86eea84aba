//! Modifiers of vector instructions: DPP, SDWA, `op_sel`, `neg`, `abs`, `omod` and `clamp`.
//!
//! Sources that a modifier changes are brought to staging registers and changed there before the lane function runs, and
//! a result that one changes goes to staging registers first. All of a DPP source is read before anything is written, so
//! an in-place DPP instruction sees only old values.

use isa::{DstUnused, Encoding, Mods, SdwaSel};

use super::element::{Half, Numbers};
use super::formats::Format;
use super::lanes::{Flags, Place, RESULT, Shape, TO_STAGING, source, write_lanes};
use super::level::Body;
use super::real::Real;
use super::{Cx, Micro, Src, SrcKind, dpp};
use crate::wave::Vreg;

/// The modifiers of the instruction being executed, and whether it is VOP3P.
fn modifiers<'a>(cx: &Cx<'a>) -> Option<(&'a Mods, bool)> {
    let inst = cx.code.inst(cx.w.pc - 1)?;
    Some((&inst.mods, inst.encoding == Encoding::Vop3p))
}

/// [`Micro::aux`]: source 0 comes from other lanes.
const DPP: u32 = 1 << 4;
/// [`Micro::aux`]: the result is changed or placed after the lane function.
const RESULT_CHANGES: u32 = 1 << 5;
/// [`Micro::aux`]: source 0 is changed; the bits above it for sources 1 and 2.
const SOURCE_CHANGES: u32 = 1 << 8;

/// What the modifiers of an instruction of this shape do, as bits of [`Micro::aux`].
pub(super) fn summary(mods: &Mods, encoding: Encoding, shape: &Shape) -> u32 {
    let mut bits = 0;
    if mods.dpp.is_some() {
        bits |= DPP;
    }
    if changes_result(mods, shape) {
        bits |= RESULT_CHANGES;
    }
    for (i, operand) in shape.sources.iter().enumerate() {
        if operand.dwords != 0 && !Change::of(mods, encoding == Encoding::Vop3p, operand.numbers, i).is_none() {
            bits |= SOURCE_CHANGES << i;
        }
    }
    bits
}

/// An instruction with modifiers while it is executed.
pub(crate) struct Modified {
    /// The instruction without them: its sources are staging registers where they change, and its result is.
    pub(super) micro: Micro,
    /// Lanes that are written.
    active: u64,
    /// The types of its operands.
    pub(super) shape: &'static Shape,
}

impl Modified {
    pub(super) const NONE: Self = Self { micro: Micro::NONE, active: 0, shape: &Shape::NONE };
}

/// Brings the sources to where the lane function finds them with everything done to them, and says so in
/// [`Cx::modified`].
pub(super) struct Stage;

impl Body for Stage {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let exec = cx.exec();
        cx.modified.active = exec;
        cx.modified.micro = Micro { aux: m.aux | TO_STAGING, ..*m };
        let Some((mods, packed_encoding)) = modifiers(cx) else { return };
        for i in 0..3 {
            if m.aux & (if i == 0 { DPP | SOURCE_CHANGES } else { SOURCE_CHANGES << i }) == 0 {
                continue;
            }
            let operand = cx.modified.shape.sources[i];
            // SAFETY: passed on; slots 0, 2 and 4 have two staging registers each.
            let mut at = unsafe { source(cx, m.src[i], operand, 2 * i) }.at;
            if let (0, Some(dpp)) = (i, &mods.dpp) {
                for dword in 0..operand.dwords {
                    // SAFETY: the source has that many registers.
                    let source = unsafe { &*at.add(dword) };
                    cx.modified.active &= dpp::permute(dpp, source, exec, &mut cx.staging[dword]);
                }
                at = &cx.staging[0];
            }
            if m.aux & SOURCE_CHANGES << i != 0 {
                let change = Change::of(mods, packed_encoding, operand.numbers, i);
                // SAFETY: the source has as many registers as the numbers need; a staging register may be its own source.
                unsafe { change.apply(operand.numbers, at, cx.staging.as_mut_ptr().add(2 * i)) };
            }
            cx.modified.micro.src[i] = Src { kind: SrcKind::Staging, index: 2 * i as u16, ..Src::NONE };
        }
    }
}

/// Whether modifiers change the result after the lane function.
fn changes_result(mods: &Mods, shape: &Shape) -> bool {
    let sdwa = mods.sdwa.is_some_and(|sdwa| sdwa.dst_sel != SdwaSel::Dword) && shape.result_dwords == 1;
    let float =
        matches!(shape.result, Numbers::F16 | Numbers::F32 | Numbers::F64 | Numbers::PackedF16 | Numbers::PackedF32);
    sdwa || float && (mods.clamp || mods.omod != 0) || is_narrow(shape.result) && mods.op_sel & 8 != 0
}

fn is_narrow(numbers: Numbers) -> bool {
    matches!(numbers, Numbers::F16 | Numbers::Bits16)
}

/// What modifiers do to one source: selection, then absolute value, then negation.
#[derive(Clone, Copy)]
struct Change {
    select: Option<(SdwaSel, bool)>,
    abs: bool,
    neg: bool,
    neg_hi: bool,
    /// The low (for 16-bit numbers: the only) part of the source is its high half.
    low_from_high: bool,
    /// The high part is the high half.
    high_from_high: bool,
}

impl Change {
    fn of(mods: &Mods, packed_encoding: bool, numbers: Numbers, i: usize) -> Self {
        let bit = |bits: u8| bits >> i & 1 == 1;
        let select = mods.sdwa.filter(|_| i < 2).map(|sdwa| {
            let select = if i == 0 { sdwa.src0_sel } else { sdwa.src1_sel };
            (select, bit(sdwa.sext))
        });
        let none = Self {
            select: select.filter(|&(select, _)| select != SdwaSel::Dword),
            abs: false,
            neg: false,
            neg_hi: false,
            low_from_high: false,
            high_from_high: true,
        };
        let (abs, neg) = (bit(mods.abs), bit(mods.neg));
        match numbers {
            Numbers::None | Numbers::Mask | Numbers::LaneIndex => Self { select: None, ..none },
            Numbers::Bits => none,
            Numbers::Bits16 => Self { low_from_high: bit(mods.op_sel), ..none },
            Numbers::F16 => Self { low_from_high: bit(mods.op_sel), abs, neg, ..none },
            Numbers::F32 | Numbers::F64 => Self { abs, neg, ..none },
            Numbers::Mixed => {
                Self { low_from_high: bit(mods.op_sel), high_from_high: !bit(mods.op_sel_hi), abs, neg, ..none }
            }
            // Packed instructions outside VOP3P always work half by half, with `abs` for `neg_hi` (CDNA4 ISA, V_DOT2C).
            Numbers::PackedI16 if !packed_encoding => none,
            Numbers::PackedF16 | Numbers::PackedF32 if !packed_encoding => Self { neg, neg_hi: abs, ..none },
            Numbers::PackedI16 => Self { low_from_high: bit(mods.op_sel), high_from_high: bit(mods.op_sel_hi), ..none },
            Numbers::PackedF16 | Numbers::PackedF32 => Self {
                low_from_high: bit(mods.op_sel),
                high_from_high: bit(mods.op_sel_hi),
                neg,
                neg_hi: bit(mods.neg_hi),
                ..none
            },
        }
    }

    fn is_none(&self) -> bool {
        let signs = self.abs | self.neg | self.neg_hi;
        self.select.is_none() && !signs && !self.low_from_high && self.high_from_high
    }

    /// Copies a source to staging with the change made.
    ///
    /// # Safety
    /// Both have the registers that `numbers` need, and are apart or the same.
    #[inline(always)]
    unsafe fn apply(&self, numbers: Numbers, from: *const Vreg, to: *mut Vreg) {
        let from_low = if self.low_from_high { 16 } else { 0 };
        let sign = |bit: u32| (if self.abs { !bit } else { u32::MAX }, if self.neg { bit } else { 0 });
        // SAFETY: passed on.
        let (low, to_low) = unsafe { (&*from, &mut *to) };
        if let Some((select, signed)) = self.select {
            let (shift, bits) = place(select);
            let (up, down) = (32 - bits - shift, 32 - bits);
            if signed {
                map(low, to_low, |lane| ((lane << up) as i32 >> down) as u32);
            } else {
                map(low, to_low, |lane| lane << up >> down);
            }
            if self.abs | self.neg {
                let (keep, flip) = sign_of(numbers).map_or((u32::MAX, 0), sign);
                each(to_low, |lane| lane & keep ^ flip);
            }
            return;
        }
        match numbers {
            Numbers::None | Numbers::Bits | Numbers::Mask | Numbers::LaneIndex => *to_low = *low,
            Numbers::Bits16 | Numbers::F16 => {
                let (keep, flip) = sign(1 << 15);
                map(low, to_low, |lane| (lane >> from_low) & keep ^ flip);
            }
            Numbers::F32 => {
                let (keep, flip) = sign(1 << 31);
                map(low, to_low, |lane| lane & keep ^ flip);
            }
            Numbers::F64 => {
                let (keep, flip) = sign(1 << 31);
                *to_low = *low;
                // SAFETY: passed on.
                unsafe { map(&*from.add(1), &mut *to.add(1), |lane| lane & keep ^ flip) };
            }
            Numbers::Mixed => {
                let (keep, flip) = sign(1 << 31);
                if self.high_from_high {
                    map(low, to_low, |lane| lane & keep ^ flip);
                } else {
                    map(low, to_low, |lane| Format::F16.decode(lane >> from_low & 0xffff).to_bits() & keep ^ flip);
                }
            }
            Numbers::PackedI16 | Numbers::PackedF16 => {
                let flip = u32::from(self.neg) << 15 | u32::from(self.neg_hi) << 31;
                let from_high = if self.high_from_high { 16 } else { 0 };
                map(low, to_low, |lane| (lane >> from_low & 0xffff | (lane >> from_high) << 16) ^ flip);
            }
            Numbers::PackedF32 => {
                let flip = [u32::from(self.neg) << 31, u32::from(self.neg_hi) << 31];
                // SAFETY: passed on.
                unsafe {
                    let (low, high) = (*from, *from.add(1));
                    map(if self.low_from_high { &high } else { &low }, &mut *to, |lane| lane ^ flip[0]);
                    map(if self.high_from_high { &high } else { &low }, &mut *to.add(1), |lane| lane ^ flip[1]);
                }
            }
        }
    }
}

/// The sign bit of a number that SDWA can select.
fn sign_of(numbers: Numbers) -> Option<u32> {
    match numbers {
        Numbers::F16 => Some(1 << 15),
        Numbers::F32 => Some(1 << 31),
        _ => None,
    }
}

#[inline(always)]
fn map(from: &Vreg, to: &mut Vreg, change: impl Fn(u32) -> u32) {
    for (to, from) in to.0.iter_mut().zip(&from.0) {
        *to = change(*from);
    }
}

#[inline(always)]
fn each(register: &mut Vreg, change: impl Fn(u32) -> u32) {
    register.0.iter_mut().for_each(|lane| *lane = change(*lane));
}

/// Lowest bit and width of an SDWA selection.
fn place(select: SdwaSel) -> (u32, u32) {
    match select {
        SdwaSel::Byte0 => (0, 8),
        SdwaSel::Byte1 => (8, 8),
        SdwaSel::Byte2 => (16, 8),
        SdwaSel::Byte3 => (24, 8),
        SdwaSel::Word0 => (0, 16),
        SdwaSel::Word1 => (16, 16),
        SdwaSel::Dword => (0, 32),
    }
}

/// Changes the result in staging registers and writes it to the active lanes.
pub(super) struct Finish;

impl Body for Finish {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let shape = cx.modified.shape;
        let active = cx.modified.active;
        if shape.result_has_bit && m.aux & DPP != 0 {
            cx.write_sgpr64(m.dst2, cx.sgpr64(m.dst2) & active);
        }
        let mut placing = None;
        if m.aux & RESULT_CHANGES != 0
            && let Some((mods, _)) = modifiers(cx)
        {
            if mods.clamp || mods.omod != 0 {
                scale_and_clamp(cx, mods);
            }
            placing = Placing::of(mods, shape);
        }
        for dword in 0..shape.result_dwords {
            // SAFETY: `translate` checked the destination.
            let register = unsafe { &mut *cx.vgpr.add(m.dst as usize + dword) };
            let result = &mut cx.staging[RESULT + dword];
            if let Some(placing) = &placing {
                for (new, old) in result.0.iter_mut().zip(&register.0) {
                    *new = placing.merged(*old, *new);
                }
            }
            let place = if placing.is_some() { Place::Whole } else { shape.place };
            write_lanes(register, result, active, place);
        }
    }
}

/// Where in its register a narrow result goes.
struct Placing {
    shift: u32,
    /// The bits of the result, in place.
    field: u32,
    /// Bits that keep their old value.
    kept: u32,
    /// Bits that are copies of the result's sign.
    sign: u32,
}

impl Placing {
    fn at(place: Place) -> Self {
        match place {
            Place::Whole => Self { shift: 0, field: u32::MAX, kept: 0, sign: 0 },
            Place::LowHalf => Self { shift: 0, field: 0xffff, kept: 0xffff_0000, sign: 0 },
            Place::HighHalf => Self { shift: 16, field: 0xffff_0000, kept: 0xffff, sign: 0 },
        }
    }

    fn of(mods: &Mods, shape: &Shape) -> Option<Self> {
        if shape.result_dwords != 1 {
            return None;
        }
        if let Some(sdwa) = &mods.sdwa {
            let (shift, bits) = place(sdwa.dst_sel);
            let field = (u32::MAX >> (32 - bits)) << shift;
            // The bits above are copies of the sign, the bits below are zero.
            let above = u32::MAX.checked_shl(shift + bits).unwrap_or(0);
            let (kept, sign) = match sdwa.dst_unused {
                DstUnused::Pad => (0, 0),
                DstUnused::Preserve => (!field, 0),
                DstUnused::Sext => (0, above),
            };
            return Some(Self { shift, field, kept, sign });
        }
        if is_narrow(shape.result) && mods.op_sel & 8 != 0 {
            return Some(Self::at(Place::HighHalf));
        }
        (shape.place != Place::Whole).then_some(Self::at(shape.place))
    }

    #[inline(always)]
    fn merged(&self, old: u32, new: u32) -> u32 {
        let placed = new << self.shift & self.field;
        let highest = self.field & !(self.field >> 1);
        let sign = if placed & highest != 0 { self.sign } else { 0 };
        old & self.kept | placed | sign
    }
}

/// Output modifier and clamp of floating-point results.
#[inline(never)]
fn scale_and_clamp(cx: &mut Cx<'_>, mods: &Mods) {
    let flags = Flags { mode: cx.w.mode, imm: 0 };
    let [low, high] = &mut cx.staging[RESULT..] else { unreachable!("two registers for the result") };
    let change32 = |bits| finished(flags, mods, f32::from_bits(bits)).to_bits();
    let change16 = |bits: u32| u32::from(finished(flags, mods, Half(bits as u16)).0);
    match cx.modified.shape.result {
        Numbers::F16 => each(low, change16),
        Numbers::F32 => each(low, change32),
        Numbers::PackedF16 => each(low, |lane| change16(lane) | change16(lane >> 16) << 16),
        Numbers::PackedF32 => {
            each(low, change32);
            each(high, change32);
        }
        Numbers::F64 => {
            for (low, high) in low.0.iter_mut().zip(&mut high.0) {
                let bits = u64::from(*low) | u64::from(*high) << 32;
                let bits = finished(flags, mods, f64::from_bits(bits)).to_bits();
                (*low, *high) = (bits as u32, (bits >> 32) as u32);
            }
        }
        _ => {}
    }
}

/// `value` after the output modifier, which works only with output denormals and IEEE mode off and makes -0 +0, and clamp.
fn finished<R: Real>(flags: Flags, mods: &Mods, value: R) -> R {
    let rules = flags.rules::<R>();
    let mut value = value;
    if mods.omod != 0 && !flags.mode.ieee() && !rules.keeps_results {
        value = rules.scale(value, [0, 1, 2, -1][mods.omod as usize & 3]);
        if value.bits() == R::SIGN {
            value = R::zero(false);
        }
    }
    if !mods.clamp {
        return value;
    }
    let one = R::with_bits(((-R::LEAST_EXPONENT + 1) as u64) << R::MANTISSA_BITS);
    if value.not_a_number() {
        if flags.mode.dx10_clamp() { R::zero(false) } else { value }
    } else if value.order() <= R::zero(false).order() {
        R::zero(false)
    } else if value.order() > one.order() {
        one
    } else {
        value
    }
}
