//! What Kimi K3 is: its config, checkpoint files, tensor-parallel layout, tokenizer, chat format and sampling.
//!
//! This crate touches no GPU. Everything read from outside (config, index, headers, vocabulary, requests) is hostile
//! until checked: each parser is a pure function over bytes that never panics and never allocates more than a bounded
//! multiple of its input.

pub mod chat;
pub mod checkpoint;
pub mod config;
mod file;
#[cfg(feature = "reference")]
pub mod golden;
pub mod layout;
#[cfg(feature = "reference")]
pub mod reference;
pub mod sampling;
pub mod tensor;
pub mod tokenizer;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use config::{Config, ConfigError};
pub use layout::{Layout, LayoutError};
pub use tokenizer::{Tokenizer, TokenizerError};
