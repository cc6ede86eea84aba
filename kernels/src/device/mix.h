// Attention Residuals and RMSNorm of one token's row, by a workgroup.
//
// mix: of the sources v_j (the saved blocks, then h), score_j = sum v_j rsqrt(mean(v_j^2) + eps) norm proj, p =
// softmax(score), x = sum p_j v_j, rounded to BF16. All in FP32: the margins between scores are small. With no blocks x
// is h. norm: out = x rsqrt(mean(x^2) + eps) weight, rounded once.
//
// Sources are read once: a thread keeps its part of each in registers.
#pragma once
#include "activation.h"
#include "wave.h"

constexpr u32 MAX_SOURCES = 9, MAX_WIDTH = 8192, MAX_MIX_WAVES = 8;
// Vectors of 8 values of a thread: vector i of thread t is number t + i threads of the row.
#define MIX_VECTORS(threads) (MAX_WIDTH / 8 / (threads))

typedef GLOBAL bf16x8 *vectors;
typedef GLOBAL const bf16x8 *const_vectors;
typedef f32 f32x8 __attribute__((ext_vector_type(8)));

INLINE f32x8 widen(bf16x8 x) { return __builtin_convertvector(x, f32x8); }
INLINE f32 sum_of(f32x8 x) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

struct mixing {
  bytes blocks; // of this token; the first
  u64 stride;   // bytes from one block to the next
  const_vectors current, norm, proj, weight;
  u32 block_count, width;
  f32 eps;
};

// What each wave found: of a source the sum of squares and the score before scaling, of the mix the sum of squares.
LDS_ARRAY f32x2 source_sums[MAX_SOURCES][MAX_MIX_WAVES];
LDS_ARRAY f32 mix_squares[MAX_MIX_WAVES];

// Share of each source, in the lanes of that number of every row of 16, from what `waves` waves found.
INLINE f32 source_shares(struct mixing m, u32 waves) {
  u32 source = lane_id() % 16;
  f32x2 sums = 0;
  if (source <= m.block_count)
    for (u32 wave = 0; wave < waves; wave++) sums += source_sums[source][wave];
  f32 score =
      source <= m.block_count ? sums.y * reciprocal_sqrt(sums.x / (f32)m.width + m.eps) : -__builtin_inff();
  f32 share = __builtin_expf(score - row_max(score));
  return share / row_sum(share);
}

constexpr u32 MOST_VECTORS = MIX_VECTORS(256);

// A thread's part of what a mix reads.
struct mix_inputs {
  bf16x8 source[MAX_SOURCES][MOST_VECTORS], norm[MOST_VECTORS], proj[MOST_VECTORS], weight[MOST_VECTORS];
};

// Whether this thread has a vector i. Narrow rows leave waves without any: they only meet the others at the barriers.
INLINE bool has_vector(u32 threads, struct mixing m, u32 i) { return thread_id() + i * threads < m.width / 8; }
INLINE u32 busy_waves(u32 threads, struct mixing m) {
  return min_u32(ceil_div(m.width / 8, WAVE), threads / WAVE);
}

// All loads, so that a caller can have others follow that nobody waits for yet.
INLINE void load_mix(u32 threads, struct mixing m, struct mix_inputs *in) {
  if (wave_id() >= busy_waves(threads, m)) return;
  for (u32 i = 0; i < MIX_VECTORS(threads); i++) {
    if (!has_vector(threads, m, i)) continue;
    u32 at = thread_id() + i * threads;
    // Unconditional loads, of any row where there is no such vector: a branch would make the wave wait for them.
    in->norm[i] = (m.block_count ? m.norm : m.current)[at], in->proj[i] = (m.block_count ? m.proj : m.current)[at];
    in->weight[i] = (m.weight ? m.weight : m.current)[at];
#pragma clang loop unroll(full)
    for (u32 j = 0; j < MAX_SOURCES; j++)
      if (j <= m.block_count)
        in->source[j][i] = j < m.block_count ? ((const_vectors)(m.blocks + j * m.stride))[at] : m.current[at];
  }
}

INLINE void sum_sources(u32 threads, struct mixing m, struct mix_inputs *in) {
  for (u32 i = 0; i < MIX_VECTORS(threads); i++) {
    opaque(in->norm[i]);
    opaque(in->proj[i]);
  }
#pragma clang loop unroll(full)
  for (u32 j = 0; j < MAX_SOURCES; j++) {
    if (j > m.block_count) continue;
    f32x8 squares = 0, dots = 0;
    for (u32 i = 0; i < MIX_VECTORS(threads); i++) {
      f32x8 v = widen(in->source[j][i]);
      squares += v * v;
      dots += v * (widen(in->norm[i]) * widen(in->proj[i]));
    }
    f32x2 sums = {wave_sum(sum_of(squares)), wave_sum(sum_of(dots))};
    if (lane_id() == 0) source_sums[j][wave_id()] = sums;
  }
}

INLINE bf16x8 mix(struct mixing m, struct mix_inputs *in, f32 shares, u32 i) {
  f32x8 sum = 0;
#pragma clang loop unroll(full)
  for (u32 j = 0; j < MAX_SOURCES; j++) {
    if (j > m.block_count) continue;
    opaque(in->source[j][i]);
    sum += lane_value(shares, j) * widen(in->source[j][i]);
  }
  return __builtin_convertvector(sum, bf16x8);
}

// Mixes the sources and norms the mix. All threads call it; out gets the thread's vectors, those past the row zero.
// Without weight the mix is taken as it is.
INLINE void mix_and_norm(u32 threads, struct mixing m, struct mix_inputs *in, bf16x8 *out) {
  u32 waves = busy_waves(threads, m);
  bool busy = wave_id() < waves;
  for (u32 i = 0; i < MIX_VECTORS(threads); i++) out[i] = in->source[0][i];
  if (m.block_count) {
    if (busy) sum_sources(threads, m, in);
    workgroup_barrier();
    if (busy) {
      f32 shares = source_shares(m, waves);
      for (u32 i = 0; i < MIX_VECTORS(threads); i++) out[i] = mix(m, in, shares, i);
    }
  }
  if (!m.weight) return;

  if (busy) {
    f32x8 squares = 0;
    for (u32 i = 0; i < MIX_VECTORS(threads); i++) squares += widen(out[i]) * widen(out[i]);
    f32 square = wave_sum(sum_of(squares));
    if (lane_id() == 0) mix_squares[wave_id()] = square;
  }
  workgroup_barrier();
  f32 square = 0;
  for (u32 wave = 0; wave < waves; wave++) square += mix_squares[wave];
  f32 scale = reciprocal_sqrt(square / (f32)m.width + m.eps);
  for (u32 i = 0; i < MIX_VECTORS(threads); i++) {
    opaque(in->weight[i]);
    out[i] = __builtin_convertvector(widen(out[i]) * scale * widen(in->weight[i]), bf16x8);
  }
}
