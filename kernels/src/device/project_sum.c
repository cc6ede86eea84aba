// End of a block in decode: projection, or sum of two, of this rank's part of a vector, and sum over ranks.
//
// A workgroup exchanges its own rows with the workgroups of the same number on the peers as soon as it has them: no
// barrier over the grid, and the exchange of one workgroup overlaps the reads of others.
#include "mix.h"
#include "row_exchange.h"
#include "rows.h"
#include "step.h"

// Workgroups: x = ceil(rows / 16), or / 128 where waves have rows of their own. x is a row of norm_width BF16 values,
// normed if there is a weight, of which this rank multiplies depth values from `first` on; x2 has depth2 values. All
// are multiples of 8. out[row] = sum over ranks of w x + w2 x2, plus residual if there is one, rounded once to BF16; it
// may be residual.
KERNEL(512)
void project_sum(GLOBAL const struct step *step, const_vectors x, const_vectors weight, bytes w, const_vectors x2,
                 bytes w2, GLOBAL const bf16 *residual, GLOBAL bf16 *out, const struct mailbox mailbox, u32 norm_width,
                 u32 first, u32 depth, u32 depth2, u32 w_pitch, u32 w2_pitch, u32 rows, f32 eps, u32 collective) {
  u32 thread = thread_id(), epoch = step->epoch, steps = ceil_div(depth, ROW_STEP);
  bool share = rows_share(steps + ceil_div(depth2, ROW_STEP));
  u32 row0 = share ? group_x() * MFMA_ROWS : (group_x() * ROW_WAVES + wave_id()) * MFMA_ROWS;
  u32 line = min_u32(row0 + mfma_line(), rows - 1);
  struct row row = {w + (u64)line * w_pitch, w2 + (u64)line * w2_pitch, depth, depth2};
  u32 first_step = share ? wave_id() : 0, stride = share ? ROW_WAVES : 1;
  struct mixing mixing = {.current = x, .weight = weight, .width = norm_width, .eps = eps};
  struct mix_inputs inputs = {};
  struct row_round round;

  load_mix(ROW_THREADS, mixing, &inputs);
  if (row0 < rows) load_round(&round, row, first_step, stride);
  u32 start2 = steps * (ROW_STEP / 8), end = row_steps(row) * (ROW_STEP / 8);
  for (u32 i = thread; i < end; i += ROW_THREADS)
    if (i >= depth / 8) vector[i] = i - start2 < depth2 / 8 ? x2[i - start2] : (bf16x8)0;
  bf16x8 normed[MIX_VECTORS(ROW_THREADS)];
  mix_and_norm(ROW_THREADS, mixing, &inputs, normed);
#pragma clang loop unroll(full)
  for (u32 i = 0; i < MIX_VECTORS(ROW_THREADS); i++) {
    u32 at = thread + i * ROW_THREADS - first / 8;
    if (at < depth / 8) vector[at] = normed[i];
  }
  workgroup_barrier();

  store_row_sums(row0 < rows ? sum_row(row, &round, first_step, stride) : (f32x4)0);
  u32 own = (share ? 1 : ROW_WAVES) * MFMA_ROWS, at = group_x() * own, count = min_u32(own, rows - at);
  struct exchange exchange = exchange_through((CONSTANT const struct mailbox *)&mailbox, epoch, collective);
  if (thread < count) exchanged[exchange.rank][thread] = summed_row(share, thread / MFMA_ROWS, thread % MFMA_ROWS);
  exchange_rows(exchange, ROW_THREADS, at, count);
  if (thread >= count) return;
  f32 sum = exchanged_sum(exchange, thread);
  if (residual) sum += (f32)residual[at + thread];
  out[at + thread] = (bf16)sum;
}
