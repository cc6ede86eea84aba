//! The form of vector instructions with modifiers: DPP, SDWA, `op_sel`, `neg`, `abs`, `omod`, `clamp`, or a MODE other
//! than the usual one.
//!
//! Sources are brought to staging registers and changed there, the lane function runs over all lanes, and the result is
//! changed and written where EXEC and the modifiers allow. All sources are read before anything is written, so an
//! in-place DPP instruction sees only old values.

use std::marker::PhantomData;

use isa::{DstUnused, Mods, Sdwa, SdwaSel};

use super::lanes::{Compare, Element, Flags, Lane, Numbers};
use super::level::Body;
use super::{Cx, Micro, Src, SrcKind, dpp};
use crate::wave::{LANES, Mode, Vreg};

/// The modified form of `L`.
pub(crate) struct Modified<L>(PhantomData<L>);

impl<L: Lane> Body for Modified<L> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let Some(inst) = cx.code.inst(cx.w.pc - 1) else { return };
        let mods = inst.mods;
        let flags = Flags { mode: cx.w.mode, clamp: mods.clamp };
        // SAFETY: passed on; each source has two staging registers.
        unsafe {
            let exec = stage_sources::<L::A, L::B, L::C>(cx, m, &mods, L::SOURCES);
            for lane in 0..LANES {
                let value = L::with_flags(flags, staged(cx, 0, lane), staged(cx, 1, lane), staged(cx, 2, lane));
                let (mut low, mut high) = value.to_dwords();
                finish(L::RESULT, flags.mode, &mods, &mut low, &mut high);
                cx.staging[6].0[lane] = low;
                cx.staging[7].0[lane] = high;
            }
            let target = Target { first: m.dst, dwords: L::D::DWORDS, keeps_high_half: L::KEEPS_HIGH_HALF };
            write(cx, &target, L::RESULT, &mods, exec);
        }
    }
}

/// The modified form of comparison `P`.
pub(crate) struct ModifiedCompare<P, const EXEC_TOO: bool>(PhantomData<P>);

impl<P: Compare, const EXEC_TOO: bool> Body for ModifiedCompare<P, EXEC_TOO> {
    #[inline(always)]
    unsafe fn go(cx: &mut Cx<'_>, m: &Micro) {
        let Some(inst) = cx.code.inst(cx.w.pc - 1) else { return };
        let mods = inst.mods;
        let flags = Flags { mode: cx.w.mode, clamp: mods.clamp };
        // SAFETY: as above.
        unsafe {
            let exec = stage_sources::<P::A, P::B, ()>(cx, m, &mods, P::SOURCES);
            let mut bits = 0;
            for lane in 0..LANES {
                bits |= u64::from(P::holds(flags, staged(cx, 0, lane), staged(cx, 1, lane))) << lane;
            }
            bits &= exec;
            cx.write_sgpr64(m.dst, bits);
            if EXEC_TOO {
                cx.set_exec(bits);
            }
        }
    }
}

/// Source `i` of lane `lane` from staging.
#[inline(always)]
fn staged<E: Element>(cx: &Cx<'_>, i: usize, lane: usize) -> E {
    E::from_dwords(cx.staging[2 * i].0[lane], cx.staging[2 * i + 1].0[lane])
}

/// Brings the sources to staging with everything done to them, and gives the lanes that may be written.
///
/// # Safety
/// The registers of `m` are within the wave's.
#[inline(always)]
unsafe fn stage_sources<A: Element, B: Element, C: Element>(
    cx: &mut Cx<'_>,
    m: &Micro,
    mods: &Mods,
    numbers: Numbers,
) -> u64 {
    let mut exec = cx.exec();
    // SAFETY: passed on.
    unsafe {
        stage(cx, m.src[0], A::DWORDS, 0);
        stage(cx, m.src[1], B::DWORDS, 1);
        stage(cx, m.src[2], C::DWORDS, 2);
    }
    if let Some(dpp) = &mods.dpp {
        let (low, valid) = dpp::permute(dpp, &cx.staging[0], exec);
        cx.staging[0] = low;
        if A::DWORDS == 2 {
            cx.staging[1] = dpp::permute(dpp, &cx.staging[1], exec).0;
        }
        exec &= valid;
    }
    for i in 0..3 {
        let [low, high] = &mut cx.staging[2 * i..2 * i + 2] else { unreachable!("two registers a source") };
        change_source(mods, numbers, i, low, high);
    }
    exec
}

/// # Safety
/// `src` is within the wave's registers.
unsafe fn stage(cx: &mut Cx<'_>, src: Src, dwords: usize, i: usize) {
    if dwords == 0 {
        return;
    }
    if src.kind == SrcKind::Vgpr {
        for dword in 0..dwords {
            // SAFETY: `translate` checked that all dwords of the operand are in the wave's file.
            cx.staging[2 * i + dword] = unsafe { *cx.vgpr.add(src.index as usize + dword) };
        }
    } else {
        let (low, high) = if dwords == 2 { cx.scalar64(src) } else { (cx.scalar32(src), 0) };
        cx.staging[2 * i].0 = [low; LANES];
        cx.staging[2 * i + 1].0 = [high; LANES];
    }
}

/// Selection, then absolute value, then negation.
fn change_source(mods: &Mods, numbers: Numbers, i: usize, low: &mut Vreg, high: &mut Vreg) {
    let bit = |bits: u8| bits >> i & 1 == 1;
    if let Some(sdwa) = &mods.sdwa
        && i < 2
    {
        let select = if i == 0 { sdwa.src0_sel } else { sdwa.src1_sel };
        low.0.iter_mut().for_each(|lane| *lane = selected(select, bit(sdwa.sext), *lane));
    }
    let (abs, neg, neg_hi) = (bit(mods.abs), bit(mods.neg), bit(mods.neg_hi));
    let halves = |op_sel: bool, op_sel_hi: bool, lane: u32| {
        let half = |high: bool| if high { lane >> 16 } else { lane & 0xffff };
        half(op_sel) | half(op_sel_hi) << 16
    };
    let sign = |lanes: &mut Vreg, bit: u32| {
        if abs {
            lanes.0.iter_mut().for_each(|lane| *lane &= !bit);
        }
        if neg {
            lanes.0.iter_mut().for_each(|lane| *lane ^= bit);
        }
    };
    match numbers {
        Numbers::Bits | Numbers::Integer => {}
        Numbers::Bits16 | Numbers::F16 => {
            if bit(mods.op_sel) {
                low.0.iter_mut().for_each(|lane| *lane >>= 16);
            }
            if numbers == Numbers::F16 {
                sign(low, 1 << 15);
            }
        }
        Numbers::F32 => sign(low, 1 << 31),
        Numbers::F64 => sign(high, 1 << 31),
        Numbers::PackedF16 | Numbers::PackedBf16 | Numbers::PackedI16 => {
            let flip = u32::from(neg) << 15 | u32::from(neg_hi) << 31;
            let (op_sel, op_sel_hi) = (bit(mods.op_sel), bit(mods.op_sel_hi));
            low.0.iter_mut().for_each(|lane| *lane = halves(op_sel, op_sel_hi, *lane) ^ flip);
        }
        Numbers::PackedF32 => {
            let flip = [u32::from(neg) << 31, u32::from(neg_hi) << 31];
            for (low, high) in low.0.iter_mut().zip(&mut high.0) {
                let pair = [*low, *high];
                *low = pair[usize::from(bit(mods.op_sel))] ^ flip[0];
                *high = pair[usize::from(bit(mods.op_sel_hi))] ^ flip[1];
            }
        }
    }
}

/// The part of `lane` that an SDWA selection names, extended to 32 bits.
fn selected(select: SdwaSel, sign: bool, lane: u32) -> u32 {
    let (shift, bits) = place(select);
    let part = lane >> shift;
    match (bits, sign) {
        (8, false) => part & 0xff,
        (8, true) => part as i8 as u32,
        (16, false) => part & 0xffff,
        (16, true) => part as i16 as u32,
        _ => part,
    }
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

/// Output modifier and clamp of floating-point results.
fn finish(numbers: Numbers, mode: Mode, mods: &Mods, low: &mut u32, high: &mut u32) {
    if mods.omod == 0 && !mods.clamp {
        return;
    }
    match numbers {
        Numbers::F32 => {
            let mut value = f32::from_bits(*low);
            if !mode.ieee() && !mode.keeps_output_denormals_f32() {
                value = f32::from_bits(flushed_f32((value * multiplier(mods.omod) as f32).to_bits()));
            }
            *low = if mods.clamp { clamp_f32(mode, value) } else { value }.to_bits();
        }
        Numbers::F64 => {
            let mut value = f64::from_bits(u64::from(*low) | u64::from(*high) << 32);
            if !mode.ieee() && !mode.keeps_output_denormals_f16_f64() {
                value *= multiplier(mods.omod);
                if value.is_subnormal() || value == 0.0 {
                    value = 0.0;
                }
            }
            if mods.clamp {
                value = if value.is_nan() && mode.dx10_clamp() { 0.0 } else { clamp_keeping_nan(value) };
            }
            (*low, *high) = value.to_bits().to_dwords();
        }
        Numbers::F16 => {
            let mut value = half::f16::from_bits(*low as u16);
            if !mode.ieee() && !mode.keeps_output_denormals_f16_f64() {
                value = half::f16::from_f32(value.to_f32() * multiplier(mods.omod) as f32);
                if value.to_f32().abs() < half::f16::MIN_POSITIVE.to_f32() {
                    value = half::f16::ZERO;
                }
            }
            if mods.clamp {
                value = clamp_f16(mode, value);
            }
            *low = *low & 0xffff_0000 | u32::from(value.to_bits());
        }
        Numbers::PackedF16 if mods.clamp => {
            let each = |bits: u32| u32::from(clamp_f16(mode, half::f16::from_bits(bits as u16)).to_bits());
            *low = each(*low) | each(*low >> 16) << 16;
        }
        Numbers::PackedBf16 if mods.clamp => {
            let each = |bits: u32| clamp_f32(mode, f32::from_bits(bits << 16)).to_bits() >> 16;
            *low = each(*low) | each(*low >> 16) << 16;
        }
        Numbers::PackedF32 if mods.clamp => {
            *low = clamp_f32(mode, f32::from_bits(*low)).to_bits();
            *high = clamp_f32(mode, f32::from_bits(*high)).to_bits();
        }
        // Integer clamp is the lane function's own business.
        _ => {}
    }
}

fn multiplier(omod: u8) -> f64 {
    [1.0, 2.0, 4.0, 0.5][omod as usize & 3]
}

fn flushed_f32(bits: u32) -> u32 {
    // With output denormals off, omod also turns minus zero into plus zero (CDNA4 ISA, "Output modifiers").
    if bits & 0x7f80_0000 == 0 { 0 } else { bits }
}

fn clamp_keeping_nan(value: f64) -> f64 {
    if value.is_nan() {
        value
    } else if value > 0.0 {
        value.min(1.0)
    } else {
        0.0
    }
}

fn clamp_f32(mode: Mode, value: f32) -> f32 {
    if value.is_nan() && !mode.dx10_clamp() {
        value
    } else if value > 0.0 {
        value.min(1.0)
    } else {
        0.0
    }
}

fn clamp_f16(mode: Mode, value: half::f16) -> half::f16 {
    let clamped = clamp_f32(mode, value.to_f32());
    if clamped.is_nan() { value } else { half::f16::from_f32(clamped) }
}

/// Where a result goes.
struct Target {
    first: u16,
    dwords: usize,
    /// 16-bit results keep the other half of the register, where most clear it.
    keeps_high_half: bool,
}

/// Writes the result from staging registers 6 and 7 in the lanes of `mask`.
///
/// # Safety
/// The target is within the wave's registers.
unsafe fn write(cx: &mut Cx<'_>, target: &Target, numbers: Numbers, mods: &Mods, mask: u64) {
    let narrow = matches!(numbers, Numbers::F16 | Numbers::Bits16);
    for dword in 0..target.dwords {
        // SAFETY: `translate` checked the destination.
        let register = unsafe { &mut (*cx.vgpr.add(target.first as usize + dword)).0 };
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 == 1) {
            let (new, old) = (cx.staging[6 + dword].0[lane], register[lane]);
            register[lane] = match &mods.sdwa {
                Some(sdwa) => merged(sdwa, old, new),
                None if narrow && mods.op_sel & 8 != 0 => old & 0xffff | new << 16,
                None if narrow && target.keeps_high_half => old & 0xffff_0000 | new & 0xffff,
                None => new,
            };
        }
    }
}

/// An SDWA destination: `new` in the selected part, the rest as `dst_unused` says.
fn merged(sdwa: &Sdwa, old: u32, new: u32) -> u32 {
    let (shift, bits) = place(sdwa.dst_sel);
    if bits == 32 {
        return new;
    }
    let field = ((1u32 << bits) - 1) << shift;
    let placed = new << shift & field;
    match sdwa.dst_unused {
        DstUnused::Pad => placed,
        DstUnused::Preserve => old & !field | placed,
        DstUnused::Sext => {
            // The bits above are copies of the sign, the bits below are zero.
            let above = !(field | (1u32 << shift).wrapping_sub(1));
            placed | if placed >> (shift + bits - 1) & 1 == 1 { above } else { 0 }
        }
    }
}
