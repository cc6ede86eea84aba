//! GPU kernels: committed gfx950 code objects and typed launch arguments.
