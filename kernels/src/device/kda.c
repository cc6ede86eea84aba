// Kimi Delta Attention of one token: convolution, gates, the recurrence of kda.h as it stands, output norm and gate.
#include "kda.h"

LDS_ARRAY f32 queries[DIM], keys[DIM], values[DIM], decays[DIM], outputs[DIM];

INLINE void normalise(LDS f32 *x, f32 scale) {
  f32 a = x[lane_id()], b = x[lane_id() + WAVE];
  scale *= reciprocal_sqrt(wave_sum(a * a + b * b) + L2_EPS);
  x[lane_id()] = a * scale, x[lane_id() + WAVE] = b * scale;
}

// Workgroups: x = heads.
KERNEL(512)
void kda(GLOBAL const struct step *step, bytes q, bytes k, bytes v, bytes gate, bytes f_a, bytes b,
         GLOBAL const bf16 *f_b, GLOBAL const f32x4 *q_taps, GLOBAL const f32x4 *k_taps, GLOBAL const f32x4 *v_taps,
         GLOBAL const f32 *a_log, GLOBAL const f32 *dt_bias, GLOBAL const f32 *o_norm, GLOBAL bf16 *q_history,
         GLOBAL bf16 *k_history, GLOBAL bf16 *v_history, GLOBAL f32 *state, GLOBAL u8 *out, u32 heads, u32 pitch,
         u32 f_a_pitch, u32 b_pitch, u32 out_pitch, f32 gate_lower_bound, f32 eps, u32 tokens) {
  (void)pitch, (void)f_a_pitch, (void)b_pitch, (void)out_pitch; // there is one row
  if (valid_tokens(step, tokens) == 0) return;
  u32 head = group_x(), thread = thread_id(), wave = wave_id(), quarter = mfma_quarter(), line = mfma_line();
  u32 channel_count = heads * DIM, own_channel = thread % DIM, channel = head * DIM + own_channel;

  GLOBAL f32 *own = own_state(state, head);
  f32x4 S[SLICES];
  load_state(S, own);
  bf16x8 a[DIM / MFMA_DEPTH];
  load_f_b(a, f_b, head);

  constexpr u32 waves = DIM / WAVE; // of each of q, k and v
  if (wave < waves) queries[own_channel] = convolve_token(q, q_taps, q_history, channel_count, channel);
  else if (wave < 2 * waves) keys[own_channel] = convolve_token(k, k_taps, k_history, channel_count, channel);
  else if (wave < 3 * waves) values[own_channel] = convolve_token(v, v_taps, v_history, channel_count, channel);
  f32x4 f = decay_input(a, f_a);
  u32 key0 = wave * MFMA_ROWS + quarter * 4;
  f += *(GLOBAL const f32x4 *)(dt_bias + head * DIM + key0);
  f32 rate = __builtin_expf(a_log[head]);
  for (u32 c = 0; c < 4; c++) f[c] = exp2_f32(gate_lower_bound * LOG2_E * fast_sigmoid(rate * f[c]));
  if (line == 0) *(LDS f32x4 *)(decays + key0) = f;
  workgroup_barrier();
  if (wave == 0) normalise(queries, QUERY_SCALE);
  else if (wave == 1) normalise(keys, 1.0f);
  workgroup_barrier();

  f32x4 sum = 0, key[SLICES];
  for (u32 i = 0; i < SLICES; i++) {
    key[i] = ((LDS f32x4 *)keys)[i * 4 + quarter];
    S[i] *= ((LDS f32x4 *)decays)[i * 4 + quarter];
    sum += key[i] * S[i];
  }
  f32 beta = fast_sigmoid(((GLOBAL const f32 *)b)[head]);
  f32 error = beta * (values[wave * 16 + line] - column_sum((sum.x + sum.y) + (sum.z + sum.w)));
  sum = 0;
  for (u32 i = 0; i < SLICES; i++) {
    S[i] += key[i] * error;
    sum += ((LDS f32x4 *)queries)[i * 4 + quarter] * S[i];
  }
  store_state(own, S);
  f32 o = column_sum((sum.x + sum.y) + (sum.z + sum.w));
  if (quarter == 0) outputs[wave * 16 + line] = o;
  workgroup_barrier();
  u32 at = head * DIM * sizeof(bf16);
  if (thread < WAVE / 2) finish_token((LDS f32x4 *)outputs, gate + at, out + at, o_norm, eps);
}
