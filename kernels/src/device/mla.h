// Multi-head latent attention in the absorbed form: all heads share one cached row of 512 latent values and 64 key
// values a token, and the halves of kv_b are applied to the query before and to the attended latent after.
#pragma once
#include "mfma.h"
#include "step.h"

constexpr u32 NOPE = 128, ROPE = 64, VALUE = 128, LATENT = 512; // widths, the same in every K3
constexpr u32 QUERY = NOPE + ROPE;
constexpr u32 CACHED = LATENT + ROPE; // BF16 values of a cached token, and of an absorbed query

// Attention divides the cached tokens evenly into splits, in whole blocks of keys, and leaves the last splits empty
// where there are too few.
constexpr u32 KEY_BLOCK = 64, MAX_SPLITS = 256;

struct spans {
  u32 length; // tokens of a split
  u32 active; // splits that have tokens
};

INLINE struct spans split_keys(u32 keys, u32 splits) {
  u32 length = ceil_div(ceil_div(keys, splits), KEY_BLOCK) * KEY_BLOCK;
  return (struct spans){length, ceil_div(keys, length)};
}

// What a split leaves for one query row: sum of exp2(score - most) x latent goes to partial[split][row][512], this to
// sums[split][row].
struct softmax_state {
  f32 most; // largest score, times log2(e)
  f32 sum;  // of exp2(score - most)
};
