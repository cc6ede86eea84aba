// The sticky error word of a GPU: the first failure stays until the host clears it.
//   bits 63:56 what   55:52 rank that reports   51:48 rank it blames   47:32 collective or layer   31:0 detail
#pragma once
#include "device.h"

enum error_code : u32 {
  ERROR_PEER_TIMEOUT = 1, // a peer's data did not come in time; detail = epoch waited for
  ERROR_NOT_FINITE = 2,   // a peer contributed an infinity or a NaN; detail = token of the run
  ERROR_NAN_LOGITS = 3,   // a rank's logits hold a NaN; detail = epoch
  ERROR_TOKEN = 4,        // a token beyond the vocabulary; detail = the token
  ERROR_CONTEXT = 5,      // a position beyond the cache; detail = the position
};

typedef GLOBAL u64 *error_word;

INLINE bool has_error(error_word error) {
  return __scoped_atomic_load_n(error, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM) != 0;
}

INLINE void report_error(error_word error, enum error_code code, u32 rank, u32 blamed, u32 place, u32 detail) {
  u64 none = 0;
  u64 word = (u64)(code << 24 | rank << 20 | blamed << 16 | place) << 32 | detail;
  __scoped_atomic_compare_exchange_n(error, &none, word, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                     __MEMORY_SCOPE_SYSTEM);
}
