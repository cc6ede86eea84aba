// The largest logit over all ranks, ties to the lowest token. A NaN anywhere is an error, never a token.
#pragma once
#include "mailbox.h"
#include "vocabulary.h"
#include "wave.h"

constexpr u32 NO_TOKEN = 0xffffffff;
constexpr u32 GREEDY_WORDS = 2; // that it sends

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

LDS_ARRAY struct candidate wave_bests[HEAD_WAVES];

// The best of this rank: for the first thread only.
INLINE struct candidate best_of_rank(struct vocabulary v) {
  struct candidate best = {-__builtin_inff(), NO_TOKEN};
  for (u32 i = thread_id(); i < v.rows; i += HEAD_THREADS) best = better(best, (struct candidate){v.row[i], v.first + i});
  best = wave_best(best);
  if (lane_id() == 0) wave_bests[wave_id()] = best;
  workgroup_barrier();
  best = wave_bests[0];
  for (u32 i = 1; i < HEAD_WAVES; i++) best = better(best, wave_bests[i]);
  return best;
}

// The best of all ranks, of which `own` is this rank's. One thread calls it.
INLINE struct candidate best_of_all(struct exchange x, struct candidate own) {
  u32 logits[MAX_RANKS] = {}, tokens[MAX_RANKS] = {};
  send_to_peers(x, 0, __builtin_bit_cast(u32, own.logit));
  send_to_peers(x, 1, own.token);
  receive_from_peers(x, 0, logits);
  receive_from_peers(x, 1, tokens);
  struct candidate best = {-__builtin_inff(), NO_TOKEN};
  u32 broken = MAX_RANKS;
  for (u32 from = 0; from < MAX_RANKS; from++) {
    if (from >= x.ranks) continue;
    struct candidate peer = {__builtin_bit_cast(f32, logits[from]), tokens[from]};
    if (from == x.rank) peer = own;
    if (peer.logit != peer.logit) broken = from;
    best = better(best, peer);
  }
  if (broken != MAX_RANKS) report_error(x.error, ERROR_NAN_LOGITS, x.rank, broken, x.collective, x.epoch);
  return best;
}
