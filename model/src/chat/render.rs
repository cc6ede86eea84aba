//! From a request to the prompt.
//!
//! A prompt is a list of pieces, not a string. Each text piece is encoded on its own, with no matching of control
//! tokens: encoding one joined string gives other ids in places, and would let a user write control tokens.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::json::{compact_sorted, spaced};
use super::{Channel, Message, RenderError, Request, ResponseFormat, Role, ToolCall, ToolChoice};
use crate::tokenizer::{Marker, Tokenizer};

/// A piece of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A control token.
    Marker(Marker),
    /// Text, never empty.
    Text(Cow<'a, str>),
}

/// The ids of a list of pieces.
pub fn encode(tokenizer: &Tokenizer, pieces: &[Piece<'_>]) -> Vec<u32> {
    let mut tokens = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Marker(marker) => tokens.push(tokenizer.marker(*marker)),
            Piece::Text(text) => tokenizer.encode(text, &mut tokens),
        }
    }
    tokens
}

/// The prompt of a request as ids.
pub fn encode_request(tokenizer: &Tokenizer, request: &Request) -> Result<Vec<u32>, RenderError> {
    Ok(encode(tokenizer, &render(request)?))
}

/// The prompt of a request, up to and with the opening tag of the channel the reply starts in
/// ([`Channel::first`]).
pub fn render(request: &Request) -> Result<Vec<Piece<'_>>, RenderError> {
    let mut prompt = Prompt(Vec::new());
    if let Some(tools) = request.tools.as_deref().filter(|tools| !tools.is_empty()) {
        prompt.system("tool-declare", declaration(TOOLS_HEADING, tools));
    }
    if let Some(effort) = request.thinking_effort.filter(|_| request.thinking) {
        prompt.system("thinking-effort", format!("{EFFORT_TEXT}{}`.", effort.name()));
    }
    prompt.messages(request)?;
    match &request.tool_choice {
        ToolChoice::Auto => {}
        ToolChoice::Required => prompt.system("tool-choice", REQUIRED_TEXT),
        ToolChoice::None => prompt.system("tool-choice", NONE_TEXT),
        ToolChoice::Function(name) => return Err(RenderError::ChooseTool { name: name.clone() }),
    }
    match &request.response_format {
        ResponseFormat::Text => {}
        ResponseFormat::JsonObject => prompt.system("response-format", format_text("json_object")),
        ResponseFormat::JsonSchema(schema) => {
            let schema = compact_sorted(schema);
            let text = format_text("json_schema");
            let ask = format!("{text}\nThe JSON data must match the following schema:\n```json\n{schema}\n```");
            prompt.system("response-format", ask);
        }
    }
    prompt.open("message", [("role", "assistant".into())]);
    prompt.open(Channel::first(request.thinking).name(), []);
    Ok(prompt.0)
}

// Wording the model was trained on.
const TOOLS_HEADING: &str = "# Tools\nHere are the available tools, described in JSONSchema.\n\n";
const NEW_TOOLS_HEADING: &str = "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n\
    You have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n";
const EFFORT_TEXT: &str = "`thinking_effort` guides on how much to think in your thinking channel (not including the \
    response channel), supported values include `low`, `medium`, `high`, and `max`.\n\
    Now the system is invoked with `thinking_effort=";
const REQUIRED_TEXT: &str =
    "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.";
const NONE_TEXT: &str =
    "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.";

fn format_text(format: &str) -> String {
    format!(
        "The system is invoked with `response_format={format}`.\nYour response must be raw JSON data without markdown \
         code blocks (```json) or any additional formatting."
    )
}

fn declaration(heading: &str, tools: &[Value]) -> String {
    let tools: Vec<String> = tools.iter().map(compact_sorted).collect();
    format!("{heading}```json\n[{}]\n```", tools.join(","))
}

type Attribute<'a> = (&'static str, Cow<'a, str>);

struct Prompt<'a>(Vec<Piece<'a>>);

impl<'a> Prompt<'a> {
    fn marker(&mut self, marker: Marker) {
        self.0.push(Piece::Marker(marker));
    }

    fn text(&mut self, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if !text.is_empty() {
            self.0.push(Piece::Text(text));
        }
    }

    fn open(&mut self, tag: &'static str, attributes: impl IntoIterator<Item = Attribute<'a>>) {
        self.marker(Marker::Open);
        self.text(tag);
        for (key, value) in attributes {
            self.text(format!(" {key}"));
            self.text("=\"");
            if value.contains(['&', '"']) {
                self.text(value.replace('&', "&amp;").replace('"', "&quot;"));
            } else {
                self.text(value);
            }
            self.text("\"");
        }
        self.marker(Marker::Sep);
    }

    fn close(&mut self, tag: &'static str) {
        self.marker(Marker::Close);
        self.text(tag);
        self.marker(Marker::Sep);
    }

    fn end_message(&mut self) {
        self.close("message");
        self.marker(Marker::EndOfMessage);
    }

    /// A message of the system itself.
    fn system(&mut self, kind: &'static str, body: impl Into<Cow<'a, str>>) {
        self.open("message", [("role", "system".into()), ("type", kind.into())]);
        self.text(body);
        self.end_message();
    }

    fn messages(&mut self, request: &'a Request) -> Result<(), RenderError> {
        let messages = &request.messages;
        let mut calls: &[ToolCall] = &[];
        let mut index = 0;
        while let Some(message) = messages.get(index) {
            match message.role {
                Role::Tool => {
                    let run = messages[index..].iter().take_while(|message| message.role == Role::Tool).count();
                    self.tool_results(index, &messages[index..index + run], calls)?;
                    index += run;
                    continue;
                }
                Role::System => match message.tools.as_deref().filter(|tools| !tools.is_empty()) {
                    None => self.plain(index, message, "system")?,
                    Some(_) if message.texts().is_ok_and(|texts| texts.iter().any(|text| !text.is_empty())) => {
                        return Err(RenderError::DeclareTools { message: index });
                    }
                    Some(tools) => self.system("tool-declare", declaration(NEW_TOOLS_HEADING, tools)),
                },
                Role::User => self.plain(index, message, "user")?,
                Role::Assistant => {
                    calls = message.tool_calls.as_deref().unwrap_or_default();
                    self.assistant(index, message, request.thinking)?;
                }
            }
            index += 1;
        }
        Ok(())
    }

    fn open_message(&mut self, message: &'a Message, role: &'static str) {
        let name = message.name.as_deref().filter(|name| !name.is_empty());
        let name = name.map(|name| ("name", name.into()));
        self.open("message", [("role", role.into())].into_iter().chain(name));
    }

    fn content(&mut self, index: usize, message: &'a Message) -> Result<(), RenderError> {
        let texts = message.texts().map_err(|kind| RenderError::PlacePart { message: index, kind: kind.to_owned() })?;
        texts.into_iter().for_each(|text| self.text(text));
        Ok(())
    }

    fn plain(&mut self, index: usize, message: &'a Message, role: &'static str) -> Result<(), RenderError> {
        self.open_message(message, role);
        self.content(index, message)?;
        self.end_message();
        Ok(())
    }

    fn assistant(&mut self, index: usize, message: &'a Message, thinking: bool) -> Result<(), RenderError> {
        self.open_message(message, "assistant");
        if thinking {
            self.open("think", []);
            self.text(message.reasoning().unwrap_or_default());
            self.close("think");
        }
        self.open("response", []);
        self.content(index, message)?;
        self.close("response");
        let calls = message.tool_calls.as_deref().unwrap_or_default();
        if !calls.is_empty() {
            self.open("tools", []);
            for (call, number) in calls.iter().zip(1..) {
                self.call(call, number);
            }
            self.close("tools");
        }
        self.end_message();
        Ok(())
    }

    fn call(&mut self, call: &'a ToolCall, number: usize) {
        self.open("call", [("tool", (&*call.function.name).into()), ("index", number.to_string().into())]);
        match arguments(&call.function.arguments) {
            Arguments::Members(members) => {
                for (key, kind, value) in members {
                    self.open("argument", [("key", key), ("type", kind.into())]);
                    self.text(value);
                    self.close("argument");
                }
            }
            Arguments::Raw(text) => {
                self.open("json", [("type", "object".into())]);
                self.text(text);
                self.close("json");
            }
        }
        self.close("call");
    }

    /// A run of tool results. If each names a call of the last assistant message by id, they take the order and the
    /// names of the calls; otherwise they stay as they are.
    fn tool_results(&mut self, first: usize, run: &'a [Message], calls: &'a [ToolCall]) -> Result<(), RenderError> {
        let mut by_id = HashMap::new();
        for (position, call) in calls.iter().enumerate() {
            if let Some(id) = &call.id {
                by_id.entry(id.as_str()).or_insert((position, call.function.name.as_str()));
            }
        }
        let matched = |message: &'a Message| by_id.get(message.tool_call_id.as_deref()?).copied();
        let mut results: Vec<_> = run.iter().enumerate().map(|(i, message)| (first + i, message)).collect();
        let all_matched = results.iter().all(|(_, message)| matched(message).is_some());
        if all_matched {
            results.sort_by_key(|(_, message)| matched(message));
        }
        for (number, (index, message)) in results.into_iter().enumerate() {
            let by_id = matched(message).filter(|_| all_matched).map(|(_, name)| name);
            let named = message.tool.as_deref().or(message.name.as_deref());
            let by_order = calls.get(number).map(|call| call.function.name.as_str());
            let tool = by_id.or(named).or(by_order).ok_or(RenderError::NameTool { message: index })?;
            let number = (number + 1).to_string();
            self.open("message", [("role", "tool".into()), ("tool", tool.into()), ("index", number.into())]);
            self.content(index, message)?;
            self.end_message();
        }
        Ok(())
    }
}

/// The arguments of a past call.
enum Arguments<'a> {
    /// Key, type and value of each.
    Members(Vec<(Cow<'a, str>, &'static str, Cow<'a, str>)>),
    /// Text that is no JSON object.
    Raw(Cow<'a, str>),
}

fn arguments(value: &Value) -> Arguments<'_> {
    match value {
        Value::Null => Arguments::Members(Vec::new()),
        Value::String(text) if text.trim().is_empty() => Arguments::Members(Vec::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Members(members)) => {
                let member = |(key, raw)| (key, type_of_json(raw), text_of_json(raw));
                Arguments::Members(members.into_iter().map(member).collect())
            }
            Err(_) => Arguments::Raw(text.into()),
        },
        Value::Object(members) => {
            let member = |(key, value): (&'_ String, &'_ Value)| {
                let text = match value {
                    Value::String(text) => text.clone(),
                    other => spaced(other),
                };
                (Cow::Owned(key.clone()), type_of(value), Cow::Owned(text))
            };
            Arguments::Members(members.iter().map(member).collect())
        }
        other => Arguments::Raw(spaced(other).into()),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The type of valid JSON text without leading whitespace, which its first character tells.
fn type_of_json(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes() {
        [b'"', ..] => "string",
        [b'{', ..] => "object",
        [b'[', ..] => "array",
        [b't' | b'f', ..] => "boolean",
        [b'n', ..] => "null",
        _ => "number",
    }
}

/// A string's text; everything else letter by letter as the client wrote it. What the model once wrote thus encodes to
/// the tokens it wrote (`1e2` stays `1e2`), which keeps cached prefixes valid.
fn text_of_json(raw: &RawValue) -> Cow<'_, str> {
    serde_json::from_str::<String>(raw.get()).map_or(Cow::Borrowed(raw.get()), Cow::Owned)
}

/// The members of a JSON object in their order, values as text. Of a repeated key the last value counts, at the place of
/// the first, as in Python.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                let mut places = HashMap::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    let place = *places.entry(key.clone()).or_insert(members.len());
                    if place == members.len() {
                        members.push((Cow::Owned(key), value));
                    } else {
                        members[place].1 = value;
                    }
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
