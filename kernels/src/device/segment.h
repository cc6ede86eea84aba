// Outputs of a projection launch: matrices that one input is multiplied by.
#pragma once
#include "device.h"

enum form : u32 {
  FORM_PLAIN = 0,  // y = x w'
  FORM_SITU = 1,   // y = SiTU(x w', x2 w2'): gate and up of a gated MLP
  FORM_SUM = 2,    // y = x w' + x2 w2'
  FORM_GATHER = 3, // y = x w' of all ranks, one after the other, rounded to BF16
};

// One output of a launch. Pitches are in bytes.
struct segment {
  bytes w, w2, x2;
  GLOBAL u8 *y;
  u32 rows, w_pitch, w2_pitch, x2_pitch, depth2, y_pitch;
  u32 y_f32; // y is FP32, not BF16
  enum form form;
};
struct segments {
  struct segment at[6];
};
static_assert(sizeof(struct segment) == 64);
