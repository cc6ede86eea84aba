// What changes from one run of the graph to the next. It lives in device memory, one copy a GPU, and the graph's last
// kernel advances it, so that a replay patches nothing.
#pragma once
#include "device.h"

// How the next token is drawn.
struct sampling {
  f32 scale; // log2(e) / temperature; 0: the most likely token is taken
  u32 top_k; // candidates kept at most; 0 keeps all
  u64 top_p; // share kept of their sum, in units of 2^-64; 0 keeps all
  u64 seed;  // key of the random numbers
};

struct step {
  u32 position; // tokens already in the caches: position of the first token of this run
  u32 count;    // tokens of this run, at least 1
  u32 epoch;    // epoch of the first collective of this run, never 0
  u32 sequence; // runs finished
  u32 token;    // what was chosen in this run
  u32 reserved;
  struct sampling sampling; // only the host writes it
};
static_assert(sizeof(struct step) == 48);

// Tokens to work on; `capacity` is what the launch and its buffers were sized for.
INLINE u32 valid_tokens(GLOBAL const struct step *step, u32 capacity) { return min_u32(step->count, capacity); }
