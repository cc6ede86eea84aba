// Groups the assignments of a run by expert: a histogram, a scan over the experts, and lists in token order. One
// workgroup does it, so the result never depends on scheduling.
#pragma once
#include "moe.h"
#include "wave.h"

constexpr u32 GROUP_THREADS = 256;
constexpr u32 WINDOW = 256; // tokens whose choices are in LDS at a time, one bit an expert and token

// A thread owns neighbouring experts, so that a scan over threads is one over experts. In LDS their entries are as far
// apart as there are threads: neighbouring lanes then meet in no bank.
constexpr u32 SHARE = MAX_EXPERTS / GROUP_THREADS;
INLINE u32 group_slot(u32 expert) { return expert % SHARE * GROUP_THREADS + expert / SHARE; }

LDS_ARRAY u32 counts[MAX_EXPERTS]; // by slot, as below
LDS_ARRAY u32 chosen[WINDOW / 32][MAX_EXPERTS];
LDS_ARRAY u32 wave_totals[2][GROUP_THREADS / WAVE];

// Sum over all lower threads of the workgroup.
INLINE u32 exclusive_scan(LDS u32 *totals, u32 x) {
  u32 scan = wave_scan(x), before = 0;
  if (lane_id() == WAVE - 1) totals[wave_id()] = scan;
  workgroup_barrier();
  for (u32 wave = 0; wave < GROUP_THREADS / WAVE; wave++) before += wave < wave_id() ? totals[wave] : 0;
  return before + scan - x;
}

struct grouping {
  GLOBAL const u32 *ids; // [tokens][top_k]
  GLOBAL u32 *list;      // of tokens x top_k assignments
  GLOBAL struct expert_tile *tiles;
  GLOBAL u32 *tile_count;
  u32 experts, top_k;
};

INLINE void group_assignments(struct grouping g, u32 valid) {
  u32 thread = thread_id(), first_expert = min_u32(thread * SHARE, g.experts);
  u32 end_expert = min_u32(first_expert + SHARE, g.experts);

  for (u32 e = first_expert; e < end_expert; e++) counts[group_slot(e)] = 0;
  workgroup_barrier();
  for (u32 a = thread; a < valid * g.top_k; a += GROUP_THREADS)
    __scoped_atomic_fetch_add(&counts[group_slot(g.ids[a])], 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  workgroup_barrier();

  u32 own_assignments = 0, own_tiles = 0;
  for (u32 e = first_expert; e < end_expert; e++) {
    u32 count = counts[group_slot(e)];
    own_assignments += count;
    own_tiles += ceil_div(count, EXPERT_TOKENS);
  }
  u32 next = exclusive_scan(wave_totals[0], own_assignments), tile = exclusive_scan(wave_totals[1], own_tiles);
  if (thread == GROUP_THREADS - 1) *g.tile_count = tile + own_tiles;
  for (u32 e = first_expert; e < end_expert; e++) {
    u32 count = counts[group_slot(e)];
    counts[group_slot(e)] = next; // from here on: where the expert's next assignment goes
    for (u32 done = 0; done < count; done += EXPERT_TOKENS)
      g.tiles[tile++] = (struct expert_tile){e, next + done, min_u32(count - done, EXPERT_TOKENS), 0};
    next += count;
  }

  for (u32 token0 = 0; token0 < valid; token0 += WINDOW) {
    for (u32 e = first_expert; e < end_expert; e++)
      for (u32 i = 0; i < WINDOW / 32; i++) chosen[i][group_slot(e)] = 0;
    workgroup_barrier();
    u32 window = min_u32(WINDOW, valid - token0);
    for (u32 a = thread; a < window * g.top_k; a += GROUP_THREADS) {
      u32 token = a / g.top_k, slot = group_slot(g.ids[token0 * g.top_k + a]);
      __scoped_atomic_fetch_or(&chosen[token / 32][slot], 1u << token % 32, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
    }
    workgroup_barrier();
    for (u32 e = first_expert; e < end_expert; e++) {
      u32 at = counts[group_slot(e)];
      for (u32 i = 0; i < WINDOW / 32; i++)
        for (u32 bits = chosen[i][group_slot(e)]; bits != 0; bits &= bits - 1) {
          u32 a = (token0 + i * 32 + (u32)__builtin_ctz(bits)) * g.top_k;
          while (g.ids[a] != e) a++;
          g.list[at++] = a;
        }
      counts[group_slot(e)] = at;
    }
  }
}
