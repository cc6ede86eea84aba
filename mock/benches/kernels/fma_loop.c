// Eight independent chains of fused multiply-adds, 64 in a loop body: nothing but vector ALU instructions.
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(256, 256)))

KERNEL void fma_loop(float *out, unsigned rounds, float a) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  float chain[8];
  for (int c = 0; c < 8; ++c) chain[c] = (float)i + c;
  float b = 0.001f * i;
  for (unsigned round = 0; round < rounds; ++round)
#pragma unroll
    for (int step = 0; step < 8; ++step)
#pragma unroll
      for (int c = 0; c < 8; ++c) chain[c] = __builtin_fmaf(chain[c], a, b);
  float sum = 0;
  for (int c = 0; c < 8; ++c) sum += chain[c];
  out[i] = sum;
}
