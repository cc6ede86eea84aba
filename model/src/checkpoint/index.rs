//! `model.safetensors.index.json`: which shard holds which tensor.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use super::header::Name;

/// Name of the index inside a checkpoint folder.
pub const INDEX_FILE: &str = "model.safetensors.index.json";

/// Longest index read, in bytes; the released one has some 60 MB.
pub const INDEX_LIMIT: u64 = 1 << 28;

/// Most tensors of an index, four times what the released one has: some bytes of JSON become many of memory.
const MOST_TENSORS: usize = 1 << 21;

/// Why an index is refused.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file is not a JSON object of the index's form.
    #[error("the index is not valid: {0}")]
    ParseJson(#[from] serde_json::Error),
    /// The name could lead out of the folder or names no safetensors file.
    #[error("the index names shard {name:?}; a shard must be a plain `*.safetensors` file name inside the folder")]
    AcceptShardName {
        /// The name.
        name: String,
    },
    /// A name occurs twice.
    #[error("the index places tensor {name:?} twice")]
    Deduplicate {
        /// The name.
        name: String,
    },
}

/// A verified index. Names borrow from the bytes it was parsed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index<'a> {
    /// Sum of the sizes of all tensors, in bytes.
    pub total_size: u64,
    /// Shard file names, each once.
    pub shards: Vec<Cow<'a, str>>,
    /// Tensor names with the number of their shard in `shards`, sorted by name.
    pub tensors: Vec<(Cow<'a, str>, u16)>,
}

/// Parses and verifies the bytes of an index.
pub fn parse_index(bytes: &[u8]) -> Result<Index<'_>, IndexError> {
    let UnverifiedIndex { metadata, weight_map } = serde_json::from_slice(bytes)?;
    let WeightMap { shards, mut tensors } = weight_map;
    if let Some(name) = shards.iter().find(|name| !is_plain_safetensors_name(name)) {
        return Err(IndexError::AcceptShardName { name: name.to_string() });
    }
    tensors.sort_unstable();
    if let Some(pair) = tensors.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(IndexError::Deduplicate { name: pair[0].0.to_string() });
    }
    Ok(Index { total_size: metadata.total_size, shards, tensors })
}

/// A file of the folder itself: no separator, no `..`, no drive or stream, nothing hidden.
fn is_plain_safetensors_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 255 && name.chars().all(plain) && !name.starts_with('.') && name.ends_with(".safetensors")
}

#[derive(Deserialize)]
struct UnverifiedIndex<'a> {
    metadata: Metadata,
    #[serde(borrow)]
    weight_map: WeightMap<'a>,
}

/// Other keys are allowed: publishers add counts of parameters here.
#[derive(Deserialize)]
struct Metadata {
    total_size: u64,
}

/// Tensors with their shard, every shard name stored once, in order of appearance.
struct WeightMap<'a> {
    shards: Vec<Cow<'a, str>>,
    tensors: Vec<(Cow<'a, str>, u16)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for WeightMap<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = WeightMap<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of tensor names to shard names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut numbers: HashMap<Cow<'de, str>, u16> = HashMap::new();
                let mut tensors = Vec::new();
                while let Some((Name(tensor), Name(shard))) = map.next_entry()? {
                    if tensors.len() == MOST_TENSORS {
                        return Err(A::Error::custom(format_args!("more than {MOST_TENSORS} tensors")));
                    }
                    let next = u16::try_from(numbers.len()).map_err(|_| A::Error::custom("more than 65,536 shards"))?;
                    tensors.push((tensor, *numbers.entry(shard).or_insert(next)));
                }
                let mut shards = vec![Cow::Borrowed(""); numbers.len()];
                for (name, number) in numbers {
                    shards[usize::from(number)] = name;
                }
                Ok(WeightMap { shards, tensors })
            }
        }

        deserializer.deserialize_map(Entries)
    }
}
