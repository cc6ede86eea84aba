// MXFP4 rows as MFMA operands.
//
// A row holds its values two a byte, low nibble first, and one E8M0 scale for each 32 values. In one step over 128
// values each of the four lanes of a row takes one block of 32: 16 bytes and one scale, which are the operands of four
// MFMAs. The other operand has to follow: MFMA j of a step takes k = 128 step + 32 quarter + 8 j .. + 7.
#pragma once
#include "mfma.h"

constexpr u32 MXFP4_BLOCK = 32, MXFP4_STEP = 128;

// A matrix [rows][depth]; depth is a multiple of 32, rows of packed values start at multiples of 16 bytes.
struct mxfp4 {
  bytes packed, scale;
  u32 packed_pitch, scale_pitch; // bytes
};

struct mxfp4_operand {
  bf16x8 part[4];
};

// A block of 32 values as it lies in memory.
struct mxfp4_block {
  u32x4 packed;
  u8 scale;
};

INLINE struct mxfp4_block mxfp4_fetch(struct mxfp4 m, u32 row, u32 block) {
  return (struct mxfp4_block){*(GLOBAL const u32x4 *)(m.packed + (u64)row * m.packed_pitch + block * 16),
                              m.scale[(u64)row * m.scale_pitch + block]};
}

INLINE struct mxfp4_operand mxfp4_decode(struct mxfp4_block block) {
  // The convert takes the exponent field of an FP32 as E8M0.
  f32 scale = __builtin_bit_cast(f32, (u32)block.scale << 23);
  struct mxfp4_operand operand;
  for (u32 j = 0; j < 4; j++) {
    bf16x2 a = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(block.packed[j], scale, 0);
    bf16x2 b = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(block.packed[j], scale, 1);
    bf16x2 c = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(block.packed[j], scale, 2);
    bf16x2 d = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(block.packed[j], scale, 3);
    bf16x4 low = __builtin_shufflevector(a, b, 0, 1, 2, 3), high = __builtin_shufflevector(c, d, 0, 1, 2, 3);
    operand.part[j] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
  }
  return operand;
}

INLINE struct mxfp4_operand mxfp4_load(struct mxfp4 m, u32 row, u32 block) {
  return mxfp4_decode(mxfp4_fetch(m, row, block));
}

// Adds one step of each W x to acc[matrix][tile], for `tiles` tiles of columns; x[i] is where this lane's column of
// tile i starts. Steps that are not whole end at `depth` and read nothing past it.
INLINE void mxfp4_step(f32x4 *acc, const struct mxfp4 *w, u32 matrices, u32 row, GLOBAL const bf16 *const *x, u32 tiles,
                       u32 depth, u32 step, bool whole) {
  u32 block = step * (MXFP4_STEP / MXFP4_BLOCK) + mfma_quarter();
  bool inside = whole || block * MXFP4_BLOCK < depth;
  if (!inside) block = 0;
  struct mxfp4_operand a[2];
  for (u32 m = 0; m < matrices; m++) {
    a[m] = mxfp4_load(w[m], row, block);
    for (u32 j = 0; j < 4; j++) a[m].part[j] = inside ? a[m].part[j] : (bf16x8)0;
  }
#pragma clang loop unroll(full)
  for (u32 tile = 0; tile < tiles; tile++)
    for (u32 j = 0; j < 4; j++) {
      bf16x8 b = *(GLOBAL const bf16x8 *)(x[tile] + block * MXFP4_BLOCK + j * 8);
      for (u32 m = 0; m < matrices; m++)
        acc[m * tiles + tile] = mfma(a[m].part[j], inside ? b : (bf16x8)0, acc[m * tiles + tile]);
    }
}

// Adds steps first, first + stride, ... of each W x to acc.
INLINE void mxfp4_accumulate(f32x4 *acc, const struct mxfp4 *w, u32 matrices, u32 row, GLOBAL const bf16 *const *x,
                             u32 tiles, u32 depth, u32 first, u32 stride) {
  u32 steps = depth / MXFP4_STEP, step = first;
  // Decode waits for memory: two steps at once keep more of it under way.
  if (tiles == 1)
    for (; step + stride < steps; step += 2 * stride) {
      mxfp4_step(acc, w, matrices, row, x, tiles, depth, step, true);
      mxfp4_step(acc, w, matrices, row, x, tiles, depth, step + stride, true);
    }
  for (; step < steps; step += stride) mxfp4_step(acc, w, matrices, row, x, tiles, depth, step, true);
  if (depth % MXFP4_STEP != 0 && steps % stride == first)
    mxfp4_step(acc, w, matrices, row, x, tiles, depth, steps, false);
}
