//! Prompts, spelled out.
#![allow(clippy::unwrap_used)]

use model::chat::{Piece, RenderError, Request, render};
use serde_json::{Value, json};

fn request(value: Value) -> Request {
    serde_json::from_value(value).unwrap()
}

/// The prompt with its markers spelled out.
fn text(value: Value) -> String {
    let request = request(value);
    let pieces = render(&request).unwrap();
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Marker(marker) => marker.name(),
            Piece::Text(text) => text,
        })
        .collect()
}

const USER: &str = "<|open|>message role=\"user\"<|sep|>hi<|close|>message<|sep|><|end_of_msg|>";
const REPLY: &str = "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>";

fn user() -> Value {
    json!({"role": "user", "content": "hi"})
}

fn system(kind: &str, body: &str) -> String {
    format!("<|open|>message role=\"system\" type=\"{kind}\"<|sep|>{body}<|close|>message<|sep|><|end_of_msg|>")
}

#[test]
fn an_attribute_is_four_text_pieces_and_empty_pieces_are_dropped() {
    let request = request(json!({"messages": [{"role": "user", "name": "a&\"b", "content": ""}]}));
    let pieces = render(&request).unwrap();
    let texts: Vec<_> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Marker(marker) => marker.name(),
            Piece::Text(text) => text,
        })
        .collect();
    assert_eq!(
        texts[..13],
        [
            "<|open|>",
            "message",
            " role",
            "=\"",
            "user",
            "\"",
            " name",
            "=\"",
            "a&amp;&quot;b",
            "\"",
            "<|sep|>",
            "<|close|>",
            "message"
        ]
    );
}

#[test]
fn the_order_is_tools_effort_messages_choice_format_reply() {
    let tool =
        json!({"type": "function", "function": {"name": "f", "description": "é", "parameters": {"b": 1, "a": 2}}});
    let prompt =
        text(json!({"messages": [user()], "tools": [tool], "thinking_effort": "high", "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "object", "a": []}}}}));
    let declare = "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n[{\"function\":{\"description\":\"é\",\"name\":\"f\",\"parameters\":{\"a\":2,\"b\":1}},\"type\":\"function\"}]\n```";
    let effort = "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), supported values include `low`, `medium`, `high`, and `max`.\nNow the system is invoked with `thinking_effort=high`.";
    let choice = "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.";
    let format = "The system is invoked with `response_format=json_schema`.\nYour response must be raw JSON data without markdown code blocks (```json) or any additional formatting.\nThe JSON data must match the following schema:\n```json\n{\"a\":[],\"type\":\"object\"}\n```";
    let expected = [
        system("tool-declare", declare),
        system("thinking-effort", effort),
        USER.to_owned(),
        system("tool-choice", choice),
        system("response-format", format),
        REPLY.to_owned(),
    ];
    assert_eq!(prompt, expected.concat());
}

#[test]
fn without_thinking_there_is_no_effort_and_no_think_channel() {
    let past = json!({"role": "assistant", "content": "yo", "reasoning_content": "why"});
    let prompt =
        text(json!({"messages": [past, user()], "thinking": false, "thinking_effort": "max", "tool_choice": "none",
        "response_format": {"type": "json_object"}, "tools": []}));
    let none = "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.";
    let format = "The system is invoked with `response_format=json_object`.\nYour response must be raw JSON data without markdown code blocks (```json) or any additional formatting.";
    let expected = [
        "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>yo<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>",
        USER,
        &system("tool-choice", none),
        &system("response-format", format),
        "<|open|>message role=\"assistant\"<|sep|><|open|>response<|sep|>",
    ];
    assert_eq!(prompt, expected.concat());
}

fn assistant(think: &str, rest: &str) -> String {
    format!(
        "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>{think}<|close|>think<|sep|><|open|>response<|sep|><|close|>response<|sep|>{rest}<|close|>message<|sep|><|end_of_msg|>{REPLY}"
    )
}

#[test]
fn every_past_turn_has_a_think_channel_even_if_nothing_was_thought() {
    for (given, shown) in
        [(json!({"reasoning": "why"}), "why"), (json!({"reasoning_content": " \n"}), ""), (json!({}), "")]
    {
        let mut message = json!({"role": "assistant", "content": null});
        message.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        assert_eq!(text(json!({"messages": [message]})), assistant(shown, ""));
    }
}

fn past_call(arguments: Value) -> String {
    let call = json!({"id": "x", "type": "function", "function": {"name": "f", "arguments": arguments}});
    text(json!({"messages": [{"role": "assistant", "tool_calls": [call]}]}))
}

fn shown_call(inside: &str) -> String {
    let call = format!("<|open|>call tool=\"f\" index=\"1\"<|sep|>{inside}<|close|>call<|sep|>");
    assistant("", &format!("<|open|>tools<|sep|>{call}<|close|>tools<|sep|>"))
}

fn shown_argument(key: &str, kind: &str, value: &str) -> String {
    format!("<|open|>argument key=\"{key}\" type=\"{kind}\"<|sep|>{value}<|close|>argument<|sep|>")
}

#[test]
fn past_arguments_keep_the_letters_and_order_they_had() {
    let json = r#" {"s":"a \"b\" \u00e9","n":1e2,"b":false,"z":null,"o":{"y":1,"x": 2},"a":[1,2],"e":""} "#;
    let inside = [
        shown_argument("s", "string", "a \"b\" é"),
        shown_argument("n", "number", "1e2"),
        shown_argument("b", "boolean", "false"),
        shown_argument("z", "null", "null"),
        shown_argument("o", "object", "{\"y\":1,\"x\": 2}"),
        shown_argument("a", "array", "[1,2]"),
        shown_argument("e", "string", ""),
    ];
    assert_eq!(past_call(json!(json)), shown_call(&inside.concat()));
}

#[test]
fn arguments_given_as_an_object_are_written_as_the_vendor_does() {
    let inside = shown_argument("o", "object", "{\"y\": [1, 2.0]}") + &shown_argument("s", "string", "v");
    assert_eq!(past_call(json!({"o": {"y": [1, 2.0]}, "s": "v"})), shown_call(&inside));
}

#[test]
fn arguments_that_are_no_object_go_into_a_json_child() {
    for raw in ["{broken", "[1]", "7", "\"s\""] {
        let child = format!("<|open|>json type=\"object\"<|sep|>{raw}<|close|>json<|sep|>");
        assert_eq!(past_call(json!(raw)), shown_call(&child), "{raw}");
    }
    for nothing in [json!(""), json!(" "), json!("{}"), json!({}), Value::Null] {
        assert_eq!(past_call(nothing), shown_call(""));
    }
}

#[test]
fn of_a_repeated_argument_the_last_value_counts() {
    let inside = shown_argument("a", "number", "3") + &shown_argument("b", "number", "2");
    assert_eq!(past_call(json!(r#"{"a":1,"b":2,"a":3}"#)), shown_call(&inside));
}

/// Name, index and content of each tool result.
fn results(results: Value) -> Vec<String> {
    let call = |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": "{}"}});
    let mut messages = vec![json!({"role": "assistant", "tool_calls": [call("a", "f"), call("b", "g")]})];
    messages.extend(results.as_array().unwrap().clone());
    let prompt = text(json!({"messages": messages}));
    let (_, shown) = prompt.split_once("<|end_of_msg|>").unwrap();
    let shown = shown.strip_suffix(REPLY).unwrap();
    let clean =
        |result: &str| result.replace("<|open|>message role=\"tool\" ", "").replace("<|close|>message<|sep|>", "");
    shown.split_terminator("<|end_of_msg|>").map(clean).collect()
}

fn result(id: Option<&str>, name: Option<&str>, content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "name": name, "content": content})
}

#[test]
fn results_that_all_name_their_calls_take_the_order_and_names_of_the_calls() {
    let shown = results(json!([result(Some("b"), Some("stale"), "2"), result(Some("a"), None, "1")]));
    assert_eq!(shown, ["tool=\"f\" index=\"1\"<|sep|>1", "tool=\"g\" index=\"2\"<|sep|>2"]);
}

#[test]
fn a_run_with_a_result_of_no_call_keeps_its_order() {
    let shown = results(json!([result(Some("b"), Some("g"), "2"), result(Some("z"), Some("h"), "1")]));
    assert_eq!(shown, ["tool=\"g\" index=\"1\"<|sep|>2", "tool=\"h\" index=\"2\"<|sep|>1"]);
}

#[test]
fn a_result_without_a_name_is_of_the_call_in_its_place() {
    assert_eq!(
        results(json!([result(None, None, "1"), result(None, None, "2")])),
        ["tool=\"f\" index=\"1\"<|sep|>1", "tool=\"g\" index=\"2\"<|sep|>2"]
    );
    let request = request(json!({"messages": [user(), result(Some("a"), None, "1")]}));
    assert_eq!(render(&request), Err(RenderError::NameTool { message: 1 }));
}

#[test]
fn a_system_message_with_tools_declares_them() {
    let declare = "## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\nYou have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n```json\n[{\"a\":1,\"b\":2}]\n```";
    let message =
        |content: Value| json!({"messages": [{"role": "system", "content": content, "tools": [{"b": 2, "a": 1}]}]});
    assert_eq!(text(message(Value::Null)), system("tool-declare", declare) + REPLY);
    assert_eq!(text(message(json!(""))), system("tool-declare", declare) + REPLY);
    assert_eq!(render(&request(message(json!("x")))), Err(RenderError::DeclareTools { message: 0 }));
}

#[test]
fn images_and_forced_functions_are_refused() {
    let image =
        json!({"messages": [user(), {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]});
    assert_eq!(render(&request(image)), Err(RenderError::PlacePart { message: 1, kind: "image_url".to_owned() }));
    let forced = json!({"messages": [], "tool_choice": {"type": "function", "function": {"name": "f"}}});
    assert_eq!(render(&request(forced)), Err(RenderError::ChooseTool { name: "f".to_owned() }));
}
