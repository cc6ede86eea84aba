//! The models that blocks are measured in: layers of one kind at full width, everything else as small as it gets.

use model::config::{Config, OFFICIAL_CONFIG_JSON, parse};
use serde_json::{Value, json};

use super::{Kind, Width};

/// K3-nano's config, for blocks of its width.
const NANO_CONFIG_JSON: &str = include_str!("../../../../tests/fixtures/k3-nano/config.json");

/// GPUs that the widths are divided by.
const RANKS: usize = 8;
/// The narrowest dense MLP that every kernel takes on each of eight GPUs.
const NARROW_DENSE: usize = 32 * RANKS;
/// Entries of the vocabulary: enough for the ids of the config.
const VOCABULARY: usize = 2048;

/// The whole of K3-nano's config: every kind of block.
#[must_use]
pub fn nano_config() -> Config {
    let config = parse(NANO_CONFIG_JSON.as_bytes()).and_then(|config| config.verify());
    config.expect("the built-in files are fixed and tested")
}

/// The config of `layers` layers whose block of `kind` has the published width.
pub(super) fn config(kind: Kind, width: Width, layers: usize) -> Config {
    let text = match width {
        Width::Official => OFFICIAL_CONFIG_JSON,
        Width::Nano => NANO_CONFIG_JSON,
    };
    let config: Value = serde_json::from_str(text).expect("the built-in files are fixed and tested");
    let numbers: Vec<usize> = (1..=layers).collect();
    let (kda, mla) = if kind == Kind::Mla { (vec![], numbers) } else { (numbers, vec![]) };
    let dense_layers = if kind == Kind::Moe { 0 } else { layers };
    let mut changes = vec![
        ("num_hidden_layers", json!(layers)),
        ("first_k_dense_replace", json!(dense_layers)),
        ("linear_attn_config/kda_layers", json!(kda)),
        ("linear_attn_config/full_attn_layers", json!(mla)),
        ("vocab_size", json!(VOCABULARY)),
    ];
    if matches!(kind, Kind::Dense | Kind::Moe) {
        // One head a GPU.
        changes.push(("linear_attn_config/num_heads", json!(RANKS)));
    }
    if kind != Kind::Dense {
        changes.push(("intermediate_size", json!(NARROW_DENSE)));
    }
    changed(config, changes)
}

/// The smallest config with every kind of block: KDA and a dense MLP, then MLA and experts, as wide as K3-nano.
#[must_use]
pub fn two_layer_config() -> Config {
    let config = serde_json::from_str(NANO_CONFIG_JSON).expect("the built-in files are fixed and tested");
    changed(
        config,
        vec![
            ("num_hidden_layers", json!(2)),
            ("linear_attn_config/kda_layers", json!([1])),
            ("linear_attn_config/full_attn_layers", json!([2])),
            ("vocab_size", json!(VOCABULARY)),
        ],
    )
}

/// `config` with other values in some fields, and the ids of a vocabulary of [`VOCABULARY`] entries.
fn changed(mut config: Value, mut changes: Vec<(&str, Value)>) -> Config {
    for (token, id) in [("bos_token_id", 1792), ("eos_token_id", 1794), ("pad_token_id", 2047)] {
        config[token] = json!(id);
        changes.push((token, json!(id)));
    }
    for (field, value) in changes {
        if let Some(place) = config["text_config"].pointer_mut(&format!("/{field}")) {
            *place = value;
        }
    }
    let config = parse(config.to_string().as_bytes()).and_then(|config| config.verify());
    config.expect("only sizes differ from a config that is valid, and stay within its bounds")
}

#[cfg(test)]
mod tests {
    use model::config::{Attention, FeedForward};

    use super::*;

    #[test]
    fn every_kind_has_its_block_at_the_published_width() {
        let official = Config::official();
        let kda = config(Kind::Kda, Width::Official, 2);
        assert_eq!((kda.layers.len(), &kda.kda), (2, &official.kda));
        let mla = config(Kind::Mla, Width::Official, 1);
        assert_eq!((mla.layers[0].attention, &mla.mla), (Attention::Mla, &official.mla));
        let moe = config(Kind::Moe, Width::Official, 1);
        assert_eq!((moe.layers[0].feed_forward, &moe.moe), (FeedForward::Moe, &official.moe));
        let dense = config(Kind::Dense, Width::Official, 1);
        assert_eq!((dense.layers[0].feed_forward, dense.dense_width), (FeedForward::Dense, official.dense_width));
        for kind in [Kind::Kda, Kind::Mla, Kind::Moe, Kind::Dense] {
            assert_eq!(config(kind, Width::Nano, 1).hidden_size, 256);
        }
    }
}
