// Combines the splits of attention, applies the value half of kv_b and the output gate:
// out[token][head][v] = sigmoid(gate) x sum over latent of W_value[head][v][latent] attended[token][head][latent].
#include "activation.h"
#include "mla.h"

constexpr u32 THREADS = 256, ROWS = 64; // values of a workgroup; each of four waves takes 16
constexpr u32 TOKENS = 128;
constexpr u32 STEPS = LATENT / MFMA_DEPTH;
constexpr u32 PITCH = LATENT + 8; // values; the padding spreads rows over the LDS banks

LDS_ARRAY bf16x8 attended[MFMA_COLUMNS * PITCH / 8];

// Four latent values of a query row, all splits together.
INLINE f32x4 combine(GLOBAL const f32 *partial, GLOBAL const struct softmax_state *sums, u64 row, u64 rows, u32 active,
                     u32 latent) {
  f32 most = -__builtin_inff(), sum = 0;
  for (u32 split = 0; split < active; split++) most = __builtin_fmaxf(most, sums[split * rows + row].most);
  f32x4 total = 0;
  for (u32 split = 0; split < active; split++) {
    struct softmax_state state = sums[split * rows + row];
    f32 share = __builtin_amdgcn_exp2f(state.most - most);
    sum += share * state.sum;
    total += share * *(GLOBAL const f32x4 *)(partial + (split * rows + row) * LATENT + latent);
  }
  return total / sum;
}

// Workgroups: x = heads x 2, y = ceil(tokens / 128). partial and sums as mla_attention leaves them, value_weight
// [heads][128][512] BF16, gate and out rows of heads x 128 BF16 values, pitches in bytes.
KERNEL(256)
void mla_value(GLOBAL const struct step *step, GLOBAL const f32 *partial, GLOBAL const struct softmax_state *sums,
               GLOBAL const bf16 *value_weight, bytes gate, GLOBAL u8 *out, u32 heads, u32 splits, u32 gate_pitch,
               u32 out_pitch, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), token0 = group_y() * TOKENS, end = min_u32(valid, token0 + TOKENS);
  if (token0 >= valid) return;
  u32 head = group_x() / (VALUE / ROWS), line = mfma_line(), quarter = mfma_quarter();
  u32 value0 = group_x() % (VALUE / ROWS) * ROWS + wave_id() * MFMA_ROWS;
  u32 active = split_keys(step->position + valid, splits).active;

  bf16x8 a[STEPS];
  GLOBAL const bf16 *w = value_weight + ((u64)head * VALUE + value0 + line) * LATENT + quarter * 8;
  for (u32 j = 0; j < STEPS; j++) a[j] = *(GLOBAL const bf16x8 *)(w + j * MFMA_DEPTH);

  for (u32 first = token0; first < end; first += MFMA_COLUMNS) {
    for (u32 i = thread_id(); i < MFMA_COLUMNS * LATENT / 4; i += THREADS) {
      u32 token = i / (LATENT / 4), latent = i % (LATENT / 4) * 4;
      bf16x4 value = 0;
      if (first + token < valid)
        value = __builtin_convertvector(
            combine(partial, sums, (u64)(first + token) * heads + head, (u64)tokens * heads, active, latent), bf16x4);
      *(LDS bf16x4 *)((LDS bf16 *)attended + token * PITCH + latent) = value;
    }
    workgroup_barrier();
    f32x4 acc = 0;
    for (u32 j = 0; j < STEPS; j++) acc = mfma(a[j], attended[(line * PITCH + j * MFMA_DEPTH + quarter * 8) / 8], acc);
    workgroup_barrier();
    u32 token = first + line, at = head * VALUE + value0 + quarter * 4;
    if (token >= valid) continue;
    bf16x4 g = *(GLOBAL const bf16x4 *)(gate + (u64)token * gate_pitch + at * 2);
    for (u32 i = 0; i < 4; i++) acc[i] *= sigmoid((f32)g[i]);
    *(GLOBAL bf16x4 *)(out + (u64)token * out_pitch + at * 2) = __builtin_convertvector(acc, bf16x4);
  }
}
