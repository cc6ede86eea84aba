//! Which tensor: a 6-byte id, and the name it has in the files.

use std::fmt;
use std::str::FromStr;

/// Prefix of every text tensor's name; what has another prefix belongs to the vision half.
pub const TEXT_PREFIX: &str = "language_model.";

/// Declares a fieldless enum whose variants have names in the checkpoint.
macro_rules! named {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $enum { $($(#[$variant_doc])* $variant,)* }

        impl $enum {
            /// The name's last part, as in the files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

named! {
    /// A tensor the model has once. H is the hidden size, V the vocabulary.
    ModelTensor {
        /// V x H.
        EmbedTokens = "model.embed_tokens.weight",
        /// H: scales of the scores of the last residual mix.
        OutputAttnResNorm = "model.output_attn_res_norm.weight",
        /// 1 x H: projects those scores.
        OutputAttnResProj = "model.output_attn_res_proj.weight",
        /// H: the final norm.
        Norm = "model.norm.weight",
        /// V x H.
        LmHead = "lm_head.weight",
    }
}

named! {
    /// A tensor that a layer has at most once, routed experts apart.
    LayerTensor {
        /// Score norm of the residual mix before attention.
        SelfAttentionResNorm = "self_attention_res_norm.weight",
        /// Score projection of the residual mix before attention.
        SelfAttentionResProj = "self_attention_res_proj.weight",
        /// Norm of the attention input.
        InputLayernorm = "input_layernorm.weight",
        /// Score norm of the residual mix before the feed-forward block.
        MlpResNorm = "mlp_res_norm.weight",
        /// Score projection of the residual mix before the feed-forward block.
        MlpResProj = "mlp_res_proj.weight",
        /// Norm of the feed-forward input.
        PostAttentionLayernorm = "post_attention_layernorm.weight",

        /// KDA query projection.
        QProj = "self_attn.q_proj.weight",
        /// KDA key projection.
        KProj = "self_attn.k_proj.weight",
        /// KDA value projection.
        VProj = "self_attn.v_proj.weight",
        /// Output gate projection, of KDA and of MLA.
        GProj = "self_attn.g_proj.weight",
        /// KDA decay projection, first (low-rank) half.
        FAProj = "self_attn.f_a_proj.weight",
        /// KDA write strength (beta) projection.
        BProj = "self_attn.b_proj.weight",
        /// KDA decay projection, second half.
        FBProj = "self_attn.f_b_proj.weight",
        /// KDA decay bias, one value per head and channel.
        DtBias = "self_attn.dt_bias",
        /// KDA log decay scale: one value per head, zero-padded to [`crate::config::A_LOG_ENTRIES`].
        ALog = "self_attn.A_log",
        /// Convolution taps of q.
        QConv = "self_attn.q_conv1d.weight",
        /// Convolution taps of k.
        KConv = "self_attn.k_conv1d.weight",
        /// Convolution taps of v.
        VConv = "self_attn.v_conv1d.weight",
        /// KDA output norm, shared by the heads.
        ONorm = "self_attn.o_norm.weight",
        /// Output projection, of KDA and of MLA.
        OProj = "self_attn.o_proj.weight",

        /// MLA query, first (low-rank) half.
        QAProj = "self_attn.q_a_proj.weight",
        /// MLA latent and shared key.
        KvAProj = "self_attn.kv_a_proj_with_mqa.weight",
        /// Norm of the low-rank query.
        QALayernorm = "self_attn.q_a_layernorm.weight",
        /// MLA query, second half.
        QBProj = "self_attn.q_b_proj.weight",
        /// Norm of the latent.
        KvALayernorm = "self_attn.kv_a_layernorm.weight",
        /// Per head: rows that make the key from the latent, then rows that make the value.
        KvBProj = "self_attn.kv_b_proj.weight",

        /// Dense MLP gate.
        MlpGate = "mlp.gate_proj.weight",
        /// Dense MLP up.
        MlpUp = "mlp.up_proj.weight",
        /// Dense MLP down.
        MlpDown = "mlp.down_proj.weight",

        /// Router.
        Router = "block_sparse_moe.gate.weight",
        /// Hidden to latent.
        LatentDown = "block_sparse_moe.routed_expert_down_proj.weight",
        /// Gate of the fused shared experts.
        SharedGate = "block_sparse_moe.shared_experts.gate_proj.weight",
        /// Up of the fused shared experts.
        SharedUp = "block_sparse_moe.shared_experts.up_proj.weight",
        /// Bias that steers the choice of experts, not their weight.
        RouterBias = "block_sparse_moe.gate.e_score_correction_bias",
        /// Norm of the combined latent.
        LatentNorm = "block_sparse_moe.routed_expert_norm.weight",
        /// Latent to hidden.
        LatentUp = "block_sparse_moe.routed_expert_up_proj.weight",
        /// Down of the fused shared experts.
        SharedDown = "block_sparse_moe.shared_experts.down_proj.weight",
    }
}

named! {
    /// A matrix of a routed expert.
    ExpertMatrix {
        /// Gate: latent to expert width.
        W1 = "w1",
        /// Down: expert width to latent.
        W2 = "w2",
        /// Up: latent to expert width.
        W3 = "w3",
    }
}

named! {
    /// The two tensors an MXFP4 matrix is stored as.
    ExpertPart {
        /// E2M1 nibbles, two a byte, the even element low.
        Packed = "weight_packed",
        /// E8M0 scales, one per group of 32 elements of a row.
        Scale = "weight_scale",
    }
}

/// One of the six tensors of a routed expert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpertTensor {
    /// Zero-based layer.
    pub layer: u16,
    /// Zero-based expert.
    pub expert: u16,
    /// Which matrix.
    pub matrix: ExpertMatrix,
    /// Its nibbles or its scales.
    pub part: ExpertPart,
}

impl ExpertTensor {
    /// The six tensors of one expert, in the order of the files.
    pub fn of_expert(layer: u16, expert: u16) -> impl Iterator<Item = Self> {
        use ExpertMatrix::{W1, W2, W3};
        [W1, W2, W3].into_iter().flat_map(move |matrix| {
            [ExpertPart::Packed, ExpertPart::Scale].map(|part| Self { layer, expert, matrix, part })
        })
    }
}

/// Any tensor of the text model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorId {
    /// Outside the layers.
    Model(ModelTensor),
    /// Of the layer with this zero-based index.
    Layer(u16, LayerTensor),
    /// Of a routed expert.
    Expert(ExpertTensor),
}

impl fmt::Display for TensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TEXT_PREFIX)?;
        match self {
            Self::Model(tensor) => f.write_str(tensor.name()),
            Self::Layer(layer, tensor) => write!(f, "model.layers.{layer}.{}", tensor.name()),
            Self::Expert(ExpertTensor { layer, expert, matrix, part }) => {
                let (matrix, part) = (matrix.name(), part.name());
                write!(f, "model.layers.{layer}.block_sparse_moe.experts.{expert}.{matrix}.{part}")
            }
        }
    }
}

/// The name is not one a Kimi K3 text tensor can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownName;

impl FromStr for TensorId {
    type Err = UnknownName;

    /// Parses a full name. The numbers may be out of the model's range: [`super::Inventory::index`] tells.
    fn from_str(name: &str) -> Result<Self, UnknownName> {
        parse(name).ok_or(UnknownName)
    }
}

fn parse(name: &str) -> Option<TensorId> {
    let name = name.strip_prefix(TEXT_PREFIX)?;
    let Some(rest) = name.strip_prefix("model.layers.") else {
        return ModelTensor::parse(name).map(TensorId::Model);
    };
    let (layer, rest) = rest.split_once('.')?;
    let layer = number(layer)?;
    let Some(rest) = rest.strip_prefix("block_sparse_moe.experts.") else {
        return LayerTensor::parse(rest).map(|tensor| TensorId::Layer(layer, tensor));
    };
    let (expert, rest) = rest.split_once('.')?;
    let (matrix, part) = rest.split_once('.')?;
    Some(TensorId::Expert(ExpertTensor {
        layer,
        expert: number(expert)?,
        matrix: ExpertMatrix::parse(matrix)?,
        part: ExpertPart::parse(part)?,
    }))
}

/// A decimal in its only spelling: `07` or `+7` would give one tensor two names.
fn number(digits: &str) -> Option<u16> {
    let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if canonical { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_id_takes_six_bytes() {
        assert_eq!(size_of::<TensorId>(), 6);
    }

    #[test]
    fn a_name_has_one_spelling() {
        let name = "language_model.model.layers.7.block_sparse_moe.experts.10.w1.weight_packed";
        let id: TensorId = name.parse().unwrap();
        assert_eq!(id.to_string(), name);
        for other in [
            name.replace(".7.", ".07."),
            name.replace(".7.", ".+7."),
            name.replace(".10.", ".65536."),
            name.replace(".10.", ".."),
            name.replace("w1", "w4"),
            name.replace("language_model.", ""),
            format!("{name} "),
        ] {
            assert_eq!(other.parse::<TensorId>(), Err(UnknownName), "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_name_that_parses_is_printed_back_unchanged(tail in "(model\\.layers\\.[0-9]{0,6}\\.|)[a-z_.0-9]{0,40}") {
            let name = format!("{TEXT_PREFIX}{tail}");
            if let Ok(id) = name.parse::<TensorId>() {
                prop_assert_eq!(id.to_string(), name);
            }
        }
    }
}
