// Embedding: h[token] = row of the token, read from the rank that owns it.
#include "error.h"
#include "step.h"

// Addresses of one thing on every rank, as this GPU maps them.
struct per_rank {
  bytes at[8];
};

// Workgroups: x = tokens. Rows are hidden BF16 values, a multiple of 8.
KERNEL(256)
void embed(GLOBAL const struct step *step, GLOBAL const u32 *ids, const struct per_rank table, GLOBAL u32x4 *h,
           error_word error, u32 rank, u32 rows_per_rank, u32 ranks, u32 hidden, u32 tokens) {
  u32 token = group_x();
  if (token >= valid_tokens(step, tokens)) return;
  u32 id = ids[token], owner = id / rows_per_rank, vectors = hidden / 8;
  if (owner >= ranks) {
    if (thread_id() == 0) report_error(error, ERROR_TOKEN, rank, rank, token, id);
    id = 0, owner = 0; // any row: the run's result is void
  }
  GLOBAL const u32x4 *row = (GLOBAL const u32x4 *)table.at[owner] + (u64)(id - owner * rows_per_rank) * vectors;
  for (u32 i = thread_id(); i < vectors; i += 256) h[(u64)token * vectors + i] = row[i];
}
