// v_mfma_f32_16x16x32_bf16: D[16][16] += A[16][32] B[32][16].
//   A: lane l holds row    l % 16, k = 8 (l / 16) .. + 7
//   B: lane l holds column l % 16, k = 8 (l / 16) .. + 7
//   D: lane l holds column l % 16, rows 4 (l / 16) .. + 3
// The sum runs over k in whatever order the hardware takes, so any permutation of k serves as long as A and B share it.
#pragma once
#include "device.h"

constexpr u32 MFMA_ROWS = 16, MFMA_COLUMNS = 16, MFMA_DEPTH = 32;

INLINE f32x4 mfma(bf16x8 a, bf16x8 b, f32x4 d) { return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, d, 0, 0, 0); }

// Row or column that this lane feeds.
INLINE u32 mfma_line(void) { return lane_id() % 16; }
// Which quarter of k (A, B) or of the rows (D) this lane holds.
INLINE u32 mfma_quarter(void) { return lane_id() / 16; }

// An operand from a block in LDS whose rows are k, `pitch` values apart, and whose columns are the operand's rows:
// transposed on the way. ds_read_b64_tr_b16 works in groups of 16 lanes: they read four rows of 16 values, four lanes a
// row, and lane n gets column n. The second read is four rows on. `block` is at the first k and column of the operand;
// both it and the pitch are multiples of 8 bytes.
INLINE bf16x8 mfma_transposed(LDS const bf16 *block, u32 pitch) {
  LDS bf16x4 *row = (LDS bf16x4 *)(block + (mfma_quarter() * 8 + mfma_line() / 4) * pitch + mfma_line() % 4 * 4);
  bf16x4 low = __builtin_amdgcn_ds_read_tr16_b64_v4bf16(row),
         high = __builtin_amdgcn_ds_read_tr16_b64_v4bf16(row + pitch);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

// D[16][16] += A[16][16] B[16][16] in FP32, by four v_mfma_f32_16x16x4_f32, each over a quarter of k: lane l holds k =
// 4 (l / 16) .. + 3 of A and B. D is as above, so D of one product can be B of the next as it stands.
INLINE f32x4 mfma_f32(f32x4 a, f32x4 b, f32x4 d) {
  for (u32 i = 0; i < 4; i++) d = __builtin_amdgcn_mfma_f32_16x16x4f32(a[i], b[i], d, 0, 0, 0);
  return d;
}
