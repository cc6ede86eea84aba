// A rank's rows of the vocabulary, as the one workgroup sees them that chooses the token.
#pragma once
#include "device.h"

constexpr u32 HEAD_THREADS = 1024, HEAD_WAVES = HEAD_THREADS / WAVE;

struct vocabulary {
  GLOBAL const f32 *row; // logits
  u32 rows;
  u32 first; // token of the first
};
