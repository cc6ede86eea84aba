// A table of addresses: the linker cannot know them, so the loader has to fill them in. Built by build.sh.
#define CONSTANT __attribute__((address_space(4)))
#define GLOBAL __attribute__((address_space(1)))

#define DEFAULT __attribute__((visibility("default")))
#define PROTECTED __attribute__((visibility("protected")))

DEFAULT GLOBAL int first = 1;
PROTECTED GLOBAL int second = 2;
static GLOBAL int unnamed = 3;
PROTECTED GLOBAL int *GLOBAL table[5] = {&first, &second, &first + 3, &unnamed, 0};

__attribute__((amdgpu_kernel, visibility("protected"))) void sum_table(GLOBAL int *out) {
  *out = *table[0] + *table[1] + *table[3];
}
