//! Vector ALU, packed: VOP3P.
//!
//! Opcodes: ISA, "Microcode Formats", VOP3P, LLVM `VOP3PInstructions.td`.

use super::row::Row;
use super::types::*;
use super::vector_shapes::*;
use crate::Op::*;

/// Packed.
#[rustfmt::skip]
pub(super) const VOP3P: &[Row] = &[
    vop3p(0x00, VPkMadI16, "v_pk_mad_i16", PK_I16, &[PK_I16, PK_I16, PK_I16]),
    vop3p(0x01, VPkMulLoU16, "v_pk_mul_lo_u16", PK_U16, &[PK_U16, PK_U16]),
    vop3p(0x02, VPkAddI16, "v_pk_add_i16", PK_I16, &[PK_I16, PK_I16]),
    vop3p(0x03, VPkSubI16, "v_pk_sub_i16", PK_I16, &[PK_I16, PK_I16]),
    vop3p(0x04, VPkLshlrevB16, "v_pk_lshlrev_b16", PK_B16, &[PK_U16, PK_B16]),
    vop3p(0x05, VPkLshrrevB16, "v_pk_lshrrev_b16", PK_B16, &[PK_U16, PK_B16]),
    vop3p(0x06, VPkAshrrevI16, "v_pk_ashrrev_i16", PK_I16, &[PK_U16, PK_I16]),
    vop3p(0x07, VPkMaxI16, "v_pk_max_i16", PK_I16, &[PK_I16, PK_I16]),
    vop3p(0x08, VPkMinI16, "v_pk_min_i16", PK_I16, &[PK_I16, PK_I16]),
    vop3p(0x09, VPkMadU16, "v_pk_mad_u16", PK_U16, &[PK_U16, PK_U16, PK_U16]),
    vop3p(0x0a, VPkAddU16, "v_pk_add_u16", PK_U16, &[PK_U16, PK_U16]),
    vop3p(0x0b, VPkSubU16, "v_pk_sub_u16", PK_U16, &[PK_U16, PK_U16]),
    vop3p(0x0c, VPkMaxU16, "v_pk_max_u16", PK_U16, &[PK_U16, PK_U16]),
    vop3p(0x0d, VPkMinU16, "v_pk_min_u16", PK_U16, &[PK_U16, PK_U16]),
    vop3p(0x0e, VPkFmaF16, "v_pk_fma_f16", PK_F16, &[PK_F16, PK_F16, PK_F16]),
    vop3p(0x0f, VPkAddF16, "v_pk_add_f16", PK_F16, &[PK_F16, PK_F16]),
    vop3p(0x10, VPkMulF16, "v_pk_mul_f16", PK_F16, &[PK_F16, PK_F16]),
    vop3p(0x11, VPkMinF16, "v_pk_min_f16", PK_F16, &[PK_F16, PK_F16]),
    vop3p(0x12, VPkMaxF16, "v_pk_max_f16", PK_F16, &[PK_F16, PK_F16]),
    vop3p(0x1a, VDot2F32Bf16, "v_dot2_f32_bf16", F32, &[PK_BF16, PK_BF16, F32]),
    vop3p(0x1b, VPkMinimum3F16, "v_pk_minimum3_f16", PK_F16, &[PK_F16, PK_F16, PK_F16]),
    vop3p(0x1c, VPkMaximum3F16, "v_pk_maximum3_f16", PK_F16, &[PK_F16, PK_F16, PK_F16]),
    vop3p(0x20, VFmaMixF32, "v_fma_mix_f32", F32, &[F32, F32, F32]),
    vop3p(0x21, VFmaMixloF16, "v_fma_mixlo_f16", F16, &[F32, F32, F32]).keeps_dst(),
    vop3p(0x22, VFmaMixhiF16, "v_fma_mixhi_f16", F16, &[F32, F32, F32]).keeps_dst(),
    vop3p(0x23, VDot2F32F16, "v_dot2_f32_f16", F32, &[PK_F16, PK_F16, F32]),
    vop3p(0x26, VDot2I32I16, "v_dot2_i32_i16", I32, &[PK_I16, PK_I16, I32]),
    vop3p(0x27, VDot2U32U16, "v_dot2_u32_u16", U32, &[PK_U16, PK_U16, U32]),
    vop3p(0x28, VDot4I32I8, "v_dot4_i32_i8", I32, &[PK4_I8, PK4_I8, I32]),
    vop3p(0x29, VDot4U32U8, "v_dot4_u32_u8", U32, &[PK4_U8, PK4_U8, U32]),
    vop3p(0x2a, VDot8I32I4, "v_dot8_i32_i4", I32, &[PK8_I4, PK8_I4, I32]),
    vop3p(0x2b, VDot8U32U4, "v_dot8_u32_u4", U32, &[PK8_U4, PK8_U4, U32]),
    vop3p(0x2c, VMfmaLdScaleB32, "v_mfma_ld_scale_b32", NONE, &[PK4_E8M0, PK4_E8M0]),
    vop3p(0x30, VPkFmaF32, "v_pk_fma_f32", PK_F32, &[PK_F32, PK_F32, PK_F32]),
    vop3p(0x31, VPkMulF32, "v_pk_mul_f32", PK_F32, &[PK_F32, PK_F32]),
    vop3p(0x32, VPkAddF32, "v_pk_add_f32", PK_F32, &[PK_F32, PK_F32]),
    vop3p(0x33, VPkMovB32, "v_pk_mov_b32", PK_B32, &[PK_B32, PK_B32]),
];
