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

LDS_ARRAY f32x2 partial[MAX_SOURCES][WAVES]; // sum of squares, score before scaling
LDS_ARRAY f32 square_sums[WAVES];

// Workgroups: x = tokens, or 1 for the last token alone, whose result goes to row 0 of out. Rows are width BF16 values,
// a multiple of 8; blocks are block_stride bytes apart. With save, the row of h is copied there too.
KERNEL(256)
void mix_norm(GLOBAL const struct step *step, bytes h, bytes blocks, GLOBAL u8 *save, const_vectors norm,
              const_vectors proj, const_vectors weight, GLOBAL u8 *out, u64 block_stride, u32 block_count, u32 width,
              f32 eps, u32 last_only, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), lane = lane_id(), wave = wave_id();
  u32 out_token = group_x(), token = last_only ? valid - 1 : out_token;
  if (out_token >= (last_only ? 1 : valid)) return;
  u32 length = width / 8;
  u64 row = (u64)token * width * 2;
  const_vectors current = (const_vectors)(h + row);
  vectors x = (vectors)(out + (u64)out_token * width * 2);

  if (save)
    for (u32 i = thread_id(); i < length; i += THREADS) ((vectors)(save + row))[i] = current[i];

  f32 p[MAX_SOURCES] = {};
  if (block_count) {
    for (u32 j = 0; j <= block_count; j++) {
      const_vectors source = j < block_count ? (const_vectors)(blocks + j * block_stride + row) : current;
      f32x8 squares = 0, dots = 0;
      for (u32 i = thread_id(); i < length; i += THREADS) {
        f32x8 v = widen(source[i]);
        squares += v * v;
        dots += v * (widen(norm[i]) * widen(proj[i]));
      }
      f32 square = wave_sum(sum_of(squares)), dot = wave_sum(sum_of(dots));
      if (lane == 0) partial[j][wave] = (f32x2){square, dot};
    }
    workgroup_barrier();
    f32 most = -__builtin_inff(), total = 0;
    for (u32 j = 0; j < MAX_SOURCES; j++) {
      if (j > block_count) break;
      f32x2 sums = (partial[j][0] + partial[j][1]) + (partial[j][2] + partial[j][3]);
      p[j] = sums.y * reciprocal_sqrt(sums.x / (f32)width + eps);
      most = __builtin_fmaxf(most, p[j]);
    }
    for (u32 j = 0; j < MAX_SOURCES; j++) {
      if (j > block_count) break;
      p[j] = __builtin_expf(p[j] - most);
      total += p[j];
    }
    for (u32 j = 0; j < MAX_SOURCES; j++) p[j] /= total;
  }

  f32x8 squares = 0;
  for (u32 i = thread_id(); i < length; i += THREADS) {
    bf16x8 mixed = current[i];
    if (block_count) {
      f32x8 sum = 0;
      for (u32 j = 0; j < MAX_SOURCES; j++) {
        if (j > block_count) break;
        const_vectors source = j < block_count ? (const_vectors)(blocks + j * block_stride + row) : current;
        sum += p[j] * widen(source[i]);
      }
      mixed = __builtin_convertvector(sum, bf16x8);
      x[i] = mixed;
    }
    squares += widen(mixed) * widen(mixed);
  }
  f32 square = wave_sum(sum_of(squares));
  if (lane == 0) square_sums[wave] = square;
  workgroup_barrier();
  f32 mean = ((square_sums[0] + square_sums[1]) + (square_sums[2] + square_sums[3])) / (f32)width;
  f32 scale = reciprocal_sqrt(mean + eps);
  const_vectors mixed = block_count ? (const_vectors)x : current;
  for (u32 i = thread_id(); i < length; i += THREADS)
    x[i] = __builtin_convertvector(widen(mixed[i]) * scale * widen(weight[i]), bf16x8);
}
