// Kimi Delta Attention of many tokens, in the chunked form: convolution, gates, recurrence, output norm and gate.
//
// Within a block of 16 tokens, S is the state before it, G[i][k] the sum of g[k] over its tokens 0 .. i:
//   e_i = beta_i (v_i - sum_k k_i exp(G_i) S - sum_{j<i} A_ij e_j), A_ij = sum_k k_i k_j exp(G_i - G_j)
//   o_i = sum_k q_i exp(G_i) S + sum_{j<=i} P_ij e_j,               P_ij = sum_k q_i k_j exp(G_i - G_j)
//   S  <- exp(G_15) S + sum_j k_j exp(G_15 - G_j) e_j
// These are products of matrices, by FP32 MFMAs; e is found by forward substitution.
//
// G falls by up to 5 a token, the lower bound, so exp(-G) alone would soon overflow. From the state and to the end of
// the block exponents are never positive. The factors of A and P are taken relative to token 7, exp(G_i - G_7) and
// exp(G_7 - G_j): at most 8 tokens away, so within exp(40) and exp(-40), which FP32 holds to full precision. Bounds
// down to -10 would do; a config below is refused.
//
// Tokens past the last have beta = 0 and g = 0: they leave no trace.
#include "kda.h"

constexpr u32 MIDDLE = 7;
// Rows in LDS are padded by 16 bytes, so that 16 lanes that take as much of a row each meet in no bank.
LDS_ARRAY f32x4 start_queries[BLOCK][DIM / 4 + 1], start_keys[BLOCK][DIM / 4 + 1]; // q_i exp(G_i), k_i exp(G_i)
LDS_ARRAY f32x4 end_keys[DIM][BLOCK / 4 + 1], decays[DIM / 4];                     // k_j exp(G_15 - G_j), exp(G_15)
LDS_ARRAY f32x4 values[BLOCK][DIM / 4 + 1], outputs[BLOCK][DIM / 4 + 1];
LDS_ARRAY f32x4 products[2][KDA_WAVES][WAVE];                                  // A and P over each wave's 16 keys
LDS_ARRAY f32x4 couplings[BLOCK][BLOCK / 4 + 1], scores[BLOCK][BLOCK / 4 + 1]; // -beta_i A_ij, P_ij
LDS_ARRAY f32x4 squares[2][BLOCK][KDA_WAVES / 4 + 1];                          // |q|^2 and |k|^2, likewise
LDS_ARRAY f32 betas[BLOCK];

// Square sums of this wave's keys of each token.
INLINE void leave_squares(LDS f32x4 (*to)[KDA_WAVES / 4 + 1], f32x4 x) {
  f32 sum = column_sum((x.x * x.x + x.y * x.y) + (x.z * x.z + x.w * x.w));
  if (mfma_quarter() == 0) ((LDS f32 *)to[mfma_line()])[wave_id()] = sum;
}

INLINE f32 l2_scale(LDS const f32x4 (*from)[KDA_WAVES / 4 + 1]) {
  f32x4 sum = from[mfma_line()][0] + from[mfma_line()][1];
  return reciprocal_sqrt((sum.x + sum.y) + (sum.z + sum.w) + L2_EPS);
}

// Adds up A or P over the waves. The lane has row i = line and columns 4 quarter .. + 3.
INLINE void sum_products(void) {
  u32 which = wave_id(), line = mfma_line(), quarter = mfma_quarter();
  f32x4 sum = products[which][0][lane_id()];
  for (u32 i = 1; i < KDA_WAVES; i++) sum += products[which][i][lane_id()];
  for (u32 c = 0; c < 4; c++) {
    u32 j = quarter * 4 + c;
    if (j > line || (which == 0 && j == line)) sum[c] = 0;
  }
  if (which == 0) couplings[line][quarter] = sum * -betas[line];
  else scores[line][quarter] = sum;
}

// e of four tokens that are coupled with each other only.
INLINE f32x4 solve_within(const f32x4 *coupling, f32x4 e) {
  for (u32 i = 1; i < 4; i++)
    for (u32 j = 0; j < i; j++) e[i] += coupling[i][j] * e[j];
  return e;
}

// e of the block by forward substitution, from four tokens to the next four. A lane gets tokens 4 quarter .. + 3 of its
// value; in every step all of them compute, those whose turn has not come in vain.
INLINE f32x4 solve(f32x4 right) {
  u32 line = mfma_line(), quarter = mfma_quarter();
  f32x4 within[4], across = line / 4 > quarter ? couplings[line][quarter] : 0;
  for (u32 c = 1; c < 4; c++) within[c] = couplings[quarter * 4 + c][quarter];
  f32x4 e = solve_within(within, right);
  for (u32 i = 1; i < BLOCK / 4; i++) e = solve_within(within, mfma_f32(across, e, right));
  return e;
}

// Workgroups: x = heads.
KERNEL(512)
void kda_chunk(GLOBAL const struct step *step, bytes q, bytes k, bytes v, bytes gate, bytes f_a, bytes b,
               GLOBAL const bf16 *f_b, GLOBAL const f32x4 *q_taps, GLOBAL const f32x4 *k_taps,
               GLOBAL const f32x4 *v_taps, GLOBAL const f32 *a_log, GLOBAL const f32 *dt_bias,
               GLOBAL const f32 *o_norm, GLOBAL bf16 *q_history, GLOBAL bf16 *k_history, GLOBAL bf16 *v_history,
               GLOBAL f32 *state, GLOBAL u8 *out, u32 heads, u32 pitch, u32 f_a_pitch, u32 b_pitch, u32 out_pitch,
               f32 gate_lower_bound, f32 eps, u32 tokens) {
  u32 valid = valid_tokens(step, tokens), head = group_x(), thread = thread_id(), wave = wave_id();
  if (valid == 0) return;
  u32 line = mfma_line(), quarter = mfma_quarter(), key0 = wave * 16 + quarter * 4, value = wave * 16 + line;
  u32 channel_count = heads * DIM, channel = head * DIM + key0, head_bytes = head * DIM * sizeof(bf16);

  GLOBAL f32 *own = own_state(state, head);
  f32x4 S[SLICES], bias = *(GLOBAL const f32x4 *)(dt_bias + channel);
  load_state(S, own);
  bf16x8 a[DIM / MFMA_DEPTH];
  load_f_b(a, f_b, head);
  f32 rate = __builtin_expf(a_log[head]), bound = gate_lower_bound * LOG2_E;
  struct convolution q_convolution = convolution_start(q_taps, q_history, channel_count, channel);
  struct convolution k_convolution = convolution_start(k_taps, k_history, channel_count, channel);
  struct convolution v_convolution = convolution_start(v_taps, v_history, channel_count, channel);

  for (u32 token0 = 0; token0 < valid; token0 += BLOCK) {
    bool here = token0 + line < valid;
    u64 token = min_u32(token0 + line, valid - 1), at = token * pitch + channel * sizeof(bf16);
    bf16x4 q_in = *(GLOBAL const bf16x4 *)(q + at), k_in = *(GLOBAL const bf16x4 *)(k + at);
    bf16x4 v_in = *(GLOBAL const bf16x4 *)(v + at);
    f32x4 G = decay_input(a, f_a + token * f_a_pitch) + bias; // logarithms to base 2 from here on
    for (u32 c = 0; c < 4; c++) G[c] = row_scan(here ? bound * fast_sigmoid(rate * G[c]) : 0);
    if (wave == 0) betas[line] = here ? fast_sigmoid(((GLOBAL const f32 *)(b + token * b_pitch))[head]) : 0;
    f32x4 query = convolve_block(&q_convolution, q_in), key = convolve_block(&k_convolution, k_in);
    leave_squares(squares[0], query), leave_squares(squares[1], key);
    values[line][key0 / 4] = convolve_block(&v_convolution, v_in);
    workgroup_barrier();

    query *= l2_scale(squares[0]) * QUERY_SCALE, key *= l2_scale(squares[1]);
    f32x4 from_start, to_end, from_middle, to_middle;
    for (u32 c = 0; c < 4; c++) {
      f32 middle = row_value(G[c], MIDDLE), end = row_value(G[c], BLOCK - 1);
      from_start[c] = exp2_f32(G[c]), to_end[c] = exp2_f32(end - G[c]);
      from_middle[c] = exp2_f32(G[c] - middle), to_middle[c] = exp2_f32(middle - G[c]);
    }
    start_queries[line][key0 / 4] = query * from_start, start_keys[line][key0 / 4] = key * from_start;
    for (u32 c = 0; c < 4; c++) ((LDS f32 *)end_keys[key0 + c])[line] = key[c] * to_end[c];
    if (line == BLOCK - 1) decays[key0 / 4] = from_start;
    f32x4 column = key * to_middle;
    products[0][wave][lane_id()] = mfma_f32(column, key * from_middle, 0);
    products[1][wave][lane_id()] = mfma_f32(column, query * from_middle, 0);
    workgroup_barrier();

    if (wave < 2) sum_products();
    f32x4 known = 0, o = 0; // what S says of each token's value, and of its output
    for (u32 i = 0; i < SLICES; i++) {
      known = mfma_f32(start_keys[line][i * 4 + quarter], S[i], known);
      o = mfma_f32(start_queries[line][i * 4 + quarter], S[i], o);
    }
    workgroup_barrier();

    f32x4 v_line;
    for (u32 c = 0; c < 4; c++) v_line[c] = ((LDS f32 *)values[quarter * 4 + c])[value];
    f32x4 e = solve(*(LDS f32x4 *)(betas + quarter * 4) * (v_line - known));
    o = mfma_f32(scores[line][quarter], e, o);
    for (u32 c = 0; c < 4; c++) ((LDS f32 *)outputs[quarter * 4 + c])[value] = o[c];
    for (u32 i = 0; i < SLICES; i++)
      S[i] = mfma_f32(end_keys[i * 16 + line][quarter], e, S[i] * decays[i * 4 + quarter]);
    workgroup_barrier();

    u32 done = thread / (WAVE / 2); // which token this half of the wave ends
    if (token0 + done < valid)
      finish_token(outputs[done], gate + (u64)(token0 + done) * pitch + head_bytes,
                   out + (u64)(token0 + done) * out_pitch + head_bytes, o_norm, eps);
  }

  store_state(own, S);
  u32 last = (valid - 1) % BLOCK;
  convolution_end(&q_convolution, last);
  convolution_end(&k_convolution, last);
  convolution_end(&v_convolution, last);
}
