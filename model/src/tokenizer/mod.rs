//! The tokenizer: byte-level BPE over `tiktoken.model`, then 256 control ids.
//!
//! Text is encoded without any matching of control tokens, so nothing a user types can become one; control tokens enter
//! a prompt only through [`Tokenizer::marker`].

mod bpe;
mod control;
mod pretoken;
mod utf8;
mod vocabulary;

use std::path::{Path, PathBuf};

pub use control::{CONTROL_TOKENS, ControlTokens, Marker, parse_tokenizer_config};
pub use pretoken::PreTokenizer;
pub use utf8::Utf8Stream;
pub use vocabulary::{Vocabulary, parse_tiktoken};

use crate::config::Config;

/// Longest `tiktoken.model` read, in bytes; the released one has some 3 MB.
const VOCABULARY_LIMIT: u64 = 1 << 26;
/// Longest `tokenizer_config.json` read, in bytes.
const TOKENIZER_CONFIG_LIMIT: u64 = 1 << 20;

/// Why a tokenizer cannot be made, or a token not be decoded.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// A file could not be read.
    #[error("cannot read {}: {source}; name a folder that holds a published Kimi K3 checkpoint", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line of the vocabulary is not base64, a space, and the next rank.
    #[error("tiktoken.model line {line}: {problem}")]
    ParseVocabulary {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Some byte has no token of its own, so some text could not be encoded.
    #[error("tiktoken.model has no token for the single byte {byte:#04x}")]
    CoverBytes {
        /// The byte.
        byte: u8,
    },
    /// `tokenizer_config.json` is not JSON of its form.
    #[error("tokenizer_config.json is not valid: {0}")]
    ParseConfig(#[from] serde_json::Error),
    /// A control token's id or name cannot be.
    #[error("tokenizer_config.json, token {id} {name:?}: {problem}")]
    PlaceControl {
        /// The id, as written.
        id: String,
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A control token the chat format needs is missing.
    #[error("tokenizer_config.json names no token {name:?}, which the chat format needs")]
    FindControl {
        /// The name.
        name: &'static str,
    },
    /// Vocabulary and config belong to different models.
    #[error("the tokenizer {what} is {found}, config.json says {expected}")]
    MatchConfig {
        /// What differs.
        what: &'static str,
        /// From the tokenizer's files.
        found: u32,
        /// From the config.
        expected: u32,
    },
    /// A token id outside the vocabulary: a kernel that picks `vocab_size` has met NaN logits.
    #[error("token {id} is outside the vocabulary of {size}")]
    Decode {
        /// The id.
        id: u32,
        /// Number of ids.
        size: u32,
    },
}

/// What a token id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A piece of text: bytes, not necessarily whole code points.
    Text(&'a [u8]),
    /// A marker of the chat format.
    Marker(Marker),
    /// `[EOS]`, the end of a plain document.
    EndOfDocument,
    /// Any other control token, by name.
    Control(&'a str),
}

/// Encodes text to token ids and tells what ids stand for.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    control: ControlTokens,
    pretokenizer: PreTokenizer,
}

impl Tokenizer {
    /// Puts a vocabulary and its control tokens together.
    pub fn new(vocabulary: Vocabulary, control: ControlTokens) -> Self {
        Self { vocabulary, control, pretokenizer: PreTokenizer::new() }
    }

    /// Reads `tiktoken.model` and `tokenizer_config.json` of a checkpoint folder, and checks them against its config.
    pub fn read(folder: &Path, config: &Config) -> Result<Self, TokenizerError> {
        let read = |name: &str, limit| {
            let path = folder.join(name);
            crate::file::read(&path, limit).map_err(|source| TokenizerError::Read { path, source })
        };
        let vocabulary = parse_tiktoken(&read("tiktoken.model", VOCABULARY_LIMIT)?)?;
        let control = read("tokenizer_config.json", TOKENIZER_CONFIG_LIMIT)?;
        let control = parse_tokenizer_config(&control, vocabulary.len())?;
        let tokenizer = Self::new(vocabulary, control);
        let same = |what, found: u32, expected: u32| {
            if found == expected { Ok(()) } else { Err(TokenizerError::MatchConfig { what, found, expected }) }
        };
        same("size", tokenizer.size(), config.vocab_size as u32)?;
        same("id of <|end_of_msg|>", tokenizer.marker(Marker::EndOfMessage), config.eos_token)?;
        Ok(tokenizer)
    }

    /// Number of ids: ordinary ones, then control ones.
    pub fn size(&self) -> u32 {
        self.vocabulary.len() + CONTROL_TOKENS
    }

    /// Appends the ids of `text` to `tokens`. No part of the text is taken for a control token.
    pub fn encode(&self, text: &str, tokens: &mut Vec<u32>) {
        let mut merger = bpe::Merger::default();
        self.pretokenizer.split(text, |piece| merger.encode(&self.vocabulary, piece.as_bytes(), tokens));
    }

    /// Id of a marker of the chat format.
    pub fn marker(&self, marker: Marker) -> u32 {
        self.control.marker(marker)
    }

    /// Id of a control token by its full name.
    pub fn control(&self, name: &str) -> Option<u32> {
        self.control.id(name)
    }

    /// What an id stands for.
    pub fn token(&self, id: u32) -> Result<Token<'_>, TokenizerError> {
        if let Some(bytes) = self.vocabulary.bytes(id) {
            return Ok(Token::Text(bytes));
        }
        self.control.token(id).ok_or(TokenizerError::Decode { id, size: self.size() })
    }

    /// The bytes of a sequence of ids, control tokens spelled out by name.
    pub fn decode(&self, ids: &[u32]) -> Result<Vec<u8>, TokenizerError> {
        let mut bytes = Vec::new();
        for id in ids {
            bytes.extend_from_slice(match self.token(*id)? {
                Token::Text(text) => text,
                Token::Marker(marker) => marker.name().as_bytes(),
                Token::EndOfDocument => control::END_OF_DOCUMENT.as_bytes(),
                Token::Control(name) => name.as_bytes(),
            });
        }
        Ok(bytes)
    }
}
