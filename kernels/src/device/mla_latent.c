// The two low-rank norms of MLA, eps 1e-6 (the vendor's class default, not the config's), and the append to the latent
// cache.
#include "activation.h"
#include "error.h"
#include "mla.h"
#include "wave.h"

constexpr u32 THREADS = 256, WAVES = THREADS / WAVE;
constexpr f32 EPS = 1e-6f;

LDS_ARRAY f32 square_sums[2][WAVES];

// Sum of squares of a row, over the workgroup once all waves have stored theirs.
INLINE f32 square_sum(GLOBAL const bf16 *x, u32 width) {
  f32 sum = 0;
  for (u32 i = thread_id(); i < width; i += THREADS) sum += (f32)x[i] * (f32)x[i];
  return wave_sum(sum);
}

INLINE f32 scale_of(LDS const f32 *sums, u32 width) {
  return reciprocal_sqrt(((sums[0] + sums[1]) + (sums[2] + sums[3])) / (f32)width + EPS);
}

// Workgroups: x = tokens. q is normed into q_out; kv is 512 latent values, normed into the cache, and 64 key values,
// copied there. The cache has capacity rows of 576 values; the token's row is its position. Pitches are in bytes.
KERNEL(256)
void mla_latent(GLOBAL const struct step *step, bytes q, bytes kv, GLOBAL const bf16 *q_weight,
                GLOBAL const bf16 *kv_weight, GLOBAL u8 *q_out, GLOBAL bf16 *cache, error_word error, u32 q_width,
                u32 q_pitch, u32 kv_pitch, u32 q_out_pitch, u32 capacity, u32 rank, u32 tokens) {
  u32 token = group_x(), lane = lane_id(), wave = wave_id();
  if (token >= valid_tokens(step, tokens)) return;
  GLOBAL const bf16 *q_in = (GLOBAL const bf16 *)(q + (u64)token * q_pitch);
  GLOBAL const bf16 *kv_in = (GLOBAL const bf16 *)(kv + (u64)token * kv_pitch);
  f32 q_sum = square_sum(q_in, q_width), kv_sum = square_sum(kv_in, LATENT);
  if (lane == 0) square_sums[0][wave] = q_sum, square_sums[1][wave] = kv_sum;
  workgroup_barrier();

  f32 q_scale = scale_of(square_sums[0], q_width), kv_scale = scale_of(square_sums[1], LATENT);
  GLOBAL bf16 *q_row = (GLOBAL bf16 *)(q_out + (u64)token * q_out_pitch);
  for (u32 i = thread_id(); i < q_width; i += THREADS) q_row[i] = (bf16)((f32)q_in[i] * q_scale * (f32)q_weight[i]);
  u32 position = step->position + token;
  if (position >= capacity) {
    if (thread_id() == 0) report_error(error, ERROR_CONTEXT, rank, rank, token, position);
    return;
  }
  GLOBAL bf16 *row = cache + (u64)position * CACHED;
  for (u32 i = thread_id(); i < CACHED; i += THREADS)
    row[i] = i < LATENT ? (bf16)((f32)kv_in[i] * kv_scale * (f32)kv_weight[i]) : kv_in[i];
}
