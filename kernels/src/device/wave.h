// Reductions and scans over the 64 lanes of a wave. Every lane gets the same bits: each step adds the same two values
// in both lanes of a pair, and addition of two values commutes.
#pragma once
#include "device.h"

// DPP row_ror:n rotates within each row of 16 lanes ("DPP" in the CDNA ISA guide).
constexpr int ROW_ROR = 0x120;
// row_shr:n takes the value of n lanes below, zero past the start of the row.
constexpr int ROW_SHR = 0x110;
// row_newbcast:n gives the whole row the value of its lane n.
constexpr int ROW_BROADCAST = 0x150;

// The cast makes a value of x: clang takes the first element of a vector for any, if it is asked for the bits of one.
#define dpp_row(x, control)                                                                                            \
  __builtin_bit_cast(f32, __builtin_amdgcn_mov_dpp(__builtin_bit_cast(int, (f32)(x)), (control), 0xf, 0xf, true))
#define rotate_row(x, n) dpp_row(x, ROW_ROR + (n))
#define row_value(x, n) dpp_row(x, ROW_BROADCAST + (n))

INLINE f32 max_f32(f32 a, f32 b) { return __builtin_fmaxf(a, b); }

// Sum over each row of 16 lanes.
INLINE f32 row_sum(f32 x) {
  x += rotate_row(x, 8);
  x += rotate_row(x, 4);
  x += rotate_row(x, 2);
  return x + rotate_row(x, 1);
}

INLINE f32 row_max(f32 x) {
  x = max_f32(x, rotate_row(x, 8));
  x = max_f32(x, rotate_row(x, 4));
  x = max_f32(x, rotate_row(x, 2));
  return max_f32(x, rotate_row(x, 1));
}

// Sum over this lane and all lower ones of its row.
INLINE f32 row_scan(f32 x) {
  x += dpp_row(x, ROW_SHR + 1);
  x += dpp_row(x, ROW_SHR + 2);
  x += dpp_row(x, ROW_SHR + 4);
  return x + dpp_row(x, ROW_SHR + 8);
}

// Both of {lane, lane ^ 16}: v_permlane16_swap of a value with itself leaves the even rows' copy in x, the odd rows' in
// y.
INLINE f32x2 row_pair(f32 x) {
  u32 bits = __builtin_bit_cast(u32, x);
  return __builtin_bit_cast(f32x2, __builtin_amdgcn_permlane16_swap(bits, bits, false, false));
}

// Both of {lane, lane ^ 32}, lower half first.
INLINE f32x2 half_pair(f32 x) {
  u32 bits = __builtin_bit_cast(u32, x);
  return __builtin_bit_cast(f32x2, __builtin_amdgcn_permlane32_swap(bits, bits, false, false));
}

// Sum of the four lanes that differ only in their row.
INLINE f32 column_sum(f32 x) {
  f32x2 rows = row_pair(x);
  f32x2 halves = half_pair(rows.x + rows.y);
  return halves.x + halves.y;
}

INLINE f32 column_max(f32 x) {
  f32x2 rows = row_pair(x);
  f32x2 halves = half_pair(max_f32(rows.x, rows.y));
  return max_f32(halves.x, halves.y);
}

// Sum over each half of 32 lanes.
INLINE f32 half_sum(f32 x) {
  f32x2 rows = row_pair(row_sum(x));
  return rows.x + rows.y;
}

INLINE f32 wave_sum(f32 x) { return column_sum(row_sum(x)); }
INLINE f32 wave_max(f32 x) { return column_max(row_max(x)); }

// The value of another lane.
INLINE u32 read_lane(u32 x, u32 lane) { return (u32)__builtin_amdgcn_ds_bpermute((int)(lane * 4), (int)x); }
INLINE f32 read_lane_f32(f32 x, u32 lane) {
  return __builtin_bit_cast(f32, read_lane(__builtin_bit_cast(u32, x), lane));
}

// The value of a lane whose number is the same in all lanes.
INLINE f32 lane_value(f32 x, u32 lane) {
  return __builtin_bit_cast(f32, __builtin_amdgcn_readlane(__builtin_bit_cast(int, x), (int)lane));
}

// Sum over this lane and all lower ones.
INLINE u32 wave_scan(u32 x) {
  u32 lane = lane_id();
  for (u32 step = 1; step < WAVE; step *= 2) {
    u32 below = read_lane(x, lane - step);
    x += lane >= step ? below : 0;
  }
  return x;
}
