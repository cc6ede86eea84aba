// Start of a block in decode: residual mix, norm and all projections of the normed row.
//
// Every workgroup computes the mix for itself. At official width it reads at most 172 KB for that from the L2 (nine
// sources, three vectors), 114 KB in the mean over the layers, while its first weights are on their way from HBM. A
// launch of its own for the mix would cost more: one more dependent dispatch, and all CUs but one idle for as long.
#include "mix.h"
#include "row_exchange.h"
#include "rows.h"
#include "segment.h"
#include "step.h"

// 16 rows of W: outputs of one segment, or half as many gate and up rows of one.
struct tile {
  struct row row;
  struct segment segment;
  u32 first;    // output of the workgroup's first row
  bool inside;  // this wave has rows
};

INLINE u32 outputs_of(enum form form) { return form == FORM_SITU ? MFMA_ROWS / 2 : MFMA_ROWS; }

struct launch {
  CONSTANT const struct segments *segments;
  u32 segment_count, depth;
  bool share; // waves share a tile
};

// Tile `index` of the workgroup's share of the launch's: eight tiles of neighbouring rows, one a wave, if waves do not
// share one. False past the last.
INLINE bool find_tile(struct tile *tile, struct launch l, u32 index) {
  u32 waves = l.share ? 1 : ROW_WAVES;
  for (u32 i = 0; i < l.segment_count; i++) {
    CONSTANT const struct segment *s = &l.segments->at[i];
    u32 outputs = outputs_of(s->form), groups = ceil_div(s->rows, waves * outputs);
    if (index >= groups) {
      index -= groups;
      continue;
    }
    u32 first = index * waves * outputs, own = first + (l.share ? 0 : wave_id() * outputs);
    u32 line = mfma_line(), row = min_u32(own + line % outputs, s->rows - 1);
    // A sum, not a choice between two addresses, which the compiler would turn into vector loads of the arguments.
    bytes w = s->w + (u64)row * s->w_pitch;
    if (s->form == FORM_SITU) w += line < outputs ? 0 : s->w2 - s->w;
    *tile = (struct tile){{w, w, l.depth, 0}, *s, first, own < s->rows};
    return true;
  }
  return false;
}

// The row of this thread, of the sums that the workgroup has.
INLINE f32 output_row(struct segment s, bool share, struct situ_betas betas) {
  u32 outputs = outputs_of(s.form), wave = thread_id() / outputs, output = thread_id() % outputs;
  f32 y = summed_row(share, wave, output);
  return s.form == FORM_SITU ? situ(betas, y, summed_row(share, wave, outputs + output)) : y;
}

// Workgroups: x = any number, which divide the tiles among them. Rows are width BF16 values, a multiple of 8; blocks are
// block_stride bytes apart. With save, h is copied there too. Without weight the row is taken as it is.
KERNEL(512)
void mix_project(GLOBAL const struct step *step, const_vectors h, bytes blocks, vectors save, const_vectors norm,
                 const_vectors proj, const_vectors weight, const struct segments segments, const struct mailbox mailbox,
                 u64 block_stride, u32 block_count, u32 width, f32 eps, u32 segment_count, f32 situ_beta,
                 f32 situ_linear_beta, u32 collective, u32 groups) {
  u32 thread = thread_id();
  bool share = rows_share(ceil_div(width, ROW_STEP));
  struct launch l = {(CONSTANT const struct segments *)&segments, segment_count, width, share};
  u32 first_step = share ? wave_id() : 0, stride = share ? ROW_WAVES : 1;
  struct exchange exchange =
      exchange_through((CONSTANT const struct mailbox *)&mailbox, step->epoch, collective);
  struct mixing mixing = {blocks, block_stride, h, norm, proj, weight, block_count, width, eps};
  struct situ_betas betas = {situ_beta, situ_linear_beta};
  struct mix_inputs inputs = {};
  struct row_round round;
  struct tile tile;

  load_mix(ROW_THREADS, mixing, &inputs);
  bool more = find_tile(&tile, l, group_x());
  if (more && tile.inside) load_round(&round, tile.row, first_step, stride);
  bf16x8 x[MIX_VECTORS(ROW_THREADS)];
  mix_and_norm(ROW_THREADS, mixing, &inputs, x);
#pragma clang loop unroll(full)
  for (u32 i = 0; i < MIX_VECTORS(ROW_THREADS); i++) vector[thread + i * ROW_THREADS] = x[i];
  workgroup_barrier();
  if (save && group_x() == 0)
    for (u32 i = thread; i < width / 8; i += ROW_THREADS) save[i] = h[i];

  for (u32 index = group_x(); more;) {
    struct segment s = tile.segment;
    u32 first = tile.first, rows = min_u32((share ? 1 : ROW_WAVES) * outputs_of(s.form), s.rows - first);
    store_row_sums(tile.inside ? sum_row(tile.row, &round, first_step, stride) : (f32x4)0);
    index += groups;
    more = find_tile(&tile, l, index);
    if (more && tile.inside) load_round(&round, tile.row, first_step, stride);
    f32 y = thread < rows ? output_row(s, share, betas) : 0;
    if (s.form == FORM_GATHER) {
      if (thread < rows) exchanged[exchange.rank][thread] = y;
      exchange_rows(exchange, ROW_THREADS, first, rows);
      for (u32 i = thread; i < exchange.ranks * rows; i += ROW_THREADS)
        ((GLOBAL bf16 *)s.y)[i / rows * s.rows + first + i % rows] = (bf16)exchanged_row(exchange, i / rows, i % rows);
    } else if (thread < rows) {
      if (s.y_f32) ((GLOBAL f32 *)s.y)[first + thread] = y;
      else ((GLOBAL bf16 *)s.y)[first + thread] = (bf16)y;
    }
    workgroup_barrier(); // the sums are read before the next ones come
  }
}
