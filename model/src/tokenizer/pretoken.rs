//! Cutting text into the pieces that BPE merges within.

use regex::Regex;

/// Pieces longer than this are cut first, in characters.
const MAX_CHARS: usize = 400_000;
/// Runs of whitespace, or of anything else, are cut after this many characters.
const MAX_RUN: usize = 25_000;

/// Kimi's pattern but for one alternative. Behind line ends it also has `\s+(?!\S)`: of a run of spaces before a word,
/// the last one goes with the word. The look-ahead would need a backtracking engine, whose step limit hostile text can
/// reach; [`PreTokenizer::split`] does that part by hand.
const PATTERN: &str = concat!(
    r"[\p{Han}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+",
    r"|\s+",
);

/// Splits text into pre-tokens, in time linear in its length.
#[derive(Debug)]
pub struct PreTokenizer(Regex);

impl Default for PreTokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl PreTokenizer {
    /// Compiles the pattern.
    pub fn new() -> Self {
        Self(Regex::new(PATTERN).expect("the pattern is fixed, and tests compile it"))
    }

    /// Calls `each` with every piece; together they are the text.
    pub fn split<'t>(&self, text: &'t str, mut each: impl FnMut(&'t str)) {
        for chunk in chunks(text) {
            self.split_chunk(chunk, &mut each);
        }
    }

    fn split_chunk<'t>(&self, text: &'t str, each: &mut impl FnMut(&'t str)) {
        let mut at = 0;
        while let Some(found) = self.0.find_at(text, at) {
            let piece = found.as_str();
            let mut end = found.end();
            // Only the last alternative yields nothing but whitespace without a line end behind.
            let is_space = piece.chars().all(char::is_whitespace) && !piece.ends_with(['\r', '\n']);
            if is_space && end < text.len() {
                let last = piece.char_indices().next_back().map_or(0, |(i, _)| i);
                if last > 0 {
                    end = found.start() + last;
                }
            }
            each(&text[found.start()..end]);
            at = end;
        }
    }
}

/// Cuts the text where the vendor's tokenizer does, so that no regex and no merge sees more at once.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let mut length = 0; // characters since the last multiple of MAX_CHARS
    std::iter::from_fn(move || {
        let mut run = 0;
        let mut run_is_space = None;
        for (at, c) in rest.char_indices() {
            let is_space = is_python_space(c);
            run = if run_is_space == Some(is_space) { run + 1 } else { 1 };
            run_is_space = Some(is_space);
            if length == MAX_CHARS || run > MAX_RUN {
                length %= MAX_CHARS;
                let (chunk, behind) = rest.split_at(at);
                rest = behind;
                return Some(chunk);
            }
            length += 1;
        }
        (!rest.is_empty()).then(|| std::mem::take(&mut rest))
    })
}

/// `str.isspace` of Python, which the vendor's guard uses: the four separators count as well.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<&str> {
        let mut pieces = Vec::new();
        PreTokenizer::new().split(text, |piece| pieces.push(piece));
        pieces
    }

    #[test]
    fn alternatives_apply_in_their_order() {
        assert_eq!(split("Hello wORLD's 12345"), ["Hello", " w", "ORLD's", " ", "123", "45"]);
        assert_eq!(split("你好world 世界"), ["你好", "world", " ", "世界"]);
        assert_eq!(split("a  b\n\n  c!!\n"), ["a", " ", " b", "\n\n", " ", " c", "!!\n"]);
        assert_eq!(split("end   "), ["end", "   "]);
        assert_eq!(split("\t\tx"), ["\t", "\tx"]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn runs_longer_than_25000_characters_are_cut() {
        let text = "é".repeat(60_000) + " " + &"x".repeat(25_001);
        let lengths: Vec<_> = chunks(&text).map(|chunk| chunk.chars().count()).collect();
        assert_eq!(lengths, [25_000, 25_000, 10_001 + 25_000, 1]);
        let spaces = " ".repeat(50_001);
        assert_eq!(chunks(&spaces).map(str::len).collect::<Vec<_>>(), [25_000, 25_000, 1]);
    }

    #[test]
    fn pieces_longer_than_400000_characters_are_cut() {
        let text = "ab ".repeat(300_000);
        assert_eq!(chunks(&text).map(str::len).collect::<Vec<_>>(), [400_000, 400_000, 100_000]);
    }

    #[test]
    fn cutting_a_long_text_starts_the_count_of_runs_anew() {
        // 399,990 characters without a long run, then 20,000 letters: the cut at 400,000 splits that run.
        let text = "ab ".repeat(133_330) + &"x".repeat(20_000) + " " + &"y".repeat(30_000);
        let lengths: Vec<_> = chunks(&text).map(str::len).collect();
        assert_eq!(lengths, [400_000, 19_990 + 1 + 25_000, 5_000]);
    }

    proptest! {
        /// The published pattern, look-ahead and all, on a backtracking engine.
        #[test]
        fn pieces_are_those_of_the_published_pattern(text in "([ \\t\\r\\na-cA-C0-9'!.\u{301}\u{2003}\u{85}ſé你々]|'S|'ll|\\PC){0,40}") {
            let lookahead = PATTERN.replace(r"|\s+", r"|\s+(?!\S)|\s+");
            let published = fancy_regex::Regex::new(&lookahead).unwrap();
            let expected: Vec<_> = published.find_iter(&text).map(|m| m.unwrap().as_str()).collect();
            prop_assert_eq!(split(&text), expected);
        }

        #[test]
        fn pieces_together_are_the_text(text in any::<String>()) {
            prop_assert_eq!(split(&text).concat(), text);
        }
    }
}
