// What ranks do with each other's values: one element a thread.
#pragma once
#include "mailbox.h"

// The exchange of one element. All values are checked: what is infinite or NaN is reported with the rank it came from.
INLINE void exchange_values(struct exchange x, u64 at, f32 own, u32 token, f32 value[MAX_RANKS]) {
  u32 word[MAX_RANKS];
  send_to_peers(x, at, __builtin_bit_cast(u32, own));
  receive_from_peers(x, at, word);
  u32 broken = MAX_RANKS;
  for (u32 from = 0; from < MAX_RANKS; from++) {
    if (from >= x.ranks) continue;
    value[from] = from == x.rank ? own : __builtin_bit_cast(f32, word[from]);
    if (!__builtin_isfinite(value[from])) broken = from;
  }
  if (broken != MAX_RANKS) report_error(x.error, ERROR_NOT_FINITE, x.rank, broken, x.collective, token);
}

// Sum over ranks in rank order: the same bits on every GPU.
INLINE f32 sum_over_ranks(struct exchange x, u64 at, f32 own, u32 token) {
  f32 value[MAX_RANKS];
  exchange_values(x, at, own, token, value);
  f32 sum = value[0];
  for (u32 from = 1; from < MAX_RANKS; from++)
    if (from < x.ranks) sum += value[from];
  return sum;
}
