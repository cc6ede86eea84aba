// Philox 4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11):
// random words from a counter and a key, without any state, so that every rank has the same.
#pragma once
#include "device.h"

constexpr u32 PHILOX_ROUNDS = 10;
constexpr u32 MULTIPLIERS[] = {0xd2511f53, 0xcd9e8d57}; // the paper's table 2
constexpr u32 WEYL[] = {0x9e3779b9, 0xbb67ae85};        // golden ratio and square root of 3, minus 1

INLINE u32x4 philox4x32(u32x4 counter, u32x2 key) {
  for (u32 round = 0; round < PHILOX_ROUNDS; round++) {
    u64 p0 = (u64)MULTIPLIERS[0] * counter.x, p1 = (u64)MULTIPLIERS[1] * counter.z;
    counter = (u32x4){(u32)(p1 >> 32) ^ counter.y ^ key.x, (u32)p1, (u32)(p0 >> 32) ^ counter.w ^ key.y, (u32)p0};
    key += (u32x2){WEYL[0], WEYL[1]};
  }
  return counter;
}
