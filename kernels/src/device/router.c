// From the router's logits to lists of work for the experts: two launches for many tokens, one for few.
#include "router.h"
#include "group.h"
#include "step.h"

// Workgroups: x = tokens.
KERNEL(64)
void router_topk(GLOBAL const struct step *step, bytes logits, GLOBAL const f32 *bias, GLOBAL u32 *ids,
                 GLOBAL f32 *weights, u32 logit_pitch, u32 experts, u32 top_k, f32 scale, u32 tokens) {
  if (group_x() >= valid_tokens(step, tokens)) return;
  choose_experts((struct router){logits, bias, ids, weights, logit_pitch, experts, top_k, scale}, group_x());
}

// Workgroups: 1.
KERNEL(256)
void moe_group(GLOBAL const struct step *step, GLOBAL const u32 *ids, GLOBAL u32 *list,
               GLOBAL struct expert_tile *tiles, GLOBAL u32 *tile_count, u32 experts, u32 top_k, u32 tokens) {
  group_assignments((struct grouping){ids, list, tiles, tile_count, experts, top_k}, valid_tokens(step, tokens));
}

// Both, one token a wave at a time. Workgroups: 1.
KERNEL(256)
void moe_route(GLOBAL const struct step *step, bytes logits, GLOBAL const f32 *bias, GLOBAL u32 *ids,
               GLOBAL f32 *weights, GLOBAL u32 *list, GLOBAL struct expert_tile *tiles, GLOBAL u32 *tile_count,
               u32 logit_pitch, u32 experts, u32 top_k, f32 scale, u32 tokens) {
  u32 valid = valid_tokens(step, tokens);
  struct router router = {logits, bias, ids, weights, logit_pitch, experts, top_k, scale};
  for (u32 token = wave_id(); token < valid; token += GROUP_THREADS / WAVE) choose_experts(router, token);
  // Nobody reads what another wave chose before the first barrier in here.
  group_assignments((struct grouping){ids, list, tiles, tile_count, experts, top_k}, valid);
}
