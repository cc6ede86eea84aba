// Choice of the next token over all ranks: the most likely one, or one drawn as the step says. A NaN among the logits is
// an error, never a token.
#include "draw.h"
#include "greedy.h"
#include "philox.h"
#include "step.h"

// Words of the exchange. `Sample::WORDS` in head.rs is their sum.
constexpr u32 DRAW_AT = GREEDY_WORDS, TOP_P_SUM_AT = DRAW_AT + SUM_WORDS + 1, TOP_K_AT = TOP_P_SUM_AT + SUM_WORDS;
constexpr u32 TOP_P_AT = TOP_K_AT + CUT_WORDS;
static_assert(TOP_P_AT + CUT_WORDS == 20487);

LDS_ARRAY struct candidate best_candidate;

// Workgroups: 1. logits [..][rows] FP32 with rows row_pitch bytes apart are this rank's; the row is that of the last
// token if last_row is set, else row 0. Rank r has tokens r x rows and up. The choice goes to step->token. The random
// number is that of the position that the token will have, so neither chunks nor ranks make a difference.
KERNEL(1024)
void sample(GLOBAL struct step *step, bytes logits, const struct mailbox mailbox, u32 row_pitch, u32 rows, u32 last_row,
            u32 collective, u32 tokens) {
  struct exchange x = exchange_through((CONSTANT const struct mailbox *)&mailbox, step->epoch, collective);
  u32 valid = valid_tokens(step, tokens), position = step->position + valid;
  struct sampling sampling = step->sampling;
  GLOBAL const f32 *row = (GLOBAL const f32 *)(logits + (u64)(last_row ? valid - 1 : 0) * row_pitch);
  struct vocabulary v = {row, rows, x.rank * rows};
  struct candidate best = best_of_rank(v);
  bool first = thread_id() == 0;
  if (first) {
    best = best_of_all(x, best);
    step->token = best.token;
    best_candidate = best;
  }
  if (sampling.scale == 0) return;
  workgroup_barrier();
  f32 highest = best_candidate.logit;
  if (!__builtin_isfinite(highest)) return; // no weights: the choice above stands, if it is one

  struct distribution d = {v, highest, sampling.scale, 0};
  if (sampling.top_k != 0) d.lowest = cut(x, TOP_K_AT, d, NUMBER, min_u32(sampling.top_k, x.ranks * rows));
  if (sampling.top_p != 0) {
    weigh(x, TOP_P_SUM_AT, own_weight(d));
    d.lowest = cut(x, TOP_P_AT, d, WEIGHT, share_of(weight_of_all(), sampling.top_p) + 1);
  }
  u32x4 random = philox4x32((u32x4){position, 0, 0, 0}, (u32x2){(u32)sampling.seed, (u32)(sampling.seed >> 32)});
  u32 token = draw(x, DRAW_AT, d, (u64)random.x << 32 | random.y);
  if (first) step->token = token;
}
