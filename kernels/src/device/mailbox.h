// One-shot exchange between ranks through mailboxes in peer-mapped memory.
//
// Every GPU has a mailbox of two halves, each with room for `words` words from every rank: mailbox[epoch %
// 2][from][words]. A word is 64 bits, value below and epoch above, written by one store at system scope: whoever reads
// the epoch has the value, and no fence or barrier is needed. Mailboxes are in memory that no cache holds back
// (fine-grained or uncached) and start as zeros.
//
// Epochs of consecutive collectives are consecutive, and each collective moves at least one word from every rank to
// every rank. So two halves suffice: a rank that sends for epoch e has finished e - 1, so every peer has started e - 1,
// so it has finished e - 2, the last to use this half.
//
// Workgroup i of a collective waits only for what the peers' workgroups i send before they wait. Workgroups are
// dispatched in order, so they need not all be resident at once.
#pragma once
#include "error.h"

constexpr u32 MAX_RANKS = 8;

struct mailboxes {
  GLOBAL u64 *at[MAX_RANKS]; // by rank, as this GPU maps them
};

// What a rank needs to exchange data with the others, as one kernel argument.
struct mailbox {
  struct mailboxes mailboxes;
  error_word error;
  u64 words, timeout;
  u32 rank, ranks;
};

struct exchange {
  CONSTANT const struct mailboxes *mailboxes;
  error_word error;
  u64 words;   // of one sender in one half
  u64 timeout; // ticks of s_memrealtime (100 MHz)
  u32 rank, ranks, epoch, collective;
};

INLINE struct exchange exchange_through(CONSTANT const struct mailbox *m, u32 first_epoch, u32 collective) {
  return (struct exchange){&m->mailboxes, m->error, m->words, m->timeout,
                           m->rank,       m->ranks, first_epoch + collective, collective};
}

INLINE u64 mailbox_index(struct exchange x, u32 from, u64 word) {
  return (x.epoch % 2 * x.ranks + from) * x.words + word;
}

INLINE void send(struct exchange x, u32 to, u64 word, u32 value) {
  u64 tagged = (u64)x.epoch << 32 | value;
  __scoped_atomic_store_n(x.mailboxes->at[to] + mailbox_index(x, x.rank, word), tagged, __ATOMIC_RELAXED,
                          __MEMORY_SCOPE_SYSTEM);
}

INLINE void send_to_peers(struct exchange x, u64 word, u32 value) {
  for (u32 peer = 0; peer < MAX_RANKS; peer++)
    if (peer < x.ranks && peer != x.rank) send(x, peer, word, value);
}

// Waits for a word of each peer. value[rank] of this rank is the caller's. What does not come in time is reported and
// taken as 0; once the GPU has an error nothing waits any more.
INLINE void receive_from_peers(struct exchange x, u64 word, u32 value[MAX_RANKS]) {
  GLOBAL const u64 *own = x.mailboxes->at[x.rank];
  u64 deadline = __builtin_amdgcn_s_memrealtime() + x.timeout;
  for (;;) {
    u32 missing = MAX_RANKS;
#pragma clang loop unroll(full)
    for (u32 peer = 0; peer < MAX_RANKS; peer++) {
      if (peer >= x.ranks || peer == x.rank) continue;
      u64 tagged = __scoped_atomic_load_n(own + mailbox_index(x, peer, word), __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
      bool here = tagged >> 32 == x.epoch;
      value[peer] = here ? (u32)tagged : 0;
      if (!here) missing = peer;
    }
    if (missing == MAX_RANKS) return;
    if (has_error(x.error)) return;
    if (__builtin_amdgcn_s_memrealtime() > deadline) {
      report_error(x.error, ERROR_PEER_TIMEOUT, x.rank, missing, x.collective, x.epoch);
      return;
    }
    __builtin_amdgcn_s_sleep(1);
  }
}

// Waits for one word of one peer, as above.
INLINE u32 receive(struct exchange x, u32 from, u64 word) {
  GLOBAL const u64 *at = x.mailboxes->at[x.rank] + mailbox_index(x, from, word);
  u64 deadline = __builtin_amdgcn_s_memrealtime() + x.timeout;
  for (;;) {
    u64 tagged = __scoped_atomic_load_n(at, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
    if (tagged >> 32 == x.epoch) return (u32)tagged;
    if (has_error(x.error)) return 0;
    if (__builtin_amdgcn_s_memrealtime() > deadline) {
      report_error(x.error, ERROR_PEER_TIMEOUT, x.rank, from, x.collective, x.epoch);
      return 0;
    }
    __builtin_amdgcn_s_sleep(1);
  }
}
