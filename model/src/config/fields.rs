//! Reading fields one by one while collecting all that are wrong.

use std::fmt;
use std::ops::RangeInclusive;

use serde_json::Value;

/// One field that is not what the forward pass needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongField {
    /// Dotted path inside the file.
    pub field: String,
    /// What would do.
    pub expected: String,
    /// What the file says, shortened, or `missing`.
    pub found: String,
}

/// Every wrong field of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongFields(pub Vec<WrongField>);

/// How many fields a message names; a file of another kind lacks them all.
const SHOWN: usize = 8;

impl fmt::Display for WrongFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, WrongField { field, expected, found }) in self.0.iter().take(SHOWN).enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{field}: expected {expected}, found {found}")?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more, which preflight lists"),
        }
    }
}

/// A JSON document and the list of complaints about it.
///
/// A reader that complains returns a placeholder, so that the rest can be checked too; [`Fields::finish`] makes sure no
/// placeholder is ever used.
pub(super) struct Fields<'a> {
    root: &'a Value,
    wrong: Vec<WrongField>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        Self { root, wrong: Vec::new() }
    }

    pub(super) fn finish<T>(self, value: T) -> Result<T, WrongFields> {
        if self.wrong.is_empty() { Ok(value) } else { Err(WrongFields(self.wrong)) }
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        field.split('.').try_fold(self.root, |value, key| match value {
            Value::Array(items) => items.get(key.parse::<usize>().ok()?),
            _ => value.get(key),
        })
    }

    pub(super) fn complain(&mut self, field: &str, expected: impl fmt::Display) {
        let found = self.get(field).map_or_else(|| "missing".to_owned(), shorten);
        self.wrong.push(WrongField { field: field.to_owned(), expected: expected.to_string(), found });
    }

    /// The field must be exactly this.
    pub(super) fn is(&mut self, field: &str, expected: impl Into<Value>) {
        let expected = expected.into();
        if self.get(field) != Some(&expected) {
            self.complain(field, expected);
        }
    }

    /// The field must be absent or null.
    pub(super) fn is_unset(&mut self, field: &str) {
        if self.has(field) {
            self.complain(field, "null or nothing");
        }
    }

    /// The field must be exactly this, if the file has it.
    pub(super) fn is_or_unset(&mut self, field: &str, expected: impl Into<Value>) {
        if self.has(field) {
            self.is(field, expected);
        }
    }

    /// An integer of `range`.
    pub(super) fn integer(&mut self, field: &str, range: RangeInclusive<usize>) -> usize {
        let number = self.get(field).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        number.filter(|n| range.contains(n)).unwrap_or_else(|| {
            self.complain(field, format_args!("an integer of {} to {}", range.start(), range.end()));
            1
        })
    }

    /// An integer of 1 to `max`.
    pub(super) fn size(&mut self, field: &str, max: usize) -> usize {
        self.integer(field, 1..=max)
    }

    /// A number that satisfies `accept` when rounded to f32.
    pub(super) fn number(&mut self, field: &str, expected: &str, accept: impl Fn(f32) -> bool) -> f32 {
        let number = self.get(field).and_then(Value::as_f64).map(|n| n as f32);
        number.filter(|n| n.is_finite() && accept(*n)).unwrap_or_else(|| {
            self.complain(field, expected);
            1.0
        })
    }

    /// A positive number.
    pub(super) fn positive(&mut self, field: &str) -> f32 {
        self.number(field, "a positive number", |n| n > 0.0)
    }

    /// A token id below `vocab_size`.
    pub(super) fn token(&mut self, field: &str, vocab_size: usize) -> u32 {
        let token = self.get(field).and_then(Value::as_u64).filter(|n| *n < vocab_size as u64);
        token.and_then(|n| u32::try_from(n).ok()).unwrap_or_else(|| {
            self.complain(field, format_args!("a token id below {vocab_size}"));
            0
        })
    }

    /// A list of integers of 1 to `max`, as zero-based indices.
    pub(super) fn one_based(&mut self, field: &str, max: usize) -> Vec<usize> {
        let list = self.get(field).and_then(Value::as_array).and_then(|items| {
            let index = |item: &Value| item.as_u64().filter(|n| (1..=max as u64).contains(n)).map(|n| n as usize - 1);
            items.iter().map(index).collect::<Option<Vec<_>>>()
        });
        list.unwrap_or_else(|| {
            self.complain(field, format_args!("a list of layer numbers of 1 to {max}"));
            Vec::new()
        })
    }

    /// The keys of an object; none if it is no object.
    pub(super) fn keys(&self, field: &str) -> Vec<&'a str> {
        self.get(field).and_then(Value::as_object).map(|o| o.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// Whether the field is there and not null.
    pub(super) fn has(&self, field: &str) -> bool {
        self.get(field).is_some_and(|value| !value.is_null())
    }
}

/// The value as JSON, cut after 60 characters: it comes from a stranger.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
