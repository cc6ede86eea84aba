// A HIP kernel as others build them: hidden arguments, a launch bound, a host program around it. Built by build.sh.
#define __global__ __attribute__((global))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
typedef __SIZE_TYPE__ size_t;
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);

extern "C" __global__ void __launch_bounds__(512) scale(float *data, float factor, unsigned n) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
  if (i < n) data[i] *= factor;
}
