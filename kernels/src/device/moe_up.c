// Gate and up of the routed experts: h[assignment][column] = SiTU(w1 z, w3 z), with MXFP4 weights and BF16 activations.
//
// A workgroup takes 16 columns of one tile of assignments; its four waves share k as in gemm.h.
#include "activation.h"
#include "gemm.h"
#include "moe.h"
#include "mxfp4.h"

LDS_ARRAY f32x4 scratch[GEMM_SCRATCH(EXPERT_TILES)];

INLINE void moe_up_tiles(u32 tiles, const struct mxfp4 *gate_and_up, bytes z, GLOBAL u8 *h, GLOBAL const u32 *list,
                         struct expert_tile tile, u32 z_pitch, u32 h_pitch, u32 depth, u32 top_k,
                         struct situ_betas betas) {
  u32 row0 = group_x() * GEMM_ROWS, line = mfma_line();
  GLOBAL const bf16 *rows[EXPERT_TILES];
  for (u32 i = 0; i < tiles; i++)
    rows[i] =
        (GLOBAL const bf16 *)(z + (u64)(list[tile.first + min_u32(i * 16 + line, tile.count - 1)] / top_k) * z_pitch);
  f32x4 acc[2 * EXPERT_TILES] = {}, gate, up;
  mxfp4_accumulate(acc, gate_and_up, 2, row0 + line, rows, tiles, depth, wave_id(), GEMM_WAVES);
  gemm_reduce(scratch, acc, EXPERT_TILES, tiles, &gate);
  gemm_reduce(scratch, acc + tiles, EXPERT_TILES, tiles, &up);

  u32 member = wave_id() * 16 + line;
  if (member >= tile.count) return;
  for (u32 i = 0; i < 4; i++) gate[i] = situ(betas, gate[i], up[i]);
  u32 assignment = list[tile.first + member];
  *(GLOBAL bf16x4 *)(h + (u64)assignment * h_pitch + (row0 + mfma_quarter() * 4) * 2) =
      __builtin_convertvector(gate, bf16x4);
}

// Workgroups: x = columns / 16, y = most tiles. z is [tokens][depth] BF16, h [tokens x top_k][columns] BF16. Expert e
// has its matrices at experts + e stride + offset; w1 and w3 are alike.
KERNEL(256)
void moe_up(GLOBAL const u32 *list, GLOBAL const struct expert_tile *tiles, GLOBAL const u32 *tile_count, bytes experts,
            bytes z, GLOBAL u8 *h, u64 stride, u32 w1_packed, u32 w1_scale, u32 w3_packed, u32 w3_scale,
            u32 packed_pitch, u32 scale_pitch, u32 z_pitch, u32 h_pitch, u32 depth, u32 columns, u32 top_k,
            f32 situ_beta, f32 situ_linear_beta) {
  if (group_y() >= *tile_count || group_x() * GEMM_ROWS >= columns) return;
  struct expert_tile tile = tiles[group_y()];
  bytes expert = experts + tile.expert * stride;
  struct mxfp4 gate_and_up[] = {{expert + w1_packed, expert + w1_scale, packed_pitch, scale_pitch},
                                {expert + w3_packed, expert + w3_scale, packed_pitch, scale_pitch}};
  struct situ_betas betas = {situ_beta, situ_linear_beta};
  if (tile.count <= 16) moe_up_tiles(1, gate_and_up, z, h, list, tile, z_pitch, h_pitch, depth, top_k, betas);
  else moe_up_tiles(EXPERT_TILES, gate_and_up, z, h, list, tile, z_pitch, h_pitch, depth, top_k, betas);
}
