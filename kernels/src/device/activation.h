// Activation functions, in FP32. v_exp_f32, v_rcp_f32 and v_rsq_f32 are accurate to one unit in the last place.
#pragma once
#include "device.h"

constexpr f32 LOG2_E = 1.44269504088896340736f;

INLINE f32 reciprocal(f32 x) { return __builtin_amdgcn_rcpf(x); }
INLINE f32 reciprocal_sqrt(f32 x) { return __builtin_amdgcn_rsqf(x); }
// 2^x; results below 2^-126 are zero.
INLINE f32 exp2_f32(f32 x) { return __builtin_amdgcn_exp2f(x); }
INLINE f32 sigmoid(f32 x) { return reciprocal(1.0f + __builtin_expf(-x)); }
// By v_exp_f32 alone, a third of the instructions: exp(-x) is right to 2^-24 |x|, and zero below 2^-126.
INLINE f32 fast_sigmoid(f32 x) { return reciprocal(1.0f + exp2_f32(-LOG2_E * x)); }
INLINE f32 silu(f32 x) { return x * sigmoid(x); }

INLINE f32 tanh_f32(f32 x) {
  // 1 - 2 / (exp(2x) + 1) cancels near 0; there the series to x^9 is exact to FP32.
  f32 s = x * x;
  f32 series = x + x * s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835))));
  f32 wide = 1.0f - 2.0f * reciprocal(__builtin_expf(2.0f * x) + 1.0f);
  return s < 0.0625f ? series : wide;
}

// The config's activation_situ_beta and activation_situ_linear_beta.
struct situ_betas {
  f32 gate, up;
};

// SiTU: the sigmoid takes the raw gate.
INLINE f32 situ(struct situ_betas beta, f32 gate, f32 up) {
  return beta.gate * tanh_f32(gate / beta.gate) * sigmoid(gate) * (beta.up * tanh_f32(up / beta.up));
}
