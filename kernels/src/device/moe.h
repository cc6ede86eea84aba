// How the experts' work is laid out. Assignment a = token x top_k + choice. Assignments are listed by expert, then by
// token, and cut into tiles of one expert each.
#pragma once
#include "device.h"

constexpr u32 MAX_EXPERTS = 1024;

constexpr u32 EXPERT_TILES = 4; // tiles of 16 MFMA columns of a tile
constexpr u32 EXPERT_TOKENS = EXPERT_TILES * 16;

struct expert_tile {
  u32 expert;
  u32 first; // in the list of assignments
  u32 count; // at most EXPERT_TOKENS
  u32 reserved;
};
