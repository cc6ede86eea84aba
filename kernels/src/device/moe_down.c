// Down projection of the routed experts: y[assignment][row] = w2 h, FP32, with MXFP4 weights and BF16 activations. The
// weighted sum over a token's experts is taken where the ranks' sums meet.
//
// k is short here, so each of a workgroup's four waves takes 16 rows of its own.
#include "mfma.h"
#include "moe.h"
#include "mxfp4.h"

constexpr u32 ROWS = 64;

INLINE void moe_down_tiles(u32 tiles, struct mxfp4 w2, u32 row0, bytes h, GLOBAL u8 *y, GLOBAL const u32 *list,
                           struct expert_tile tile, u32 h_pitch, u32 y_pitch, u32 depth) {
  u32 line = mfma_line(), assignments[EXPERT_TILES];
  GLOBAL const bf16 *rows[EXPERT_TILES];
  for (u32 i = 0; i < tiles; i++) {
    assignments[i] = list[tile.first + min_u32(i * 16 + line, tile.count - 1)];
    rows[i] = (GLOBAL const bf16 *)(h + (u64)assignments[i] * h_pitch);
  }
  f32x4 acc[EXPERT_TILES] = {};
  mxfp4_accumulate(acc, &w2, 1, row0 + line, rows, tiles, depth, 0, 1);
  for (u32 i = 0; i < tiles; i++)
    if (i * 16 + line < tile.count)
      *(GLOBAL f32x4 *)(y + (u64)assignments[i] * y_pitch + (row0 + mfma_quarter() * 4) * 4) = acc[i];
}

// Workgroups: x = ceil(rows / 64), y = most tiles. h is [tokens x top_k][depth] BF16, y [tokens x top_k][rows] FP32.
KERNEL(256)
void moe_down(GLOBAL const u32 *list, GLOBAL const struct expert_tile *tiles, GLOBAL const u32 *tile_count,
              bytes experts, bytes h, GLOBAL u8 *y, u64 stride, u32 w2_packed, u32 w2_scale, u32 packed_pitch,
              u32 scale_pitch, u32 h_pitch, u32 y_pitch, u32 depth, u32 rows) {
  u32 row0 = group_x() * ROWS + wave_id() * MFMA_ROWS;
  if (group_y() >= *tile_count || row0 >= rows) return;
  struct expert_tile tile = tiles[group_y()];
  bytes expert = experts + tile.expert * stride;
  struct mxfp4 w2 = {expert + w2_packed, expert + w2_scale, packed_pitch, scale_pitch};
  if (tile.count <= 16) moe_down_tiles(1, w2, row0, h, y, list, tile, h_pitch, y_pitch, depth);
  else moe_down_tiles(EXPERT_TILES, w2, row0, h, y, list, tile, h_pitch, y_pitch, depth);
}
