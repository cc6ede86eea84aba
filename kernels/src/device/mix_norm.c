// Attention Residuals and RMSNorm.
//
// mix: of the sources v_j (the saved blocks, then h), score_j = sum v_j rsqrt(mean(v_j^2) + eps) norm proj, p =
// softmax(score), x = sum p_j v_j, rounded to BF16. All in FP32: the margins between scores are small. With no blocks x
// is h. norm: out = x rsqrt(mean(x^2) + eps) weight, rounded once.
#include "activation.h"
#include "step.h"
#include "wave.h"

constexpr u32 THREADS = 256, WAVES = THREADS / WAVE, MAX_SOURCES = 9;

typedef GLOBAL bf16x8 *vectors;
typedef GLOBAL const bf16x8 *const_vectors;
typedef f32 f32x8 __attribute__((ext_vector_type(8)));

INLINE f32x8 widen(bf16x8 x) { return __builtin_convertvector(x, f32x8); }
INLINE f32 sum_of(f32x8 x) { return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])); }

// What each wave found: of a source the sum of squares and the score before scaling, of the mix the sum of squares.
LDS_ARRAY f32x2 source_sums[MAX_SOURCES][WAVES];
LDS_ARRAY f32 mix_squares[WAVES];

struct sources {
  bytes blocks; // of this token; the first
  u64 stride;
  const_vectors current; // h of this token
  u32 block_count, length;
};

INLINE const_vectors source_of(struct sources s, u32 j) {
  return j < s.block_count ? (const_vectors)(s.blocks + j * s.stride) : s.current;
}

INLINE void sum_sources(struct sources s, const_vectors norm, const_vectors proj) {
  for (u32 j = 0; j <= s.block_count; j++) {
    const_vectors source = source_of(s, j);
    f32x8 squares = 0, dots = 0;
    for (u32 i = thread_id(); i < s.length; i += THREADS) {
      f32x8 v = widen(source[i]);
      squares += v * v;
      dots += v * (widen(norm[i]) * widen(proj[i]));
    }
    f32x2 sums = {wave_sum(sum_of(squares)), wave_sum(sum_of(dots))};
    if (lane_id() == 0) source_sums[j][wave_id()] = sums;
  }
}

// Shares of the sources, from what `waves` waves found.
INLINE void weigh_sources(f32 *p, u32 block_count, u32 waves, f32 width, f32 eps) {
  f32 most = -__builtin_inff(), total = 0;
  for (u32 j = 0; j < MAX_SOURCES; j++) {
    if (j > block_count) break;
    f32x2 sums = 0;
    for (u32 wave = 0; wave < waves; wave++) sums += source_sums[j][wave];
    p[j] = sums.y * reciprocal_sqrt(sums.x / width + eps);
    most = __builtin_fmaxf(most, p[j]);
  }
  for (u32 j = 0; j < MAX_SOURCES; j++) {
    if (j > block_count) break;
    p[j] = __builtin_expf(p[j] - most);
    total += p[j];
  }
  for (u32 j = 0; j < MAX_SOURCES; j++) p[j] /= total;
}

INLINE bf16x8 mix(struct sources s, const f32 *p, u32 i) {
  f32x8 sum = 0;
  for (u32 j = 0; j < MAX_SOURCES; j++) {
    if (j > s.block_count) break;
    sum += p[j] * widen(source_of(s, j)[i]);
  }
  return __builtin_convertvector(sum, bf16x8);
}

// Workgroups: x = tokens, or 1 for the last token alone, whose result goes to row 0 of out. Rows are width BF16 values,
// a multiple of 8; blocks are block_stride bytes apart. With save, the row of h is copied there too.
KERNEL(256)
void mix_norm(GLOBAL const struct step *step, bytes h, bytes blocks, GLOBAL u8 *save, const_vectors norm,
              const_vectors proj, const_vectors weight, GLOBAL u8 *out, u64 block_stride, u32 block_count, u32 width,
              f32 eps, u32 last_only, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), out_token = group_x(), token = last_only ? valid - 1 : out_token;
  if (out_token >= (last_only ? 1 : valid)) return;
  u64 row = (u64)token * width * 2;
  struct sources s = {blocks + row, block_stride, (const_vectors)(h + row), block_count, width / 8};
  vectors x = (vectors)(out + (u64)out_token * width * 2);
  // Narrow rows leave waves without values: they only meet the others at the barriers.
  u32 waves = min_u32(ceil_div(s.length, WAVE), WAVES);
  bool busy = wave_id() < waves;

  if (save)
    for (u32 i = thread_id(); i < s.length; i += THREADS) ((vectors)(save + row))[i] = s.current[i];

  f32 p[MAX_SOURCES] = {};
  if (block_count) {
    if (busy) sum_sources(s, norm, proj);
    workgroup_barrier();
    if (busy) weigh_sources(p, block_count, waves, (f32)width, eps);
  }
  if (busy) {
    f32x8 squares = 0;
    for (u32 i = thread_id(); i < s.length; i += THREADS) {
      bf16x8 mixed = block_count ? mix(s, p, i) : s.current[i];
      if (block_count) x[i] = mixed;
      squares += widen(mixed) * widen(mixed);
    }
    f32 square = wave_sum(sum_of(squares));
    if (lane_id() == 0) mix_squares[wave_id()] = square;
  }
  workgroup_barrier();
  if (!busy) return;
  f32 square = 0;
  for (u32 wave = 0; wave < waves; wave++) square += mix_squares[wave];
  f32 scale = reciprocal_sqrt(square / (f32)width + eps);
  const_vectors mixed = block_count ? (const_vectors)x : s.current;
  for (u32 i = thread_id(); i < s.length; i += THREADS)
    x[i] = __builtin_convertvector(widen(mixed[i]) * scale * widen(weight[i]), bf16x8);
}
