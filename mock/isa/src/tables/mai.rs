//! Matrix: VOP3P-MAI.
//!
//! Opcodes: ISA, "Microcode Formats", VOP3P-MAI and LLVM `VOP3PInstructions.td`; operand sizes: ISA, "Matrix Arithmetic Instructions", M x N x blocks / 64 lanes.

use super::row::Row;
use super::types::*;
use super::vector_shapes::*;
use crate::Op::*;

/// Matrix instructions and moves to and from AccVGPRs.
#[rustfmt::skip]
pub(super) const MAI: &[Row] = &[
    mfma(0x2d, VMfmaF32_16x16x128F8f6f4, "v_mfma_f32_16x16x128_f8f6f4", shape(16, 16, 128, 1), F32, F8F6F4, F8F6F4),
    mfma(0x2e, VMfmaF32_32x32x64F8f6f4, "v_mfma_f32_32x32x64_f8f6f4", shape(32, 32, 64, 1), F32, F8F6F4, F8F6F4),
    mfma(0x35, VMfmaF32_16x16x32Bf16, "v_mfma_f32_16x16x32_bf16", shape(16, 16, 32, 1), F32, BF16, BF16),
    mfma(0x36, VMfmaI32_16x16x64I8, "v_mfma_i32_16x16x64_i8", shape(16, 16, 64, 1), I32, I8, I8),
    mfma(0x37, VMfmaF32_32x32x16Bf16, "v_mfma_f32_32x32x16_bf16", shape(32, 32, 16, 1), F32, BF16, BF16),
    mfma(0x38, VMfmaI32_32x32x32I8, "v_mfma_i32_32x32x32_i8", shape(32, 32, 32, 1), I32, I8, I8),
    smfmac(0x39, VSmfmacF32_16x16x64Bf16, "v_smfmac_f32_16x16x64_bf16", shape(16, 16, 64, 1), F32, BF16, BF16),
    smfmac(0x3a, VSmfmacI32_16x16x128I8, "v_smfmac_i32_16x16x128_i8", shape(16, 16, 128, 1), I32, I8, I8),
    smfmac(0x3b, VSmfmacF32_16x16x128Bf8Bf8, "v_smfmac_f32_16x16x128_bf8_bf8", shape(16, 16, 128, 1), F32, BF8, BF8),
    smfmac(0x3c, VSmfmacF32_16x16x128Bf8Fp8, "v_smfmac_f32_16x16x128_bf8_fp8", shape(16, 16, 128, 1), F32, BF8, FP8),
    smfmac(0x3d, VSmfmacF32_16x16x128Fp8Bf8, "v_smfmac_f32_16x16x128_fp8_bf8", shape(16, 16, 128, 1), F32, FP8, BF8),
    mfma(0x40, VMfmaF32_32x32x1_2bF32, "v_mfma_f32_32x32x1_2b_f32", shape(32, 32, 1, 2), F32, F32, F32),
    mfma(0x41, VMfmaF32_16x16x1_4bF32, "v_mfma_f32_16x16x1_4b_f32", shape(16, 16, 1, 4), F32, F32, F32),
    mfma(0x42, VMfmaF32_4x4x1_16bF32, "v_mfma_f32_4x4x1_16b_f32", shape(4, 4, 1, 16), F32, F32, F32),
    smfmac(0x43, VSmfmacF32_16x16x128Fp8Fp8, "v_smfmac_f32_16x16x128_fp8_fp8", shape(16, 16, 128, 1), F32, FP8, FP8),
    mfma(0x44, VMfmaF32_32x32x2F32, "v_mfma_f32_32x32x2_f32", shape(32, 32, 2, 1), F32, F32, F32),
    mfma(0x45, VMfmaF32_16x16x4F32, "v_mfma_f32_16x16x4_f32", shape(16, 16, 4, 1), F32, F32, F32),
    smfmac(0x46, VSmfmacF32_32x32x32Bf16, "v_smfmac_f32_32x32x32_bf16", shape(32, 32, 32, 1), F32, BF16, BF16),
    smfmac(0x47, VSmfmacI32_32x32x64I8, "v_smfmac_i32_32x32x64_i8", shape(32, 32, 64, 1), I32, I8, I8),
    mfma(0x48, VMfmaF32_32x32x4_2bF16, "v_mfma_f32_32x32x4_2b_f16", shape(32, 32, 4, 2), F32, F16, F16),
    mfma(0x49, VMfmaF32_16x16x4_4bF16, "v_mfma_f32_16x16x4_4b_f16", shape(16, 16, 4, 4), F32, F16, F16),
    mfma(0x4a, VMfmaF32_4x4x4_16bF16, "v_mfma_f32_4x4x4_16b_f16", shape(4, 4, 4, 16), F32, F16, F16),
    smfmac(0x4b, VSmfmacF32_32x32x64Bf8Bf8, "v_smfmac_f32_32x32x64_bf8_bf8", shape(32, 32, 64, 1), F32, BF8, BF8),
    mfma(0x4c, VMfmaF32_32x32x8F16, "v_mfma_f32_32x32x8_f16", shape(32, 32, 8, 1), F32, F16, F16),
    mfma(0x4d, VMfmaF32_16x16x16F16, "v_mfma_f32_16x16x16_f16", shape(16, 16, 16, 1), F32, F16, F16),
    smfmac(0x4e, VSmfmacF32_32x32x64Bf8Fp8, "v_smfmac_f32_32x32x64_bf8_fp8", shape(32, 32, 64, 1), F32, BF8, FP8),
    smfmac(0x4f, VSmfmacF32_32x32x64Fp8Bf8, "v_smfmac_f32_32x32x64_fp8_bf8", shape(32, 32, 64, 1), F32, FP8, BF8),
    mfma(0x50, VMfmaI32_32x32x4_2bI8, "v_mfma_i32_32x32x4_2b_i8", shape(32, 32, 4, 2), I32, I8, I8),
    mfma(0x51, VMfmaI32_16x16x4_4bI8, "v_mfma_i32_16x16x4_4b_i8", shape(16, 16, 4, 4), I32, I8, I8),
    mfma(0x52, VMfmaI32_4x4x4_16bI8, "v_mfma_i32_4x4x4_16b_i8", shape(4, 4, 4, 16), I32, I8, I8),
    smfmac(0x53, VSmfmacF32_32x32x64Fp8Fp8, "v_smfmac_f32_32x32x64_fp8_fp8", shape(32, 32, 64, 1), F32, FP8, FP8),
    mfma(0x54, VMfmaF32_16x16x32F16, "v_mfma_f32_16x16x32_f16", shape(16, 16, 32, 1), F32, F16, F16),
    mfma(0x55, VMfmaF32_32x32x16F16, "v_mfma_f32_32x32x16_f16", shape(32, 32, 16, 1), F32, F16, F16),
    mfma(0x56, VMfmaI32_32x32x16I8, "v_mfma_i32_32x32x16_i8", shape(32, 32, 16, 1), I32, I8, I8),
    mfma(0x57, VMfmaI32_16x16x32I8, "v_mfma_i32_16x16x32_i8", shape(16, 16, 32, 1), I32, I8, I8),
    accvgpr(0x58, VAccvgprReadB32, "v_accvgpr_read_b32"),
    accvgpr(0x59, VAccvgprWriteB32, "v_accvgpr_write_b32"),
    smfmac(0x5a, VSmfmacF32_16x16x64F16, "v_smfmac_f32_16x16x64_f16", shape(16, 16, 64, 1), F32, F16, F16),
    smfmac(0x5b, VSmfmacF32_32x32x32F16, "v_smfmac_f32_32x32x32_f16", shape(32, 32, 32, 1), F32, F16, F16),
    mfma(0x5d, VMfmaF32_32x32x4_2bBf16, "v_mfma_f32_32x32x4_2b_bf16", shape(32, 32, 4, 2), F32, BF16, BF16),
    mfma(0x5e, VMfmaF32_16x16x4_4bBf16, "v_mfma_f32_16x16x4_4b_bf16", shape(16, 16, 4, 4), F32, BF16, BF16),
    mfma(0x5f, VMfmaF32_4x4x4_16bBf16, "v_mfma_f32_4x4x4_16b_bf16", shape(4, 4, 4, 16), F32, BF16, BF16),
    mfma(0x60, VMfmaF32_32x32x8Bf16, "v_mfma_f32_32x32x8_bf16", shape(32, 32, 8, 1), F32, BF16, BF16),
    mfma(0x61, VMfmaF32_16x16x16Bf16, "v_mfma_f32_16x16x16_bf16", shape(16, 16, 16, 1), F32, BF16, BF16),
    smfmac(0x62, VSmfmacF32_16x16x32F16, "v_smfmac_f32_16x16x32_f16", shape(16, 16, 32, 1), F32, F16, F16),
    smfmac(0x64, VSmfmacF32_32x32x16F16, "v_smfmac_f32_32x32x16_f16", shape(32, 32, 16, 1), F32, F16, F16),
    smfmac(0x66, VSmfmacF32_16x16x32Bf16, "v_smfmac_f32_16x16x32_bf16", shape(16, 16, 32, 1), F32, BF16, BF16),
    smfmac(0x68, VSmfmacF32_32x32x16Bf16, "v_smfmac_f32_32x32x16_bf16", shape(32, 32, 16, 1), F32, BF16, BF16),
    smfmac(0x6a, VSmfmacI32_16x16x64I8, "v_smfmac_i32_16x16x64_i8", shape(16, 16, 64, 1), I32, I8, I8),
    smfmac(0x6c, VSmfmacI32_32x32x32I8, "v_smfmac_i32_32x32x32_i8", shape(32, 32, 32, 1), I32, I8, I8),
    mfma(0x6e, VMfmaF64_16x16x4F64, "v_mfma_f64_16x16x4_f64", shape(16, 16, 4, 1), F64, F64, F64),
    mfma(0x6f, VMfmaF64_4x4x4_4bF64, "v_mfma_f64_4x4x4_4b_f64", shape(4, 4, 4, 4), F64, F64, F64),
    mfma(0x70, VMfmaF32_16x16x32Bf8Bf8, "v_mfma_f32_16x16x32_bf8_bf8", shape(16, 16, 32, 1), F32, BF8, BF8),
    mfma(0x71, VMfmaF32_16x16x32Bf8Fp8, "v_mfma_f32_16x16x32_bf8_fp8", shape(16, 16, 32, 1), F32, BF8, FP8),
    mfma(0x72, VMfmaF32_16x16x32Fp8Bf8, "v_mfma_f32_16x16x32_fp8_bf8", shape(16, 16, 32, 1), F32, FP8, BF8),
    mfma(0x73, VMfmaF32_16x16x32Fp8Fp8, "v_mfma_f32_16x16x32_fp8_fp8", shape(16, 16, 32, 1), F32, FP8, FP8),
    mfma(0x74, VMfmaF32_32x32x16Bf8Bf8, "v_mfma_f32_32x32x16_bf8_bf8", shape(32, 32, 16, 1), F32, BF8, BF8),
    mfma(0x75, VMfmaF32_32x32x16Bf8Fp8, "v_mfma_f32_32x32x16_bf8_fp8", shape(32, 32, 16, 1), F32, BF8, FP8),
    mfma(0x76, VMfmaF32_32x32x16Fp8Bf8, "v_mfma_f32_32x32x16_fp8_bf8", shape(32, 32, 16, 1), F32, FP8, BF8),
    mfma(0x77, VMfmaF32_32x32x16Fp8Fp8, "v_mfma_f32_32x32x16_fp8_fp8", shape(32, 32, 16, 1), F32, FP8, FP8),
    smfmac(0x78, VSmfmacF32_16x16x64Bf8Bf8, "v_smfmac_f32_16x16x64_bf8_bf8", shape(16, 16, 64, 1), F32, BF8, BF8),
    smfmac(0x79, VSmfmacF32_16x16x64Bf8Fp8, "v_smfmac_f32_16x16x64_bf8_fp8", shape(16, 16, 64, 1), F32, BF8, FP8),
    smfmac(0x7a, VSmfmacF32_16x16x64Fp8Bf8, "v_smfmac_f32_16x16x64_fp8_bf8", shape(16, 16, 64, 1), F32, FP8, BF8),
    smfmac(0x7b, VSmfmacF32_16x16x64Fp8Fp8, "v_smfmac_f32_16x16x64_fp8_fp8", shape(16, 16, 64, 1), F32, FP8, FP8),
    smfmac(0x7c, VSmfmacF32_32x32x32Bf8Bf8, "v_smfmac_f32_32x32x32_bf8_bf8", shape(32, 32, 32, 1), F32, BF8, BF8),
    smfmac(0x7d, VSmfmacF32_32x32x32Bf8Fp8, "v_smfmac_f32_32x32x32_bf8_fp8", shape(32, 32, 32, 1), F32, BF8, FP8),
    smfmac(0x7e, VSmfmacF32_32x32x32Fp8Bf8, "v_smfmac_f32_32x32x32_fp8_bf8", shape(32, 32, 32, 1), F32, FP8, BF8),
    smfmac(0x7f, VSmfmacF32_32x32x32Fp8Fp8, "v_smfmac_f32_32x32x32_fp8_fp8", shape(32, 32, 32, 1), F32, FP8, FP8),
];

/// Scaled matrix instructions; the opcode is that of the matrix instruction in the second half.
#[rustfmt::skip]
pub(super) const SCALED: &[Row] = &[
    mfma_scale(0x2d, VMfmaScaleF32_16x16x128F8f6f4, "v_mfma_scale_f32_16x16x128_f8f6f4", shape(16, 16, 128, 1)),
    mfma_scale(0x2e, VMfmaScaleF32_32x32x64F8f6f4, "v_mfma_scale_f32_32x32x64_f8f6f4", shape(32, 32, 64, 1)),
];
