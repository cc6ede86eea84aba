//! One operand.

use crate::info::{DataType, Kind};
use crate::operand::{InlineFloat, Operand, Special};
use std::fmt::{self, Display, Formatter};

/// An operand and the type its instruction reads it as, which decides how constants print.
pub(super) struct Typed(pub(super) Operand, pub(super) DataType);

impl Display for Typed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Typed(operand, ty) = *self;
        match operand {
            Operand::None => f.write_str("off"),
            Operand::Sgpr { first, count } => tuple(f, "s", first, count),
            Operand::Ttmp { first, count } => tuple(f, "ttmp", first, count),
            Operand::Vgpr { first, count } => tuple(f, "v", first, count),
            Operand::Acc { first, count } => tuple(f, "a", first, count),
            Operand::Special(special) => f.write_str(name(special)),
            Operand::Int(value) => write!(f, "{value}"),
            Operand::Float(value) => inline_float(f, value, ty),
            Operand::Literal(value) => literal(f, value, ty),
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

/// Whether LLVM reads the operand as 16-bit numbers: packed 16-bit types too, whose constants are one half.
fn is_16_bit(ty: DataType) -> bool {
    ty.bits == 16
}

fn inline_float(f: &mut Formatter<'_>, value: InlineFloat, ty: DataType) -> fmt::Result {
    if is_16_bit(ty) && !ty.is_float() {
        return write!(f, "{:#x}", value.f16_bits());
    }
    f.write_str(match value {
        InlineFloat::Half => "0.5",
        InlineFloat::NegHalf => "-0.5",
        InlineFloat::One => "1.0",
        InlineFloat::NegOne => "-1.0",
        InlineFloat::Two => "2.0",
        InlineFloat::NegTwo => "-2.0",
        InlineFloat::Four => "4.0",
        InlineFloat::NegFour => "-4.0",
        InlineFloat::InvTwoPi if ty.total_bits() == 64 => "0.15915494309189532",
        InlineFloat::InvTwoPi => "0.15915494",
    })
}

fn literal(f: &mut Formatter<'_>, value: u32, ty: DataType) -> fmt::Result {
    if is_16_bit(ty) {
        let half = value as u16;
        return match InlineFloat::ALL.into_iter().find(|c| c.f16_bits() == half && ty.kind == Kind::Float) {
            _ if (-16..=64).contains(&(half as i16)) => write!(f, "{}", half as i16),
            Some(constant) => inline_float(f, constant, ty),
            None => write!(f, "{half:#x}"),
        };
    }
    immediate32(f, value)
}

/// A 32-bit immediate: as the inline constant with the same bits, if there is one.
pub(super) fn immediate32(f: &mut Formatter<'_>, value: u32) -> fmt::Result {
    match InlineFloat::ALL.into_iter().find(|constant| constant.f32_bits() == value) {
        _ if (-16..=64).contains(&(value as i32)) => write!(f, "{}", value as i32),
        Some(constant) => inline_float(f, constant, DataType::new(Kind::Float, 32, 1)),
        None => write!(f, "{value:#x}"),
    }
}
