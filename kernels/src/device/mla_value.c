// Combines the splits of attention, applies the value half of kv_b and the output gate:
// out[token][head][v] = sigmoid(gate) x sum over latent of W_value[head][v][latent] attended[token][head][latent].
#include "activation.h"
#include "mla.h"
#include "wave.h"

constexpr u32 THREADS = 256, ROWS = 64; // values of a workgroup; each of four waves takes 16
constexpr u32 TOKENS = 128;
constexpr u32 STEPS = LATENT / MFMA_DEPTH;
constexpr u32 PITCH = LATENT + 8; // values; the padding spreads rows over the LDS banks
constexpr u32 AHEAD = 16; // loads of splits under way at a time
constexpr u32 PARTS = THREADS / (LATENT / 4); // threads with the same four latent values

LDS_ARRAY bf16x8 attended[MFMA_COLUMNS * PITCH / 8];
LDS_ARRAY f32 shares[MFMA_COLUMNS][MAX_SPLITS];
LDS_ARRAY f32x4 parts[PARTS - 1][LATENT / 4];

struct splits {
  GLOBAL const f32 *partial;
  GLOBAL const struct softmax_state *sums;
  u64 rows; // query rows of a split
  u32 active;
};

// Weights of the splits of one query row, by one wave.
INLINE void weigh_splits(struct splits s, u64 row, LDS f32 *share) {
  f32 most = -__builtin_inff(), total = 0;
  for (u32 split = lane_id(); split < s.active; split += WAVE) most = max_f32(most, s.sums[split * s.rows + row].most);
  most = wave_max(most);
  for (u32 split = lane_id(); split < s.active; split += WAVE) {
    struct softmax_state state = s.sums[split * s.rows + row];
    share[split] = __builtin_amdgcn_exp2f(state.most - most);
    total += share[split] * state.sum;
  }
  total = wave_sum(total);
  for (u32 split = lane_id(); split < s.active; split += WAVE) share[split] /= total;
}

// Four latent values of a query row over splits first, first + stride, ...
INLINE f32x4 add_splits(struct splits s, u64 row, LDS const f32 *share, u32 latent, u32 first, u32 stride) {
  GLOBAL const f32 *from = s.partial + row * LATENT + latent;
  f32x4 sum = 0;
  for (u32 split = first; split < s.active; split += AHEAD * stride) {
    f32x4 value[AHEAD]; // past the last split the last one again, with no share
    for (u32 i = 0; i < AHEAD; i++)
      value[i] = *(GLOBAL const f32x4 *)(from + min_u32(split + i * stride, s.active - 1) * s.rows * LATENT);
    for (u32 i = 0; i < AHEAD; i++)
      sum += (split + i * stride < s.active ? share[split + i * stride] : 0) * value[i];
  }
  return sum;
}

INLINE void store_attended(u32 column, u32 latent, f32x4 value) {
  *(LDS bf16x4 *)((LDS bf16 *)attended + column * PITCH + latent) = __builtin_convertvector(value, bf16x4);
}

// Workgroups: x = heads x 2, y = ceil(tokens / 128). partial and sums as mla_attention leaves them, value_weight
// [heads][128][512] BF16, gate and out rows of heads x 128 BF16 values, pitches in bytes.
KERNEL(256)
void mla_value(GLOBAL const struct step *step, GLOBAL const f32 *partial, GLOBAL const struct softmax_state *sums,
               GLOBAL const bf16 *value_weight, bytes gate, GLOBAL u8 *out, u32 heads, u32 splits, u32 gate_pitch,
               u32 out_pitch, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), token0 = group_y() * TOKENS, end = min_u32(valid, token0 + TOKENS);
  if (token0 >= valid) return;
  u32 head = group_x() / (VALUE / ROWS), line = mfma_line(), quarter = mfma_quarter(), thread = thread_id();
  u32 value0 = group_x() % (VALUE / ROWS) * ROWS + wave_id() * MFMA_ROWS;
  u32 latent = thread % (LATENT / 4) * 4, part = thread / (LATENT / 4);
  struct splits s = {partial, sums, (u64)tokens * heads, split_keys(step->position + valid, splits).active};

  bf16x8 a[STEPS];
  GLOBAL const bf16 *w = value_weight + ((u64)head * VALUE + value0 + line) * LATENT + quarter * 8;
  for (u32 j = 0; j < STEPS; j++) a[j] = *(GLOBAL const bf16x8 *)(w + j * MFMA_DEPTH);

  for (u32 first = token0; first < end; first += MFMA_COLUMNS) {
    u32 count = min_u32(MFMA_COLUMNS, end - first);
    for (u32 t = wave_id(); t < count; t += THREADS / WAVE)
      weigh_splits(s, (u64)(first + t) * heads + head, shares[t]);
    workgroup_barrier();
    if (count == 1) { // all threads take the one row
      f32x4 sum = add_splits(s, (u64)first * heads + head, shares[0], latent, part, PARTS);
      if (part != 0) parts[part - 1][latent / 4] = sum;
      workgroup_barrier();
      if (part == 0) {
        for (u32 i = 0; i < PARTS - 1; i++) sum += parts[i][latent / 4];
        store_attended(0, latent, sum);
      }
    } else {
      for (u32 t = part; t < count; t += PARTS)
        store_attended(t, latent, add_splits(s, (u64)(first + t) * heads + head, shares[t], latent, 0, 1));
    }
    workgroup_barrier();
    // Columns past the last token repeat it.
    LDS const bf16x8 *column = attended + (min_u32(line, count - 1) * PITCH + quarter * 8) / 8;
    f32x4 acc = 0;
    // The next tokens' values come after another barrier, and their shares after the one before these.
    for (u32 j = 0; j < STEPS; j++) acc = mfma(a[j], column[j * MFMA_DEPTH / 8], acc);
    u32 token = first + line, at = head * VALUE + value0 + quarter * 4;
    if (token >= valid) continue;
    bf16x4 g = *(GLOBAL const bf16x4 *)(gate + (u64)token * gate_pitch + at * 2);
    for (u32 i = 0; i < 4; i++) acc[i] *= sigmoid((f32)g[i]);
    *(GLOBAL bf16x4 *)(out + (u64)token * out_pitch + at * 2) = __builtin_convertvector(acc, bf16x4);
  }
}
