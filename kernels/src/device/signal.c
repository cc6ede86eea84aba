// The collectives of all_reduce.c and all_gather.c in two launches, with one signal a peer in place of a flag on every
// word: the fallback where stores of 64 bits should turn out not to be seen as one, and a check on the one-shot form,
// whose bits it gives.
//
// The first launch stores this rank's values to all mailboxes. When the second starts they are out, so its first
// workgroup tells every peer, and all its workgroups wait for every peer's word that it has got so far. That word is the
// last of a sender's; values never reach it. Halves of mailboxes are used in turn as in mailbox.h, for the same reason.
#include "mailbox.h"
#include "step.h"

constexpr u32 THREADS = 256;

INLINE u64 signal_word(struct exchange x) { return x.words - 1; }

// Workgroups: x = ceil(width / 256), y = tokens. partial and weights as in all_reduce.
KERNEL(256)
void signal_send(GLOBAL const struct step *step, bytes partial, GLOBAL const f32 *weights, const struct mailbox mailbox,
                 u32 partial_pitch, u32 terms, u32 width, u32 collective, u32 tokens) {
  u32 token = group_y(), column = group_x() * THREADS + thread_id();
  if (token >= valid_tokens(step, tokens) || column >= width) return;
  f32 own = 0;
  for (u32 i = 0; i < terms; i++) {
    u64 row = (u64)token * terms + i;
    f32 value = ((GLOBAL const f32 *)(partial + row * partial_pitch))[column];
    own += weights ? weights[row] * value : value;
  }
  struct exchange x = exchange_through((CONSTANT const struct mailbox *)&mailbox, step->epoch, collective);
  for (u32 to = 0; to < x.ranks; to++) send(x, to, (u64)token * width + column, __builtin_bit_cast(u32, own));
}

// Tells the peers that this rank's values are out, and waits until all of theirs are.
INLINE void meet(struct exchange x) {
  u32 thread = thread_id();
  bool peer = thread < x.ranks && thread != x.rank;
  if (peer && group_x() == 0 && group_y() == 0) send(x, thread, signal_word(x), 0);
  if (peer) receive(x, thread, signal_word(x));
  workgroup_barrier();
}

// A rank's value; what is infinite or NaN is reported with the rank it came from.
INLINE f32 value_of(struct exchange x, u32 from, u64 word, u32 token) {
  GLOBAL const u64 *at = x.mailboxes->at[x.rank] + mailbox_index(x, from, word);
  f32 value = __builtin_bit_cast(f32, (u32)__scoped_atomic_load_n(at, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM));
  if (!__builtin_isfinite(value)) report_error(x.error, ERROR_NOT_FINITE, x.rank, from, x.collective, token);
  return value;
}

// Workgroups: x = ceil(width / 256), y = tokens. residual and out as in all_reduce.
KERNEL(256)
void signal_sum(GLOBAL const struct step *step, GLOBAL const bf16 *residual, GLOBAL bf16 *out,
                const struct mailbox mailbox, u32 width, u32 collective, u32 tokens) {
  u32 token = group_y(), column = group_x() * THREADS + thread_id();
  if (token >= valid_tokens(step, tokens)) return;
  struct exchange x = exchange_through((CONSTANT const struct mailbox *)&mailbox, step->epoch, collective);
  meet(x);
  if (column >= width) return;
  u64 at = (u64)token * width + column;
  f32 sum = value_of(x, 0, at, token);
  for (u32 from = 1; from < x.ranks; from++) sum += value_of(x, from, at, token);
  if (residual) sum += (f32)residual[at];
  out[at] = (bf16)sum;
}

// Workgroups: x = ceil(width / 256), y = tokens. out as in all_gather.
KERNEL(256)
void signal_gather(GLOBAL const struct step *step, GLOBAL bf16 *out, const struct mailbox mailbox, u32 width,
                   u32 collective, u32 tokens) {
  u32 token = group_y(), column = group_x() * THREADS + thread_id();
  if (token >= valid_tokens(step, tokens)) return;
  struct exchange x = exchange_through((CONSTANT const struct mailbox *)&mailbox, step->epoch, collective);
  meet(x);
  if (column >= width) return;
  for (u32 from = 0; from < x.ranks; from++)
    out[((u64)token * x.ranks + from) * width + column] =
        (bf16)value_of(x, from, (u64)token * width + column, token);
}
