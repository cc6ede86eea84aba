// What changes from one run of the graph to the next. It lives in device memory, one copy a GPU, and the graph's last
// kernel advances it, so that a replay patches nothing.
#pragma once
#include "device.h"

struct step {
  u32 position; // tokens already in the caches: position of the first token of this run
  u32 count;    // tokens of this run, at least 1
  u32 epoch;    // epoch of the first collective of this run, never 0
  u32 sequence; // runs finished
  u32 token;    // what the greedy head chose in this run
  u32 reserved[3];
};
static_assert(sizeof(struct step) == 32);

// Tokens to work on; `capacity` is what the launch and its buffers were sized for.
INLINE u32 valid_tokens(GLOBAL const struct step *step, u32 capacity) { return min_u32(step->count, capacity); }
