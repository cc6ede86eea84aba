// C = A * B^T in bf16, a tile of 64 x 64 a wave: four v_mfma_f32_32x32x16_bf16 for four loads of 16 bytes a lane.
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
typedef float floatx16 __attribute__((ext_vector_type(16)));
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64)))

KERNEL void gemm_bf16(float *c, const __bf16 *a, const __bf16 *b, unsigned n, unsigned k) {
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  unsigned row = 64 * __builtin_amdgcn_workgroup_id_y(), column = 64 * __builtin_amdgcn_workgroup_id_x();
  floatx16 sum[2][2] = {};
  for (unsigned at = 0; at < k; at += 16) {
    bf16x8 x[2], y[2];
    for (int i = 0; i < 2; ++i) {
      unsigned inner = at + 8 * (lane >> 5);
      x[i] = *(const bf16x8 *)(a + (row + 32 * i + (lane & 31)) * k + inner);
      y[i] = *(const bf16x8 *)(b + (column + 32 * i + (lane & 31)) * k + inner);
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) sum[i][j] = __builtin_amdgcn_mfma_f32_32x32x16_bf16(x[i], y[j], sum[i][j], 0, 0, 0);
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (unsigned r = 0; r < 16; ++r)
        c[(row + 32 * i + 8 * (r / 4) + 4 * (lane >> 5) + r % 4) * n + column + 32 * j + (lane & 31)] = sum[i][j][r];
}
