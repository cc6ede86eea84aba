//! Byte pair merging in the order of tiktoken: always the adjacent pair of lowest rank, the leftmost of equals.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Vocabulary;

/// Marks a position that is no longer the start of a part.
const GONE: usize = usize::MAX;

/// Scratch space, reused from piece to piece.
#[derive(Default)]
pub(super) struct Merger {
    /// By position in the piece: where the part that starts there ends, or [`GONE`].
    ends: Vec<usize>,
    /// By position: where the part before it starts.
    previous: Vec<usize>,
    /// Pairs that could merge: rank, start of the left part, end of the right part. Entries go stale when one of the
    /// parts merges otherwise, which shows in `ends`. A heap keeps a run of n equal bytes at O(n log n).
    pairs: BinaryHeap<Reverse<(u32, usize, usize)>>,
}

impl Merger {
    /// Appends the tokens of one pre-token.
    pub(super) fn encode(&mut self, vocabulary: &Vocabulary, piece: &[u8], tokens: &mut Vec<u32>) {
        if let Some(rank) = vocabulary.rank(piece) {
            tokens.push(rank);
            return;
        }
        self.ends.clear();
        self.ends.extend(1..=piece.len());
        self.previous.clear();
        self.previous.extend((0..piece.len()).map(|i| i.wrapping_sub(1)));
        self.pairs.clear();
        for start in 0..piece.len().saturating_sub(1) {
            self.consider(vocabulary, piece, start);
        }
        while let Some(Reverse((_, start, end))) = self.pairs.pop() {
            let middle = self.ends[start];
            if middle == GONE || middle == piece.len() || self.ends[middle] != end {
                continue;
            }
            self.ends[start] = end;
            self.ends[middle] = GONE;
            if end < piece.len() {
                self.previous[end] = start;
                self.consider(vocabulary, piece, start);
            }
            if start > 0 {
                self.consider(vocabulary, piece, self.previous[start]);
            }
        }
        let mut start = 0;
        while start < piece.len() {
            let end = self.ends[start];
            let rank = vocabulary.rank(&piece[start..end]);
            tokens.push(
                rank.expect("a part is a single byte, which every vocabulary has, or the merge of a ranked pair"),
            );
            start = end;
        }
    }

    /// Queues the pair whose left part starts at `start`, if it is a token.
    fn consider(&mut self, vocabulary: &Vocabulary, piece: &[u8], start: usize) {
        let middle = self.ends[start];
        if middle < piece.len() {
            let end = self.ends[middle];
            if let Some(rank) = vocabulary.rank(&piece[start..end]) {
                self.pairs.push(Reverse((rank, start, end)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse_tiktoken;
    use super::*;

    fn nano() -> Vocabulary {
        parse_tiktoken(include_bytes!("../../../tests/fixtures/k3-nano/tiktoken.model")).unwrap()
    }

    /// The definition, with no attention to speed.
    fn merge_slowly(vocabulary: &Vocabulary, piece: &[u8]) -> Vec<u32> {
        if let Some(rank) = vocabulary.rank(piece) {
            return vec![rank];
        }
        let mut parts: Vec<Vec<u8>> = piece.iter().map(|b| vec![*b]).collect();
        loop {
            let ranks = parts.windows(2).enumerate();
            let best = ranks.filter_map(|(i, pair)| Some((vocabulary.rank(&pair.concat())?, i))).min();
            let Some((_, i)) = best else { break };
            let right = parts.remove(i + 1);
            parts[i].extend(right);
        }
        parts.iter().map(|part| vocabulary.rank(part).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn merging_follows_the_definition(piece in "[a-e]{1,40}|[ -~]{1,40}|\\PC{1,20}") {
            let vocabulary = nano();
            let mut tokens = Vec::new();
            Merger::default().encode(&vocabulary, piece.as_bytes(), &mut tokens);
            prop_assert_eq!(tokens, merge_slowly(&vocabulary, piece.as_bytes()));
        }
    }

    #[test]
    fn a_run_of_100000_equal_bytes_is_encoded_whole() {
        let vocabulary = nano();
        let piece = b"e".repeat(100_000);
        let mut tokens = Vec::new();
        let mut merger = Merger::default();
        merger.encode(&vocabulary, &piece, &mut tokens);
        let bytes: usize = tokens.iter().map(|t| vocabulary.bytes(*t).unwrap().len()).sum();
        assert_eq!(bytes, piece.len());
    }
}
