// Causal convolution over four tokens, then SiLU. Taps are [channel][tap], oldest token first. A history has the inputs
// of the three tokens before, oldest first, channel_count channels a token; it is moved on.
#pragma once
#include "activation.h"
#include "mfma.h"
#include "wave.h"

constexpr u32 BLOCK = 16, TAPS = 4, HISTORY = TAPS - 1;

// One channel of one token.
INLINE f32 convolve_token(bytes x, GLOBAL const f32x4 *taps, GLOBAL bf16 *history, u32 channel_count, u32 channel) {
  bf16 window[TAPS];
  for (u32 i = 0; i < HISTORY; i++) window[i] = history[i * channel_count + channel];
  window[HISTORY] = ((GLOBAL const bf16 *)x)[channel];
  f32x4 tap = taps[channel];
  f32 y = (f32)window[0] * tap[0];
  for (u32 i = 1; i < TAPS; i++) y += (f32)window[i] * tap[i];
  for (u32 i = 0; i < HISTORY; i++) history[i * channel_count + channel] = window[i + 1];
  return y * fast_sigmoid(y);
}

// Four channels of blocks of 16 tokens, one block after the other. A lane has the token of its line; earlier tokens are
// in the lines below it, and in those of the block before.
struct convolution {
  f32x4 taps[TAPS]; // of the four channels each
  bf16x4 before, now;
  GLOBAL bf16x4 *history;
  u32 history_pitch; // in bf16x4
};

INLINE struct convolution convolution_start(GLOBAL const f32x4 *taps, GLOBAL bf16 *history, u32 channel_count,
                                            u32 channel) {
  struct convolution it = {.history = (GLOBAL bf16x4 *)(history + channel), .history_pitch = channel_count / 4};
  for (u32 c = 0; c < 4; c++)
    for (u32 i = 0; i < TAPS; i++) it.taps[i][c] = taps[channel + c][i];
  u32 line = mfma_line(), oldest = BLOCK - HISTORY;
  it.now = it.history[(line < oldest ? 0 : line - oldest) * it.history_pitch];
  return it;
}

// The inputs of so many tokens earlier, a constant.
#define earlier(it, tokens)                                                                                            \
  ({                                                                                                                   \
    f32x2 pair = __builtin_bit_cast(f32x2, mfma_line() >= BLOCK - (tokens) ? (it)->before : (it)->now);                \
    __builtin_bit_cast(bf16x4, (f32x2){rotate_row(pair[0], tokens), rotate_row(pair[1], tokens)});                     \
  })

INLINE f32x4 widen(bf16x4 x) { return __builtin_convertvector(x, f32x4); }

// Takes the next block.
INLINE f32x4 convolve_block(struct convolution *it, bf16x4 x) {
  it->before = it->now, it->now = x;
  f32x4 y = widen(x) * it->taps[3];
  y += widen(earlier(it, 1)) * it->taps[2];
  y += widen(earlier(it, 2)) * it->taps[1];
  y += widen(earlier(it, 3)) * it->taps[0];
  for (u32 c = 0; c < 4; c++) y[c] *= fast_sigmoid(y[c]);
  return y;
}

// Leaves the history to the next run. `last` is the line of the last token.
INLINE void convolution_end(const struct convolution *it, u32 last) {
  bf16x4 second = earlier(it, 1), first = earlier(it, 2);
  if (mfma_line() != last) return;
  it->history[0] = first, it->history[it->history_pitch] = second, it->history[2 * it->history_pitch] = it->now;
}
