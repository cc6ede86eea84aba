// One small kernel, built for several code-object versions and settings. Built by build.sh.
#define GLOBAL __attribute__((address_space(1)))

__attribute__((amdgpu_kernel, visibility("protected"))) void three_dimensional(
    GLOBAL unsigned *out, unsigned long stride, short bias) {
  unsigned long row = __builtin_amdgcn_workgroup_id_y() * 8u + __builtin_amdgcn_workitem_id_y();
  out[row * stride + __builtin_amdgcn_workitem_id_z()] =
      __builtin_amdgcn_workgroup_id_z() + __builtin_amdgcn_workgroup_id_x() + bias;
}
