// Kimi Delta Attention: causal convolution, gates, delta-rule recurrence, output norm and gate of one head a workgroup.
//
// Per head and token, in FP32 (k indexes keys, v values):
//   q, k, v = SiLU(conv4(projection)); q, k are l2-normalised, q is scaled by 128^-1/2
//   decay[k] = exp(lower_bound sigmoid(exp(A_log) (f_b f_a + dt_bias)[k])), beta = sigmoid(b)
//   S[k][v] *= decay[k]; e[v] = v[v] - sum_k k[k] S[k][v]; S[k][v] += beta k[k] e[v]; o[v] = sum_k q[k] S[k][v]
//   out[v] = o[v] rsqrt(mean(o^2) + eps) o_norm[v] sigmoid(gate[v])
// Values are independent of each other until the norm, so each of eight waves keeps S for 16 values in registers and
// runs through the tokens on its own; the workgroup meets for every block of 16 tokens. A block is also what one MFMA
// takes: f_b is its A operand, 16 rows a wave, kept in registers.
#include "activation.h"
#include "mfma.h"
#include "step.h"
#include "wave.h"

constexpr u32 THREADS = 512, WAVES = THREADS / WAVE, DIM = 128, BLOCK = 16;
constexpr u32 TAPS = 4, HISTORY = TAPS - 1;
constexpr f32 L2_EPS = 1e-6f, QUERY_SCALE = 0.08838834764831845f; // 128^-1/2
// A thread holds S[16 i + 4 row + c][value], i < 8, c < 4, where row is the lane's row of 16 lanes: the four rows then
// read 64 neighbouring bytes of k, q and decay from LDS.
constexpr u32 SLICES = DIM / 16;

LDS_ARRAY f32x4 queries[BLOCK][DIM / 4], keys[BLOCK][DIM / 4];
// Padded: the 16 lanes of a row store the decays of 16 tokens at once.
LDS_ARRAY f32x4 decays[BLOCK][DIM / 4 + 1];
LDS_ARRAY f32 values[BLOCK][DIM], outputs[BLOCK][DIM], betas[BLOCK];

// Convolves four neighbouring tokens of one channel. History holds the inputs of the three tokens before this run,
// oldest first, channel_count channels a token.
INLINE void convolve(f32 *y, bytes x, u32 pitch, GLOBAL const bf16 *history, u32 channel_count, f32x4 taps, u32 channel,
                     u32 token0, u32 valid) {
  f32 window[BLOCK / 4 + HISTORY];
  for (u32 i = 0; i < BLOCK / 4 + HISTORY; i++) {
    u32 at = token0 + i; // token `at - 3` of this run
    window[i] = 0;
    if (at < HISTORY) window[i] = (f32)history[at * channel_count + channel];
    else if (at - HISTORY < valid) window[i] = (f32)((GLOBAL const bf16 *)(x + (u64)(at - HISTORY) * pitch))[channel];
  }
  for (u32 i = 0; i < BLOCK / 4; i++)
    y[i] = silu(window[i] * taps.x + window[i + 1] * taps.y + window[i + 2] * taps.z + window[i + 3] * taps.w);
}

// Moves the last three inputs of a channel into its history.
INLINE void remember(bytes x, u32 pitch, GLOBAL bf16 *history, u32 channel_count, u32 channel, u32 valid) {
  bf16 last[HISTORY];
  for (u32 i = 0; i < HISTORY; i++) {
    u32 at = valid + i;
    last[i] = at < HISTORY ? history[at * channel_count + channel]
                           : ((GLOBAL const bf16 *)(x + (u64)(at - HISTORY) * pitch))[channel];
  }
  for (u32 i = 0; i < HISTORY; i++) history[i * channel_count + channel] = last[i];
}

// This wave's 16 rows of f_b, as A operand.
INLINE void load_f_b(bf16x8 *a, GLOBAL const bf16 *f_b, u32 head) {
  GLOBAL const bf16 *w = f_b + (head * DIM + wave_id() * MFMA_ROWS + mfma_line()) * DIM + mfma_quarter() * 8;
  for (u32 j = 0; j < DIM / MFMA_DEPTH; j++) a[j] = *(GLOBAL const bf16x8 *)(w + j * MFMA_DEPTH);
}

// Decay of four channels of one token of the block: what this lane gets of f_b f_a. Lanes of tokens past the last
// compute in vain.
INLINE void compute_decays(const bf16x8 *a, bytes f_a, u32 pitch, GLOBAL const f32 *dt_bias, f32 rate, f32 lower_bound,
                           u32 token0, u32 valid) {
  u32 channel = wave_id() * MFMA_ROWS + mfma_quarter() * 4;
  GLOBAL const bf16 *x =
      (GLOBAL const bf16 *)(f_a + (u64)min_u32(token0 + mfma_line(), valid - 1) * pitch) + mfma_quarter() * 8;
  f32x4 f = 0;
  for (u32 j = 0; j < DIM / MFMA_DEPTH; j++) f = mfma(a[j], *(GLOBAL const bf16x8 *)(x + j * MFMA_DEPTH), f);
  f += *(GLOBAL const f32x4 *)(dt_bias + channel);
  for (u32 i = 0; i < 4; i++) f[i] = __builtin_expf(lower_bound * sigmoid(rate * f[i]));
  decays[mfma_line()][channel / 4] = f;
}

INLINE void normalise(LDS f32x4 *row, f32 scale) {
  LDS f32 *x = (LDS f32 *)row;
  f32 a = x[lane_id()], b = x[lane_id() + WAVE];
  scale *= reciprocal_sqrt(wave_sum(a * a + b * b) + L2_EPS);
  x[lane_id()] = a * scale, x[lane_id() + WAVE] = b * scale;
}

// Workgroups: x = heads. Histories are [3 tokens][heads][128] BF16, state is [heads][key][value] FP32; both are
// updated. Pitches are in bytes; q, k, v and gate share one. f_b is [heads][128][128] BF16.
KERNEL(512)
void kda(GLOBAL const struct step *step, bytes q, bytes k, bytes v, bytes gate, bytes f_a, bytes b,
         GLOBAL const bf16 *f_b, GLOBAL const f32x4 *q_taps, GLOBAL const f32x4 *k_taps, GLOBAL const f32x4 *v_taps,
         GLOBAL const f32 *a_log, GLOBAL const f32 *dt_bias, GLOBAL const f32 *o_norm, GLOBAL bf16 *q_history,
         GLOBAL bf16 *k_history, GLOBAL bf16 *v_history, GLOBAL f32 *state, GLOBAL u8 *out, u32 heads, u32 pitch,
         u32 f_a_pitch, u32 b_pitch, u32 out_pitch, f32 gate_lower_bound, f32 eps, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), head = group_x(), thread = thread_id(), lane = lane_id(), wave = wave_id();
  if (valid == 0) return;
  u32 channel_count = heads * DIM, channel = head * DIM + thread % DIM, row = lane / 16, value = wave * 16 + lane % 16;

  GLOBAL f32 *own = state + (u64)head * DIM * DIM + row * 4 * DIM + value;
  f32x4 S[SLICES];
  for (u32 i = 0; i < SLICES; i++)
    for (u32 c = 0; c < 4; c++) S[i][c] = own[(i * 16 + c) * DIM];
  f32 rate = __builtin_expf(a_log[head]);
  bf16x8 a[DIM / MFMA_DEPTH];
  load_f_b(a, f_b, head);

  for (u32 token0 = 0; token0 < valid; token0 += BLOCK) {
    u32 block = min_u32(BLOCK, valid - token0), first = thread / DIM * (BLOCK / 4), line = thread % DIM;
    if (first < block) {
      f32 y[BLOCK / 4];
      convolve(y, q, pitch, q_history, channel_count, q_taps[channel], channel, token0 + first, valid);
      for (u32 i = 0; i < BLOCK / 4; i++) ((LDS f32 *)queries[first + i])[line] = y[i];
      convolve(y, k, pitch, k_history, channel_count, k_taps[channel], channel, token0 + first, valid);
      for (u32 i = 0; i < BLOCK / 4; i++) ((LDS f32 *)keys[first + i])[line] = y[i];
      convolve(y, v, pitch, v_history, channel_count, v_taps[channel], channel, token0 + first, valid);
      for (u32 i = 0; i < BLOCK / 4; i++) values[first + i][line] = y[i];
    }
    compute_decays(a, f_a, f_a_pitch, dt_bias + head * DIM, rate, gate_lower_bound, token0, valid);
    if (thread < block) betas[thread] = sigmoid(((GLOBAL const f32 *)(b + (u64)(token0 + thread) * b_pitch))[head]);
    workgroup_barrier();
    for (u32 t = wave; t < block; t += WAVES) {
      normalise(queries[t], QUERY_SCALE);
      normalise(keys[t], 1.0f);
    }
    workgroup_barrier();

    for (u32 t = 0; t < block; t++) {
      f32x4 sum = 0, key[SLICES];
      for (u32 i = 0; i < SLICES; i++) {
        key[i] = keys[t][i * 4 + row];
        S[i] *= decays[t][i * 4 + row];
        sum += key[i] * S[i];
      }
      f32 error = betas[t] * (values[t][value] - column_sum((sum.x + sum.y) + (sum.z + sum.w)));
      sum = 0;
      for (u32 i = 0; i < SLICES; i++) {
        S[i] += key[i] * error;
        sum += queries[t][i * 4 + row] * S[i];
      }
      f32 o = column_sum((sum.x + sum.y) + (sum.z + sum.w));
      if (row == 0) outputs[t][value] = o;
    }
    workgroup_barrier();

    for (u32 t = wave; t < block; t += WAVES) {
      f32 o[2] = {outputs[t][lane], outputs[t][lane + WAVE]};
      f32 scale = reciprocal_sqrt(wave_sum(o[0] * o[0] + o[1] * o[1]) / DIM + eps);
      for (u32 i = 0; i < 2; i++) {
        u32 at = head * DIM + i * WAVE + lane;
        f32 g = (f32)((GLOBAL const bf16 *)(gate + (u64)(token0 + t) * pitch))[at];
        ((GLOBAL bf16 *)(out + (u64)(token0 + t) * out_pitch))[at] =
            (bf16)(o[i] * scale * o_norm[i * WAVE + lane] * sigmoid(g));
      }
    }
  }

  for (u32 i = 0; i < SLICES; i++)
    for (u32 c = 0; c < 4; c++) own[(i * 16 + c) * DIM] = S[i][c];
  if (thread < DIM) {
    remember(q, pitch, q_history, channel_count, channel, valid);
    remember(k, pitch, k_history, channel_count, channel, valid);
    remember(v, pitch, v_history, channel_count, channel, valid);
  }
}
