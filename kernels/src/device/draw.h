// Drawing a token from softmax(logits / temperature), cut off by top-k and top-p. model/src/sampling says the same for
// the host, bit by bit.
//
// Weights are integers. Their sums are exact, so they do not depend on the order of threads and waves nor on how the
// vocabulary is divided among ranks.
#pragma once
#include "mailbox.h"
#include "vocabulary.h"
#include "wave.h"

constexpr u32 TOKEN_BITS = 18; // of the largest vocabulary
constexpr u32 DIGIT_BITS = 10, DIGITS = 1 << DIGIT_BITS;
constexpr u32 CUT_ROUNDS = (32 + TOKEN_BITS) / DIGIT_BITS;
constexpr u32 SUM_WORDS = 2; // of an exchanged sum
constexpr u32 CUT_WORDS = CUT_ROUNDS * DIGITS * SUM_WORDS;
static_assert(CUT_ROUNDS * DIGIT_BITS == 32 + TOKEN_BITS && DIGITS == HEAD_THREADS); // a digit a thread

struct distribution {
  struct vocabulary v;
  f32 highest; // logit of all ranks
  f32 scale;   // log2(e) / temperature
  u64 lowest;  // key that may be drawn
};

// Place of a candidate: keys fall with falling logits, of equal logits with rising tokens.
INLINE u64 key_of(f32 logit, u32 token) {
  u32 bits = __builtin_bit_cast(u32, logit + 0.0f); // -0 equals 0
  u32 order = bits >> 31 ? ~bits : bits | 1u << 31;
  return (u64)order << TOKEN_BITS | ((1u << TOKEN_BITS) - 1 - token);
}

// exp((logit - highest) / temperature) in units of 2^-40. No operation here may be exact on one machine only: 2^x is
// the series of exp(x ln 2) to the seventh power, whose error is below that of FP32 for |x| <= 1/2.
INLINE u64 weight_of(struct distribution d, f32 logit) {
  constexpr f32 LN_2 = 0.693147180559945f;
  f32 x = (logit - d.highest) * d.scale;
  if (!(x > -41.0f)) return 0;
  f32 whole = __builtin_rintf(x);
  f32 t = (x - whole) * LN_2;
  f32 y = 1.0f / 5040;
  y = __builtin_fmaf(y, t, 1.0f / 720);
  y = __builtin_fmaf(y, t, 1.0f / 120);
  y = __builtin_fmaf(y, t, 1.0f / 24);
  y = __builtin_fmaf(y, t, 1.0f / 6);
  y = __builtin_fmaf(y, t, 0.5f);
  y = __builtin_fmaf(y, t, 1.0f);
  y = __builtin_fmaf(y, t, 1.0f);
  return (u64)(u32)(y * 0x1p30f) << 10 >> (u32)-whole;
}

// The upper half of a product: `fraction` / 2^64 of x.
INLINE u64 share_of(u64 x, u64 fraction) { return (u64)((unsigned __int128)x * fraction >> 64); }

LDS_ARRAY u64 wave_sums[HEAD_WAVES];

struct scan {
  u64 before, total; // sums over the lower threads of the workgroup, and over all
};

INLINE struct scan workgroup_scan(u64 x) {
  u32 lane = lane_id();
  u64 sum = x;
  for (u32 step = 1; step < WAVE; step *= 2) {
    u64 below = (u64)read_lane((u32)(sum >> 32), lane - step) << 32 | read_lane((u32)sum, lane - step);
    sum += lane >= step ? below : 0;
  }
  if (lane == WAVE - 1) wave_sums[wave_id()] = sum;
  workgroup_barrier();
  struct scan scan = {sum - x, 0};
  for (u32 wave = 0; wave < HEAD_WAVES; wave++) {
    if (wave < wave_id()) scan.before += wave_sums[wave];
    scan.total += wave_sums[wave];
  }
  workgroup_barrier();
  return scan;
}

// All ranks' values.
INLINE void exchange_sums(struct exchange x, u64 word, u64 own, u64 sums[MAX_RANKS]) {
  u32 low[MAX_RANKS] = {}, high[MAX_RANKS] = {};
  send_to_peers(x, word, (u32)own);
  send_to_peers(x, word + 1, (u32)(own >> 32));
  receive_from_peers(x, word, low);
  receive_from_peers(x, word + 1, high);
  for (u32 from = 0; from < MAX_RANKS; from++)
    sums[from] = from == x.rank ? own : from < x.ranks ? (u64)high[from] << 32 | low[from] : 0;
}

LDS_ARRAY u64 rank_weights[MAX_RANKS];

// Weight of what may be drawn, by rank in rank_weights. `own` is this thread's part; gives the scan over this rank.
INLINE struct scan weigh(struct exchange x, u64 word, u64 own) {
  struct scan scan = workgroup_scan(own);
  if (thread_id() == 0) {
    u64 sums[MAX_RANKS];
    exchange_sums(x, word, scan.total, sums);
    for (u32 from = 0; from < MAX_RANKS; from++) rank_weights[from] = sums[from];
  }
  workgroup_barrier();
  return scan;
}

INLINE u64 weight_of_all(void) {
  u64 sum = 0;
  for (u32 from = 0; from < MAX_RANKS; from++) sum += rank_weights[from];
  return sum;
}

enum measure { NUMBER, WEIGHT };

LDS_ARRAY u64 digit_sums[DIGITS];
LDS_ARRAY u64 cut_before;
LDS_ARRAY u32 cut_digit;

// The key of the candidate with which, in order of falling keys, the measures first add up to `target`: a radix search,
// ten bits of the key a round, each with one exchange of the sums by digit.
INLINE u64 cut(struct exchange x, u64 word, struct distribution d, enum measure measure, u64 target) {
  u32 thread = thread_id();
  u64 found = 0;
  if (thread == 0) cut_digit = 0, cut_before = 0;
  for (u32 round = 0; round < CUT_ROUNDS; round++) {
    u32 shift = (CUT_ROUNDS - 1 - round) * DIGIT_BITS;
    digit_sums[thread] = 0;
    workgroup_barrier();
    for (u32 i = thread; i < d.v.rows; i += HEAD_THREADS) {
      f32 logit = d.v.row[i];
      u64 key = key_of(logit, d.v.first + i);
      if (key < d.lowest || key >> shift >> DIGIT_BITS != found) continue;
      u64 own = measure == NUMBER ? 1 : weight_of(d, logit);
      if (own != 0)
        __scoped_atomic_fetch_add(&digit_sums[(key >> shift) % DIGITS], own, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
    }
    workgroup_barrier();
    u32 digit = DIGITS - 1 - thread; // falling
    u64 sums[MAX_RANKS], sum = 0;
    exchange_sums(x, word + (round * DIGITS + digit) * SUM_WORDS, digit_sums[digit], sums);
    for (u32 from = 0; from < MAX_RANKS; from++) sum += sums[from];
    u64 before = workgroup_scan(sum).before;
    if (before < target && target <= before + sum) cut_digit = digit, cut_before = before;
    workgroup_barrier();
    found = found << DIGIT_BITS | cut_digit;
    target -= cut_before;
  }
  return found;
}

// This thread's candidates are neighbours, so that a scan over threads is one over tokens.
struct range {
  u32 start, end;
};

INLINE struct range own_candidates(struct distribution d) {
  u32 share = ceil_div(d.v.rows, HEAD_THREADS), start = min_u32(thread_id() * share, d.v.rows);
  return (struct range){start, min_u32(start + share, d.v.rows)};
}

INLINE u64 weight_at(struct distribution d, u32 i) {
  f32 logit = d.v.row[i];
  return key_of(logit, d.v.first + i) < d.lowest ? 0 : weight_of(d, logit);
}

INLINE u64 own_weight(struct distribution d) {
  u64 sum = 0;
  struct range own = own_candidates(d);
  for (u32 i = own.start; i < own.end; i++) sum += weight_at(d, i);
  return sum;
}

LDS_ARRAY u32 drawn;

// The candidate with which, in order of tokens, the weights first exceed `random` / 2^64 of their sum. Sends a sum and
// a token. For the first thread only.
INLINE u32 draw(struct exchange x, u64 word, struct distribution d, u64 random) {
  if (thread_id() == 0) drawn = d.v.first;
  u64 weight = own_weight(d);
  struct scan scan = weigh(x, word, weight);
  u64 point = share_of(weight_of_all(), random);
  u32 owner = 0;
  while (owner + 1 < x.ranks && point >= rank_weights[owner]) point -= rank_weights[owner++];
  // Other ranks draw their last: every rank has a token to send.
  if (owner != x.rank) point = scan.total - 1;
  if (point - scan.before < weight) {
    u32 i = own_candidates(d).start;
    for (u64 left = point - scan.before; left >= weight_at(d, i); i++) left -= weight_at(d, i);
    drawn = d.v.first + i;
  }
  workgroup_barrier();
  if (thread_id() != 0) return drawn;
  u32 tokens[MAX_RANKS] = {}, token = drawn;
  send_to_peers(x, word + SUM_WORDS, token);
  receive_from_peers(x, word + SUM_WORDS, tokens);
  for (u32 from = 0; from < MAX_RANKS; from++)
    if (from == owner && from != x.rank && from < x.ranks) token = tokens[from];
  return token;
}
