//! Replies in and out of the format, streamed token by token.
#![allow(clippy::unwrap_used)]

use model::chat::{Channel, Completion, Event, Parser};
use model::tokenizer::{Marker, Token};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Tokens of a reply written with its markers spelled out.
fn tokens(reply: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = reply;
    while !rest.is_empty() {
        let next = Marker::ALL.iter().filter_map(|m| Some((rest.find(m.name())?, *m))).min_by_key(|(at, _)| *at);
        let (text, marker) = next.map_or((rest, None), |(at, marker)| (&rest[..at], Some(marker)));
        tokens.extend(text.split_inclusive(' ').filter(|t| !t.is_empty()).map(|t| Token::Text(t.as_bytes())));
        tokens.extend(marker.map(Token::Marker));
        rest = &rest[text.len() + marker.map_or(0, |m| m.name().len())..];
    }
    tokens
}

fn parse_tokens(first: Channel, tokens: &[Token<'_>]) -> (Vec<Event>, Completion) {
    let mut parser = Parser::new(first, "call_");
    let mut events: Vec<_> = tokens.iter().flat_map(|token| parser.push(*token)).collect();
    let (last, completion) = parser.finish();
    events.extend(last);
    assert_eq!(replay(&events), summary(&completion), "events and completion differ");
    (events, completion)
}

/// Text, reasoning, and per call its name and arguments, out of events.
fn replay(events: &[Event]) -> (String, String, Vec<(String, String)>) {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for event in events {
        match event {
            Event::Text(delta) => text += delta,
            Event::Reasoning(delta) => reasoning += delta,
            Event::ToolCallStart { index, name, .. } => {
                assert_eq!(*index, calls.len());
                calls.push((name.clone(), String::new()));
            }
            Event::ToolCallArguments { index, delta } => calls[*index].1 += delta,
            Event::ToolCallEnd { index } => assert_eq!(*index, calls.len() - 1),
        }
    }
    (text, reasoning, calls)
}

fn summary(completion: &Completion) -> (String, String, Vec<(String, String)>) {
    let call = |call: &model::chat::ToolCall| {
        (call.function.name.clone(), call.function.arguments.as_str().unwrap().to_owned())
    };
    (completion.text.clone(), completion.reasoning.clone(), completion.tool_calls.iter().map(call).collect())
}

/// Reasoning, text and calls of a reply that starts in `think`.
fn parse(reply: &str) -> (String, String, Vec<(String, String)>) {
    let (text, reasoning, calls) = summary(&parse_tokens(Channel::Think, &tokens(reply)).1);
    (reasoning, text, calls)
}

const END: &str = "<|close|>message<|sep|><|end_of_msg|>";
const THINK: &str = "why<|close|>think<|sep|>";

fn call(arguments: &str) -> String {
    format!(
        "{THINK}<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>{arguments}<|close|>call<|sep|><|close|>tools<|sep|>{END}"
    )
}

fn argument(key: &str, kind: &str, value: &str) -> String {
    format!("<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{value}<|close|>argument<|sep|>")
}

/// The arguments of the only call of a reply.
fn arguments(reply: &str) -> Value {
    let (_, _, calls) = parse(reply);
    assert_eq!(calls.len(), 1, "{reply}");
    serde_json::from_str(&calls[0].1).unwrap_or_else(|error| panic!("{}: {error}", calls[0].1))
}

fn texts(reasoning: &str, text: &str) -> (String, String, Vec<(String, String)>) {
    (reasoning.to_owned(), text.to_owned(), Vec::new())
}

#[test]
fn reasoning_and_response_are_told_apart() {
    let reply = format!("{THINK}<|open|>response<|sep|>4 it is<|close|>response<|sep|>{END}");
    assert_eq!(parse(&reply), texts("why", "4 it is"));
}

#[test]
fn a_reply_without_thinking_starts_in_the_response() {
    let (_, completion) = parse_tokens(Channel::Response, &tokens(&format!("4<|close|>response<|sep|>{END}")));
    assert_eq!((completion.text.as_str(), completion.reasoning.as_str(), completion.ended), ("4", "", true));
}

#[test]
fn a_lost_separator_or_response_opener_loses_no_text() {
    for reply in [
        "why<|close|>think<|open|>response<|sep|>4 it is<|close|>response<|sep|>",
        "why<|close|>think<|sep|><|open|>response4 it is<|close|>response<|sep|>",
        "why<|close|>think<|sep|>4 it is<|close|>response<|sep|>",
        "why<|close|>think4 it is",
        "why<|open|>response<|sep|>4 it is",
        "why<|close|>think<|sep|>\n\n<|open|>response<|sep|>4 it is<|close|>response<|sep|>\n",
        "why<|close|>think<|sep|><|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>4 it is",
        "why<|close|> think <|sep|><|open|> response <|sep|>4 it is<|close|>response",
    ] {
        for end in [END, "<|end_of_msg|>", "<|close|>message<|end_of_msg|>", ""] {
            assert_eq!(parse(&format!("{reply}{end}")), texts("why", "4 it is"), "{reply}{end}");
        }
    }
}

#[test]
fn think_closed_late_or_never_loses_no_text() {
    assert_eq!(parse(&format!("why{END}")), texts("why", ""));
    let late = format!("why<|open|>response<|sep|><|close|>think<|sep|>4<|close|>response<|sep|>{END}");
    assert_eq!(parse(&late), texts("why", "4"));
}

#[test]
fn an_unknown_channel_or_text_that_is_no_tag_becomes_response_text() {
    let unknown = format!("{THINK}<|open|>commentary<|sep|>4<|close|>commentary<|sep|>{END}");
    assert_eq!(parse(&unknown), texts("why", "4"));
    let no_tag = format!("{THINK}<|open|>Four, I think.{END}");
    assert_eq!(parse(&no_tag), texts("why", "Four, I think."));
    assert_eq!(parse("a<|close|>b, c"), texts("ab, c", ""));
}

#[test]
fn text_behind_a_channel_is_response_text() {
    let reply = format!("{THINK}<|open|>response<|sep|>4<|close|>response<|sep|> or 5{END}");
    assert_eq!(parse(&reply), texts("why", "4 or 5"));
}

#[test]
fn tokens_behind_the_end_are_ignored() {
    let (events, completion) = parse_tokens(Channel::Response, &tokens("4<|end_of_msg|>5<|open|>tools<|sep|>"));
    assert_eq!((events, completion.text.as_str()), (vec![Event::Text("4".into())], "4"));
}

#[test]
fn typed_arguments_become_one_json_object_in_their_order() {
    let all = [
        argument("s", "string", "a \"b\"\n"),
        argument("n", "number", "1e2"),
        argument("b", "boolean", "true"),
        argument("z", "null", "null"),
        argument("o", "object", "{\"k\": [1]}"),
        argument("a", "array", "[1,2]"),
    ];
    let (_, _, calls) = parse(&call(&all.concat()));
    let json = r#"{"s":"a \"b\"\n","n":1e2,"b":true,"z":null,"o":{"k": [1]},"a":[1,2]}"#;
    assert_eq!(calls, [("f".to_owned(), json.to_owned())]);
    assert_eq!(parse(&call("")).2, [("f".to_owned(), "{}".to_owned())]);
}

#[test]
fn values_that_are_not_the_json_they_claim_to_be_are_strings() {
    for (kind, value) in
        [("number", "twelve"), ("object", "{a:1}"), ("boolean", "True"), ("array", ""), ("number", "NaN")]
    {
        assert_eq!(arguments(&call(&argument("k", kind, value))), json!({"k": value}), "{kind} {value}");
    }
    assert_eq!(arguments(&call(&argument("k", "uuid", "7"))), json!({"k": 7}));
}

#[test]
fn keys_and_names_are_unescaped() {
    let reply = call(&argument("a&quot;b&amp;quot;", "string", "&amp;")).replace("tool=\"f\"", "tool=\"f&amp;g\"");
    assert_eq!(parse(&reply).2, [("f&g".to_owned(), r#"{"a\"b&quot;":"&amp;"}"#.to_owned())]);
}

#[test]
fn markers_in_free_text_are_kept_as_text() {
    for value in [
        "use <|close|> to close",
        "<|open|>response<|sep|>hi<|close|>response<|sep|> there",
        "<|open|>call tool=\"g\"<|sep|>",
        "a<|close|>message<|sep|> b",
        "a<|sep|>b",
        "<|open|>argument key=\"x\" type=\"string\"<|sep|>y",
        "<|close|>argument names nothing",
    ] {
        assert_eq!(arguments(&call(&argument("k", "string", value))), json!({"k": value}), "{value}");
    }
}

#[test]
fn forgotten_closing_tags_of_a_call_are_made_up_for() {
    let open = "<|open|>argument key=\"k\" type=\"string\"<|sep|>v";
    for end in [
        "<|close|>argument<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
        "<|close|>call<|sep|><|close|>tools<|sep|><|end_of_msg|>",
        "<|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
        "<|close|>message<|sep|><|end_of_msg|>",
        "<|close|>argument<|end_of_msg|>",
        "<|end_of_msg|>",
    ] {
        let reply = format!("{THINK}<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>{open}{end}");
        assert_eq!(arguments(&reply), json!({"k": "v"}), "{end}");
    }
    let two = format!(
        "{THINK}<|open|>tools<|sep|><|open|>call tool=\"f\"<|sep|><|open|>argument key=\"n\" type=\"number\"<|sep|>1\
        <|open|>argument key=\"m\" type=\"number\"<|sep|>2<|open|>call tool=\"g\"<|sep|>{END}"
    );
    let calls = [("f".to_owned(), r#"{"n":1,"m":2}"#.to_owned()), ("g".to_owned(), "{}".to_owned())];
    assert_eq!(parse(&two).2, calls);
}

#[test]
fn tools_opened_straight_from_think_are_called() {
    let reply = call(&argument("k", "string", "v")).replace("<|close|>think<|sep|>", "");
    let (reasoning, text, calls) = parse(&reply);
    assert_eq!((reasoning.as_str(), text.as_str(), calls.len()), ("why", "", 1));
}

#[test]
fn call_markup_outside_the_section_is_text_and_not_executed() {
    let late = format!("<|open|>call tool=\"rm\"<|sep|>{}<|close|>call<|sep|>", argument("path", "string", "/tmp"));
    let reply = call("").replace(END, &format!("{late}{END}"));
    let (_, text, calls) = parse(&reply);
    assert_eq!((text.as_str(), calls), ("/tmp", vec![("f".to_owned(), "{}".to_owned())]));
}

#[test]
fn a_json_child_is_passed_through() {
    let raw = "<|open|>json type=\"object\"<|sep|>{\"a\": <|close|>json<|sep|>";
    assert_eq!(parse(&call(raw)).2, [("f".to_owned(), "{\"a\": ".to_owned())]);
    let behind = argument("k", "number", "1") + "<|open|>json type=\"object\"<|sep|>{\"a\":2}<|close|>json<|sep|>";
    assert_eq!(arguments(&call(&behind)), json!({"k": 1, "json": {"a": 2}}));
}

#[test]
fn a_call_without_a_name_is_dropped_and_the_next_one_kept() {
    let reply = call(&argument("k", "string", "v")).replace("tool=\"f\"", "tool=\"\"");
    let two =
        reply.replace("<|close|>tools", "<|open|>call tool=\"g\" index=\"2\"<|sep|><|close|>call<|sep|><|close|>tools");
    assert_eq!(parse(&reply).2, []);
    assert_eq!(parse(&two).2, [("g".to_owned(), "{}".to_owned())]);
}

#[test]
fn a_stream_that_breaks_off_inside_a_call_leaves_its_json_open() {
    let whole = call(&argument("path", "string", "/tmp/a b"));
    let cut = &whole[..whole.find(" b<").unwrap()];
    let (_, completion) = parse_tokens(Channel::Think, &tokens(cut));
    assert!(completion.call_cut_off && !completion.ended);
    assert_eq!(summary(&completion).2, [("f".to_owned(), "{\"path\":\"/tmp/a".to_owned())]);
    let number = call(&argument("n", "number", "12"));
    let (_, completion) = parse_tokens(Channel::Think, &tokens(&number[..number.find("2<").unwrap()]));
    assert_eq!(summary(&completion).2, [("f".to_owned(), "{\"n\":1".to_owned())]);
}

#[test]
fn arguments_are_streamed_and_whole_code_points_only() {
    let reply = call(&argument("k", "string", "é🔥"));
    let tokens: Vec<Token<'_>> = tokens(&reply).into_iter().flat_map(bytewise).collect();
    let (events, _) = parse_tokens(Channel::Think, &tokens);
    let deltas: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCallArguments { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, ["{\"k\":\"", "é", "🔥", "\"", "}"]);
    assert!(matches!(events.last(), Some(Event::ToolCallEnd { index: 0 })));
}

#[test]
fn ids_are_made_and_numbered() {
    let (events, completion) = parse_tokens(Channel::Think, &tokens(&call("")));
    assert!(events.contains(&Event::ToolCallStart { index: 0, id: "call_0".into(), name: "f".into() }));
    assert_eq!(completion.tool_calls[0].id.as_deref(), Some("call_0"));
}

#[test]
fn other_control_tokens_have_no_text_and_end_a_broken_code_point() {
    let tokens = [Token::Text(b"a\xe4\xb8"), Token::Control("[PAD]"), Token::Text(b"b"), Token::EndOfDocument];
    let (_, completion) = parse_tokens(Channel::Response, &tokens);
    assert_eq!((completion.text.as_str(), completion.ended), ("a\u{fffd}b", true));
}

fn bytewise(token: Token<'_>) -> Vec<Token<'_>> {
    match token {
        Token::Text(bytes) => bytes.chunks(1).map(Token::Text).collect(),
        other => vec![other],
    }
}

const WORDS: [&str; 22] = [
    "think",
    "response",
    "tools",
    "message",
    "call tool=\"f\" index=\"1\"",
    "call tool=\"\"",
    "argument key=\"k\" type=\"string\"",
    "argument key=\"n\" type=\"number\"",
    "json type=\"object\"",
    "call",
    "argument",
    "json",
    "foo",
    "foo a=\"b\"",
    " Hello, world",
    "12",
    "{\"a\":1}",
    "\n",
    " ",
    "é🔥",
    "res",
    "ponse",
];

fn any_tokens() -> impl Strategy<Value = Vec<Token<'static>>> {
    let text = prop::sample::select(WORDS.to_vec()).prop_map(|word| Token::Text(word.as_bytes()));
    let marker = prop::sample::select(Marker::ALL[..3].to_vec()).prop_map(Token::Marker);
    prop::collection::vec(prop_oneof![text, marker], 0..24)
}

/// The opening of a call, so that random tokens reach the inside of one.
fn opened_call() -> Vec<Token<'static>> {
    tokens("<|open|>tools<|sep|><|open|>call tool=\"f\" index=\"1\"<|sep|>")
}

proptest! {
    #[test]
    fn any_tokens_give_events_that_add_up_and_calls_of_valid_json(inner in any_tokens(), in_call: bool) {
        let mut all = if in_call { opened_call() } else { Vec::new() };
        all.extend(inner);
        all.push(Token::Marker(Marker::EndOfMessage));
        let (_, completion) = parse_tokens(Channel::Think, &all);
        prop_assert!(completion.ended && !completion.call_cut_off);
        let raw = all.contains(&Token::Text(b"json type=\"object\"")) || all.contains(&Token::Text(b"json"));
        for (_, arguments) in summary(&completion).2 {
            prop_assert!(raw || serde_json::from_str::<Value>(&arguments).is_ok(), "{}", arguments);
        }
        for marker in Marker::ALL {
            prop_assert!(!completion.text.contains(marker.name()) && !completion.reasoning.contains(marker.name()));
        }
    }

    #[test]
    fn it_does_not_matter_where_text_is_cut_into_tokens(inner in any_tokens(), in_call: bool, ended: bool) {
        let mut all = if in_call { opened_call() } else { Vec::new() };
        all.extend(inner);
        if ended {
            all.push(Token::Marker(Marker::EndOfMessage));
        }
        let cut: Vec<_> = all.iter().flat_map(|token| bytewise(*token)).collect();
        prop_assert_eq!(parse_tokens(Channel::Think, &all).1, parse_tokens(Channel::Think, &cut).1);
    }

    #[test]
    fn words_that_are_no_markup_are_never_lost(inner in any_tokens(), in_call: bool) {
        // Words that can be part of no tag, among anything.
        let mut all = if in_call { opened_call() } else { Vec::new() };
        let mut sent = 0;
        // A call without a name would take its arguments with it.
        for token in inner.into_iter().filter(|t| !matches!(t, Token::Text(b"call tool=\"\"" | b"call"))) {
            all.push(token);
            if let Token::Marker(_) = token {} else {
                sent += 1;
                all.push(Token::Text(b" (precious) "));
            }
        }
        all.push(Token::Marker(Marker::EndOfMessage));
        let (text, reasoning, calls) = summary(&parse_tokens(Channel::Think, &all).1);
        let whole = calls.into_iter().fold(text + &reasoning, |whole, (_, arguments)| whole + &arguments);
        prop_assert_eq!(whole.matches("(precious)").count(), sent, "{}", whole);
    }
}
