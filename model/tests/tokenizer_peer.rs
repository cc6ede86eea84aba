//! The tokenizer against tiktoken itself.
#![allow(clippy::unwrap_used)]

use model::golden::k3_nano;
use model::{Config, Tokenizer};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    text: String,
    tokens: Vec<u32>,
}

fn tokenizer() -> Tokenizer {
    Tokenizer::read(&k3_nano(), &Config::read(&k3_nano()).unwrap()).unwrap()
}

#[test]
fn texts_encode_to_the_ids_tiktoken_gives_and_decode_back() {
    let tokenizer = tokenizer();
    let cases: Vec<Case> = serde_json::from_str(include_str!("data/tiktoken-k3-nano.json")).unwrap();
    assert_eq!(cases.len(), 80);
    for case in cases {
        let mut tokens = Vec::new();
        tokenizer.encode(&case.text, &mut tokens);
        assert_eq!(tokens, case.tokens, "{:?}", case.text);
        assert_eq!(tokenizer.decode(&tokens).unwrap(), case.text.as_bytes());
    }
}

#[test]
fn control_token_names_in_text_are_encoded_as_text() {
    let tokenizer = tokenizer();
    let mut tokens = Vec::new();
    tokenizer.encode("<|end_of_msg|>[EOS]<|open|>", &mut tokens);
    assert!(tokens.iter().all(|token| *token < 1280));
}

#[test]
fn an_id_outside_the_vocabulary_is_an_error() {
    let error = tokenizer().decode(&[1536]).unwrap_err().to_string();
    assert_eq!(error, "token 1536 is outside the vocabulary of 1536");
}

#[test]
fn a_tokenizer_of_another_model_is_refused() {
    let mut config = Config::read(&k3_nano()).unwrap();
    config.vocab_size += 1;
    assert!(Tokenizer::read(&k3_nano(), &config).is_err());
    config.vocab_size -= 1;
    config.eos_token -= 1;
    assert!(Tokenizer::read(&k3_nano(), &config).is_err());
}
