// Types, address spaces and launch attributes. Freestanding C23: no libc, no device library.
#pragma once

#define GLOBAL __attribute__((address_space(1)))
#define CONSTANT __attribute__((address_space(4)))
#define LDS __attribute__((address_space(3)))
// LDS starts undefined; clang accepts file-scope LDS in C only when told so.
#define LDS_ARRAY [[clang::loader_uninitialized]] static LDS
// Every launch of a kernel uses exactly this many work-items a workgroup.
#define KERNEL(threads)                                                                                                \
  __attribute__((amdgpu_kernel, visibility("protected"), amdgpu_flat_work_group_size(threads, threads)))
#define INLINE static inline __attribute__((always_inline))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef float f32;
typedef __bf16 bf16;
typedef u32 u32x2 __attribute__((ext_vector_type(2)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef f32 f32x2 __attribute__((ext_vector_type(2)));
typedef f32 f32x4 __attribute__((ext_vector_type(4)));
typedef bf16 bf16x2 __attribute__((ext_vector_type(2)));
typedef bf16 bf16x4 __attribute__((ext_vector_type(4)));
typedef bf16 bf16x8 __attribute__((ext_vector_type(8)));
typedef GLOBAL const u8 *bytes; // address of a row-major matrix; rows are a pitch in bytes apart

constexpr u32 WAVE = 64;

INLINE u32 thread_id(void) { return __builtin_amdgcn_workitem_id_x(); }
INLINE u32 lane_id(void) { return __builtin_amdgcn_workitem_id_x() % WAVE; }
// Number of the wave in its workgroup, as a scalar: branches on it stay scalar.
INLINE u32 wave_id(void) { return __builtin_amdgcn_readfirstlane(__builtin_amdgcn_workitem_id_x() / WAVE); }
INLINE u32 group_x(void) { return __builtin_amdgcn_workgroup_id_x(); }
INLINE u32 group_y(void) { return __builtin_amdgcn_workgroup_id_y(); }

// Keeps the compiler from computing ahead of here what it can derive from x: that would wait for x when it is loaded,
// or keep both x and the result in registers.
#define opaque(x) __asm__ volatile("" : "+v"(x))

INLINE u32 min_u32(u32 a, u32 b) { return a < b ? a : b; }
INLINE u32 ceil_div(u32 a, u32 b) { return (a + b - 1) / b; }

// All waves of the workgroup arrive, and what each wrote to LDS or global memory before is visible to the others after.
INLINE void workgroup_barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
