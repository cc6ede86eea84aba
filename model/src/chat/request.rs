//! The parts of an OpenAI-style chat request that go into the prompt.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// What a prompt is rendered from. Fields the prompt does not depend on are ignored.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Request {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tools, in OpenAI form.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
    /// Whether the model reasons before it answers; on unless said otherwise.
    #[serde(default = "on")]
    pub thinking: bool,
    /// How much to reason; the prompt says nothing of it if absent.
    #[serde(default)]
    pub thinking_effort: Option<Effort>,
    /// Whether tools must or must not be called.
    #[serde(default, deserialize_with = "null_is_default")]
    pub tool_choice: ToolChoice,
    /// Form of the answer.
    #[serde(default, deserialize_with = "null_is_default")]
    pub response_format: ResponseFormat,
}

fn on() -> bool {
    true
}

fn null_is_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// How much to reason. The prompt text also lists `medium`, which the vendor's encoder rejects.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Little.
    Low,
    /// Much.
    High,
    /// All it takes.
    Max,
}

impl Effort {
    /// Name in the prompt.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions; `developer` is OpenAI's newer name for it.
    #[serde(alias = "developer")]
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

/// One message.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// Text; may be null in an assistant message with tool calls.
    #[serde(default)]
    pub content: Option<Content>,
    /// Name of the speaker; of a tool result, another spelling of `tool`.
    #[serde(default)]
    pub name: Option<String>,
    /// What the model thought; the model expects it back.
    #[serde(default)]
    pub reasoning_content: Option<String>,
    /// Another spelling of `reasoning_content`.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Calls of an assistant message.
    #[serde(default)]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Call that a tool result answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// Tool that a tool result is of.
    #[serde(default)]
    pub tool: Option<String>,
    /// Tools that a system message adds.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
}

impl Message {
    /// The text parts, or the type of the first part that is no text.
    pub(super) fn texts(&self) -> Result<Vec<&str>, &str> {
        match &self.content {
            None => Ok(Vec::new()),
            Some(Content::Text(text)) => Ok(vec![text]),
            Some(Content::Parts(parts)) => parts.iter().map(ContentPart::as_text).collect(),
        }
    }

    /// The reasoning, unless it is blank.
    pub(super) fn reasoning(&self) -> Option<&str> {
        let given = self.reasoning_content.as_deref().filter(|text| !text.is_empty()).or(self.reasoning.as_deref());
        given.filter(|text| !text.trim().is_empty())
    }
}

/// Content of a message.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Content {
    /// A string.
    Text(String),
    /// A list of parts.
    Parts(Vec<ContentPart>),
}

/// A part of a message's content.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct ContentPart {
    /// `text`; anything else is refused when rendered.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text.
    #[serde(default)]
    pub text: Option<String>,
}

impl ContentPart {
    fn as_text(&self) -> Result<&str, &str> {
        self.text.as_deref().filter(|_| self.kind == "text").ok_or(&self.kind)
    }
}

/// A tool call in OpenAI form, as clients send it back and as it is sent to them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ToolCall {
    /// Opaque id that the tool's result refers to.
    #[serde(default)]
    pub id: Option<String>,
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// What is called.
    pub function: Function,
}

fn function() -> String {
    "function".to_owned()
}

/// Name and arguments of a call.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Function {
    /// The tool.
    pub name: String,
    /// The arguments: JSON text in a string, or the object itself.
    #[serde(default)]
    pub arguments: Value,
}

/// Whether tools must or must not be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No call.
    None,
    /// At least one call.
    Required,
    /// A certain function; the chat format has no words for it.
    Function(String),
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let name = value.pointer("/function/name").or_else(|| value.get("name")).and_then(Value::as_str);
        match (value.as_str(), name) {
            (Some("auto"), _) => Ok(Self::Auto),
            (Some("none"), _) => Ok(Self::None),
            (Some("required"), _) => Ok(Self::Required),
            (None, Some(name)) => Ok(Self::Function(name.to_owned())),
            _ => Err(D::Error::custom("tool_choice must be \"auto\", \"none\", \"required\" or name a function")),
        }
    }
}

/// Form of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ResponseFormat {
    /// Any text.
    #[default]
    Text,
    /// Some JSON.
    JsonObject,
    /// JSON of this schema.
    JsonSchema(Value),
}

impl<'de> Deserialize<'de> for ResponseFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value.as_str().or_else(|| value.get("type")?.as_str()) {
            Some("text") => Ok(Self::Text),
            Some("json_object") => Ok(Self::JsonObject),
            Some("json_schema") => {
                let wrapped = value.get("json_schema").ok_or_else(|| D::Error::missing_field("json_schema"))?;
                let schema = wrapped.get("schema").or_else(|| wrapped.get("json_schema")).unwrap_or(wrapped);
                Ok(Self::JsonSchema(schema.clone()))
            }
            _ => Err(D::Error::custom("response_format must be of type text, json_object or json_schema")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<Request, serde_json::Error> {
        serde_json::from_str(json)
    }

    #[test]
    fn openai_forms_of_messages_are_read() {
        let request = parse(
            r#"{"model":"k3","messages":[
                {"role":"developer","content":[{"type":"text","text":"Be"},{"type":"text","text":" brief."}]},
                {"role":"assistant","content":null,"tool_calls":[
                    {"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
                    {"function":{"name":"g","arguments":{"x":1}}}]},
                {"role":"tool","tool_call_id":"a","content":"ok"}]}"#,
        )
        .unwrap();
        assert_eq!(request.messages[0].role, Role::System);
        assert_eq!(request.messages[0].texts(), Ok(vec!["Be", " brief."]));
        assert_eq!(request.messages[1].texts(), Ok(vec![]));
        assert!(request.thinking && request.tool_choice == ToolChoice::Auto);
    }

    #[test]
    fn choices_and_formats_are_read_in_their_several_forms() {
        let with = |field: &str| parse(&format!(r#"{{"messages":[],{field}}}"#));
        assert_eq!(with(r#""tool_choice":"required""#).unwrap().tool_choice, ToolChoice::Required);
        let function = with(r#""tool_choice":{"type":"function","function":{"name":"f"}}"#).unwrap();
        assert_eq!(function.tool_choice, ToolChoice::Function("f".to_owned()));
        assert_eq!(with(r#""tool_choice":null,"tools":null"#).unwrap().tool_choice, ToolChoice::Auto);
        let schema = with(r#""response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"a":1}}}"#);
        assert_eq!(schema.unwrap().response_format, ResponseFormat::JsonSchema(serde_json::json!({"a": 1})));
        assert_eq!(with(r#""response_format":"json_object""#).unwrap().response_format, ResponseFormat::JsonObject);
        for bad in [r#""thinking_effort":"medium""#, r#""tool_choice":"maybe""#, r#""response_format":{"type":"xml"}"#]
        {
            assert!(with(bad).is_err(), "{bad}");
        }
        assert!(parse(r#"{"messages":[{"role":"robot"}]}"#).is_err());
    }
}
