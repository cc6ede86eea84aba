// Kimi Delta Attention (KDA), what its two kernels share. Per head and token, in FP32 (k indexes keys, v values):
//   q, k, v = SiLU(conv4(projection)); q, k are l2-normalised, q is scaled by 128^-1/2
//   g[k] = lower_bound sigmoid(exp(A_log) (f_b f_a + dt_bias)[k]), beta = sigmoid(b)
//   S[k][v] *= exp(g[k]); e[v] = beta (v[v] - sum_k k[k] S[k][v]); S[k][v] += k[k] e[v]; o[v] = sum_k q[k] S[k][v]
//   out[v] = o[v] rsqrt(mean(o^2) + eps) o_norm[v] sigmoid(gate[v])
// A workgroup has one head. Values are independent of each other until the norm: each of its eight waves keeps S for 16
// of them in registers.
//
// Arguments: histories are [3 tokens][heads][128] BF16, oldest first, state is [heads][key][value] FP32; both are
// updated. Pitches are in bytes; q, k, v and gate share one. f_b is [heads][128][128] BF16.
#pragma once
#include "convolution.h"
#include "step.h"
#include "wave.h"

constexpr u32 KDA_THREADS = 512, KDA_WAVES = KDA_THREADS / WAVE, DIM = 128;
constexpr f32 L2_EPS = 1e-6f, QUERY_SCALE = 0.08838834764831845f; // 128^-1/2

// A lane holds S[16 i + 4 quarter + c][value], i < 8, c < 4, where value is its line of the wave's 16.
constexpr u32 SLICES = DIM / 16;

INLINE GLOBAL f32 *own_state(GLOBAL f32 *state, u32 head) {
  return state + (u64)head * DIM * DIM + mfma_quarter() * 4 * DIM + wave_id() * 16 + mfma_line();
}

INLINE void load_state(f32x4 *S, GLOBAL const f32 *own) {
  for (u32 i = 0; i < SLICES; i++)
    for (u32 c = 0; c < 4; c++) S[i][c] = own[(i * 16 + c) * DIM];
}

INLINE void store_state(GLOBAL f32 *own, const f32x4 *S) {
  for (u32 i = 0; i < SLICES; i++)
    for (u32 c = 0; c < 4; c++) own[(i * 16 + c) * DIM] = S[i][c];
}

// This wave's 16 rows of f_b, as A operand.
INLINE void load_f_b(bf16x8 *a, GLOBAL const bf16 *f_b, u32 head) {
  GLOBAL const bf16 *w = f_b + (head * DIM + wave_id() * MFMA_ROWS + mfma_line()) * DIM + mfma_quarter() * 8;
  for (u32 j = 0; j < DIM / MFMA_DEPTH; j++) a[j] = *(GLOBAL const bf16x8 *)(w + j * MFMA_DEPTH);
}

// f_b f_a for four channels, 16 wave + 4 quarter and on, of the token whose f_a this lane points at.
INLINE f32x4 decay_input(const bf16x8 *f_b, bytes f_a) {
  f32x4 f = 0;
  for (u32 j = 0; j < DIM / MFMA_DEPTH; j++)
    f = mfma(f_b[j], ((GLOBAL const bf16x8 *)f_a)[j * (MFMA_DEPTH / 8) + mfma_quarter()], f);
  return f;
}

// Norm and gate of one token by half a wave. row is o, gate and out are at the head's part of the token.
INLINE void finish_token(LDS const f32x4 *row, bytes gate, GLOBAL u8 *out, GLOBAL const f32 *o_norm, f32 eps) {
  u32 at = lane_id() % (WAVE / 2);
  f32x4 o = row[at], g = __builtin_convertvector(((GLOBAL const bf16x4 *)gate)[at], f32x4);
  o *= reciprocal_sqrt(half_sum((o.x * o.x + o.y * o.y) + (o.z * o.z + o.w * o.w)) / DIM + eps);
  o *= ((GLOBAL const f32x4 *)o_norm)[at];
  for (u32 c = 0; c < 4; c++) o[c] *= fast_sigmoid(g[c]);
  ((GLOBAL bf16x4 *)out)[at] = __builtin_convertvector(o, bf16x4);
}
