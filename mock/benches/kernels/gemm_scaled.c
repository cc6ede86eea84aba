// C = A * B^T, MXFP4 by MXFP4 with a scale each 32 numbers, a tile of 64 x 64 a wave: four
// v_mfma_scale_f32_32x32x64_f8f6f4 for four loads of 16 bytes a lane.
typedef int intx4 __attribute__((ext_vector_type(4)));
typedef int intx8 __attribute__((ext_vector_type(8)));
typedef float floatx16 __attribute__((ext_vector_type(16)));
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(64, 64)))
enum { FP4 = 4 };

KERNEL void gemm_scaled(float *c, const unsigned char *a, const unsigned char *sa, const unsigned char *b,
                        const unsigned char *sb, unsigned n, unsigned k) {
  unsigned lane = __builtin_amdgcn_workitem_id_x(), half = lane >> 5;
  unsigned row = 64 * __builtin_amdgcn_workgroup_id_y(), column = 64 * __builtin_amdgcn_workgroup_id_x();
  floatx16 sum[2][2] = {};
  for (unsigned at = 0; at < k; at += 64) {
    intx8 x[2], y[2];
    int p[2], q[2];
    for (int i = 0; i < 2; ++i) {
      unsigned m = row + 32 * i + (lane & 31), o = column + 32 * i + (lane & 31);
      intx4 v = *(const intx4 *)(a + (m * k + at) / 2 + 16 * half), w = *(const intx4 *)(b + (o * k + at) / 2 + 16 * half);
      x[i] = (intx8){v.x, v.y, v.z, v.w, 0, 0, 0, 0};
      y[i] = (intx8){w.x, w.y, w.z, w.w, 0, 0, 0, 0};
      p[i] = sa[(m * k + at) / 32 + half];
      q[i] = sb[(o * k + at) / 32 + half];
    }
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j)
        sum[i][j] = __builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(x[i], y[j], sum[i][j], FP4, FP4, 0, p[i], 0, q[j]);
  }
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j)
      for (unsigned r = 0; r < 16; ++r)
        c[(row + 32 * i + 8 * (r / 4) + 4 * half + r % 4) * n + column + 32 * j + (lane & 31)] = sum[i][j][r];
}
