// Exchange of a workgroup's rows with the workgroups of the same number on the other ranks: no barrier over the grid.
//
// Each thread takes a row and a peer: it sends its own value there and waits for one word, so all words of a workgroup
// are under way at once, and the words of 16 rows for a peer are one 128-byte line.
#pragma once
#include "mailbox.h"

constexpr u32 MAX_EXCHANGED = 128;

LDS_ARRAY f32 exchanged[MAX_RANKS][MAX_EXCHANGED];

// exchanged[x.rank] holds this rank's rows, the first of which is word `first` of the collective; afterwards it holds
// all ranks'. All threads call it.
INLINE void exchange_rows(struct exchange x, u32 threads, u64 first, u32 rows) {
  workgroup_barrier();
  for (u32 i = thread_id(); i < x.ranks * rows; i += threads) {
    u32 peer = i / rows, row = i % rows;
    if (peer != x.rank) send(x, peer, first + row, __builtin_bit_cast(u32, exchanged[x.rank][row]));
  }
  for (u32 i = thread_id(); i < x.ranks * rows; i += threads) {
    u32 peer = i / rows, row = i % rows;
    if (peer != x.rank) exchanged[peer][row] = __builtin_bit_cast(f32, receive(x, peer, first + row));
  }
  workgroup_barrier();
}

// A rank's value of a row; what is infinite or NaN is reported with the rank it came from.
INLINE f32 exchanged_row(struct exchange x, u32 from, u32 row) {
  f32 value = exchanged[from][row];
  if (!__builtin_isfinite(value)) report_error(x.error, ERROR_NOT_FINITE, x.rank, from, x.collective, 0);
  return value;
}

// Sum over ranks in rank order: the same bits on every GPU.
INLINE f32 exchanged_sum(struct exchange x, u32 row) {
  f32 sum = exchanged_row(x, 0, row);
  for (u32 from = 1; from < x.ranks; from++) sum += exchanged_row(x, from, row);
  return sum;
}
