// Gate and up of the routed experts: h[assignment][column] = SiTU(w1 z, w3 z), with MXFP4 weights and BF16 activations.
// As in gemm.h a wave computes 16 columns, here for one tile of assignments, and waves share k where it is long.
#include "activation.h"
#include "gemm.h"
#include "moe.h"
#include "mxfp4.h"

LDS_ARRAY f32x4 scratch[GEMM_SCRATCH(EXPERT_TILES)];

struct moe_up {
  GLOBAL const u32 *list;
  bytes z;
  GLOBAL u8 *h;
  u32 z_pitch, h_pitch, depth, top_k;
  struct situ_betas betas;
};

INLINE void store(struct moe_up l, struct expert_tile tile, u32 member, u32 column, f32x4 gate, f32x4 up) {
  if (member >= tile.count) return;
  for (u32 i = 0; i < 4; i++) gate[i] = situ(l.betas, gate[i], up[i]);
  GLOBAL u8 *row = l.h + (u64)l.list[tile.first + member] * l.h_pitch;
  *(GLOBAL bf16x4 *)(row + column * 2) = __builtin_convertvector(gate, bf16x4);
}

INLINE void moe_up_tiles(struct moe_up l, const struct mxfp4 *gate_and_up, struct expert_tile tile, u32 tiles,
                         u32 column0, bool shared) {
  u32 line = mfma_line(), column = column0 + mfma_quarter() * 4;
  GLOBAL const bf16 *rows[EXPERT_TILES];
  for (u32 i = 0; i < tiles; i++) {
    u32 token = l.list[tile.first + min_u32(i * 16 + line, tile.count - 1)] / l.top_k;
    rows[i] = (GLOBAL const bf16 *)(l.z + (u64)token * l.z_pitch);
  }
  f32x4 gate[2 * EXPERT_TILES] = {}, *up = gate + tiles;
  u32 first = shared ? wave_id() : 0, stride = shared ? GEMM_WAVES : 1;
  mxfp4_accumulate(gate, gate_and_up, 2, column0 + line, rows, tiles, l.depth, first, stride);
  if (shared) {
    gemm_reduce(scratch, gate, EXPERT_TILES, tiles);
    gemm_reduce(scratch, up, EXPERT_TILES, tiles);
    store(l, tile, wave_id() * 16 + line, column, gate[0], up[0]);
  } else {
    for (u32 i = 0; i < tiles; i++) store(l, tile, i * 16 + line, column, gate[i], up[i]);
  }
}

// Workgroups: x = ceil(columns / 16 or 64), y = most tiles. z is [tokens][depth] BF16, h [tokens x top_k][columns]
// BF16. Expert e has its matrices at experts + e stride + offset; w1 and w3 are alike.
KERNEL(256)
void moe_up(GLOBAL const u32 *list, GLOBAL const struct expert_tile *tiles, GLOBAL const u32 *tile_count, bytes experts,
            bytes z, GLOBAL u8 *h, u64 stride, u32 w1_packed, u32 w1_scale, u32 w3_packed, u32 w3_scale,
            u32 packed_pitch, u32 scale_pitch, u32 z_pitch, u32 h_pitch, u32 depth, u32 columns, u32 top_k,
            f32 situ_beta, f32 situ_linear_beta) {
  if (group_y() >= *tile_count) return;
  u32 group_columns = gemm_group_rows(depth);
  bool shared = group_columns == GEMM_ROWS;
  u32 column0 = group_x() * group_columns + (shared ? 0 : wave_id() * GEMM_ROWS);
  if (column0 >= columns) return;
  struct expert_tile tile = tiles[group_y()];
  bytes expert = experts + tile.expert * stride;
  struct mxfp4 gate_and_up[] = {{expert + w1_packed, expert + w1_scale, packed_pitch, scale_pitch},
                                {expert + w3_packed, expert + w3_scale, packed_pitch, scale_pitch}};
  struct moe_up l = {list, z, h, z_pitch, h_pitch, depth, top_k, {situ_beta, situ_linear_beta}};
  if (tile.count <= 16) moe_up_tiles(l, gate_and_up, tile, 1, column0, shared);
  else moe_up_tiles(l, gate_and_up, tile, EXPERT_TILES, column0, shared);
}
