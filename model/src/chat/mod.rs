//! XTML, the chat format of Kimi K3: from an OpenAI-style request to tokens, and from the model's tokens back.

mod json;
mod parse;
mod render;
mod request;

pub use parse::{Completion, Event, Parser, parse_completion};
pub use render::{Piece, encode, encode_request, render};
pub use request::{
    Content, ContentPart, Effort, Function, Message, Request, ResponseFormat, Role, ToolCall, ToolChoice,
};

/// A channel of an assistant message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Reasoning.
    Think,
    /// What the user reads.
    Response,
}

impl Channel {
    /// The channel a reply starts in: the prompt ends with its opening tag.
    pub fn first(thinking: bool) -> Self {
        if thinking { Self::Think } else { Self::Response }
    }

    /// Tag name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Think => "think",
            Self::Response => "response",
        }
    }
}

/// Why a request cannot be rendered. All are the client's mistakes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The text model takes no images.
    #[error("messages[{message}]: a content part of type {kind:?} is no text; this model takes text only")]
    PlacePart {
        /// Index of the message.
        message: usize,
        /// Type of the part.
        kind: String,
    },
    /// A tool result that belongs to no call.
    #[error("messages[{message}]: no tool name; give tool_call_id of a preceding call, or name")]
    NameTool {
        /// Index of the message.
        message: usize,
    },
    /// A dynamic tool declaration has a fixed text, there is no place for more.
    #[error("messages[{message}]: a system message with tools cannot have content as well")]
    DeclareTools {
        /// Index of the message.
        message: usize,
    },
    /// The format can ask for some tool or for none, not for a certain one.
    #[error("tool_choice of the function {name:?} is not supported; use \"auto\", \"none\" or \"required\"")]
    ChooseTool {
        /// The function.
        name: String,
    },
}
