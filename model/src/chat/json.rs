//! JSON as the vendor's encoder, a Python program, writes it: the model was trained on those bytes.

use serde_json::Value;

/// Separators of Python's `json.dumps`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spacing {
    /// `,` and `:`.
    Compact,
    /// `, ` and `: `, the default.
    Spaced,
}

/// Compact, with the keys of every object sorted by code point.
pub(super) fn compact_sorted(value: &Value) -> String {
    let mut out = String::new();
    write(value, Spacing::Compact, true, &mut out);
    out
}

/// With spaces, keys in their own order.
pub(super) fn spaced(value: &Value) -> String {
    let mut out = String::new();
    write(value, Spacing::Spaced, false, &mut out);
    out
}

fn write(value: &Value, spacing: Spacing, sorted: bool, out: &mut String) {
    let (comma, colon) = match spacing {
        Spacing::Compact => (",", ":"),
        Spacing::Spaced => (", ", ": "),
    };
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(bool) => out.push_str(if *bool { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => out.push_str(&python_float(float)),
            None => out.push_str(&number.to_string()),
        },
        Value::String(string) => push_string(string, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { comma });
                write(item, spacing, sorted, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            if sorted {
                fields.sort_by_key(|(key, _)| *key);
            }
            out.push('{');
            for (i, (key, item)) in fields.into_iter().enumerate() {
                out.push_str(if i == 0 { "" } else { comma });
                push_string(key, out);
                out.push_str(colon);
                write(item, spacing, sorted, out);
            }
            out.push('}');
        }
    }
}

/// A JSON string, quotes included; other than what must be, nothing is escaped.
pub(super) fn push_string(text: &str, out: &mut String) {
    out.push('"');
    push_escaped(text, out);
    out.push('"');
}

/// The inside of a JSON string.
pub(super) fn push_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
}

/// Python's `repr`: the digits and the choice of exponent form of Rust's `Debug`, another spelling of the exponent.
fn python_float(float: f64) -> String {
    let text = format!("{float:?}");
    match text.split_once('e') {
        None => text,
        Some((mantissa, exponent)) => match exponent.strip_prefix('-') {
            Some(digits) => format!("{mantissa}e-{digits:0>2}"),
            None => format!("{mantissa}e+{exponent:0>2}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_recursively_and_text_is_kept() {
        let value = json!({"é": [{"b": null, "a": true}], "B": "ü\u{1}\u{7f}\"\\/", "a": -1});
        assert_eq!(
            compact_sorted(&value),
            "{\"B\":\"ü\\u0001\u{7f}\\\"\\\\/\",\"a\":-1,\"é\":[{\"a\":true,\"b\":null}]}"
        );
        assert_eq!(spaced(&json!({"b": [1, 2], "a": {}})), r#"{"b": [1, 2], "a": {}}"#);
    }

    /// The right-hand side is what CPython 3.12 prints for `repr` of each.
    #[test]
    fn floats_are_written_as_python_does() {
        for (float, python) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (100.0, "100.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1.5e300, "1.5e+300"),
            (-2.5e-7, "-2.5e-07"),
            (123456789012345680.0, "1.2345678901234568e+17"),
        ] {
            assert_eq!(python_float(float), python);
        }
    }

    proptest! {
        #[test]
        fn strings_read_back_as_they_were(text in any::<String>()) {
            let mut json = String::new();
            push_string(&text, &mut json);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
