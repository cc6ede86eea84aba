#!/bin/sh
# Rebuilds the code objects beside this script with clang, lld and clang-offload-bundler 22.1.8 (Debian: clang-22, lld-22,
# clang-tools-22); run it in this folder. vadd.hsaco is not built here: see README.md.
set -eu
common="-O3 -nogpulib -ffile-prefix-map=$PWD=. -fno-ident"
object() { # source, output, GPU, code-object version, more flags
  clang-22 --target=amdgcn-amd-amdhsa -mcpu="$3" -mcode-object-version="$4" -std=c23 -ffreestanding -nostdlib $common \
    ${5:-} -c "$1" -o "$2.o"
  ld.lld-22 -shared --no-undefined --build-id=none -s "$2.o" -o "$2"
  rm "$2.o"
}
object kernels.c kernels.hsaco gfx950 6
object relocations.c relocations.hsaco gfx950 6
object small.c small-v6.hsaco gfx950 6
object small.c small-v5.hsaco gfx950 5
object small.c small-v4.hsaco gfx950 4
object small.c small-xnack-off.hsaco gfx950:sramecc+:xnack- 6
object small.c small-preload.hsaco gfx950 6 "-mllvm -amdgpu-kernarg-preload-count=16"
object small.c small-gfx1100.hsaco gfx1100 6
hip="-x hip -nogpuinc $common"
clang-22 $hip --offload-device-only --offload-arch=gfx942 --offload-arch=gfx950 --gpu-bundle-output \
  --no-offload-compress implicit.hip -o implicit.bundle
clang-22 $hip --offload-device-only --offload-arch=gfx950 --gpu-bundle-output --offload-compress implicit.hip \
  -o implicit-compressed.bundle
clang-22 $hip --offload-arch=gfx950 --no-offload-compress -c implicit.hip -o implicit-host.o
chmod 644 ./*.hsaco
