// Products of matrices with one vector, for decode: y[row] = sum over k of W[row][k] x[k]. BF16 in, FP32 out.
//
// An MFMA takes 16 rows of W as its A operand; all 16 columns of its B operand are x, read from LDS. Where k is long
// the eight waves of a workgroup share it and their sums meet in LDS, added in wave order: 1,536 rows then give 96
// workgroups, each with 16 KiB of weights under way a round. Where k is short each wave has 16 rows of its own.
//
// Weights do not depend on what the kernel before left, so a kernel starts with the loads of the first round and
// computes x while they are under way.
#pragma once
#include "mfma.h"

constexpr u32 ROW_THREADS = 512, ROW_WAVES = ROW_THREADS / WAVE;
constexpr u32 ROW_STEP = 64; // a lane takes 16 neighbouring k, so that four lanes read a whole 128-byte line of a row
constexpr u32 ROW_ROUND = 4; // steps of a round
constexpr u32 MAX_VECTOR = 8192;

LDS_ARRAY bf16x8 vector[MAX_VECTOR / 8]; // x; zero from the last k to the end of its step
LDS_ARRAY f32x4 row_sums[ROW_WAVES][MFMA_ROWS / 4];

// What a lane reads: one row of W and, where two products are added, one of W2. In `vector` x2 starts at the step after
// x.
struct row {
  bytes w, w2;
  u32 depth, depth2;
};

INLINE u32 row_steps(struct row r) { return ceil_div(r.depth, ROW_STEP) + ceil_div(r.depth2, ROW_STEP); }

// Whether waves share k. The grid is made by the same rule (`rows_share` in project.rs).
INLINE bool rows_share(u32 steps) { return steps > 8; }

struct row_round {
  bf16x8 w[ROW_ROUND][2];
};

// Steps step, step + stride, ...
INLINE void load_round(struct row_round *round, struct row r, u32 step, u32 stride) {
  u32 steps = row_steps(r), first = ceil_div(r.depth, ROW_STEP);
#pragma clang loop unroll(full)
  for (u32 i = 0; i < ROW_ROUND; i++) {
    u32 at = step + i * stride;
    if (at >= steps) continue;
    bytes w = at < first ? r.w : r.w2;
    u32 depth = at < first ? r.depth : r.depth2, k = (at < first ? at : at - first) * ROW_STEP + mfma_quarter() * 16;
    for (u32 half = 0; half < 2; half++) // past the end any values serve: x is zero there
      round->w[i][half] = __builtin_nontemporal_load(
          (GLOBAL const bf16x8 *)(w + (k + half * 8 < depth ? k + half * 8 : 0) * 2));
  }
}

INLINE f32x4 add_round(f32x4 sum, const struct row_round *round, u32 steps, u32 step, u32 stride) {
#pragma clang loop unroll(full)
  for (u32 i = 0; i < ROW_ROUND; i++) {
    u32 at = step + i * stride;
    if (at >= steps) continue;
    LDS const bf16x8 *x = vector + at * (ROW_STEP / 8) + mfma_quarter() * 2;
    for (u32 half = 0; half < 2; half++) sum = mfma(round->w[i][half], x[half], sum);
  }
  return sum;
}

// Sums of this lane's rows over steps first, first + stride, ..., of which `round` is loaded. Each lane gets rows 4
// (lane / 16) .. + 3.
INLINE f32x4 sum_row(struct row r, struct row_round *round, u32 first, u32 stride) {
  u32 steps = row_steps(r);
  f32x4 sum = 0;
  for (u32 step = first; step < steps; step += ROW_ROUND * stride) {
    struct row_round next;
    load_round(&next, r, step + ROW_ROUND * stride, stride);
    sum = add_round(sum, round, steps, step, stride);
    *round = next;
  }
  return sum;
}

// Brings the waves' sums together. After the barrier row i of the workgroup is `summed_row(share, i)`.
INLINE void store_row_sums(f32x4 sum) {
  if (mfma_line() == 0) row_sums[wave_id()][mfma_quarter()] = sum;
  workgroup_barrier();
}

// Row `index` of a wave's 16, of all waves together or of the wave alone.
INLINE f32 summed_row(bool share, u32 wave, u32 index) {
  if (!share) return ((LDS f32 *)row_sums[wave])[index];
  f32 sum = 0;
  for (u32 from = 0; from < ROW_WAVES; from++) sum += ((LDS f32 *)row_sums[from])[index];
  return sum;
}
