// Joins the ranks' columns: out[token][rank x width + column] = part of that rank[token][column], rounded to BF16. One
// column a thread.
#include "collective.h"
#include "step.h"

constexpr u32 THREADS = 256;

// Workgroups: x = ceil(width / 256), y = tokens. part is FP32 with rows part_pitch bytes apart, out [tokens][ranks x
// width] BF16.
KERNEL(256)
void all_gather(GLOBAL const struct step *step, bytes part, GLOBAL bf16 *out, const struct mailboxes mailboxes,
                error_word error, u64 words, u64 timeout, u32 part_pitch, u32 width, u32 rank, u32 ranks,
                u32 collective, u32 tokens) {
  u32 token = group_y(), column = group_x() * THREADS + thread_id();
  if (token >= valid_tokens(step, tokens) || column >= width) return;
  f32 own = ((GLOBAL const f32 *)(part + (u64)token * part_pitch))[column];

  struct exchange exchange = {(CONSTANT const struct mailboxes *)&mailboxes,
                              error,
                              words,
                              timeout,
                              rank,
                              ranks,
                              step->epoch + collective,
                              collective};
  f32 value[MAX_RANKS];
  exchange_values(exchange, (u64)token * width + column, own, token, value);
  for (u32 from = 0; from < MAX_RANKS; from++)
    if (from < ranks) out[((u64)token * ranks + from) * width + column] = (bf16)value[from];
}
