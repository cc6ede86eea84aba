//! The arguments of one call, put together as JSON text while they arrive.

use crate::chat::json::{push_escaped, push_string};

/// How the text of a value becomes JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A string, escaped piece by piece.
    String,
    /// JSON if it is, else a string: known when it ends.
    Json,
    /// All arguments in one, passed through.
    Raw,
}

/// A call whose closing tag has not come yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Call {
    members: usize,
    raw: bool,
    value: Option<Value>,
}

/// The open value.
#[derive(Clone, Debug)]
struct Value {
    form: Form,
    /// Name of the tag that closes it.
    tag: &'static str,
    /// Text of a [`Form::Json`] value so far.
    buffer: String,
}

impl Call {
    /// Name of the tag that closes the open value.
    pub(super) fn value_tag(&self) -> Option<&'static str> {
        self.value.as_ref().map(|value| value.tag)
    }

    /// Whether the open argument is free text, in which markers may be meant literally.
    pub(super) fn in_free_text(&self) -> bool {
        self.value.as_ref().is_some_and(|value| value.form != Form::Json)
    }

    /// Opens an argument; gives the JSON text that can be sent.
    pub(super) fn open_argument(&mut self, key: &str, kind: &str) -> String {
        self.open_member(key, kind, "argument")
    }

    fn open_member(&mut self, key: &str, kind: &str, tag: &'static str) -> String {
        let mut json = String::from(if self.members == 0 { "{" } else { "," });
        push_string(key, &mut json);
        json.push(':');
        self.members += 1;
        let form = if matches!(kind, "string" | "") { Form::String } else { Form::Json };
        if form == Form::String {
            json.push('"');
        }
        self.value = Some(Value { form, tag, buffer: String::new() });
        json
    }

    /// Opens the `json` child. Behind arguments it cannot stand for all of them, so it becomes one.
    pub(super) fn open_json(&mut self) -> String {
        if self.members > 0 {
            return self.open_member("json", "object", "json");
        }
        self.raw = true;
        self.value = Some(Value { form: Form::Raw, tag: "json", buffer: String::new() });
        String::new()
    }

    /// Takes a piece of the value.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut json = String::new();
        match &mut self.value {
            Some(Value { form: Form::String, .. }) => push_escaped(text, &mut json),
            Some(Value { form: Form::Json, buffer, .. }) => buffer.push_str(text),
            Some(Value { form: Form::Raw, .. }) => json.push_str(text),
            None => {}
        }
        json
    }

    /// Closes the value.
    pub(super) fn close_value(&mut self) -> String {
        let Some(Value { form, buffer: text, .. }) = self.value.take() else { return String::new() };
        match form {
            Form::String => "\"".to_owned(),
            Form::Raw => String::new(),
            Form::Json if serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() => text.trim().to_owned(),
            Form::Json => {
                let mut json = String::new();
                push_string(&text, &mut json);
                json
            }
        }
    }

    /// Closes the arguments.
    pub(super) fn close(&mut self) -> String {
        let end = match (self.raw, self.members) {
            (true, _) => "",
            (false, 0) => "{}",
            (false, _) => "}",
        };
        self.close_value() + end
    }

    /// Gives what is held back of a value that broke off, leaving the JSON open: a client must not run half a call.
    pub(super) fn break_off(&mut self) -> String {
        self.value.take().map(|value| value.buffer).unwrap_or_default()
    }

    /// Whether the `json` child has taken the place of arguments.
    pub(super) fn is_raw(&self) -> bool {
        self.raw
    }
}
