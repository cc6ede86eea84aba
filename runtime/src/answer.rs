//! From a request to an answer: tokens in and out of the engine, text and tool calls in and out of tokens.

use model::chat::{Channel, Event, Parser, RenderError, Request, ToolCall, encode_request};
use model::tokenizer::{Marker, Token, Tokenizer, TokenizerError, Utf8Stream};

use crate::engine::{Engine, EngineError, Finish, Generation, Sampling};
use crate::failure::Failure;

/// What is asked.
#[derive(Clone, Debug)]
pub enum Question {
    /// Text to go on with, after `[BOS]`.
    Raw(String),
    /// A chat to answer.
    Chat(Box<Request>),
}

/// How it is to be answered.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Tokens to make at most.
    pub max_tokens: usize,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The request can't be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The tokenizer does not know a token.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The vocabulary lacks a token that plain completion needs.
    #[error("the vocabulary has no token {0}")]
    MissingToken(&'static str),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<AnswerError> for Failure {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Engine(error) => error.into(),
            error => Self::input(error),
        }
    }
}

/// Why an answer ended, as OpenAI's API says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended it.
    Stop,
    /// A limit cut it off.
    Length,
    /// The model ended it with calls of tools.
    ToolCalls,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The prompt as tokens.
    pub prompt_tokens: Vec<u32>,
    /// What the engine made.
    pub generation: Generation,
    /// All made tokens as text, markers included.
    pub raw_text: String,
    /// The response channel, or the completed text.
    pub text: String,
    /// The think channel.
    pub reasoning: String,
    /// Calls of tools.
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended.
    pub finish_reason: FinishReason,
}

/// A piece of an answer, as soon as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// More of the response.
    Text(String),
    /// More of the reasoning.
    Reasoning(String),
}

/// Answers `question`, showing pieces to `see` as they are made; `see` says whether to go on.
///
/// # Errors
/// See [`AnswerError`].
pub fn answer(
    engine: &mut Engine,
    tokenizer: &Tokenizer,
    question: &Question,
    limits: Limits,
    see: &mut dyn FnMut(Piece) -> bool,
) -> Result<Answer, AnswerError> {
    let prompt_tokens = prompt(tokenizer, question)?;
    let end_of_document = tokenizer.control("[EOS]").ok_or(AnswerError::MissingToken("[EOS]"))?;
    let stop = [tokenizer.marker(Marker::EndOfMessage), end_of_document];
    let mut reader = Reader::new(question, &stop);
    let mut unknown = None;
    let generation =
        engine.generate(&prompt_tokens, limits.sampling, &stop, limits.max_tokens, &mut |token| match tokenizer
            .token(token)
        {
            Ok(known) => reader.push(token, known, see),
            Err(error) => {
                unknown = Some(error);
                false
            }
        })?;
    if let Some(error) = unknown {
        return Err(error.into());
    }
    let raw_text = String::from_utf8_lossy(&tokenizer.decode(&generation.tokens)?).into_owned();
    let (text, reasoning, tool_calls) = reader.finish(see);
    let finish_reason = match generation.finish {
        Finish::Stop if !tool_calls.is_empty() => FinishReason::ToolCalls,
        Finish::Stop | Finish::Cancelled => FinishReason::Stop,
        Finish::Length => FinishReason::Length,
    };
    Ok(Answer { prompt_tokens, generation, raw_text, text, reasoning, tool_calls, finish_reason })
}

/// The tokens of a question.
///
/// # Errors
/// See [`AnswerError`].
pub fn prompt(tokenizer: &Tokenizer, question: &Question) -> Result<Vec<u32>, AnswerError> {
    match question {
        Question::Raw(text) => {
            let mut tokens = vec![tokenizer.control("[BOS]").ok_or(AnswerError::MissingToken("[BOS]"))?];
            tokenizer.encode(text, &mut tokens);
            Ok(tokens)
        }
        Question::Chat(request) => Ok(encode_request(tokenizer, request)?),
    }
}

/// Reads tokens back, as they are made.
enum Reader<'a> {
    Raw { stop: &'a [u32], stream: Utf8Stream, text: String },
    Chat(Box<Parser>),
}

impl<'a> Reader<'a> {
    fn new(question: &Question, stop: &'a [u32]) -> Self {
        match question {
            Question::Raw(_) => Self::Raw { stop, stream: Utf8Stream::default(), text: String::new() },
            Question::Chat(request) => Self::Chat(Box::new(Parser::new(Channel::first(request.thinking), "call_"))),
        }
    }

    fn push(&mut self, id: u32, token: Token<'_>, see: &mut dyn FnMut(Piece) -> bool) -> bool {
        match self {
            Self::Raw { stop, stream, text } => {
                if stop.contains(&id) {
                    return true;
                }
                let start = text.len();
                match token {
                    Token::Text(bytes) => stream.push(bytes, text),
                    Token::Control(name) => text.push_str(name),
                    Token::Marker(marker) => text.push_str(marker.name()),
                    Token::EndOfDocument => {}
                }
                text.len() == start || see(Piece::Text(text[start..].into()))
            }
            Self::Chat(parser) => show(parser.push(token), see),
        }
    }

    fn finish(self, see: &mut dyn FnMut(Piece) -> bool) -> (String, String, Vec<ToolCall>) {
        match self {
            Self::Raw { mut stream, mut text, .. } => {
                let start = text.len();
                stream.finish(&mut text);
                if text.len() > start {
                    see(Piece::Text(text[start..].into()));
                }
                (text, String::new(), Vec::new())
            }
            Self::Chat(parser) => {
                let (events, completion) = parser.finish();
                show(events, see);
                (completion.text, completion.reasoning, completion.tool_calls)
            }
        }
    }
}

fn show(events: Vec<Event>, see: &mut dyn FnMut(Piece) -> bool) -> bool {
    events.into_iter().all(|event| match event {
        Event::Text(text) => see(Piece::Text(text)),
        Event::Reasoning(text) => see(Piece::Reasoning(text)),
        _ => true,
    })
}
