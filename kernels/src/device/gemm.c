// Projections. One launch multiplies one input by several matrices. It comes in two sizes: for at most 16 tokens
// (decode), where few registers keep many waves in flight, and for 128 tokens a workgroup (prefill).
#include "gemm.h"
#include "activation.h"
#include "segment.h"
#include "step.h"

// What a launch has besides its outputs.
struct launch {
  bytes x;
  u32 x_pitch, depth, segment_count, tokens;
  struct situ_betas betas;
};

INLINE struct gemm_product product_of(struct launch l, struct segment s, u32 pass) {
  if (pass == 0) return (struct gemm_product){s.w, l.x, s.w_pitch, l.x_pitch, l.depth, s.rows, l.tokens};
  return (struct gemm_product){s.w2, s.x2, s.w2_pitch, s.x2_pitch, s.depth2, s.rows, l.tokens};
}

INLINE u32 passes_of(struct segment s) { return s.form == FORM_PLAIN ? 1 : 2; }

INLINE void store_tile(struct launch l, struct segment s, u32 row, u32 token, f32x4 first, f32x4 last) {
  if (token >= l.tokens) return;
  if (s.form == FORM_SITU)
    for (u32 i = 0; i < 4; i++) last[i] = situ(l.betas, first[i], last[i]);
  gemm_store(s.y + (u64)token * s.y_pitch, row, s.rows, last, s.y_f32);
}

// Rows of one wave, all k, for up to `most` token tiles.
INLINE void gemm_alone(u32 most, u32 tiles, struct launch l, struct segment s, u32 row0, u32 token0) {
  f32x4 acc[GEMM_TILES] = {}, first[GEMM_TILES] = {};
  for (u32 pass = 0; pass < passes_of(s); pass++) {
    if (s.form == FORM_SITU)
      for (u32 i = 0; i < most; i++) first[i] = acc[i], acc[i] = 0;
    gemm_accumulate(acc, most, tiles, product_of(l, s, pass), row0, token0, (struct gemm_share){0, 1});
  }
  for (u32 tile = 0; tile < most; tile++)
    if (tile < tiles)
      store_tile(l, s, row0 + mfma_quarter() * 4, token0 + tile * MFMA_COLUMNS + mfma_line(), first[tile], acc[tile]);
}

// Rows of a workgroup whose waves share k.
INLINE void gemm_together(gemm_scratch scratch, u32 most, u32 tiles, struct launch l, struct segment s, u32 row0,
                          u32 token0) {
  f32x4 first[GEMM_TOTALS(GEMM_TILES)] = {}, acc[GEMM_TILES];
  for (u32 pass = 0; pass < passes_of(s); pass++) {
    if (pass == 1)
      for (u32 i = 0; i < GEMM_TOTALS(most); i++) first[i] = acc[i];
    for (u32 i = 0; i < most; i++) acc[i] = 0;
    gemm_accumulate(acc, most, tiles, product_of(l, s, pass), row0, token0, (struct gemm_share){wave_id(), GEMM_WAVES});
    gemm_reduce(scratch, acc, most, tiles);
  }
  for (u32 i = 0; i < GEMM_TOTALS(most); i++) {
    u32 tile = wave_id() + i * GEMM_WAVES;
    if (s.form == FORM_SUM) acc[i] += first[i];
    if (tile < tiles)
      store_tile(l, s, row0 + mfma_quarter() * 4, token0 + tile * MFMA_COLUMNS + mfma_line(), first[i], acc[i]);
  }
}

INLINE u32 group_rows_of(struct launch l, CONSTANT const struct segment *s) {
  return gemm_group_rows(l.depth > s->depth2 ? l.depth : s->depth2);
}

INLINE u32 groups_of(struct launch l, CONSTANT const struct segment *s) {
  return ceil_div(s->rows, group_rows_of(l, s));
}

INLINE void gemm(gemm_scratch scratch, u32 most, struct launch l, CONSTANT const struct segments *segments) {
  u32 token0 = group_y() * most * MFMA_COLUMNS, index = 0, group = group_x();
  if (token0 >= l.tokens) return;
  while (index + 1 < l.segment_count && group >= groups_of(l, &segments->at[index]))
    group -= groups_of(l, &segments->at[index++]);
  struct segment s = segments->at[index];
  u32 row0 = group * group_rows_of(l, &segments->at[index]);
  u32 tiles = min_u32(ceil_div(l.tokens - token0, MFMA_COLUMNS), most);

  if (group_rows_of(l, &segments->at[index]) == GEMM_ROWS) {
    gemm_together(scratch, most, tiles, l, s, row0, token0);
    return;
  }
  row0 += wave_id() * GEMM_ROWS;
  if (row0 >= s.rows) return;
  // Few tiles at a time need few registers, and the rows of a short k stay in the cache.
  u32 few = min_u32(most, 4);
  for (u32 tile = 0; tile < tiles; tile += few)
    gemm_alone(few, min_u32(tiles - tile, few), l, s, row0, token0 + tile * MFMA_COLUMNS);
}

LDS_ARRAY f32x4 scratch_16[GEMM_SCRATCH(1)], scratch_128[GEMM_SCRATCH(8)];

// Workgroups: x = sum over segments of ceil(rows / 16 or 64), y = ceil(tokens / 16).
KERNEL(256)
void gemm_16(GLOBAL const struct step *step, bytes x, const struct segments segments, u32 segment_count, u32 x_pitch,
             u32 depth, f32 situ_beta, f32 situ_linear_beta, u32 tokens) {
  struct launch launch = {x, x_pitch, depth, segment_count, valid_tokens(step, tokens), {situ_beta, situ_linear_beta}};
  gemm(scratch_16, 1, launch, (CONSTANT const struct segments *)&segments);
}

// Workgroups: x = sum over segments of ceil(rows / 16 or 64), y = ceil(tokens / 128).
KERNEL(256)
void gemm_128(GLOBAL const struct step *step, bytes x, const struct segments segments, u32 segment_count, u32 x_pitch,
              u32 depth, f32 situ_beta, f32 situ_linear_beta, u32 tokens) {
  struct launch launch = {x, x_pitch, depth, segment_count, valid_tokens(step, tokens), {situ_beta, situ_linear_beta}};
  gemm(scratch_128, 8, launch, (CONSTANT const struct segments *)&segments);
}
