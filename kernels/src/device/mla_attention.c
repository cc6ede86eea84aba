// Attention of the absorbed queries over the cached latents, with the causal limit, by online softmax in FP32.
//
// A workgroup takes 16 query rows (row = token x heads + head) and one split of the cached tokens, 64 of them at a
// time. The block of keys is the A operand twice: as it lies for the scores (D[key][row]), transposed for the values
// (D[latent][row]), so each lane ends with four neighbouring latent values of one query row.
#include "activation.h"
#include "mla.h"
#include "wave.h"

constexpr u32 THREADS = 256, WAVES = THREADS / WAVE, ROWS = 16;
constexpr f32 SCALE = 0.07216878364870322f * LOG2_E; // 192^-1/2, scores in powers of 2
// Pitches in values: the padding spreads rows over the LDS banks and keeps 16-byte alignment.
constexpr u32 KEY_PITCH = CACHED + 8, SCORE_PITCH = KEY_BLOCK + 4, WEIGHT_PITCH = KEY_BLOCK + 8;
constexpr u32 STEPS = CACHED / MFMA_DEPTH;         // MFMAs of a score
constexpr u32 TILES = LATENT / WAVES / MFMA_ROWS;  // tiles of 16 latent values of a wave
constexpr u32 SCORES = KEY_BLOCK * ROWS / THREADS; // scores of a thread in the softmax
static_assert(KEY_BLOCK / WAVES == MFMA_ROWS && ROWS * 16 == THREADS);

LDS_ARRAY bf16x8 keys[KEY_BLOCK * KEY_PITCH / 8];
LDS_ARRAY f32x4 scores[ROWS * SCORE_PITCH / 4];
LDS_ARRAY bf16x8 weights[ROWS * WEIGHT_PITCH / 8];
LDS_ARRAY f32 rescale[ROWS];

// Loads the block's tokens from the cache; those at or past `end` become zero.
INLINE void load_keys(GLOBAL const bf16 *cache, u32 key0, u32 end) {
  for (u32 i = thread_id(); i < KEY_BLOCK * CACHED / 8; i += THREADS) {
    u32 key = i / (CACHED / 8), at = i % (CACHED / 8);
    bf16x8 value = 0;
    if (key0 + key < end) value = *(GLOBAL const bf16x8 *)(cache + (u64)(key0 + key) * CACHED + at * 8);
    keys[key * (KEY_PITCH / 8) + at] = value;
  }
}

// Workgroups: x = ceil(tokens x heads / 16), y = splits. query is [tokens x heads][576] BF16, cache [..][576] BF16,
// partial [splits][tokens x heads][512] FP32, sums [splits][tokens x heads].
KERNEL(256)
void mla_attention(GLOBAL const struct step *step, GLOBAL const bf16 *query, GLOBAL const bf16 *cache,
                   GLOBAL f32 *partial, GLOBAL struct softmax_state *sums, u32 heads, u32 splits, u32 capacity,
                   u32 tokens) {
  u32 valid = valid_tokens(step, tokens), rows = valid * heads, row0 = group_x() * ROWS;
  if (row0 >= rows) return;
  u32 position = step->position, split = group_y();
  struct spans spans = split_keys(position + valid, splits);
  if (split >= spans.active) return;
  u32 lane = lane_id(), wave = wave_id(), line = mfma_line(), quarter = mfma_quarter();
  // Keys that the last of the rows may see.
  u32 last = min_u32(position + (min_u32(row0 + ROWS, rows) - 1) / heads + 1, capacity);
  u32 begin = split * spans.length, end = min_u32(begin + spans.length, last);

  bf16x8 q[STEPS];
  GLOBAL const bf16 *query_row = query + (u64)min_u32(row0 + line, rows - 1) * CACHED + quarter * 8;
  for (u32 j = 0; j < STEPS; j++) q[j] = *(GLOBAL const bf16x8 *)(query_row + j * MFMA_DEPTH);

  // In the softmax 16 threads, one row of lanes, share a query row.
  u32 own = thread_id() / 16, limit = position + min_u32(row0 + own, rows - 1) / heads + 1;
  f32 most = -__builtin_inff(), sum = 0;
  f32x4 attended[TILES] = {};
  for (u32 key0 = begin; key0 < end; key0 += KEY_BLOCK) {
    load_keys(cache, key0, end);
    workgroup_barrier();

    f32x4 score = 0;
    for (u32 j = 0; j < STEPS; j++)
      score = mfma(keys[((wave * MFMA_ROWS + line) * KEY_PITCH + j * MFMA_DEPTH + quarter * 8) / 8], q[j], score);
    scores[(line * SCORE_PITCH + wave * MFMA_ROWS + quarter * 4) / 4] = score;
    workgroup_barrier();

    f32x4 s = scores[(own * SCORE_PITCH + thread_id() % 16 * SCORES) / 4] * SCALE;
    for (u32 i = 0; i < SCORES; i++)
      if (key0 + thread_id() % 16 * SCORES + i >= limit) s[i] = -__builtin_inff();
    f32 top = max_f32(most, row_max(max_f32(max_f32(s[0], s[1]), max_f32(s[2], s[3]))));
    f32 base = top == -__builtin_inff() ? 0 : top; // a row may see no key of this block
    f32x4 p;
    for (u32 i = 0; i < SCORES; i++) p[i] = __builtin_amdgcn_exp2f(s[i] - base);
    f32 shrink = __builtin_amdgcn_exp2f(most - base);
    sum = sum * shrink + row_sum((p[0] + p[1]) + (p[2] + p[3]));
    most = top;
    *(LDS bf16x4 *)((LDS bf16 *)weights + own * WEIGHT_PITCH + thread_id() % 16 * SCORES) =
        __builtin_convertvector(p, bf16x4);
    if (lane % 16 == 0) rescale[own] = shrink;
    workgroup_barrier();

    f32 factor = rescale[line];
    for (u32 tile = 0; tile < TILES; tile++) attended[tile] *= factor;
    for (u32 j = 0; j < KEY_BLOCK / MFMA_DEPTH; j++) {
      bf16x8 b = weights[(line * WEIGHT_PITCH + j * MFMA_DEPTH + quarter * 8) / 8];
      LDS const bf16 *block = (LDS const bf16 *)keys + j * MFMA_DEPTH * KEY_PITCH;
      for (u32 tile = 0; tile < TILES; tile++)
        attended[tile] = mfma(mfma_transposed(block + (wave * TILES + tile) * MFMA_ROWS, KEY_PITCH), b, attended[tile]);
    }
    workgroup_barrier();
  }

  u64 stored = (u64)split * tokens * heads + row0;
  if (thread_id() % 16 == 0 && row0 + own < rows) sums[stored + own] = (struct softmax_state){most, sum};
  if (row0 + line < rows)
    for (u32 tile = 0; tile < TILES; tile++)
      *(GLOBAL f32x4 *)(partial + (stored + line) * LATENT + (wave * TILES + tile) * MFMA_ROWS + quarter * 4) =
          attended[tile];
}
