//! What a model really takes on the machine at hand.

use std::path::Path;
use std::time::Duration;

use model::checkpoint::Checkpoint;
use model::config::Config;

use crate::engine::{Engine, Options, Sampling};
use crate::failure::Failure;
use crate::loader::Progress;
use crate::platform::Platform;

/// Wall time of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// From the request to its first token.
    pub prefill: Duration,
    /// Tokens after the first.
    pub decoded: usize,
    /// What they took together.
    pub decode: Duration,
}

impl Speed {
    /// Tokens of the prompt a second.
    #[must_use]
    pub fn prefill_rate(&self) -> f64 {
        self.prompt as f64 / self.prefill.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Tokens a second after the first; `None` if there are none.
    #[must_use]
    pub fn decode_rate(&self) -> Option<f64> {
        (self.decoded > 0).then(|| self.decoded as f64 / self.decode.as_secs_f64().max(f64::MIN_POSITIVE))
    }
}

/// Loads the checkpoint in `folder`, and has it make `tokens` tokens after a prompt of `prompt` tokens, which says nothing:
/// a token takes as long whatever it is.
///
/// # Errors
/// The checkpoint is refused, or the machine does not do it.
pub fn measure(
    platform: &Platform,
    folder: &Path,
    options: Options,
    prompt: usize,
    tokens: usize,
    progress: &dyn Progress,
) -> Result<Speed, Failure> {
    let config = Config::read(folder).map_err(Failure::input)?;
    let checkpoint = Checkpoint::open(folder, &config).map_err(Failure::input)?;
    let mut engine = Engine::start(platform, &checkpoint, options, progress)?;
    let ids: Vec<u32> = (0..prompt).map(|place| (place * 31 % (config.vocab_size / 2)) as u32).collect();
    let made = engine.generate(&ids, Sampling::default(), &[], tokens, &mut |_| true)?;
    let decoded = made.tokens.len().saturating_sub(1);
    Ok(Speed { prompt, prefill: made.prefill, decoded, decode: made.decode })
}
