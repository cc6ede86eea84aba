// Attention-residual mix and RMSNorm of any number of rows: mix.h.
#include "mix.h"
#include "step.h"

constexpr u32 THREADS = 256;

// Workgroups: x = tokens, or 1 for the last token alone, whose result goes to row 0 of out. Rows are width BF16 values,
// a multiple of 8; blocks are block_stride bytes apart. With save, the row of h is copied there too.
KERNEL(256)
void mix_norm(GLOBAL const struct step *step, bytes h, bytes blocks, GLOBAL u8 *save, const_vectors norm,
              const_vectors proj, const_vectors weight, GLOBAL u8 *out, u64 block_stride, u32 block_count, u32 width,
              f32 eps, u32 last_only, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), out_token = group_x(), token = last_only ? valid - 1 : out_token;
  if (out_token >= (last_only ? 1 : valid)) return;
  u64 row = (u64)token * width * 2;
  const_vectors current = (const_vectors)(h + row);
  if (save)
    for (u32 i = thread_id(); i < width / 8; i += THREADS) ((vectors)(save + row))[i] = current[i];

  struct mixing mixing = {blocks + row, block_stride, current, norm, proj, weight, block_count, width, eps};
  struct mix_inputs inputs = {};
  load_mix(THREADS, mixing, &inputs);
  bf16x8 x[MIX_VECTORS(THREADS)];
  mix_and_norm(THREADS, mixing, &inputs, x);
  vectors to = (vectors)(out + (u64)out_token * width * 2);
#pragma clang loop unroll(full)
  for (u32 i = 0; i < MIX_VECTORS(THREADS); i++)
    if (has_vector(THREADS, mixing, i)) to[thread_id() + i * THREADS] = x[i];
}
