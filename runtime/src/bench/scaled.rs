//! A config with the matrices of the released model, but fewer of them: reads and copies of the same shapes, in a
//! checkpoint of a few gigabytes.

use model::checkpoint::{Vision, published_shards};
use model::config::{OFFICIAL_CONFIG_JSON, parse};
use serde_json::{Value, json};

/// Experts are added in steps of this many.
const STEP: u64 = 8;
/// Fewest experts: as many as a token is given.
const FEWEST: u64 = 16;

/// The JSON of a config whose checkpoint has at least `bytes` bytes: four layers of every kind, 8 heads, and as many
/// experts as it takes.
pub(super) fn config_json(bytes: u64) -> String {
    let size = |experts| {
        let config = parse(config(experts).to_string().as_bytes()).and_then(|config| config.verify());
        let config = config.expect("only sizes differ from the official config, and stay within its bounds");
        published_shards(&config, Vision::Absent).map(|shard| shard.data_len).sum::<u64>()
    };
    let (fewest, step) = (size(FEWEST), size(FEWEST + STEP) - size(FEWEST));
    let steps = bytes.saturating_sub(fewest).div_ceil(step);
    config((FEWEST + steps * STEP).min(MOST)).to_string()
}

/// Most experts that a config may have.
const MOST: u64 = 4096;

fn config(experts: u64) -> Value {
    let mut config: Value = serde_json::from_str(OFFICIAL_CONFIG_JSON).expect("the built-in file is fixed and tested");
    let changes = [
        ("/bos_token_id", json!(16128)),
        ("/eos_token_id", json!(16130)),
        ("/pad_token_id", json!(16383)),
        ("/text_config/bos_token_id", json!(16128)),
        ("/text_config/eos_token_id", json!(16130)),
        ("/text_config/pad_token_id", json!(16383)),
        ("/text_config/vocab_size", json!(16384)),
        ("/text_config/intermediate_size", json!(3072)),
        ("/text_config/num_hidden_layers", json!(4)),
        ("/text_config/num_attention_heads", json!(8)),
        ("/text_config/num_key_value_heads", json!(8)),
        ("/text_config/num_experts", json!(experts)),
        ("/text_config/linear_attn_config/num_heads", json!(8)),
        ("/text_config/linear_attn_config/kda_layers", json!([1, 2, 3])),
        ("/text_config/linear_attn_config/full_attn_layers", json!([4])),
    ];
    for (field, value) in changes {
        if let Some(place) = config.pointer_mut(field) {
            *place = value;
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checkpoint_has_at_least_the_bytes_asked_for_and_hardly_more() {
        for bytes in [0, 4 << 30, 10_u64 << 30] {
            let config = parse(config_json(bytes).as_bytes()).unwrap().verify().unwrap();
            let size: u64 = published_shards(&config, Vision::Absent).map(|shard| shard.data_len).sum();
            assert!(size >= bytes && size < bytes.max(3 << 30) + (1 << 30), "{bytes}: {size}");
        }
    }
}
