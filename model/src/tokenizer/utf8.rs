//! Text out of a stream of bytes that can break off inside a code point.

/// Decodes UTF-8 piece by piece. What may still become a code point is held back (at most three bytes); what cannot is
/// U+FFFD at once, one for each maximal broken sequence, as in [`String::from_utf8_lossy`].
#[derive(Clone, Debug, Default)]
pub struct Utf8Stream {
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Takes bytes in; appends the text that is now certain to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        loop {
            let rest = &self.pending[at..];
            match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    at = self.pending.len();
                    break;
                }
                Err(error) => {
                    let valid = &rest[..error.valid_up_to()];
                    text.push_str(str::from_utf8(valid).unwrap_or_default());
                    at += valid.len();
                    let Some(broken) = error.error_len() else { break };
                    text.push(char::REPLACEMENT_CHARACTER);
                    at += broken;
                }
            }
        }
        self.pending.drain(..at);
    }

    /// Ends the stream: an unfinished code point becomes U+FFFD. The stream can be used again.
    pub fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream(parts: &[&[u8]]) -> Vec<String> {
        let mut stream = Utf8Stream::default();
        let mut texts = Vec::new();
        for part in parts {
            let mut text = String::new();
            stream.push(part, &mut text);
            texts.push(text);
        }
        let mut text = String::new();
        stream.finish(&mut text);
        texts.push(text);
        texts
    }

    #[test]
    fn a_code_point_split_over_pieces_is_held_back_until_it_is_whole() {
        assert_eq!(stream(&[b"\xf0\x9f", b"\x94", b"\xa5!"]), ["", "", "🔥!", ""]);
    }

    #[test]
    fn bytes_that_can_be_nothing_do_not_hold_up_what_follows() {
        assert_eq!(stream(&[b"a\xff", b"\xfe\xfdb", b"\xe4\xb8"]), ["a\u{fffd}", "\u{fffd}\u{fffd}b", "", "\u{fffd}"]);
        assert_eq!(stream(&[b"\xf0\x9f", b"x"]), ["", "\u{fffd}x", ""]);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_text_of_the_whole(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(0xf0), Just(0x9f), Just(0x80), Just(0xe4)], 0..40), cut in 1usize..5) {
            let parts: Vec<_> = bytes.chunks(cut).collect();
            prop_assert_eq!(stream(&parts).concat(), String::from_utf8_lossy(&bytes));
        }
    }
}
