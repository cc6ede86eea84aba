//! One operand.

use crate::info::{DataType, Kind};
use crate::operand::{InlineFloat, Operand, Special};
use crate::reg_class::{Slot, allows_constant, write_objection};
use crate::{Inst, Op};
use std::fmt::{self, Display, Formatter};

/// The operand in one place of an instruction.
pub(super) struct Shown<'a>(pub(super) &'a Inst, pub(super) Slot);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Shown(inst, slot) = *self;
        let (operand, ty) = self.operand();
        match operand {
            Operand::Float(value) if !allows_constant(inst, slot) => f.write_str(number(value)),
            Operand::Literal(value) if !allows_constant(inst, slot) => write!(f, "{}", Immediate(value)),
            Operand::None => f.write_str("off"),
            Operand::Sgpr { first, count } => tuple(f, "s", first, count),
            Operand::Ttmp { first, count } => tuple(f, "ttmp", first, count),
            Operand::Vgpr { first, count } => tuple(f, "v", first, count),
            Operand::Acc { first, count } => tuple(f, "a", first, count),
            Operand::Special(special) => f.write_str(name(special)),
            Operand::Int(value) => write!(f, "{value}"),
            Operand::Float(value) => inline_float(f, value, ty),
            Operand::Literal(value) => literal(f, value, ty),
        }?;
        write_objection(inst, slot, operand, f)
    }
}

impl Shown<'_> {
    /// The operand and the type that decides how LLVM prints a constant in its place.
    fn operand(&self) -> (Operand, DataType) {
        let Shown(inst, slot) = *self;
        let info = inst.op.info();
        match slot {
            Slot::Dst => (inst.dst, info.dst.ty),
            Slot::Sdst => (inst.sdst, info.sdst.ty),
            Slot::Src(i) => {
                let shown_as_f16 = match inst.op {
                    Op::VLdexpF16 => i == 1,
                    Op::VFmaMixF32 | Op::VFmaMixloF16 | Op::VFmaMixhiF16 => true,
                    _ => false,
                };
                (inst.src[i], if shown_as_f16 { DataType::new(Kind::Float, 16, 1) } else { info.src[i].ty })
            }
        }
    }

    /// Whether LLVM takes the operand for a number, rather than for a register or for an expression, which `lit(..)` is.
    pub(super) fn is_number(&self) -> bool {
        match self.operand() {
            (Operand::Int(_) | Operand::Float(_), _) => true,
            (Operand::Literal(value), ty) => !is_replaceable(value, ty),
            _ => false,
        }
    }
}

fn tuple(f: &mut Formatter<'_>, prefix: &str, first: u8, count: u8) -> fmt::Result {
    match count {
        1 => write!(f, "{prefix}{first}"),
        _ => write!(f, "{prefix}[{first}:{}]", u16::from(first) + u16::from(count) - 1),
    }
}

fn name(special: Special) -> &'static str {
    match special {
        Special::FlatScratch => "flat_scratch",
        Special::FlatScratchLo => "flat_scratch_lo",
        Special::FlatScratchHi => "flat_scratch_hi",
        Special::XnackMask => "xnack_mask",
        Special::XnackMaskLo => "xnack_mask_lo",
        Special::XnackMaskHi => "xnack_mask_hi",
        Special::Vcc => "vcc",
        Special::VccLo => "vcc_lo",
        Special::VccHi => "vcc_hi",
        Special::M0 => "m0",
        Special::Null => "null",
        Special::Exec => "exec",
        Special::ExecLo => "exec_lo",
        Special::ExecHi => "exec_hi",
        Special::FlatScratchBaseLo => "src_flat_scratch_base_lo",
        Special::FlatScratchBaseHi => "src_flat_scratch_base_hi",
        Special::SharedBase => "src_shared_base",
        Special::SharedLimit => "src_shared_limit",
        Special::PrivateBase => "src_private_base",
        Special::PrivateLimit => "src_private_limit",
        Special::PopsExitingWaveId => "src_pops_exiting_wave_id",
        Special::Vccz => "src_vccz",
        Special::Execz => "src_execz",
        Special::Scc => "src_scc",
        Special::LdsDirect => "src_lds_direct",
    }
}

/// How LLVM reads and prints a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// 32 bits, an inline float being binary32.
    Int32,
    /// 64 bits, a literal being its low half.
    Int64,
    /// Binary64, a literal being its high half.
    F64,
    /// The low 16 bits, an inline float being binary16.
    Int16,
    F16,
    BF16,
    /// 32 bits, an inline float being binary16 in the low half.
    PackedF16,
    PackedBF16,
}

fn style(ty: DataType) -> Style {
    match (ty.kind, ty.bits, ty.count) {
        (Kind::Float, 64, _) => Style::F64,
        (_, 64, 1) | (_, 8, 8) | (_, 16, 4) => Style::Int64,
        (Kind::Float, 16, 1) => Style::F16,
        (Kind::Bfloat, 16, 1) => Style::BF16,
        (Kind::Float, 16, 2) => Style::PackedF16,
        (Kind::Bfloat, 16, 2) => Style::PackedBF16,
        (_, 16, 1) => Style::Int16,
        _ => Style::Int32,
    }
}

fn inline_float(f: &mut Formatter<'_>, value: InlineFloat, ty: DataType) -> fmt::Result {
    match style(ty) {
        Style::Int16 => write!(f, "{:#x}", value.f16_bits()),
        Style::F64 | Style::Int64 if value == InlineFloat::InvTwoPi => f.write_str("0.15915494309189532"),
        _ => f.write_str(number(value)),
    }
}

fn number(value: InlineFloat) -> &'static str {
    match value {
        InlineFloat::Half => "0.5",
        InlineFloat::NegHalf => "-0.5",
        InlineFloat::One => "1.0",
        InlineFloat::NegOne => "-1.0",
        InlineFloat::Two => "2.0",
        InlineFloat::NegTwo => "-2.0",
        InlineFloat::Four => "4.0",
        InlineFloat::NegFour => "-4.0",
        InlineFloat::InvTwoPi => "0.15915494",
    }
}

/// A literal. One that an inline constant could replace is `lit(..)`, so that assembling it again gives the same bytes.
fn literal(f: &mut Formatter<'_>, value: u32, ty: DataType) -> fmt::Result {
    match style(ty) {
        _ if is_replaceable(value, ty) => write!(f, "lit({value:#x})"),
        Style::F64 => float64_literal(f, value),
        Style::Int16 | Style::F16 => write!(f, "{:#x}", value as u16),
        _ => write!(f, "{value:#x}"),
    }
}

fn is_replaceable(value: u32, ty: DataType) -> bool {
    let low = u32::from(value as u16);
    let is_float = |bits: fn(InlineFloat) -> u32, value: u32| InlineFloat::ALL.into_iter().any(|c| bits(c) == value);
    let is_int = |value: i32| (-16..=64).contains(&value);
    let f16: fn(InlineFloat) -> u32 = |constant| constant.f16_bits().into();
    let bf16: fn(InlineFloat) -> u32 = |constant| constant.bf16_bits().into();
    match style(ty) {
        Style::Int32 | Style::Int16 => is_int(value as i32) || is_float(InlineFloat::f32_bits, value),
        Style::Int64 => value <= 64,
        Style::F64 => false,
        Style::F16 => is_int((value as i16).into()) || is_float(f16, low),
        Style::BF16 => is_int((value as i16).into()) || is_float(bf16, low),
        Style::PackedF16 => is_int(value as i32) || is_float(f16, value),
        Style::PackedBF16 => is_int(value as i32) || is_float(bf16, value),
    }
}

/// The high half of a binary64, printed as the number if an inline constant is the same.
fn float64_literal(f: &mut Formatter<'_>, high: u32) -> fmt::Result {
    match InlineFloat::ALL.into_iter().find(|constant| constant.f64_bits() == u64::from(high) << 32) {
        _ if high == 0 => f.write_str("0"),
        Some(constant) => f.write_str(number(constant)),
        None => write!(f, "{high:#x}"),
    }
}

/// A 32-bit immediate: as the inline constant with the same bits, if there is one.
pub(super) struct Immediate(pub(super) u32);

impl Display for Immediate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let value = self.0;
        match InlineFloat::ALL.into_iter().find(|constant| constant.f32_bits() == value) {
            _ if (-16..=64).contains(&(value as i32)) => write!(f, "{}", value as i32),
            Some(constant) => f.write_str(number(constant)),
            None => write!(f, "{value:#x}"),
        }
    }
}
