// Sum over ranks, in rank order: the same bits on every GPU. One element a thread.
//
// A rank contributes sum over i < terms of weights[token][i] x partial[token x terms + i][column]: with terms > 1 that
// is the weighted sum over a token's experts. out = sum over ranks, plus residual if there is one, rounded once to
// BF16.
#include "collective.h"
#include "step.h"

constexpr u32 THREADS = 256;

// Workgroups: x = ceil(width / 256), y = tokens. partial is FP32 with rows partial_pitch bytes apart, weights
// [tokens][terms] or null for 1, residual and out [tokens][width] BF16; out may be residual.
KERNEL(256)
void all_reduce(GLOBAL const struct step *step, bytes partial, GLOBAL const f32 *weights, GLOBAL const bf16 *residual,
                GLOBAL bf16 *out, const struct mailboxes mailboxes, error_word error, u64 words, u64 timeout,
                u32 partial_pitch, u32 terms, u32 width, u32 rank, u32 ranks, u32 collective, u32 tokens) {
  u32 token = group_y(), column = group_x() * THREADS + thread_id();
  if (token >= valid_tokens(step, tokens) || column >= width) return;
  f32 own = 0;
  for (u32 i = 0; i < terms; i++) {
    u64 row = (u64)token * terms + i;
    f32 value = ((GLOBAL const f32 *)(partial + row * partial_pitch))[column];
    own += weights ? weights[row] * value : value;
  }

  struct exchange exchange = {(CONSTANT const struct mailboxes *)&mailboxes,
                              error,
                              words,
                              timeout,
                              rank,
                              ranks,
                              step->epoch + collective,
                              collective};
  u64 at = (u64)token * width + column;
  f32 sum = sum_over_ranks(exchange, at, own, token);
  if (residual) sum += (f32)residual[at];
  out[at] = (bf16)sum;
}
