#![no_main]

#[allow(dead_code, reason = "each target is about one of the parsers")]
#[path = "../../tests/hostile/mod.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hostile::tiktoken(bytes));
