// Greedy choice: the largest logit over all ranks, ties to the lowest token. A NaN anywhere is an error, never a token.
#include "mailbox.h"
#include "step.h"
#include "wave.h"

constexpr u32 THREADS = 256, WAVES = THREADS / WAVE;
constexpr u32 NO_TOKEN = 0xffffffff;

struct candidate {
  f32 logit; // NaN if one was seen
  u32 token;
};

INLINE struct candidate better(struct candidate a, struct candidate b) {
  if (a.logit != a.logit) return a;
  if (b.logit != b.logit) return b;
  return b.logit > a.logit || (b.logit == a.logit && b.token < a.token) ? b : a;
}

INLINE struct candidate wave_best(struct candidate best) {
  for (u32 distance = 1; distance < WAVE; distance *= 2) {
    u32 other = lane_id() ^ distance;
    best = better(best, (struct candidate){read_lane_f32(best.logit, other), read_lane(best.token, other)});
  }
  return best;
}

LDS_ARRAY struct candidate wave_bests[WAVES];

// Workgroups: 1. logits [..][rows] FP32 with rows row_pitch bytes apart are this rank's; the row is that of the last
// token if last_row is set, else row 0. Rank r has tokens r x rows and up. The choice goes to step->token.
KERNEL(256)
void argmax(GLOBAL struct step *step, bytes logits, const struct mailboxes mailboxes, error_word error, u64 words,
            u64 timeout, u32 row_pitch, u32 rows, u32 last_row, u32 rank, u32 ranks, u32 collective, u32 tokens) {
  u32 thread = thread_id(), wave = wave_id(), valid = valid_tokens(step, tokens);
  GLOBAL const f32 *row = (GLOBAL const f32 *)(logits + (u64)(last_row ? valid - 1 : 0) * row_pitch);
  struct candidate best = {-__builtin_inff(), NO_TOKEN};
  for (u32 i = thread; i < rows; i += THREADS) best = better(best, (struct candidate){row[i], rank * rows + i});
  best = wave_best(best);
  if (lane_id() == 0) wave_bests[wave] = best;
  workgroup_barrier();
  if (thread != 0) return;

  best = wave_bests[0];
  for (u32 i = 1; i < WAVES; i++) best = better(best, wave_bests[i]);
  struct exchange exchange = {(CONSTANT const struct mailboxes *)&mailboxes,
                              error,
                              words,
                              timeout,
                              rank,
                              ranks,
                              step->epoch + collective,
                              collective};
  u32 peer_logits[MAX_RANKS], peer_tokens[MAX_RANKS];
  send_to_peers(exchange, 0, __builtin_bit_cast(u32, best.logit));
  send_to_peers(exchange, 1, best.token);
  receive_from_peers(exchange, 0, peer_logits);
  receive_from_peers(exchange, 1, peer_tokens);
  struct candidate own = best;
  best = (struct candidate){-__builtin_inff(), NO_TOKEN};
  u32 broken = MAX_RANKS;
  for (u32 from = 0; from < MAX_RANKS; from++) {
    if (from >= ranks) continue;
    struct candidate peer = {__builtin_bit_cast(f32, peer_logits[from]), peer_tokens[from]};
    if (from == rank) peer = own;
    if (peer.logit != peer.logit) broken = from;
    best = better(best, peer);
  }
  if (broken != MAX_RANKS) report_error(error, ERROR_NAN_LOGITS, rank, broken, collective, exchange.epoch);
  step->token = best.token;
}
