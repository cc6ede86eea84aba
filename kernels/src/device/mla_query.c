// MLA in decode between its first projections and the absorbed query: norm of the low-rank query, q_b, and in one more
// workgroup the norm of the latent and its append to the cache. Both norms have eps 1e-6 (mla_latent.c).
#include "error.h"
#include "mix.h"
#include "mla.h"
#include "rows.h"

constexpr f32 EPS = 1e-6f;

// The token's row of the cache: 512 latent values, normed, and 64 key values as they are.
INLINE void append(const_vectors kv, const_vectors weight, vectors cache, u32 position, u32 capacity, error_word error,
                   u32 rank) {
  struct mixing mixing = {.current = kv, .weight = weight, .width = LATENT, .eps = EPS};
  struct mix_inputs inputs = {};
  bf16x8 normed[MIX_VECTORS(ROW_THREADS)];
  load_mix(ROW_THREADS, mixing, &inputs);
  mix_and_norm(ROW_THREADS, mixing, &inputs, normed);
  u32 thread = thread_id();
  if (position >= capacity) {
    if (thread == 0) report_error(error, ERROR_CONTEXT, rank, rank, 0, position);
    return;
  }
  vectors row = cache + (u64)position * (CACHED / 8);
  if (thread < LATENT / 8) row[thread] = normed[0];
  else if (thread < CACHED / 8) row[thread] = kv[thread];
}

// Workgroups: x = ceil(rows / 16), or / 128 where waves have rows of their own, plus 1. q_low has depth BF16 values,
// q_b is [rows][depth], q [rows]; kv has 576 values, the cache rows of 576.
KERNEL(512)
void mla_query(GLOBAL const struct step *step, const_vectors q_low, const_vectors q_weight, bytes q_b, GLOBAL bf16 *q,
               const_vectors kv, const_vectors kv_weight, vectors cache, error_word error, u32 depth, u32 q_b_pitch,
               u32 rows, u32 capacity, u32 rank) {
  bool share = rows_share(ceil_div(depth, ROW_STEP));
  u32 own = (share ? 1 : ROW_WAVES) * MFMA_ROWS, group = group_x(), thread = thread_id();
  if (group == ceil_div(rows, own)) {
    append(kv, kv_weight, cache, step->position, capacity, error, rank);
    return;
  }
  u32 row0 = group * own + (share ? 0 : wave_id() * MFMA_ROWS);
  bytes w = q_b + (u64)min_u32(row0 + mfma_line(), rows - 1) * q_b_pitch;
  struct row row = {w, w, depth, 0};
  u32 first_step = share ? wave_id() : 0, stride = share ? ROW_WAVES : 1;
  struct mixing mixing = {.current = q_low, .weight = q_weight, .width = depth, .eps = EPS};
  struct mix_inputs inputs = {};
  struct row_round round;
  load_mix(ROW_THREADS, mixing, &inputs);
  if (row0 < rows) load_round(&round, row, first_step, stride);
  bf16x8 x[MIX_VECTORS(ROW_THREADS)];
  mix_and_norm(ROW_THREADS, mixing, &inputs, x);
#pragma clang loop unroll(full)
  for (u32 i = 0; i < MIX_VECTORS(ROW_THREADS); i++) vector[thread + i * ROW_THREADS] = x[i];
  workgroup_barrier();

  store_row_sums(row0 < rows ? sum_row(row, &round, first_step, stride) : (f32x4)0);
  u32 at = group * own + thread;
  if (thread < own && at < rows) q[at] = (bf16)summed_row(share, thread / MFMA_ROWS, thread % MFMA_ROWS);
}
