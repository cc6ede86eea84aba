// Choice of the experts of one token by a workgroup of four waves, as router.h defines it, in a quarter of the time: so
// short that every workgroup of the experts can afford it.
//
// Each wave finds the best of its quarter of the experts; then each of these candidates counts those better than
// itself, which is its place.
#pragma once
#include "router.h"

constexpr u32 CHOICE_THREADS = 256, CHOICE_WAVES = CHOICE_THREADS / WAVE;
constexpr u32 CHOICE_SLOTS = MAX_EXPERTS / CHOICE_THREADS; // thread t holds experts t, t + 256, ...
constexpr u32 MAX_TOP_K = 64;

struct candidate {
  f32 choice, score;
  u32 id;
};

LDS_ARRAY struct candidate candidates[CHOICE_THREADS];
LDS_ARRAY u32 chosen_ids[MAX_TOP_K];
LDS_ARRAY f32 chosen_scores[MAX_TOP_K];

// Lowest of a number below 2^24 in each lane: such numbers are exact as FP32.
INLINE u32 wave_lowest(u32 x) { return (u32)-wave_max(-(f32)x); }

// The wave's best, in lane j the j-th.
INLINE struct candidate best_of_wave(struct router r, u32 token) {
  GLOBAL const f32 *row = (GLOBAL const f32 *)(r.logits + (u64)token * r.logit_pitch);
  f32 choice[CHOICE_SLOTS], score[CHOICE_SLOTS], bias[CHOICE_SLOTS];
  for (u32 i = 0; i < CHOICE_SLOTS; i++) { // all loads at once: no branch
    u32 id = min_u32(i * CHOICE_THREADS + thread_id(), r.experts - 1);
    score[i] = row[id], bias[i] = r.bias[id];
  }
  for (u32 i = 0; i < CHOICE_SLOTS; i++) {
    score[i] = sigmoid(score[i]);
    f32 biased = score[i] + bias[i];
    choice[i] = biased > LAST_CHOICE ? biased : LAST_CHOICE;
    if (i * CHOICE_THREADS + thread_id() >= r.experts) choice[i] = -__builtin_inff();
  }
  struct candidate own = {-__builtin_inff(), 0, 0};
  for (u32 j = 0; j < r.top_k; j++) {
    f32 best = choice[0], best_score = score[0];
    u32 slot = 0;
    for (u32 i = 1; i < CHOICE_SLOTS; i++)
      if (choice[i] > best) best = choice[i], best_score = score[i], slot = i;
    f32 top = wave_max(best);
    u32 id = slot * CHOICE_THREADS + thread_id(), lowest = wave_lowest(best == top ? id : MAX_EXPERTS);
    // The lane that holds it tells its score.
    f32 top_score = lane_value(best_score, lowest % WAVE);
    if (lane_id() == j) own = (struct candidate){top, top_score, lowest};
    for (u32 i = 0; i < CHOICE_SLOTS; i++)
      if (i * CHOICE_THREADS + thread_id() == lowest) choice[i] = -__builtin_inff();
  }
  return own;
}

// Leaves the choice in chosen_ids and chosen_scores, best first.
INLINE void choose_together(struct router r, u32 token) {
  struct candidate own = best_of_wave(r, token);
  if (lane_id() < r.top_k) candidates[wave_id() * r.top_k + lane_id()] = own;
  workgroup_barrier();
  u32 count = CHOICE_WAVES * r.top_k;
  if (thread_id() < count) {
    struct candidate mine = candidates[thread_id()];
    u32 place = 0;
    for (u32 i = 0; i < count; i++)
      place += better(candidates[i].choice, candidates[i].id, mine.choice, mine.id) ? 1 : 0;
    if (place < r.top_k) chosen_ids[place] = mine.id, chosen_scores[place] = mine.score;
  }
  workgroup_barrier();
}

// Weight of choice j.
INLINE f32 chosen_weight(struct router r, u32 j) {
  f32 total = 0;
  for (u32 i = 0; i < r.top_k; i++) total += chosen_scores[i];
  return chosen_scores[j] / (total + 1e-20f) * r.scale;
}
