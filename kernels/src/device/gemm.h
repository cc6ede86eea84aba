// Tiles of Y[token][row] = sum over k of X[token][k] W[row][k], BF16 in, FP32 out.
//
// A wave computes 16 rows of W for up to 16 or 128 tokens, so each weight is read once for that many. W is the A
// operand of the MFMA and X the B operand: each lane ends with four neighbouring rows of one token and stores them
// together.
//
// Where k is long, the four waves of a workgroup share it: each takes every fourth step of 64, and the partial sums
// meet in LDS, added in wave order. So 1,536 rows already give 96 workgroups. Where k is short, each wave has rows of
// its own.
#pragma once
#include "mfma.h"

constexpr u32 GEMM_WAVES = 4, GEMM_ROWS = MFMA_ROWS; // rows of a wave
constexpr u32 GEMM_TILES = 8;                        // most token tiles of a wave
// In one step a lane takes 16 neighbouring k, for two MFMAs: four lanes then read a whole 128-byte line of a row.
constexpr u32 GEMM_STEP = 64;

// Rows of a workgroup for sums over `depth` values: its waves share the sums of 16, or each has 16 of its own. The grid
// is made by the same rule (`group_rows` in gemm.rs).
INLINE u32 gemm_group_rows(u32 depth) { return depth > 512 ? GEMM_ROWS : GEMM_WAVES * GEMM_ROWS; }

struct gemm_product {
  bytes w, x;
  u32 w_pitch, x_pitch; // bytes
  u32 depth;            // length of k
  u32 rows, tokens;     // how many of each there are
};

// Which of the steps of k a wave takes.
struct gemm_share {
  u32 first, stride;
};

// Whether rows can be read 16 bytes at a time: not so where the pitch of an inner-axis shard is a multiple of 4 only.
INLINE bool gemm_aligned(struct gemm_product p) {
  return (((u64)p.w | (u64)p.x | p.w_pitch | p.x_pitch) % 16 | p.depth % 8) == 0;
}

// Eight values of a row from k on, zero from `depth` on; nothing is read past the 4 bytes that hold the row's last
// value.
INLINE bf16x8 gemm_load(bytes row, u32 k, u32 depth, bool aligned, bool whole) {
  if (aligned && whole) return *(GLOBAL const bf16x8 *)(row + k * 2);
  if (aligned) {
    bf16x8 value = *(GLOBAL const bf16x8 *)(row + (k < depth ? k : 0) * 2);
    return k < depth ? value : (bf16x8)0;
  }
  u32x4 value;
  for (u32 i = 0; i < 4; i++) {
    u32 left = depth - min_u32(k + 2 * i, depth);
    u32 mask = left >= 2 ? 0xffffffff : left == 1 ? 0xffff : 0;
    value[i] = ((GLOBAL const u32 *)row)[min_u32(k / 2 + i, (depth - 1) / 2)] & mask;
  }
  return __builtin_bit_cast(bf16x8, value);
}

// Lines past the end of either matrix read its last line; what they yield is never stored.
INLINE void gemm_step(f32x4 *acc, u32 tiles, struct gemm_product p, u32 row0, u32 token0, u32 step, bool aligned,
                      bool whole) {
  u32 k = step * GEMM_STEP + mfma_quarter() * 16;
  bytes w = p.w + (u64)row0 * p.w_pitch + min_u32(mfma_line(), p.rows - 1 - row0) * p.w_pitch;
  bytes x = p.x + (u64)token0 * p.x_pitch;
  bf16x8 a[2];
  for (u32 half = 0; half < 2; half++) a[half] = gemm_load(w, k + half * 8, p.depth, aligned, whole);
#pragma clang loop unroll(full)
  for (u32 tile = 0; tile < tiles; tile++) {
    u32 token = min_u32(tile * MFMA_COLUMNS + mfma_line(), p.tokens - 1 - token0);
    for (u32 half = 0; half < 2; half++)
      acc[tile] = mfma(a[half], gemm_load(x + token * p.x_pitch, k + half * 8, p.depth, aligned, whole), acc[tile]);
  }
}

INLINE void gemm_aligned_steps(f32x4 *acc, u32 tiles, struct gemm_product p, u32 row0, u32 token0,
                               struct gemm_share share) {
  u32 steps = p.depth / GEMM_STEP, step = share.first;
  // Decode waits for memory: four steps at once keep enough of it under way.
  constexpr u32 ahead = 4;
  if (tiles == 1)
    for (; step + (ahead - 1) * share.stride < steps; step += ahead * share.stride)
#pragma clang loop unroll(full)
      for (u32 i = 0; i < ahead; i++) gemm_step(acc, tiles, p, row0, token0, step + i * share.stride, true, true);
  for (; step < steps; step += share.stride) gemm_step(acc, tiles, p, row0, token0, step, true, true);
  if (step == steps && p.depth % GEMM_STEP != 0) gemm_step(acc, tiles, p, row0, token0, step, true, false);
}

// Adds this wave's share of the product to acc[0 .. tiles - 1]; `most` bounds tiles, and tiles above them may change
// too.
INLINE void gemm_accumulate(f32x4 *acc, u32 most, u32 tiles, struct gemm_product p, u32 row0, u32 token0,
                            struct gemm_share share) {
  if (!gemm_aligned(p))
    for (u32 step = share.first; step * GEMM_STEP < p.depth; step += share.stride)
      gemm_step(acc, most, p, row0, token0, step, false, false);
  else if (most > 2 && tiles <= 2) gemm_aligned_steps(acc, 2, p, row0, token0, share);
  else if (most > 4 && tiles <= 4) gemm_aligned_steps(acc, 4, p, row0, token0, share);
  else gemm_aligned_steps(acc, most, p, row0, token0, share);
}

// LDS where the waves' sums meet.
typedef LDS f32x4 *gemm_scratch;
#define GEMM_SCRATCH(tiles) (GEMM_WAVES * (tiles) * WAVE)
// Token tiles of which one wave gets the total.
#define GEMM_TOTALS(tiles) (((tiles) + GEMM_WAVES - 1) / GEMM_WAVES)

// Adds the four waves' sums: acc[i] becomes the total of tile wave + 4 i.
INLINE void gemm_reduce(gemm_scratch scratch, f32x4 *acc, u32 most, u32 tiles) {
  u32 wave = wave_id(), lane = lane_id();
  for (u32 tile = 0; tile < most; tile++)
    if (tile < tiles) scratch[(wave * most + tile) * WAVE + lane] = acc[tile];
  workgroup_barrier();
  for (u32 i = 0; i < GEMM_TOTALS(most); i++) {
    u32 tile = wave + i * GEMM_WAVES;
    if (tile >= tiles) continue;
    acc[i] = 0;
    for (u32 from = 0; from < GEMM_WAVES; from++) acc[i] += scratch[(from * most + tile) * WAVE + lane];
  }
  workgroup_barrier();
}

// Stores four rows of one token. Rows of y start at multiples of 16 bytes.
INLINE void gemm_store(GLOBAL u8 *y_row, u32 row, u32 rows, f32x4 value, bool as_f32) {
  if (row + 4 <= rows) {
    if (as_f32) ((GLOBAL f32x4 *)y_row)[row / 4] = value;
    else ((GLOBAL bf16x4 *)y_row)[row / 4] = __builtin_convertvector(value, bf16x4);
    return;
  }
  for (u32 i = 0; i < 4; i++) {
    if (row + i >= rows) return;
    if (as_f32) ((GLOBAL f32 *)y_row)[row + i] = value[i];
    else ((GLOBAL bf16 *)y_row)[row + i] = (bf16)value[i];
  }
}
