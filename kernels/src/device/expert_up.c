// Routed experts of one token, first half: choice of the experts, then gate and up with SiTU,
// h[choice][column] = SiTU(w1 z, w3 z), MXFP4 weights and BF16 activations.
#include "choice.h"
#include "expert.h"
#include "step.h"

constexpr u32 ROUND = 8; // steps of a round: all 7 that a wave has at official width are under way at once

// Sums of 16 rows of both matrices over steps first, first + stride, ... of z.
INLINE void sum_gate_and_up(f32x4 sum[2], const struct mxfp4 w[2], u32 row, u32 depth, u32 first, u32 stride) {
  u32 steps = ceil_div(depth, MXFP4_STEP);
  for (u32 step = first; step < steps; step += ROUND * stride) {
    struct mxfp4_block block[ROUND][2];
#pragma clang loop unroll(full)
    for (u32 i = 0; i < ROUND; i++)
      if (step + i * stride < steps)
        for (u32 m = 0; m < 2; m++) block[i][m] = expert_fetch(w[m], row, step + i * stride, depth);
#pragma clang loop unroll(full)
    for (u32 i = 0; i < ROUND; i++)
      if (step + i * stride < steps)
        for (u32 m = 0; m < 2; m++) sum[m] = expert_add(sum[m], block[i][m], step + i * stride);
  }
}

// Workgroups: x = ceil(columns / 16 or 64), y = top_k. logits is [experts] FP32, z [depth] BF16; ids and weights get the
// choice, h is [top_k] rows of columns BF16 values. Expert e has its matrices at experts + e stride + offset.
KERNEL(256)
void expert_up(GLOBAL const f32 *logits, GLOBAL const f32 *bias, GLOBAL const bf16x8 *z, bytes experts, GLOBAL u32 *ids,
               GLOBAL f32 *weights, GLOBAL u8 *h, u64 stride, u32 w1_packed, u32 w1_scale, u32 w3_packed, u32 w3_scale,
               u32 packed_pitch, u32 scale_pitch, u32 h_pitch, u32 expert_count, u32 top_k, f32 scale, u32 depth,
               u32 columns, f32 situ_beta, f32 situ_linear_beta) {
  u32 thread = thread_id(), wave = wave_id();
  struct router router = {(bytes)logits, bias, ids, weights, 0, expert_count, top_k, scale};
  load_expert_input(z, depth);
  choose_together(router, 0);
  if (group_x() == 0 && group_y() == 0 && thread < top_k) {
    ids[thread] = chosen_ids[thread];
    weights[thread] = chosen_weight(router, thread);
  }

  bool share = expert_rows_share(depth);
  u32 column0 = share ? group_x() * MFMA_ROWS : (group_x() * EXPERT_WAVES + wave) * MFMA_ROWS;
  bytes expert = experts + __builtin_amdgcn_readfirstlane(chosen_ids[group_y()]) * stride;
  struct mxfp4 gate_and_up[2] = {{expert + w1_packed, expert + w1_scale, packed_pitch, scale_pitch},
                                 {expert + w3_packed, expert + w3_scale, packed_pitch, scale_pitch}};
  f32x4 sum[2] = {};
  if (column0 < columns)
    sum_gate_and_up(sum, gate_and_up, column0 + mfma_line(), depth, share ? wave : 0, share ? EXPERT_WAVES : 1);
  for (u32 m = 0; m < 2; m++) store_expert_sums(m, sum[m]);
  workgroup_barrier();

  u32 own = (share ? 1 : EXPERT_WAVES) * MFMA_ROWS, column = group_x() * own + thread;
  if (thread >= own || column >= columns) return;
  f32 gate = expert_sum(0, share, thread), up = expert_sum(1, share, thread);
  ((GLOBAL bf16 *)(h + (u64)group_y() * h_pitch))[column] =
      (bf16)situ((struct situ_betas){situ_beta, situ_linear_beta}, gate, up);
}
