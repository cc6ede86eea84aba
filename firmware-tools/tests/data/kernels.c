// Kernels that between them use every field a loader reads. Built by build.sh.
#define KERNEL __attribute__((amdgpu_kernel, visibility("protected")))
#define GLOBAL __attribute__((address_space(1)))
#define LDS __attribute__((address_space(3), loader_uninitialized))

static LDS float tile[1024];

KERNEL __attribute__((amdgpu_flat_work_group_size(256, 256))) void lds_reverse(GLOBAL float *io) {
  unsigned t = __builtin_amdgcn_workitem_id_x();
  tile[t] = io[t];
  __builtin_amdgcn_s_barrier();
  io[t] = tile[255 - t];
}

// An array that is indexed by a run-time value lives in scratch.
KERNEL __attribute__((amdgpu_flat_work_group_size(64, 64))) void scratch_sum(GLOBAL const int *in, GLOBAL int *out, int n) {
  volatile int seen[32];
  for (int i = 0; i < 32; i++) seen[i] = in[i];
  int sum = 0;
  for (int i = 0; i < n; i++) sum += seen[(in[i] + i) & 31];
  out[__builtin_amdgcn_workitem_id_x()] = sum;
}

typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));

// More accumulators than 256 vector registers hold at one wave a SIMD: some become AccVGPRs.
KERNEL __attribute__((amdgpu_flat_work_group_size(64, 64), amdgpu_waves_per_eu(1, 1))) void many_accumulators(
    GLOBAL const bf16x8 *a, GLOBAL f32x16 *out) {
  unsigned t = __builtin_amdgcn_workitem_id_x();
  f32x16 acc[20] = {};
  for (int k = 0; k < 64; k++)
    for (int i = 0; i < 20; i++)
      acc[i] = __builtin_amdgcn_mfma_f32_32x32x16_bf16(a[k * 64 + t], a[i * 64 + t], acc[i], 0, 0, 0);
  for (int i = 0; i < 20; i++) out[i * 64 + t] = acc[i];
}
