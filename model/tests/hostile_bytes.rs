//! The parsers of a checkpoint's files on damaged ones: bounded runs of what `model/fuzz` does without end.

#![allow(clippy::unwrap_used)]

mod hostile;

use std::fs;
use std::path::Path;

use proptest::prelude::*;

/// Damage to a file, places as shares of its length.
#[derive(Clone, Debug)]
enum Damage {
    Flip { at: f64, bits: u8 },
    Insert { at: f64, text: &'static str },
    Delete { at: f64, bytes: usize },
    Repeat { at: f64, bytes: usize },
    Cut { at: f64 },
}

/// What JSON, safetensors and tiktoken parsers look at.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "null",
    "true",
    "-1",
    "0",
    "1e400",
    "0.5",
    " ",
    "\n",
    "=",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "../",
    "/etc/passwd",
    ".safetensors",
    "\"__metadata__\":{}",
    "\"F4\"",
    "\"shape\":[4294967296,4294967296]",
    "\"data_offsets\":[8,0]",
    "AAAA 0\n",
    "IQ== 1\n",
    "\u{feff}",
    "\u{e9}",
];

fn damage() -> impl Strategy<Value = Damage> {
    let at = || 0.0..1.0;
    prop_oneof![
        4 => (at(), 1u8..).prop_map(|(at, bits)| Damage::Flip { at, bits }),
        4 => (at(), prop::sample::select(WORDS)).prop_map(|(at, text)| Damage::Insert { at, text }),
        2 => (at(), 1usize..40).prop_map(|(at, bytes)| Damage::Delete { at, bytes }),
        2 => (at(), 1usize..200).prop_map(|(at, bytes)| Damage::Repeat { at, bytes }),
        1 => at().prop_map(|at| Damage::Cut { at }),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let place = |at: f64| (at * bytes.len() as f64) as usize;
    match *damage {
        Damage::Flip { at, bits } => {
            let at = place(at);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= bits;
            }
        }
        Damage::Insert { at, text } => {
            let at = place(at);
            bytes.splice(at..at, text.bytes());
        }
        Damage::Delete { at, bytes: count } => {
            let at = place(at);
            bytes.drain(at..(at + count).min(bytes.len()));
        }
        Damage::Repeat { at, bytes: count } => {
            let at = place(at);
            let part = bytes[at..(at + count).min(bytes.len())].to_vec();
            bytes.splice(at..at, part);
        }
        Damage::Cut { at } => bytes.truncate(place(at)),
    }
}

fn nano(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/k3-nano").join(name)).unwrap()
}

/// Gives `parse` the good file, damaged ones, and a few bytes of anything.
fn survive(good: &[u8], parse: fn(&[u8])) {
    parse(good);
    let config = ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(damages in prop::collection::vec(damage(), 1..6), noise in prop::collection::vec(any::<u8>(), 0..64))| {
        let mut bytes = good.to_vec();
        damages.iter().for_each(|damage| apply(&mut bytes, damage));
        parse(&bytes);
        parse(&noise);
    });
}

#[test]
fn headers() {
    let file = nano("model-00006-of-000006.safetensors");
    let json = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let claimed = (file.len() as u64).to_le_bytes();
    survive(&[&claimed[..], &file[..8 + json]].concat(), hostile::header);
}

#[test]
fn indexes() {
    // Few tensors, so that damage hits what matters.
    let entries: Vec<_> = (0..4)
        .map(|i| format!(r#""language_model.model.layers.{i}.mlp.up_proj.weight":"m-{i}.safetensors""#))
        .collect();
    let index = format!(r#"{{"metadata":{{"total_size":1}},"weight_map":{{{}}}}}"#, entries.join(","));
    survive(index.as_bytes(), hostile::index);
}

#[test]
fn configs() {
    survive(&nano("config.json"), hostile::config);
    survive(model::config::OFFICIAL_CONFIG_JSON.as_bytes(), hostile::config);
}

/// Numbers that are JSON but no sizes of a model reach the checks behind the parser.
#[test]
fn configs_with_other_numbers() {
    let text = String::from_utf8(nano("config.json")).unwrap();
    let starts: Vec<_> =
        text.match_indices(": ").map(|(at, _)| at + 2).filter(|at| text.as_bytes()[*at].is_ascii_digit()).collect();
    let value = prop::sample::select(vec![
        "0",
        "1",
        "3",
        "7",
        "128",
        "1048576",
        "16777216",
        "4294967296",
        "1e9",
        "-1",
        "18446744073709551615",
    ]);
    let config = ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(changes in prop::collection::btree_map(0..starts.len(), value, 1..4))| {
        let mut changed = text.clone();
        for (number, value) in changes.iter().rev() {
            let start = starts[*number];
            let end = start + changed[start..].find([',', '\n', '}', ']']).unwrap();
            changed.replace_range(start..end, value);
        }
        hostile::config(changed.as_bytes());
    });
}

#[test]
fn vocabularies() {
    survive(&nano("tiktoken.model")[..8192], hostile::tiktoken);
}

#[test]
fn tokenizer_configs() {
    survive(&nano("tokenizer_config.json"), hostile::tokenizer_config);
}
