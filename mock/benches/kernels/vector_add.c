// c = a + b, four numbers a work-item and step: one arithmetic instruction for each four bytes of three arrays.
typedef float float4 __attribute__((ext_vector_type(4)));
#define KERNEL __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(256, 256)))

KERNEL void vector_add(float4 *c, const float4 *a, const float4 *b, unsigned n, unsigned stride) {
  for (unsigned i = __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x(); i < n; i += stride)
    c[i] = a[i] + b[i];
}
