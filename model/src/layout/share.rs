//! Which part of a tensor a rank keeps.

use std::ops::Range;

use crate::tensor::{ExpertMatrix, LayerTensor as T, ModelTensor, TensorId};

/// Row pitch of inner-axis shards is a multiple of this, in bytes: SDMA sub-window copies and buffer loads work on dwords.
pub const ROW_ALIGN: u64 = 4;

/// The part of a tensor that one rank keeps, in elements of the stored type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it, on every rank.
    Replicated,
    /// Whole rows: a range of the outermost axis.
    Rows(Range<u64>),
    /// A range of every row: the innermost axis.
    Columns(Range<u64>),
}

/// How a tensor is divided, whatever the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Split {
    /// Every rank keeps it.
    Replicate,
    /// Even parts of the rows. `A_log` divides its first `heads` rows only: the rest is zero and kept nowhere.
    Rows,
    /// Even parts of the columns.
    Columns,
}

/// Column-parallel then row-parallel, as in Megatron: what makes heads, MLP channels or latent values is split by
/// output row, what consumes them by input column; what every rank needs whole is replicated.
pub(super) fn split(id: TensorId) -> Split {
    match id {
        TensorId::Model(ModelTensor::EmbedTokens | ModelTensor::LmHead) => Split::Rows,
        TensorId::Model(_) => Split::Replicate,
        TensorId::Expert(tensor) => match tensor.matrix {
            ExpertMatrix::W1 | ExpertMatrix::W3 => Split::Rows,
            ExpertMatrix::W2 => Split::Columns,
        },
        TensorId::Layer(_, tensor) => match tensor {
            T::QProj | T::KProj | T::VProj | T::GProj | T::BProj | T::FBProj | T::DtBias | T::ALog => Split::Rows,
            T::QConv | T::KConv | T::VConv | T::QBProj | T::KvBProj => Split::Rows,
            T::MlpGate | T::MlpUp | T::SharedGate | T::SharedUp | T::LatentDown => Split::Rows,
            T::OProj | T::MlpDown | T::SharedDown | T::LatentUp => Split::Columns,
            T::FAProj | T::ONorm | T::QAProj | T::QALayernorm | T::KvAProj | T::KvALayernorm => Split::Replicate,
            T::Router | T::RouterBias | T::LatentNorm => Split::Replicate,
            T::SelfAttentionResNorm | T::SelfAttentionResProj | T::InputLayernorm => Split::Replicate,
            T::MlpResNorm | T::MlpResProj | T::PostAttentionLayernorm => Split::Replicate,
        },
    }
}
