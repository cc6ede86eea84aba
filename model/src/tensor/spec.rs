//! Element types, shapes, and what the config says each tensor must be.

use std::fmt;

use super::{ExpertMatrix, ExpertPart, ExpertTensor, LayerTensor, ModelTensor};
use crate::config::{A_LOG_ENTRIES, CONV_TAPS, Config, MXFP4_GROUP};

/// Declares the element types of the safetensors format with their names and widths in bits.
macro_rules! dtypes {
    ($($name:ident = $bits:literal,)*) => {
        /// Element type of a safetensors tensor, under the format's own name.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
        pub enum Dtype { $(#[allow(missing_docs)] $name,)* }

        impl Dtype {
            /// Every element type of the format.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Width of one element in bits.
            pub const fn bits(self) -> u64 {
                match self { $(Self::$name => $bits,)* }
            }

            /// Name in the files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

dtypes! {
    BOOL = 8, F4 = 4, F6_E2M3 = 6, F6_E3M2 = 6, U8 = 8, I8 = 8, F8_E5M2 = 8, F8_E4M3 = 8, F8_E8M0 = 8,
    F8_E4M3FNUZ = 8, F8_E5M2FNUZ = 8, I16 = 16, U16 = 16, F16 = 16, BF16 = 16, I32 = 32, U32 = 32, F32 = 32,
    C64 = 64, F64 = 64, I64 = 64, U64 = 64,
}

/// Dimensions of a text tensor, outermost first: one to three of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [u64; 3],
    rank: u8,
}

impl Shape {
    const fn d1(a: u64) -> Self {
        Self { dims: [a, 1, 1], rank: 1 }
    }

    const fn d2(a: u64, b: u64) -> Self {
        Self { dims: [a, b, 1], rank: 2 }
    }

    const fn d3(a: u64, b: u64, c: u64) -> Self {
        Self { dims: [a, b, c], rank: 3 }
    }

    /// The dimensions.
    pub fn dims(&self) -> &[u64] {
        &self.dims[..usize::from(self.rank)]
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dims().fmt(f)
    }
}

/// Element type and shape of one tensor.
///
/// Every tensor is also a matrix of `rows` x `columns`: the outermost dimension, and all others together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions.
    pub shape: Shape,
}

impl TensorSpec {
    /// Outermost dimension.
    pub fn rows(&self) -> u64 {
        self.shape.dims[0]
    }

    /// Elements per row.
    pub fn columns(&self) -> u64 {
        self.shape.dims[1] * self.shape.dims[2]
    }

    /// Bytes per element; the text model has no sub-byte type (MXFP4 is stored as U8).
    pub fn element_bytes(&self) -> u64 {
        self.dtype.bits() / 8
    }

    /// Bytes per row.
    pub fn row_bytes(&self) -> u64 {
        self.columns() * self.element_bytes()
    }

    /// Bytes of the tensor. Cannot overflow: the config's bounds keep it below 2^48.
    pub fn bytes(&self) -> u64 {
        self.rows() * self.row_bytes()
    }

    fn bf16(shape: Shape) -> Self {
        Self { dtype: Dtype::BF16, shape }
    }

    fn f32(shape: Shape) -> Self {
        Self { dtype: Dtype::F32, shape }
    }

    pub(super) fn of_model(config: &Config, tensor: ModelTensor) -> Self {
        let (vocab, hidden) = (config.vocab_size as u64, config.hidden_size as u64);
        Self::bf16(match tensor {
            ModelTensor::EmbedTokens | ModelTensor::LmHead => Shape::d2(vocab, hidden),
            ModelTensor::Norm | ModelTensor::OutputAttnResNorm => Shape::d1(hidden),
            ModelTensor::OutputAttnResProj => Shape::d2(1, hidden),
        })
    }

    /// `mixer_width`, the columns of o_proj and rows of g_proj, depends on the kind of layer.
    pub(super) fn of_layer(config: &Config, tensor: LayerTensor, mixer_width: u64) -> Self {
        use LayerTensor as T;
        let hidden = config.hidden_size as u64;
        let (kda_heads, head_dim) = (config.kda.heads as u64, config.kda.head_dim as u64);
        let kda_width = kda_heads * head_dim;
        let mla = &config.mla;
        let (mla_heads, q_rank, kv_rank) = (mla.heads as u64, mla.q_rank as u64, mla.kv_rank as u64);
        let (nope, rope, v) = (mla.nope_dim as u64, mla.rope_dim as u64, mla.v_dim as u64);
        let (dense, shared) = (config.dense_width as u64, config.moe.shared_width as u64);
        let (experts, latent) = (config.moe.experts as u64, config.moe.latent_size as u64);
        match tensor {
            T::SelfAttentionResNorm | T::InputLayernorm | T::MlpResNorm | T::PostAttentionLayernorm => {
                Self::bf16(Shape::d1(hidden))
            }
            T::SelfAttentionResProj | T::MlpResProj => Self::bf16(Shape::d2(1, hidden)),

            T::QProj | T::KProj | T::VProj => Self::bf16(Shape::d2(kda_width, hidden)),
            T::FAProj => Self::bf16(Shape::d2(head_dim, hidden)),
            T::FBProj => Self::bf16(Shape::d2(kda_width, head_dim)),
            T::BProj => Self::bf16(Shape::d2(kda_heads, hidden)),
            T::DtBias => Self::f32(Shape::d1(kda_width)),
            T::ALog => Self::f32(Shape::d1(A_LOG_ENTRIES)),
            T::QConv | T::KConv | T::VConv => Self::f32(Shape::d3(kda_width, 1, CONV_TAPS as u64)),
            T::ONorm => Self::f32(Shape::d1(head_dim)),

            T::QAProj => Self::bf16(Shape::d2(q_rank, hidden)),
            T::QALayernorm => Self::bf16(Shape::d1(q_rank)),
            T::QBProj => Self::bf16(Shape::d2(mla_heads * (nope + rope), q_rank)),
            T::KvAProj => Self::bf16(Shape::d2(kv_rank + rope, hidden)),
            T::KvALayernorm => Self::bf16(Shape::d1(kv_rank)),
            T::KvBProj => Self::bf16(Shape::d2(mla_heads * (nope + v), kv_rank)),

            T::GProj => Self::bf16(Shape::d2(mixer_width, hidden)),
            T::OProj => Self::bf16(Shape::d2(hidden, mixer_width)),

            T::MlpGate | T::MlpUp => Self::bf16(Shape::d2(dense, hidden)),
            T::MlpDown => Self::bf16(Shape::d2(hidden, dense)),

            T::Router => Self::bf16(Shape::d2(experts, hidden)),
            T::RouterBias => Self::f32(Shape::d1(experts)),
            T::LatentDown => Self::bf16(Shape::d2(latent, hidden)),
            T::LatentNorm => Self::bf16(Shape::d1(latent)),
            T::LatentUp => Self::bf16(Shape::d2(hidden, latent)),
            T::SharedGate | T::SharedUp => Self::bf16(Shape::d2(shared, hidden)),
            T::SharedDown => Self::bf16(Shape::d2(hidden, shared)),
        }
    }

    pub(super) fn of_expert(config: &Config, tensor: ExpertTensor) -> Self {
        let (width, latent) = (config.moe.expert_width as u64, config.moe.latent_size as u64);
        let (rows, inputs) = match tensor.matrix {
            ExpertMatrix::W1 | ExpertMatrix::W3 => (width, latent),
            ExpertMatrix::W2 => (latent, width),
        };
        let columns = match tensor.part {
            ExpertPart::Packed => inputs / 2,
            ExpertPart::Scale => inputs / MXFP4_GROUP as u64,
        };
        Self { dtype: Dtype::U8, shape: Shape::d2(rows, columns) }
    }
}
