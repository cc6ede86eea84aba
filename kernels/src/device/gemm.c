// Projections. One launch multiplies one input by several matrices. It comes in two sizes: for at most 16 tokens
// (decode), where few registers keep many waves in flight, and for 128 tokens a workgroup (prefill).
#include "gemm.h"
#include "activation.h"
#include "step.h"

enum form : u32 {
  FORM_PLAIN = 0, // y = x w'
  FORM_SITU = 1,  // y = SiTU(x w', x2 w2'): gate and up of a gated MLP
  FORM_SUM = 2,   // y = x w' + x2 w2'
};

// One output of a launch. Pitches are in bytes.
struct segment {
  bytes w, w2, x2;
  GLOBAL u8 *y;
  u32 rows, w_pitch, w2_pitch, x2_pitch, depth2, y_pitch;
  u32 y_f32; // y is FP32, not BF16
  enum form form;
};
struct segments {
  struct segment at[6];
};
static_assert(sizeof(struct segment) == 64);

INLINE void gemm(gemm_scratch scratch, u32 most, u32 valid, bytes x, CONSTANT const struct segments *segments,
                 u32 segment_count, u32 x_pitch, u32 depth, struct situ_betas betas) {
  u32 token0 = group_y() * most * MFMA_COLUMNS;
  if (token0 >= valid) return;
  u32 index = 0, group = group_x();
  while (index + 1 < segment_count && group >= ceil_div(segments->at[index].rows, GEMM_ROWS))
    group -= ceil_div(segments->at[index++].rows, GEMM_ROWS);
  struct segment segment = segments->at[index];
  u32 row0 = group * GEMM_ROWS;
  if (row0 >= segment.rows) return;
  u32 tiles = min_u32(ceil_div(valid - token0, MFMA_COLUMNS), most);

  struct gemm_product product = {.w = segment.w,
                                 .x = x,
                                 .w_pitch = segment.w_pitch,
                                 .x_pitch = x_pitch,
                                 .depth = depth,
                                 .rows = segment.rows,
                                 .tokens = valid};
  f32x4 total[GEMM_TOTALS(GEMM_TILES)] = {}, first[GEMM_TOTALS(GEMM_TILES)];
  for (u32 pass = 0; pass < (segment.form == FORM_PLAIN ? 1 : 2); pass++) {
    for (u32 i = 0; i < GEMM_TOTALS(most); i++) first[i] = total[i];
    f32x4 acc[GEMM_TILES] = {};
    gemm_accumulate(acc, most, tiles, product, row0, token0);
    gemm_reduce(scratch, acc, most, tiles, total);
    product.w = segment.w2, product.x = segment.x2, product.depth = segment.depth2;
    product.w_pitch = segment.w2_pitch, product.x_pitch = segment.x2_pitch;
  }

  u32 row = row0 + mfma_quarter() * 4;
  for (u32 i = 0; i < GEMM_TOTALS(most); i++) {
    u32 tile = wave_id() + i * GEMM_WAVES, token = token0 + tile * MFMA_COLUMNS + mfma_line();
    if (tile >= most || token >= valid) continue;
    if (segment.form == FORM_SITU)
      for (u32 j = 0; j < 4; j++) total[i][j] = situ(betas, first[i][j], total[i][j]);
    if (segment.form == FORM_SUM) total[i] += first[i];
    gemm_store(segment.y + (u64)token * segment.y_pitch, row, segment.rows, total[i], segment.y_f32);
  }
}

LDS_ARRAY f32x4 scratch_16[GEMM_SCRATCH(1)], scratch_128[GEMM_SCRATCH(8)];

// Workgroups: x = sum over segments of ceil(rows / 16), y = ceil(tokens / 16).
KERNEL(256)
void gemm_16(GLOBAL const struct step *step, bytes x, const struct segments segments, u32 segment_count, u32 x_pitch,
             u32 depth, f32 situ_beta, f32 situ_linear_beta, u32 tokens) {
  gemm(scratch_16, 1, valid_tokens(step, tokens), x, (CONSTANT const struct segments *)&segments, segment_count,
       x_pitch, depth, (struct situ_betas){situ_beta, situ_linear_beta});
}

// Workgroups: x = sum over segments of ceil(rows / 16), y = ceil(tokens / 128).
KERNEL(256)
void gemm_128(GLOBAL const struct step *step, bytes x, const struct segments segments, u32 segment_count, u32 x_pitch,
              u32 depth, f32 situ_beta, f32 situ_linear_beta, u32 tokens) {
  gemm(scratch_128, 8, valid_tokens(step, tokens), x, (CONSTANT const struct segments *)&segments, segment_count,
       x_pitch, depth, (struct situ_betas){situ_beta, situ_linear_beta});
}
