//! What a config must say for the forward pass to be Kimi K3's.

use serde_json::{Value, json};

use super::fields::Fields;
use super::{
    A_LOG_ENTRIES, Attention, CONV_TAPS, Config, ConfigError, FeedForward, Kda, Layer, MXFP4_GROUP, Mla, Moe,
    UnverifiedConfig,
};

// Bounds far above the released model (93 layers, 896 experts, 163,840 tokens). They keep every byte count of a
// checkpoint below 2^63: 2^9 layers x 2^12 experts x 3 matrices x 2^40 elements / 2.
const MAX_LAYERS: usize = 1 << 9;
const MAX_EXPERTS: usize = 1 << 12;
const MAX_SIZE: usize = 1 << 20;
/// Tokens that the kernel which draws one can order.
const MAX_VOCABULARY: usize = 1 << 18;
const MAX_CONTEXT: usize = 1 << 24;
/// The released model has -5. In FP32, decays of eight tokens and their reciprocals must be normal numbers: kernels that
/// take the KDA recurrence in blocks multiply one by the other.
const MIN_GATE_LOWER_BOUND: f32 = -10.0;

impl UnverifiedConfig {
    /// Checks every field the forward pass depends on; all wrong ones are named together.
    pub fn verify(&self) -> Result<Config, ConfigError> {
        let mut fields = Fields::new(&self.0);
        check_architecture(&mut fields);
        check_quantization(&mut fields);
        let config = read_sizes(&mut fields);
        fields.finish(config).map_err(ConfigError::Verify)
    }
}

fn check_architecture(f: &mut Fields<'_>) {
    f.is("model_type", "kimi_k3");
    f.is("architectures", json!(["KimiK3ForConditionalGeneration"]));
    f.is("dtype", "bfloat16");
    f.is("tie_word_embeddings", false);
    f.is("text_config.model_type", "kimi_linear");
    f.is("text_config.architectures", json!(["KimiLinearForCausalLM"]));
    f.is_or_unset("text_config.dtype", "bfloat16");
    f.is("text_config.tie_word_embeddings", false);
    f.is("text_config.hidden_act", "situ");
    f.is("text_config.moe_router_activation_func", "sigmoid");
    f.is("text_config.moe_renormalize", true);
    f.is("text_config.moe_layer_freq", 1);
    // One group means no grouping at all.
    f.is("text_config.use_grouped_topk", true);
    f.is("text_config.num_expert_group", 1);
    f.is("text_config.topk_group", 1);
    f.is("text_config.topk_method", "noaux_tc");
    f.is("text_config.latent_moe_use_norm", true);
    f.is("text_config.mla_use_nope", true);
    f.is("text_config.mla_use_output_gate", true);
    f.is_unset("text_config.rope_scaling");
    f.is("text_config.num_nextn_predict_layers", 0);
    f.is("text_config.linear_attn_config.short_conv_kernel_size", CONV_TAPS);
    f.is("text_config.linear_attn_config.use_full_rank_gate", true);
}

fn check_quantization(f: &mut Fields<'_>) {
    // The config class copies the block up; a file may carry either or both, and each must be right.
    let blocks = ["text_config.quantization_config", "quantization_config"];
    for (i, block) in blocks.into_iter().enumerate() {
        if i > 0 && !f.has(block) {
            continue;
        }
        f.is(&format!("{block}.quant_method"), "compressed-tensors");
        f.is(&format!("{block}.format"), "mxfp4-pack-quantized");
        f.is(&format!("{block}.quantization_status"), "compressed");
        f.is_unset(&format!("{block}.kv_cache_scheme"));
        let groups = f.keys(&format!("{block}.config_groups"));
        let [group] = groups[..] else {
            f.complain(&format!("{block}.config_groups"), "exactly one group");
            continue;
        };
        let group = format!("{block}.config_groups.{group}");
        f.is(&format!("{group}.targets"), json!(["Linear"]));
        f.is_unset(&format!("{group}.input_activations"));
        f.is_unset(&format!("{group}.output_activations"));
        let weights: [(&str, Value); 7] = [
            ("num_bits", json!(4)),
            ("type", json!("float")),
            ("strategy", json!("group")),
            ("group_size", json!(MXFP4_GROUP)),
            ("symmetric", json!(true)),
            ("dynamic", json!(false)),
            ("scale_dtype", json!("torch.uint8")),
        ];
        for (key, value) in weights {
            f.is(&format!("{group}.weights.{key}"), value);
        }
        for key in ["zp_dtype", "actorder", "block_structure"] {
            f.is_unset(&format!("{group}.weights.{key}"));
        }
    }
}

fn read_sizes(f: &mut Fields<'_>) -> Config {
    let vocab_size = f.size("text_config.vocab_size", MAX_VOCABULARY);
    let layer_count = f.size("text_config.num_hidden_layers", MAX_LAYERS);
    let moe = read_moe(f);
    let config = Config {
        vocab_size,
        hidden_size: f.size("text_config.hidden_size", MAX_SIZE),
        max_context: f.size("text_config.max_position_embeddings", MAX_CONTEXT),
        rms_norm_eps: f.positive("text_config.rms_norm_eps"),
        situ_beta: f.positive("text_config.activation_situ_beta"),
        situ_linear_beta: f.positive("text_config.activation_situ_linear_beta"),
        attn_res_block_size: f.size("text_config.attn_res_block_size", MAX_LAYERS),
        dense_width: f.size("text_config.intermediate_size", MAX_SIZE),
        layers: read_layers(f, layer_count),
        kda: read_kda(f),
        mla: read_mla(f),
        moe,
        bos_token: f.token("bos_token_id", vocab_size),
        eos_token: f.token("eos_token_id", vocab_size),
        pad_token: f.token("pad_token_id", vocab_size),
    };
    for (key, token) in [("bos", config.bos_token), ("eos", config.eos_token), ("pad", config.pad_token)] {
        f.is_or_unset(&format!("text_config.{key}_token_id"), token);
    }
    config
}

fn read_layers(f: &mut Fields<'_>, count: usize) -> Vec<Layer> {
    let dense_layers = f.integer("text_config.first_k_dense_replace", 0..=count);
    let mut kinds = vec![None; count];
    for (list, kind) in [("kda_layers", Attention::Kda), ("full_attn_layers", Attention::Mla)] {
        let field = format!("text_config.linear_attn_config.{list}");
        let twice = f.one_based(&field, count).into_iter().find(|index| kinds[*index].replace(kind).is_some());
        if let Some(index) = twice {
            f.complain(&field, format_args!("layer {} named once in the two lists", index + 1));
        }
    }
    if kinds.contains(&None) {
        let missing = kinds.iter().enumerate().filter(|(_, kind)| kind.is_none()).map(|(i, _)| (i + 1).to_string());
        let missing = missing.take(8).collect::<Vec<_>>().join(", ");
        f.complain(
            "text_config.linear_attn_config.kda_layers",
            format_args!("layers {missing} in one of the two lists"),
        );
    }
    let feed_forward = |i| if i < dense_layers { FeedForward::Dense } else { FeedForward::Moe };
    let layer = |(i, kind): (usize, Option<Attention>)| Layer {
        attention: kind.unwrap_or(Attention::Kda),
        feed_forward: feed_forward(i),
    };
    kinds.into_iter().enumerate().map(layer).collect()
}

fn read_kda(f: &mut Fields<'_>) -> Kda {
    let heads = f.size("text_config.linear_attn_config.num_heads", A_LOG_ENTRIES as usize);
    Kda {
        heads,
        head_dim: f.size("text_config.linear_attn_config.head_dim", MAX_SIZE / heads),
        gate_lower_bound: f.number(
            "text_config.linear_attn_config.gate_lower_bound",
            "a number from -10 to below 0",
            |n| (MIN_GATE_LOWER_BOUND..0.0).contains(&n),
        ),
    }
}

fn read_mla(f: &mut Fields<'_>) -> Mla {
    let heads = f.size("text_config.num_attention_heads", 1 << 10);
    // Every head has its own key and value inside kv_b.
    f.is("text_config.num_key_value_heads", heads);
    let per_head = (MAX_SIZE / heads / 2).max(1);
    Mla {
        heads,
        q_rank: f.size("text_config.q_lora_rank", MAX_SIZE),
        kv_rank: f.size("text_config.kv_lora_rank", MAX_SIZE / 2),
        nope_dim: f.size("text_config.qk_nope_head_dim", per_head),
        rope_dim: f.size("text_config.qk_rope_head_dim", per_head),
        v_dim: f.size("text_config.v_head_dim", per_head),
    }
}

fn read_moe(f: &mut Fields<'_>) -> Moe {
    let experts = f.size("text_config.num_experts", MAX_EXPERTS);
    let expert_width = f.size("text_config.moe_intermediate_size", MAX_SIZE);
    let latent_size = f.size("text_config.routed_expert_hidden_size", MAX_SIZE);
    for (field, size) in [("moe_intermediate_size", expert_width), ("routed_expert_hidden_size", latent_size)] {
        if !size.is_multiple_of(MXFP4_GROUP) {
            f.complain(&format!("text_config.{field}"), format_args!("a multiple of {MXFP4_GROUP} (one MXFP4 scale)"));
        }
    }
    Moe {
        experts,
        experts_per_token: f.size("text_config.num_experts_per_token", experts),
        expert_width,
        latent_size,
        shared_width: f.size("text_config.num_shared_experts", MAX_SIZE / expert_width) * expert_width,
        routed_scaling_factor: f.positive("text_config.routed_scaling_factor"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OFFICIAL_CONFIG_JSON, parse};
    use super::*;

    const NANO: &str = include_str!("../../../tests/fixtures/k3-nano/config.json");

    fn with(json: &str, changes: &[(&str, Value)]) -> Result<Config, ConfigError> {
        let mut value: Value = serde_json::from_str(json).unwrap();
        for (path, new) in changes {
            *value.pointer_mut(path).unwrap() = new.clone();
        }
        parse(value.to_string().as_bytes()).unwrap().verify()
    }

    fn wrong_fields(changes: &[(&str, Value)]) -> Vec<super::super::WrongField> {
        match with(NANO, changes) {
            Err(ConfigError::Verify(wrong)) => wrong.0,
            other => panic!("expected wrong fields, got {other:?}"),
        }
    }

    #[test]
    fn the_official_config_verifies_with_69_kda_and_24_mla_layers() {
        let config = with(OFFICIAL_CONFIG_JSON, &[]).unwrap();
        let mla: Vec<_> = (0..93).filter(|&i| config.layers[i].attention == Attention::Mla).collect();
        assert_eq!(mla.len(), 24);
        assert_eq!((mla[0], mla[1], mla[22], mla[23]), (3, 7, 91, 92));
        let dense: Vec<_> = (0..93).filter(|&i| config.layers[i].feed_forward == FeedForward::Dense).collect();
        assert_eq!(dense, [0]);
        assert_eq!(config.moe.shared_width, 6144);
        assert_eq!((0..93).filter(|&i| config.restarts_residual(i)).count(), 8);
        assert_eq!(config.eos_token, 163586);
    }

    #[test]
    fn k3_nano_verifies_with_its_own_sizes() {
        let config = with(NANO, &[]).unwrap();
        let kinds: Vec<_> = config.layers.iter().map(|layer| layer.attention).collect();
        assert_eq!(kinds, [Attention::Kda, Attention::Kda, Attention::Kda, Attention::Mla, Attention::Mla]);
        assert_eq!((config.hidden_size, config.vocab_size, config.moe.latent_size), (256, 1536, 128));
        assert_eq!(config.rms_norm_eps, 1e-5);
    }

    #[test]
    fn every_wrong_field_is_named_with_what_was_expected_and_found() {
        let wrong = wrong_fields(&[
            ("/text_config/hidden_act", json!("silu")),
            ("/text_config/mla_use_nope", json!(false)),
            ("/text_config/quantization_config/config_groups/group_0/weights/group_size", json!(16)),
            ("/text_config/num_experts", json!(-1)),
        ]);
        let names: Vec<_> = wrong.iter().map(|w| w.field.as_str()).collect();
        assert_eq!(
            names,
            [
                "text_config.hidden_act",
                "text_config.mla_use_nope",
                "text_config.quantization_config.config_groups.group_0.weights.group_size",
                "text_config.num_experts",
                "text_config.num_experts_per_token",
            ]
        );
        assert_eq!((wrong[0].expected.as_str(), wrong[0].found.as_str()), ("\"situ\"", "\"silu\""));
    }

    #[test]
    fn gates_may_reach_down_to_ten_below_zero() {
        let bound = "/text_config/linear_attn_config/gate_lower_bound";
        assert_eq!(with(NANO, &[(bound, json!(-10.0))]).unwrap().kda.gate_lower_bound, -10.0);
        for refused in [-10.5, 0.0, 1.0] {
            assert_eq!(wrong_fields(&[(bound, json!(refused))])[0].expected, "a number from -10 to below 0");
        }
    }

    #[test]
    fn each_architecture_flag_is_refused_when_it_differs() {
        let text: Value = serde_json::from_str(NANO).unwrap();
        let mut checked = 0;
        for (key, value) in text["text_config"].as_object().unwrap() {
            let other = match value {
                Value::Bool(b) => json!(!b),
                Value::String(s) => json!(format!("{s}x")),
                _ => continue,
            };
            let path = format!("/text_config/{key}");
            assert_eq!(wrong_fields(&[(&path, other)]).len(), 1, "{key}");
            checked += 1;
        }
        assert!(checked >= 10);
    }

    #[test]
    fn a_config_that_quantizes_activations_is_refused() {
        let path = "/text_config/quantization_config/config_groups/group_0/input_activations";
        assert_eq!(wrong_fields(&[(path, json!({"num_bits": 8}))]).len(), 1);
    }

    #[test]
    fn a_layer_in_both_lists_or_in_none_is_refused() {
        let kda = "/text_config/linear_attn_config/kda_layers";
        assert!(wrong_fields(&[(kda, json!([1, 2, 3, 4]))])[0].expected.contains("layer 4 named once"));
        assert!(wrong_fields(&[(kda, json!([1, 3]))])[0].expected.contains("layers 2"));
        assert_eq!(wrong_fields(&[(kda, json!([0, 1, 2, 3]))])[0].expected, "a list of layer numbers of 1 to 5");
    }

    #[test]
    fn a_config_of_another_model_gets_an_error_not_a_panic() {
        for text in ["{}", "[]", "null", "1", r#"{"text_config":[]}"#, r#"{"text_config":{"num_hidden_layers":1e99}}"#]
        {
            assert!(matches!(parse(text.as_bytes()).unwrap().verify(), Err(ConfigError::Verify(_))), "{text}");
        }
    }

    #[test]
    fn a_depth_bomb_is_a_parse_error() {
        let bomb = "[".repeat(1 << 20);
        assert!(matches!(parse(bomb.as_bytes()), Err(ConfigError::Parse { .. })));
    }
}
