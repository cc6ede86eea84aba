// Routed experts of one token, second half: down projection, weighted sum over the chosen experts and sum over ranks,
// out[row] = sum over ranks and choices of weight x w2 h, rounded once to BF16. MXFP4 weights, BF16 activations, FP32
// sums.
//
// A workgroup takes 16 rows of all experts: their products are one long sum, which its four waves share.
#include "expert.h"
#include "row_exchange.h"
#include "step.h"

constexpr u32 ROUND = 12; // steps of a round: all that a wave has at official width, 3 of each of 4 experts

struct experts {
  bytes first;
  u64 stride;
  u32 packed, scale, packed_pitch, scale_pitch; // of w2 in an expert
  GLOBAL const u32 *ids;
  GLOBAL const f32 *weights;
  u32 steps, depth; // of one expert
};

// One step of the long sum: steps of an expert follow each other, then come those of the next choice.
INLINE struct mxfp4_block fetch(struct experts e, u32 row, u32 at) {
  bytes expert = e.first + e.ids[at / e.steps] * e.stride;
  struct mxfp4 w2 = {expert + e.packed, expert + e.scale, e.packed_pitch, e.scale_pitch};
  return expert_fetch(w2, row, at % e.steps, e.depth);
}

INLINE f32x4 sum_experts(struct experts e, u32 row, u32 steps) {
  f32x4 sum = 0;
  for (u32 first = wave_id(); first < steps; first += ROUND * EXPERT_WAVES) {
    struct mxfp4_block block[ROUND];
#pragma clang loop unroll(full)
    for (u32 i = 0; i < ROUND; i++)
      if (first + i * EXPERT_WAVES < steps) block[i] = fetch(e, row, first + i * EXPERT_WAVES);
#pragma clang loop unroll(full)
    for (u32 i = 0; i < ROUND; i++) {
      u32 at = first + i * EXPERT_WAVES;
      if (at < steps) sum += e.weights[at / e.steps] * expert_add((f32x4)0, block[i], at);
    }
  }
  return sum;
}

// Workgroups: x = rows / 16. h is [top_k] rows of depth BF16 values, each padded to h_pitch bytes; out [rows] BF16.
// Expert e has w2 at experts + e stride + offset.
KERNEL(256)
void expert_down(GLOBAL const struct step *step, GLOBAL const u32 *ids, GLOBAL const f32 *weights, bytes experts,
                 bytes h, GLOBAL bf16 *out, const struct mailbox mailbox, u64 stride, u32 w2_packed, u32 w2_scale,
                 u32 packed_pitch, u32 scale_pitch, u32 h_pitch, u32 top_k, u32 depth, u32 rows, u32 collective) {
  u32 thread = thread_id(), epoch = step->epoch, steps = ceil_div(depth, MXFP4_STEP);
  u32 row0 = group_x() * MFMA_ROWS, row = min_u32(row0 + mfma_line(), rows - 1);
  u32 vectors = steps * (MXFP4_STEP / 8); // of one expert's input with the zeros to the end of its last step
  for (u32 i = thread; i < top_k * vectors; i += EXPERT_THREADS) {
    u32 choice = i / vectors, at = i % vectors;
    expert_input[i] = at < depth / 8 ? ((GLOBAL const bf16x8 *)(h + (u64)choice * h_pitch))[at] : (bf16x8)0;
  }
  struct experts all = {experts, stride, w2_packed, w2_scale, packed_pitch, scale_pitch, ids, weights, steps, depth};
  workgroup_barrier();
  store_expert_sums(0, sum_experts(all, row, top_k * steps));
  workgroup_barrier();

  struct exchange exchange = exchange_through((CONSTANT const struct mailbox *)&mailbox, epoch, collective);
  if (thread < MFMA_ROWS) exchanged[exchange.rank][thread] = expert_sum(0, true, thread);
  u32 own = min_u32(MFMA_ROWS, rows - row0);
  exchange_rows(exchange, EXPERT_THREADS, row0, own);
  if (thread < own) out[row0 + thread] = (bf16)exchanged_sum(exchange, thread);
}
