//! GPU kernels of the K3 forward pass: committed gfx950 code objects, typed launch arguments and grids.
//!
//! The sources are C, in `src/device`; `kernels/build` compiles them to `code-objects/*.hsaco`, which are part of this
//! crate, so nothing needs a compiler at run time. Each module here holds the arguments of one family of kernels as
//! `#[repr(C)]` structs that are copied to the kernel-argument segment as they are ([`Launch::kernarg`]).
//!
//! Most kernels serve any number of tokens: `tokens` of the arguments is what the launch and its buffers are sized for,
//! [`Step::count`] in device memory what is valid in this run; workgroups past it exit. Those of [`project`] and [`expert`]
//! and [`mla::MlaQuery`] serve decode, one token, and do the work of several others; [`kda::Kda`] has one for each. Matrices are row-major; a pitch is the
//! distance from one row to the next in bytes. Activations are packed unless they have a pitch, and start at multiples of 16
//! bytes.
//!
//! # A run of the graph for one token
//!
//! | part | launches |
//! |---|---|
//! | start | [`embed::Embed`] -> h |
//! | KDA | [`project::MixProject`] h, blocks -> q, k, v, g (BF16), f_a (BF16), b (FP32); saves h where the running sum restarts; [`kda::Kda`]; [`project::ProjectSum`] o_proj -> h |
//! | MLA | [`project::MixProject`] h, blocks -> q_a, kv_a, g (BF16); [`mla::MlaQuery`]; [`mla::MlaAbsorb`]; [`mla::MlaAttention`]; [`mla::MlaValue`]; [`project::ProjectSum`] o_proj -> h |
//! | dense | [`project::MixProject`] h, blocks -> SiTU(gate, up) (BF16); [`project::ProjectSum`] down -> h |
//! | MoE | [`project::MixProject`] h, blocks -> router logits (FP32), z of all ranks (BF16), SiTU of the shared experts (BF16); [`expert::ExpertUp`]; [`expert::ExpertDown`] -> latent; [`project::ProjectSum`] of the normed latent and shared down -> h |
//! | head | [`mix_norm::MixNorm`]; [`gemm::Gemm`] -> logits (FP32); [`head::Sample`] |
//! | end | [`head::Advance`] |
//!
//! # A run of the graph for a chunk
//!
//! Each launch waits for the one before it and sees what it wrote on every XCC. On each rank, with H heads of the rank and
//! C the hidden size:
//!
//! | part | launches |
//! |---|---|
//! | start | [`embed::Embed`] -> h |
//! | every layer | [`mix_norm::MixNorm`] h, blocks -> x; saves h where the running sum restarts |
//! | KDA | [`gemm::Gemm`] x -> q, k, v, g (BF16), f_a (BF16), b (FP32); [`kda::Kda`]; [`gemm::Gemm`] o_proj -> FP32 |
//! | MLA | [`gemm::Gemm`] x -> q_a, kv_a, g (BF16); [`mla::MlaLatent`]; [`gemm::Gemm`] q_b; [`mla::MlaAbsorb`]; [`mla::MlaAttention`]; [`mla::MlaValue`]; [`gemm::Gemm`] o_proj -> FP32 |
//! | attention out | [`collective::AllReduce`] -> h, plus h unless the running sum restarts |
//! | every layer | [`mix_norm::MixNorm`] h, blocks -> y; the block saved in this layer included |
//! | dense | [`gemm::Gemm`] y -> SiTU(gate, up) (BF16); [`gemm::Gemm`] down -> FP32 |
//! | MoE | [`gemm::Gemm`] y -> router logits (FP32), z of this rank (FP32), SiTU of the shared experts (BF16); [`collective::AllGather`] -> z; [`moe::MoeRoute`] or [`moe::RouterTopk`], [`moe::MoeGroup`]; [`moe::MoeUp`]; [`moe::MoeDown`]; [`collective::AllReduce`] with the experts' weights -> latent; [`mix_norm::MixNorm`] without blocks; [`gemm::Gemm`] latent up of this rank's columns + shared down -> FP32 |
//! | feed-forward out | [`collective::AllReduce`] + h -> h |
//! | head | [`mix_norm::MixNorm`] of the last token; [`gemm::Gemm`] for 1 token -> logits (FP32); [`head::Sample`] |
//! | end | [`head::Advance`] |

mod arguments;
mod code_object;
pub mod collective;
pub mod embed;
pub mod error_word;
pub mod expert;
pub mod gemm;
pub mod head;
pub mod kda;
pub mod limits;
pub mod mix_norm;
pub mod mla;
pub mod moe;
pub mod project;
pub mod signal;
pub mod step;

pub use arguments::{Arguments, Field, GpuVa, Launch};
pub use code_object::{CODE_OBJECTS, CodeObject, Kernel, kernels};
pub use error_word::{ErrorWord, Failure};
pub use step::{RingEntry, Sampling, Step};
