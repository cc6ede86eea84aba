//! The 256 control ids behind the ordinary ones.

use std::collections::HashMap;

use serde::Deserialize;

use super::{Token, TokenizerError};

/// Number of control ids.
pub const CONTROL_TOKENS: u32 = 256;

/// Name of the token that ends a plain document.
pub(super) const END_OF_DOCUMENT: &str = "[EOS]";

/// The four control tokens of the chat format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marker {
    /// Begins an opening tag.
    Open,
    /// Begins a closing tag.
    Close,
    /// Ends a tag.
    Sep,
    /// Ends a message; generation stops here.
    EndOfMessage,
}

impl Marker {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Open, Self::Close, Self::Sep, Self::EndOfMessage];

    /// Name in the vocabulary.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "<|open|>",
            Self::Close => "<|close|>",
            Self::Sep => "<|sep|>",
            Self::EndOfMessage => "<|end_of_msg|>",
        }
    }
}

/// Names and ids of the control tokens.
#[derive(Debug)]
pub struct ControlTokens {
    /// Id of the first one: the number of ordinary tokens.
    base: u32,
    names: Vec<String>,
    ids: HashMap<String, u32>,
    markers: [u32; 4],
    end_of_document: u32,
}

impl ControlTokens {
    /// Id of a marker.
    pub fn marker(&self, marker: Marker) -> u32 {
        self.markers[marker as usize]
    }

    /// Id of a token by its full name.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// What a control id stands for; `None` for other ids.
    pub fn token(&self, id: u32) -> Option<Token<'_>> {
        let name = self.names.get(id.checked_sub(self.base)? as usize)?;
        Some(match Marker::ALL.into_iter().find(|marker| self.marker(*marker) == id) {
            Some(marker) => Token::Marker(marker),
            None if id == self.end_of_document => Token::EndOfDocument,
            None => Token::Control(name),
        })
    }
}

#[derive(Deserialize)]
struct File {
    added_tokens_decoder: HashMap<String, AddedToken>,
}

#[derive(Deserialize)]
struct AddedToken {
    content: String,
}

/// Parses the bytes of a `tokenizer_config.json` for a vocabulary of `base` ordinary tokens. Ids it does not name are
/// `<|reserved_token_ID|>`.
pub fn parse_tokenizer_config(bytes: &[u8], base: u32) -> Result<ControlTokens, TokenizerError> {
    let file: File = serde_json::from_slice(bytes)?;
    let mut names: Vec<String> = (0..CONTROL_TOKENS).map(|i| format!("<|reserved_token_{}|>", base + i)).collect();
    for (id, AddedToken { content: name }) in file.added_tokens_decoder {
        let number = id.parse::<u32>().ok().and_then(|id| id.checked_sub(base)).filter(|i| *i < CONTROL_TOKENS);
        let Some(number) = number else {
            let problem = "the id is none of the 256 behind the vocabulary";
            return Err(TokenizerError::PlaceControl { id, name, problem });
        };
        names[number as usize] = name;
    }
    let mut ids = HashMap::new();
    for (name, id) in names.iter().zip(base..) {
        if name.is_empty() || ids.insert(name.clone(), id).is_some() {
            let problem = if name.is_empty() { "the name is empty" } else { "another token has the same name" };
            return Err(TokenizerError::PlaceControl { id: id.to_string(), name: name.clone(), problem });
        }
    }
    let find = |name: &'static str| ids.get(name).copied().ok_or(TokenizerError::FindControl { name });
    let mut markers = [0; 4];
    for marker in Marker::ALL {
        markers[marker as usize] = find(marker.name())?;
    }
    let end_of_document = find(END_OF_DOCUMENT)?;
    Ok(ControlTokens { base, names, ids, markers, end_of_document })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NANO: &[u8] = include_bytes!("../../../tests/fixtures/k3-nano/tokenizer_config.json");

    fn with(tokens: &[(&str, &str)]) -> Result<ControlTokens, TokenizerError> {
        let mut file: serde_json::Value = serde_json::from_slice(NANO).unwrap();
        for (id, name) in tokens {
            file["added_tokens_decoder"][*id] = serde_json::json!({ "content": name });
        }
        parse_tokenizer_config(file.to_string().as_bytes(), 1280)
    }

    #[test]
    fn named_ids_keep_their_names_and_the_others_are_reserved() {
        let control = with(&[]).unwrap();
        assert_eq!(control.marker(Marker::Open), 1283);
        assert_eq!(control.token(1282), Some(Token::Marker(Marker::EndOfMessage)));
        assert_eq!(control.token(1281), Some(Token::EndOfDocument));
        assert_eq!(control.token(1280), Some(Token::Control("[BOS]")));
        assert_eq!(control.token(1288), Some(Token::Control("<|reserved_token_1288|>")));
        assert_eq!((control.token(1279), control.token(1536)), (None, None));
        assert_eq!(control.id("<osagent_mode>"), Some(1345));
    }

    #[test]
    fn ids_outside_the_block_and_names_used_twice_or_missing_are_refused() {
        for (id, name) in [("1279", "x"), ("1536", "x"), ("-1", "x"), ("x", "x"), ("1290", "<|open|>"), ("1290", "")] {
            assert!(matches!(with(&[(id, name)]), Err(TokenizerError::PlaceControl { .. })), "{id} {name}");
        }
        let renamed = with(&[("1285", "<|separator|>")]);
        assert!(matches!(renamed, Err(TokenizerError::FindControl { name: "<|sep|>" })));
        assert!(matches!(parse_tokenizer_config(b"{}", 1280), Err(TokenizerError::ParseConfig(_))));
    }
}
