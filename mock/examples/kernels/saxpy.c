// y = a * x + y, one element a work-item.
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(1, 1024)))
#define GLOBAL __attribute__((address_space(1)))

KERNEL void saxpy(GLOBAL float *y, GLOBAL const float *x, float a, unsigned n) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] += a * x[i];
}
