// Counts how often each byte value occurs. A workgroup of 256 work-items counts in LDS, then adds to the result.
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(256, 256)))
#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3), loader_uninitialized))

static LDS unsigned counts[256];

static void barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL void histogram(GLOBAL const unsigned char *values, unsigned n, GLOBAL unsigned *bins) {
  unsigned item = __builtin_amdgcn_workitem_id_x();
  counts[item] = 0;
  barrier();
  unsigned stride = __builtin_amdgcn_grid_size_x();
  for (unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 + item; i < n; i += stride)
    __scoped_atomic_fetch_add(&counts[values[i]], 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);
  barrier();
  unsigned count = counts[item];
  if (count != 0) __scoped_atomic_fetch_add(&bins[item], count, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}
