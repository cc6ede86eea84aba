//! GPU kernels of the K3 forward pass: committed gfx950 code objects, typed launch arguments and grids.
//!
//! The sources are C, in `src/device`; `kernels/build` compiles them to `code-objects/*.hsaco`, which are part of this
//! crate, so nothing needs a compiler at run time. Each module here holds the arguments of one family of kernels as
//! `#[repr(C)]` structs that are copied to the kernel-argument segment as they are ([`Launch::kernarg`]).
//!
//! Every kernel serves decode (one token) and prefill chunks alike: `tokens` of the arguments is what the launch and its
//! buffers are sized for, [`Step::count`] in device memory what is valid in this run. Matrices are row-major; a pitch is
//! the distance from one row to the next in bytes. Activations are packed unless they have a pitch, and start at multiples
//! of 16 bytes.

mod arguments;
mod code_object;
pub mod collective;
pub mod embed;
pub mod error_word;
pub mod gemm;
pub mod head;
pub mod kda;
pub mod limits;
pub mod mix_norm;
pub mod mla;
pub mod moe;
pub mod step;

pub use arguments::{Arguments, Field, GpuVa, Launch};
pub use code_object::{CODE_OBJECTS, CodeObject, Kernel, kernels};
pub use error_word::{ErrorWord, Failure};
pub use step::{RingEntry, Step};
