//! `generation_config.json`: when to stop, and the sampling the publisher suggests.

use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use super::{CONFIG_FILE_LIMIT, ConfigError};

/// The parts of `generation_config.json` that generation uses; all optional in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationConfig {
    /// Tokens that end generation.
    pub eos_tokens: Vec<u32>,
    /// Suggested temperature.
    pub temperature: Option<f32>,
    /// Suggested nucleus mass.
    pub top_p: Option<f32>,
    /// Suggested number of candidates.
    pub top_k: Option<usize>,
}

#[derive(Deserialize)]
struct File {
    eos_token_id: Option<OneOrMany>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    top_k: Option<usize>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(u32),
    Many(Vec<u32>),
}

impl GenerationConfig {
    /// Reads `generation_config.json` of a checkpoint folder; nothing is suggested if there is none.
    pub fn read(folder: &Path) -> Result<Self, ConfigError> {
        let path = folder.join("generation_config.json");
        match crate::file::read(&path, CONFIG_FILE_LIMIT) {
            Ok(bytes) => parse_generation_config(&bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(ConfigError::Read { path, source }),
        }
    }
}

/// Parses the bytes of a `generation_config.json`.
pub fn parse_generation_config(bytes: &[u8]) -> Result<GenerationConfig, ConfigError> {
    let file: File = serde_json::from_slice(bytes).map_err(|source| ConfigError::Parse { source })?;
    let eos_tokens = match file.eos_token_id {
        None => Vec::new(),
        Some(OneOrMany::One(token)) => vec![token],
        Some(OneOrMany::Many(tokens)) => tokens,
    };
    Ok(GenerationConfig { eos_tokens, temperature: file.temperature, top_p: file.top_p, top_k: file.top_k })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_stop_token_or_a_list_of_them_is_read() {
        let nano = include_bytes!("../../../tests/fixtures/k3-nano/generation_config.json");
        assert_eq!(parse_generation_config(nano).unwrap().eos_tokens, [1282]);
        let list = parse_generation_config(br#"{"eos_token_id":[1,2],"top_p":0.95}"#).unwrap();
        assert_eq!((list.eos_tokens, list.top_p), (vec![1, 2], Some(0.95)));
        assert!(parse_generation_config(br#"{"eos_token_id":-1}"#).is_err());
    }
}
