//! Reading a tag whose end marker may be missing.

/// Tags of the format, outermost first.
const NAMES: [&str; 7] = ["message", "think", "response", "tools", "call", "argument", "json"];
/// Tags that can have attributes.
const WITH_ATTRIBUTES: [&str; 4] = ["message", "call", "argument", "json"];
/// Longest text taken for a tag, in bytes: no more is held back from the stream.
const LONGEST: usize = 4096;

/// A tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    pub(super) fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// Whether the format has a tag of this name.
    pub(super) fn is_known(&self) -> bool {
        NAMES.contains(&self.name.as_str())
    }

    /// Whether the name could become one the format has.
    pub(super) fn is_unfinished(&self) -> bool {
        NAMES.iter().any(|name| name.starts_with(&self.name))
    }
}

/// What the text behind an opening or closing marker is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan<'t> {
    /// This tag if it ends here; more text may still belong to it.
    Partial(Tag),
    /// A tag without an end marker, then text that is not part of it.
    Tag(Tag, &'t str),
    /// No tag.
    Text,
}

/// Reads the text behind a marker, as far as it has come.
pub(super) fn scan(text: &str, closing: bool) -> Scan<'_> {
    let inner = text.trim_start();
    let name = identifier(inner);
    if text.len() > LONGEST || (name.is_empty() && !inner.is_empty()) {
        return Scan::Text;
    }
    // A name run into what follows: `responseHello`.
    if let Some(known) = NAMES.iter().find(|known| name.len() > known.len() && name.starts_with(**known)) {
        let tag = Tag { name: (*known).to_owned(), attributes: Vec::new() };
        return Scan::Tag(tag, &inner[known.len()..]);
    }
    let mut tag = Tag { name: name.to_owned(), attributes: Vec::new() };
    let mut rest = &inner[name.len()..];
    let takes_attributes = !closing && (!tag.is_known() || WITH_ATTRIBUTES.contains(&name));
    loop {
        if rest.trim_start().is_empty() {
            return Scan::Partial(tag);
        }
        match if takes_attributes { attribute(rest) } else { Attribute::None } {
            Attribute::Whole(key, value, behind) => {
                tag.attributes.push((key.to_owned(), value.replace("&quot;", "\"").replace("&amp;", "&")));
                rest = behind;
            }
            Attribute::Partial => return Scan::Partial(tag),
            Attribute::None if tag.is_known() => return Scan::Tag(tag, rest),
            Attribute::None => return Scan::Text,
        }
    }
}

enum Attribute<'t> {
    /// Key, escaped value, text behind.
    Whole(&'t str, &'t str, &'t str),
    /// The text ends inside.
    Partial,
    None,
}

/// Reads ` key="value"`.
fn attribute(text: &str) -> Attribute<'_> {
    let inner = text.trim_start();
    let key = identifier(inner);
    if !key.starts_with(|c: char| c.is_ascii_alphabetic()) || inner.len() == text.len() {
        return Attribute::None;
    }
    let rest = &inner[key.len()..];
    match rest.strip_prefix("=\"") {
        Some(rest) => match rest.split_once('"') {
            Some((value, behind)) => Attribute::Whole(key, value, behind),
            None => Attribute::Partial,
        },
        None if "=\"".starts_with(rest) => Attribute::Partial,
        None => Attribute::None,
    }
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag(name: &str, attributes: &[(&str, &str)]) -> Tag {
        let attributes = attributes.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        Tag { name: name.to_owned(), attributes }
    }

    #[test]
    fn attributes_are_read_and_unescaped_once() {
        let text = r#"argument key="a&quot;&amp;amp;" type="string""#;
        let expected = tag("argument", &[("key", "a\"&amp;"), ("type", "string")]);
        assert_eq!(scan(text, false), Scan::Partial(expected));
    }

    #[test]
    fn text_behind_a_tag_that_lost_its_end_is_given_back() {
        assert_eq!(scan("response Hello", false), Scan::Tag(tag("response", &[]), " Hello"));
        assert_eq!(scan("responseHello", false), Scan::Tag(tag("response", &[]), "Hello"));
        assert_eq!(scan("think\n\n4", true), Scan::Tag(tag("think", &[]), "\n\n4"));
        assert_eq!(scan(r#"argument key="k"Berlin"#, false), Scan::Tag(tag("argument", &[("key", "k")]), "Berlin"));
        assert_eq!(scan(r#"call tool="f" 7"#, false), Scan::Tag(tag("call", &[("tool", "f")]), " 7"));
    }

    #[test]
    fn other_text_is_no_tag() {
        for (text, closing) in [("Hello, world", false), ("Hello world", true), ("(x)", true), ("foo a.b", false)] {
            assert_eq!(scan(text, closing), Scan::Text, "{text}");
        }
        assert_eq!(scan(&"a".repeat(5000), false), Scan::Text);
        assert_eq!(scan("foo", false), Scan::Partial(tag("foo", &[])));
    }

    proptest! {
        #[test]
        fn every_beginning_of_a_tag_may_still_become_it(cut in 0usize..48) {
            let text = r#"argument key="city name" type="string""#;
            let end = cut.min(text.len());
            prop_assert!(matches!(scan(&text[..end], false), Scan::Partial(_)));
        }
    }
}
