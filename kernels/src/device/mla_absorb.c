// Absorbed query: out[token][head] = { sum over d of q_nope[d] W_key[head][d][latent], q_rope }.
//
// W_key is the A operand, transposed on the way through LDS: its rows are d, the MFMA wants them as k.
#include "mla.h"

constexpr u32 THREADS = 256, SLICE = 128; // latent values of a workgroup; each of four waves takes 32
constexpr u32 TOKENS = 128;
constexpr u32 PITCH = SLICE + 8; // values; the padding spreads the rows over the LDS banks

LDS_ARRAY bf16x8 weights[NOPE][PITCH / 8];

// Workgroups: x = heads x 4, y = ceil(tokens / 128). q is [tokens][heads][192], key_weight [heads][128][512], out
// [tokens][heads][576].
KERNEL(256)
void mla_absorb(GLOBAL const struct step *step, bytes q, GLOBAL const bf16 *key_weight, GLOBAL bf16 *out, u32 heads,
                u32 q_pitch, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), token0 = group_y() * TOKENS, end = min_u32(valid, token0 + TOKENS);
  if (token0 >= valid) return;
  u32 head = group_x() / (LATENT / SLICE), latent0 = group_x() % (LATENT / SLICE) * SLICE, line = mfma_line(),
      quarter = mfma_quarter();

  GLOBAL const bf16 *w = key_weight + (u64)head * NOPE * LATENT + latent0;
  for (u32 i = thread_id(); i < NOPE * SLICE / 8; i += THREADS)
    weights[i / (SLICE / 8)][i % (SLICE / 8)] =
        *(GLOBAL const bf16x8 *)(w + i / (SLICE / 8) * LATENT + i % (SLICE / 8) * 8);
  workgroup_barrier();

  bf16x8 a[2][NOPE / MFMA_DEPTH];
  LDS const bf16 *block = (LDS const bf16 *)weights + wave_id() * 32;
  for (u32 half = 0; half < 2; half++)
    for (u32 j = 0; j < NOPE / MFMA_DEPTH; j++)
      a[half][j] = mfma_transposed(block + j * MFMA_DEPTH * PITCH + half * MFMA_ROWS, PITCH);

  for (u32 first = token0; first < end; first += MFMA_COLUMNS) {
    u32 token = first + line;
    GLOBAL const bf16 *x = (GLOBAL const bf16 *)(q + (u64)min_u32(token, valid - 1) * q_pitch) + head * QUERY;
    f32x4 acc[2] = {};
    for (u32 j = 0; j < NOPE / MFMA_DEPTH; j++) {
      bf16x8 b = *(GLOBAL const bf16x8 *)(x + j * MFMA_DEPTH + quarter * 8);
      for (u32 half = 0; half < 2; half++) acc[half] = mfma(a[half][j], b, acc[half]);
    }
    if (token >= valid) continue;
    GLOBAL bf16 *y = out + ((u64)token * heads + head) * CACHED;
    for (u32 half = 0; half < 2; half++)
      *(GLOBAL bf16x4 *)(y + latent0 + wave_id() * 32 + half * MFMA_ROWS + quarter * 4) =
          __builtin_convertvector(acc[half], bf16x4);
    if (latent0 == 0) // the four waves' quarters copy 4 x 4 x 4 = 64 key values
      *(GLOBAL bf16x4 *)(y + LATENT + wave_id() * 16 + quarter * 4) =
          *(GLOBAL const bf16x4 *)(x + NOPE + wave_id() * 16 + quarter * 4);
  }
}
