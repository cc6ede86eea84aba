// Ends a run of the graph: reports it to the host and makes the step that of the next run.
#include "error.h"
#include "step.h"

// An entry of the host-visible ring. The host polls sequence, so it is stored last, with the token in one 64-bit store.
struct ring_entry {
  u64 error;              // the error word; the run is void unless it is 0
  u64 token_and_sequence; // token below, number of the run above, from 1
};

// Workgroups: 1. ring has a power of two of entries, ring_mask is one less, or ring is null. With has_token the next
// run starts from step->token; without, the host gives the next run its tokens. After an error nothing advances.
KERNEL(64)
void advance(GLOBAL struct step *step, GLOBAL u32 *ids, GLOBAL struct ring_entry *ring, error_word error, u32 ring_mask,
             u32 collectives, u32 has_token, u32 tokens) {
  if (thread_id() != 0) return;
  u64 failure = __scoped_atomic_load_n(error, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
  u32 sequence = step->sequence, token = has_token && failure == 0 ? step->token : 0xffffffff;
  if (ring) {
    GLOBAL struct ring_entry *entry = ring + (sequence & ring_mask);
    entry->error = failure;
    __scoped_atomic_store_n(&entry->token_and_sequence, (u64)(sequence + 1) << 32 | token, __ATOMIC_RELEASE,
                            __MEMORY_SCOPE_SYSTEM);
  }
  step->sequence = sequence + 1;
  if (failure != 0) return;
  step->position += valid_tokens(step, tokens);
  step->epoch += collectives;
  step->count = 1;
  if (has_token) ids[0] = token;
}
