// Transposes tiles of 64 x 64 dwords through LDS, rows padded by one dword against bank conflicts.
typedef unsigned uint;
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(256, 256)))

static __attribute__((address_space(3))) uint tile[64][65] __attribute__((loader_uninitialized));

KERNEL void lds_transpose(uint *out, const uint *in, uint width, uint tiles) {
  uint x = __builtin_amdgcn_workitem_id_x() & 63, y = __builtin_amdgcn_workitem_id_x() >> 6;
  for (uint t = 0; t < tiles; ++t) {
    uint column = 64 * t, row = 64 * __builtin_amdgcn_workgroup_id_x();
#pragma unroll
    for (uint r = 0; r < 64; r += 4) tile[r + y][x] = in[(row + r + y) * width + column + x];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#pragma unroll
    for (uint r = 0; r < 64; r += 4) out[(column + r + y) * width + row + x] = tile[x][r + y];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  }
}
