// Products of MXFP4 matrices with one vector, for the routed experts of one token: as rows.h for BF16, by four waves.
#pragma once
#include "mxfp4.h"

constexpr u32 EXPERT_THREADS = 256, EXPERT_WAVES = EXPERT_THREADS / WAVE;
constexpr u32 MAX_EXPERT_INPUT = 16384;

LDS_ARRAY bf16x8 expert_input[MAX_EXPERT_INPUT / 8];
LDS_ARRAY f32x4 expert_sums[2][EXPERT_WAVES][MFMA_ROWS / 4];

// Whether waves share a sum over `depth` values. The grid is made by the same rule (`group_rows` in gemm.rs).
INLINE bool expert_rows_share(u32 depth) { return depth > 512; }

// `count` values, a multiple of 8, and zeros to the end of the last step. The caller has a barrier follow.
INLINE void load_expert_input(GLOBAL const bf16x8 *x, u32 count) {
  for (u32 i = thread_id(); i < ceil_div(count, MXFP4_STEP) * (MXFP4_STEP / 8); i += EXPERT_THREADS)
    expert_input[i] = i < count / 8 ? x[i] : (bf16x8)0;
}

// This lane's block of a step; past `depth` any finite one, as the input is zero there.
INLINE struct mxfp4_block expert_fetch(struct mxfp4 w, u32 row, u32 step, u32 depth) {
  u32 block = step * (MXFP4_STEP / MXFP4_BLOCK) + mfma_quarter();
  return mxfp4_fetch(w, row, block * MXFP4_BLOCK < depth ? block : 0);
}

// Adds a step's products with the input from step `at` on.
INLINE f32x4 expert_add(f32x4 sum, struct mxfp4_block block, u32 at) {
  struct mxfp4_operand w = mxfp4_decode(block);
  LDS const bf16x8 *x = expert_input + at * (MXFP4_STEP / 8) + mfma_quarter() * (MXFP4_BLOCK / 8);
  for (u32 j = 0; j < 4; j++) sum = mfma(w.part[j], x[j], sum);
  return sum;
}

// Brings the waves' sums together, after the next barrier.
INLINE void store_expert_sums(u32 matrix, f32x4 sum) {
  if (mfma_line() == 0) expert_sums[matrix][wave_id()][mfma_quarter()] = sum;
}

// Row `index` of the workgroup.
INLINE f32 expert_sum(u32 matrix, bool share, u32 index) {
  LDS const f32 *sums = (LDS const f32 *)expert_sums[matrix];
  if (!share) return sums[index];
  f32 sum = 0;
  for (u32 wave = 0; wave < EXPERT_WAVES; wave++) sum += sums[wave * MFMA_ROWS + index];
  return sum;
}
