//! How tokens are chosen, on the command line and in an answer.

use model::sampling::{LogProb, SamplingParams};
use serde::ser::{Serialize, Serializer};

use crate::engine::Sampling;
use crate::failure::Failure;

#[derive(clap::Args)]
pub(super) struct SamplingArguments {
    /// Draw tokens at this temperature; 0 takes the most likely one, whatever else is said here.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    temperature: f32,
    /// Draw from this many most likely tokens at most; 0 is no limit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    top_k: u32,
    /// Draw from the fewest most likely tokens whose probabilities add up to P; above 0 and at most 1.
    #[arg(long, value_name = "P", default_value_t = 1.0, allow_negative_numbers = true)]
    top_p: f32,
    /// Seed of the draws: with the same, an answer is the same again on as many GPUs. Each request begins its draws anew.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Give the log probability of each token and of the N most likely ones, before temperature and limits. Only with
    /// --json; the host reads all logits of each token for it, so nothing runs ahead.
    #[arg(long, value_name = "N")]
    logprobs: Option<usize>,
}

impl SamplingArguments {
    /// What they ask for.
    pub(super) fn checked(&self, json: bool) -> Result<Sampling, Failure> {
        let &Self { temperature, top_k, top_p, seed, logprobs } = self;
        let params = SamplingParams { temperature, top_k, top_p, seed };
        params.check().map_err(Failure::input)?;
        if logprobs.is_some() && !json {
            return Err(Failure::Input("--logprobs are a part of the JSON answer; ask for it with --json".into()));
        }
        Ok(Sampling { params, log_probs: logprobs })
    }
}

/// Log probabilities by token, as the JSON answer has them.
pub(super) struct LogProbs<'a>(pub(super) &'a [model::sampling::LogProbs]);

#[derive(serde::Serialize)]
struct One {
    token: u32,
    logprob: f64,
}

#[derive(serde::Serialize)]
struct Chosen {
    #[serde(flatten)]
    chosen: One,
    top_logprobs: Vec<One>,
}

impl Serialize for LogProbs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let one = |&LogProb { token, log_prob }: &LogProb| One { token, logprob: log_prob };
        serializer.collect_seq(
            self.0
                .iter()
                .map(|at| Chosen { chosen: one(&at.chosen), top_logprobs: at.most_likely.iter().map(one).collect() }),
        )
    }
}
