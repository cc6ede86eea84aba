//! `tiktoken.model`: one `base64 rank` pair a line.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::TokenizerError;

/// Byte strings numbered by rank. Every single byte is among them.
#[derive(Debug)]
pub struct Vocabulary {
    /// All tokens one behind the other.
    bytes: Vec<u8>,
    /// Where each token ends.
    ends: Vec<usize>,
    ranks: HashMap<Box<[u8]>, u32>,
}

impl Vocabulary {
    /// Number of tokens.
    #[allow(clippy::len_without_is_empty, reason = "it has the 256 single bytes at least")]
    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// The bytes of a token.
    pub fn bytes(&self, rank: u32) -> Option<&[u8]> {
        let rank = rank as usize;
        let end = *self.ends.get(rank)?;
        let begin = if rank == 0 { 0 } else { self.ends[rank - 1] };
        Some(&self.bytes[begin..end])
    }

    /// The token with exactly these bytes.
    pub fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.ranks.get(bytes).copied()
    }
}

/// Parses the bytes of a `tiktoken.model`. Ranks must count up from 0, which is how the files are written.
pub fn parse_tiktoken(bytes: &[u8]) -> Result<Vocabulary, TokenizerError> {
    let mut vocabulary = Vocabulary { bytes: Vec::new(), ends: Vec::new(), ranks: HashMap::new() };
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !line.is_empty() {
            vocabulary.add(line).map_err(|problem| TokenizerError::ParseVocabulary { line: number + 1, problem })?;
        }
    }
    match (0..=u8::MAX).find(|byte| vocabulary.rank(&[*byte]).is_none()) {
        Some(byte) => Err(TokenizerError::CoverBytes { byte }),
        None => Ok(vocabulary),
    }
}

impl Vocabulary {
    fn add(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let line = str::from_utf8(line).map_err(|_| "not UTF-8")?;
        let (token, rank) = line.split_once(' ').ok_or("no space between token and rank")?;
        let token = STANDARD.decode(token).map_err(|_| "the token is not base64")?;
        let rank: u32 = rank.parse().map_err(|_| "the rank is not a number")?;
        if rank != self.len() {
            return Err("ranks do not count up from 0");
        }
        if token.is_empty() {
            return Err("the token is empty");
        }
        self.bytes.extend_from_slice(&token);
        self.ends.push(self.bytes.len());
        match self.ranks.insert(token.into(), rank) {
            None => Ok(()),
            Some(_) => Err("the token occurs twice"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_then(lines: &str) -> Vec<u8> {
        let bytes: String = (0..=255u8).map(|b| format!("{} {b}\n", STANDARD.encode([b]))).collect();
        (bytes + lines).into_bytes()
    }

    #[test]
    fn ranks_and_bytes_are_each_others_inverse() {
        let vocabulary = parse_tiktoken(&bytes_then("YWI= 256\r\n\nYWJj 257\n")).unwrap();
        assert_eq!(vocabulary.len(), 258);
        assert_eq!((vocabulary.bytes(257), vocabulary.rank(b"abc")), (Some(&b"abc"[..]), Some(257)));
        assert_eq!((vocabulary.bytes(0), vocabulary.bytes(258), vocabulary.rank(b"b ")), (Some(&[0][..]), None, None));
    }

    #[test]
    fn malformed_vocabularies_are_refused_with_their_line() {
        for bad in [
            "YWI=",
            "YWI= x",
            "YWI= -1",
            "YWI= 257",
            "YWI= 4294967296",
            "Y!I= 256",
            "YWI 256",
            " 256",
            "YQ== 256",
            "\u{e9} 256",
        ] {
            let parsed = parse_tiktoken(&bytes_then(bad));
            assert!(matches!(parsed, Err(TokenizerError::ParseVocabulary { line: 257, .. })), "{bad}");
        }
        assert!(matches!(parse_tiktoken(b"YWI= 0\n"), Err(TokenizerError::CoverBytes { byte: 0 })));
        assert!(matches!(parse_tiktoken(&[0xff; 9]), Err(TokenizerError::ParseVocabulary { line: 1, .. })));
    }
}
