//! From the tokens a model writes to reasoning, text and tool calls.
//!
//! Markers are control tokens, so marker-like text inside a reply stays text. The model strays from the format at times;
//! whatever it does, no text is lost, no marker shows, and nothing outside a `tools` section is taken for a call:
//!
//! - a tag without its `<|sep|>`: the tag ends where text begins that cannot belong to it;
//! - text where a channel should have been opened: it is the response;
//! - a channel opened inside another, closed late, or never closed: the last opening counts;
//! - an unknown channel: its text is response text;
//! - tags that close inside a call's free text what is not the innermost element: literal text if text follows, else the
//!   closing tags before them were forgotten;
//! - a message that ends inside a call: the call is closed. If the stream breaks off without an end of message, its
//!   JSON stays open.

mod call;
mod tag;

use serde_json::Value;

use self::call::Call;
use self::tag::{Scan, Tag, scan};
use super::{Channel, Function, ToolCall};
use crate::tokenizer::{Marker, Token, Tokenizer, TokenizerError, Utf8Stream};

/// A piece of news from the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// More reasoning.
    Reasoning(String),
    /// More of the response.
    Text(String),
    /// A call begins. Calls are numbered from 0.
    ToolCallStart {
        /// Which call.
        index: usize,
        /// Its id, made here: the model writes none.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of the JSON text of a call's arguments.
    ToolCallArguments {
        /// Which call.
        index: usize,
        /// JSON text.
        delta: String,
    },
    /// A call's arguments are complete.
    ToolCallEnd {
        /// Which call.
        index: usize,
    },
}

/// Everything a reply held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// The response.
    pub text: String,
    /// The reasoning.
    pub reasoning: String,
    /// The calls in OpenAI form, arguments as JSON text in a string.
    pub tool_calls: Vec<ToolCall>,
    /// Whether the model ended the message; else it was cut off.
    pub ended: bool,
    /// Whether the last call was cut off: its arguments are the beginning of JSON.
    pub call_cut_off: bool,
}

/// Where in the message the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Channel(Channel),
    /// Behind a channel or section; text here opens the response.
    Between,
    /// In the tools section, outside of calls.
    Tools,
    /// In a call.
    Call,
}

/// An opening or closing marker with the text behind it.
#[derive(Debug)]
struct Pending {
    closing: bool,
    text: String,
}

impl Pending {
    fn literal(&self) -> String {
        let marker = if self.closing { Marker::Close } else { Marker::Open };
        format!("{}{}", marker.name(), self.text)
    }
}

/// Follows one reply, token by token.
#[derive(Debug)]
pub struct Parser {
    id_prefix: String,
    decoder: Utf8Stream,
    place: Place,
    pending: Option<Pending>,
    /// A closing tag inside free text of a call that names an outer element: its name and its literal text.
    outer_close: Option<(String, String)>,
    /// Whitespace between elements, which counts only if text follows.
    space: String,
    /// The open call, and its number unless it has no name and is dropped.
    call: Call,
    call_index: Option<usize>,
    arguments: Vec<String>,
    completion: Completion,
    events: Vec<Event>,
}

impl Parser {
    /// A parser for a reply that starts in `first`. Call n gets the id `{id_prefix}{n}`.
    pub fn new(first: Channel, id_prefix: impl Into<String>) -> Self {
        Self {
            id_prefix: id_prefix.into(),
            decoder: Utf8Stream::default(),
            place: Place::Channel(first),
            pending: None,
            outer_close: None,
            space: String::new(),
            call: Call::default(),
            call_index: None,
            arguments: Vec::new(),
            completion: Completion::default(),
            events: Vec::new(),
        }
    }

    /// Whether the message has ended; tokens behind its end are ignored.
    pub fn ended(&self) -> bool {
        self.completion.ended
    }

    /// Takes a token in; gives the news.
    pub fn push(&mut self, token: Token<'_>) -> Vec<Event> {
        if !self.completion.ended {
            match token {
                Token::Text(bytes) => {
                    let mut text = String::new();
                    self.decoder.push(bytes, &mut text);
                    self.text(&text);
                }
                Token::Marker(marker) => self.marker(marker),
                Token::EndOfDocument => self.marker(Marker::EndOfMessage),
                // No other control token has a meaning in a reply.
                Token::Control(_) => self.end_code_point(),
            }
        }
        std::mem::take(&mut self.events)
    }

    /// Ends the stream: gives the news that was held back, and the whole.
    pub fn finish(mut self) -> (Vec<Event>, Completion) {
        if !self.completion.ended {
            self.end_code_point();
            self.end_outer_close();
            self.cut_off_pending();
            if self.place == Place::Call {
                let rest = self.call.break_off();
                self.argument_text(rest);
                self.completion.call_cut_off = self.call_index.is_some();
            }
        }
        for (call, arguments) in self.completion.tool_calls.iter_mut().zip(self.arguments) {
            call.function.arguments = Value::String(arguments);
        }
        (self.events, self.completion)
    }

    fn end_code_point(&mut self) {
        let mut text = String::new();
        self.decoder.finish(&mut text);
        self.text(&text);
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some((_, literal)) = &mut self.outer_close {
            literal.push_str(text);
            if text.trim().is_empty() {
                return;
            }
            let literal = std::mem::take(literal);
            self.outer_close = None;
            return self.content(&literal);
        }
        let Some(pending) = &mut self.pending else { return self.content(text) };
        pending.text.push_str(text);
        let Some(mut pending) = self.pending.take() else { return };
        match scan(&pending.text, pending.closing) {
            Scan::Partial(_) => self.pending = Some(pending),
            Scan::Tag(tag, rest) => {
                // What closes an argument is followed by another marker; text behind it means that it is quoted.
                if self.call.in_free_text() {
                    return self.not_a_tag(&pending, "");
                }
                let rest = rest.to_owned();
                pending.text.truncate(pending.text.len() - rest.len());
                self.tag(&pending, &tag, "");
                self.content(&rest);
            }
            Scan::Text => self.not_a_tag(&pending, ""),
        }
    }

    fn marker(&mut self, marker: Marker) {
        self.end_code_point();
        self.end_outer_close();
        match marker {
            Marker::Sep => match self.pending.take() {
                Some(pending) => self.end_tag(&pending, Marker::Sep.name()),
                None if self.call.in_free_text() => self.content(Marker::Sep.name()),
                None => {}
            },
            Marker::Open | Marker::Close => {
                self.end_pending();
                self.pending = Some(Pending { closing: marker == Marker::Close, text: String::new() });
            }
            Marker::EndOfMessage => {
                self.end_pending();
                self.end_call();
                self.completion.ended = true;
            }
        }
    }

    /// A marker or the end of the stream interrupts a tag.
    fn end_pending(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.end_tag(&pending, "");
        }
    }

    /// The stream breaks off inside a tag.
    fn cut_off_pending(&mut self) {
        if let Some(pending) = self.pending.take() {
            match scan(&pending.text, pending.closing) {
                Scan::Partial(tag) if tag.is_known() => self.tag(&pending, &tag, ""),
                Scan::Partial(tag) if tag.is_unfinished() => {}
                _ => self.not_a_tag(&pending, ""),
            }
        }
    }

    /// A tag ends, with its end marker (`sep`) or without.
    fn end_tag(&mut self, pending: &Pending, sep: &str) {
        match scan(&pending.text, pending.closing) {
            Scan::Partial(tag) if tag.is_known() => self.tag(pending, &tag, sep),
            Scan::Partial(_) if self.call.in_free_text() => self.not_a_tag(pending, sep),
            // Markers around nothing, and the beginning of a name, are markup without meaning.
            Scan::Partial(tag) if tag.name.is_empty() || (sep.is_empty() && tag.is_unfinished()) => {}
            Scan::Partial(tag) if !sep.is_empty() => self.tag(pending, &tag, sep),
            _ => self.not_a_tag(pending, sep),
        }
    }

    /// What looked like a tag is text. In a call's free text the marker is part of it.
    fn not_a_tag(&mut self, pending: &Pending, sep: &str) {
        if self.call.in_free_text() {
            self.content(&(pending.literal() + sep));
        } else {
            self.content(&pending.text);
        }
    }

    fn tag(&mut self, pending: &Pending, tag: &Tag, sep: &str) {
        self.space.clear();
        let Some(innermost) = self.call.value_tag() else {
            return if pending.closing { self.close(&tag.name) } else { self.open(tag) };
        };
        match pending.closing {
            false if self.call.in_free_text() || !matches!(&*tag.name, "argument" | "call") => {
                self.content(&(pending.literal() + sep));
            }
            false => {
                self.end_value();
                self.open(tag);
            }
            true if tag.name == innermost => self.end_value(),
            true if matches!(&*tag.name, "call" | "tools" | "message") => {
                if sep.is_empty() {
                    self.close(&tag.name);
                } else {
                    self.outer_close = Some((tag.name.clone(), pending.literal() + sep));
                }
            }
            true => self.content(&(pending.literal() + sep)),
        }
    }

    /// No text followed an outer closing tag, so it closed something.
    fn end_outer_close(&mut self) {
        if let Some((name, _)) = self.outer_close.take() {
            self.close(&name);
        }
    }

    fn open(&mut self, tag: &Tag) {
        match (&*tag.name, self.place) {
            ("think", _) => self.enter(Place::Channel(Channel::Think)),
            ("tools", _) => self.enter(Place::Tools),
            ("message", _) => self.enter(Place::Between),
            ("call", Place::Tools | Place::Call) => {
                self.enter(Place::Call);
                self.start_call(tag.attribute("tool").unwrap_or_default());
            }
            ("argument", Place::Call) if !self.call.is_raw() => {
                let key = tag.attribute("key").unwrap_or_default();
                let json = self.call.open_argument(key, tag.attribute("type").unwrap_or_default());
                self.argument_text(json);
            }
            ("json", Place::Call) if !self.call.is_raw() => {
                let json = self.call.open_json();
                self.argument_text(json);
            }
            // Text of unknown elements inside the section is response text, but the section goes on.
            (name, Place::Tools | Place::Call) if name != "response" => {}
            // The response, and what only looks like it: unknown channels, call markup outside the section.
            _ => self.enter(Place::Channel(Channel::Response)),
        }
    }

    fn close(&mut self, name: &str) {
        match (name, self.place) {
            ("call", Place::Call) => self.enter(Place::Tools),
            ("tools", Place::Tools | Place::Call) => self.enter(Place::Between),
            ("think" | "response", Place::Channel(_)) | ("message", _) => self.enter(Place::Between),
            _ => {}
        }
    }

    fn enter(&mut self, place: Place) {
        self.end_call();
        self.place = place;
    }

    fn start_call(&mut self, name: &str) {
        self.call = Call::default();
        self.call_index = None;
        if name.is_empty() {
            return;
        }
        let index = self.arguments.len();
        let id = format!("{}{index}", self.id_prefix);
        self.call_index = Some(index);
        self.arguments.push(String::new());
        self.completion.tool_calls.push(ToolCall {
            id: Some(id.clone()),
            kind: "function".to_owned(),
            function: Function { name: name.to_owned(), arguments: Value::Null },
        });
        self.events.push(Event::ToolCallStart { index, id, name: name.to_owned() });
    }

    fn end_value(&mut self) {
        let json = self.call.close_value();
        self.argument_text(json);
    }

    fn end_call(&mut self) {
        if self.place == Place::Call {
            let json = self.call.close();
            self.argument_text(json);
            self.call = Call::default();
            if let Some(index) = self.call_index.take() {
                self.events.push(Event::ToolCallEnd { index });
            }
        }
    }

    /// Text that is no markup.
    fn content(&mut self, text: &str) {
        if self.call.value_tag().is_some() {
            let json = self.call.push(text);
            return self.argument_text(json);
        }
        match self.place {
            Place::Channel(channel) => self.channel_text(channel, text.to_owned()),
            Place::Between | Place::Tools | Place::Call => {
                self.space.push_str(text);
                if !self.space.trim().is_empty() {
                    if self.place == Place::Between {
                        self.place = Place::Channel(Channel::Response);
                    }
                    let text = std::mem::take(&mut self.space);
                    self.channel_text(Channel::Response, text);
                }
            }
        }
    }

    fn channel_text(&mut self, channel: Channel, text: String) {
        if text.is_empty() {
            return;
        }
        match channel {
            Channel::Think => {
                self.completion.reasoning.push_str(&text);
                self.events.push(Event::Reasoning(text));
            }
            Channel::Response => {
                self.completion.text.push_str(&text);
                self.events.push(Event::Text(text));
            }
        }
    }

    fn argument_text(&mut self, delta: String) {
        if let Some(index) = self.call_index.filter(|_| !delta.is_empty()) {
            self.arguments[index].push_str(&delta);
            self.events.push(Event::ToolCallArguments { index, delta });
        }
    }
}

/// Parses a whole reply.
pub fn parse_completion(tokenizer: &Tokenizer, first: Channel, tokens: &[u32]) -> Result<Completion, TokenizerError> {
    let mut parser = Parser::new(first, "call_");
    for token in tokens {
        parser.push(tokenizer.token(*token)?);
    }
    Ok(parser.finish().1)
}
