// Choice of the experts of a token: the top k of sigmoid(logit) + bias, ties to the lower id. Their weights are the
// scores without the bias, divided by their sum, times scale.
#pragma once
#include "activation.h"
#include "moe.h"
#include "wave.h"

constexpr u32 SLOTS = MAX_EXPERTS / WAVE; // lane l holds experts l, l + 64, ...

// Below every score, above what has been chosen already: a NaN, from a broken input, must still give a valid expert.
constexpr f32 LAST_CHOICE = -3.0e38f;

INLINE bool better(f32 a, u32 a_id, f32 b, u32 b_id) { return a > b || (a == b && a_id < b_id); }

struct router {
  bytes logits; // [tokens][experts] FP32, rows logit_pitch bytes apart
  GLOBAL const f32 *bias;
  GLOBAL u32 *ids;     // [tokens][top_k]
  GLOBAL f32 *weights; // [tokens][top_k]
  u32 logit_pitch, experts, top_k;
  f32 scale;
};

// One wave chooses for one token.
INLINE void choose_experts(struct router r, u32 token) {
  u32 lane = lane_id();
  GLOBAL const f32 *row = (GLOBAL const f32 *)(r.logits + (u64)token * r.logit_pitch);

  f32 choice[SLOTS], score[SLOTS];
  for (u32 i = 0; i < SLOTS; i++) {
    u32 id = i * WAVE + lane;
    choice[i] = -__builtin_inff(), score[i] = 0;
    if (id < r.experts) {
      score[i] = sigmoid(row[id]);
      f32 biased = score[i] + r.bias[id];
      choice[i] = biased > LAST_CHOICE ? biased : LAST_CHOICE;
    }
  }

  f32 own_score = 0, total = 0; // lane j keeps the j-th choice
  u32 own_id = 0;
  for (u32 j = 0; j < r.top_k; j++) {
    f32 best = choice[0], best_score = score[0];
    u32 best_id = lane;
    for (u32 i = 1; i < SLOTS; i++)
      if (choice[i] > best) best = choice[i], best_score = score[i], best_id = i * WAVE + lane;
    for (u32 distance = 1; distance < WAVE; distance *= 2) {
      f32 other = read_lane_f32(best, lane ^ distance), other_score = read_lane_f32(best_score, lane ^ distance);
      u32 other_id = read_lane(best_id, lane ^ distance);
      if (better(other, other_id, best, best_id)) best = other, best_score = other_score, best_id = other_id;
    }
    for (u32 i = 0; i < SLOTS; i++)
      if (best_id == i * WAVE + lane) choice[i] = -__builtin_inff();
    if (lane == j) own_score = best_score, own_id = best_id;
    total += best_score;
  }
  if (lane < r.top_k) {
    r.ids[token * r.top_k + lane] = own_id;
    r.weights[token * r.top_k + lane] = own_score / (total + 1e-20f) * r.scale;
  }
}
