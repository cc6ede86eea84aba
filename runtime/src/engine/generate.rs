//! Requests: a prompt in, tokens out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::address::GpuVa;
use model::sampling::{LogProbs, SamplingParams, log_probs};

use super::{Engine, EngineError};
use crate::plan::pitch;

/// How tokens are chosen, which is done on the GPUs. The default takes the most likely ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampling {
    /// What is drawn.
    pub params: SamplingParams,
    /// Log probabilities are wanted of each chosen token and of so many of the most likely ones. The host computes them
    /// from logits read back, so nothing runs ahead.
    pub log_probs: Option<usize>,
}

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// A stop token.
    Stop,
    /// The limit of tokens, or the context is full.
    Length,
    /// The caller wanted no more.
    Cancelled,
}

/// What a request gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// Tokens made, the stop token included.
    pub tokens: Vec<u32>,
    /// Log probabilities of each token, if wanted.
    pub log_probs: Vec<LogProbs>,
    /// Why it ended.
    pub finish: Finish,
    /// Time of the prefill, up to the first token.
    pub prefill: Duration,
    /// Time of all tokens after the first.
    pub decode: Duration,
}

impl Engine {
    /// Answers `prompt` from an empty context: makes tokens until one is in `stop`, `max_tokens` are made, the context is
    /// full or `on_token` says false.
    ///
    /// # Errors
    /// See [`EngineError`]. After an error the engine is of no use any more if a GPU faulted; else it can go on.
    pub fn generate(
        &mut self,
        prompt: &[u32],
        sampling: Sampling,
        stop: &[u32],
        max_tokens: usize,
        on_token: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Generation, EngineError> {
        let room = self.room(prompt)?;
        self.set_sampling(sampling.params)?;
        let limit = max_tokens.min(room);
        let start = Instant::now();
        self.reset()?;
        let (mut tokens, mut log_probs) = (Vec::new(), Vec::new());
        let mut next = self.prefill_prompt(prompt)?;
        let mut prefill = start.elapsed();
        let mut finish = Finish::Length;
        let decode = Arc::clone(&self.decode);
        // Logits and time stamps have to be read before the next run writes them again.
        let is_read = sampling.log_probs.is_some() || self.options.timed;
        let ahead = if is_read { 0 } else { self.options.run_ahead };
        let mut in_flight = 0;
        while tokens.len() < limit {
            if let Some(count) = sampling.log_probs {
                log_probs.push(self.log_probs(next, count)?);
            }
            if tokens.is_empty() {
                prefill = start.elapsed();
            }
            tokens.push(next);
            let go_on = on_token(next);
            if stop.contains(&next) {
                finish = Finish::Stop;
                break;
            }
            if !go_on {
                finish = Finish::Cancelled;
                break;
            }
            if tokens.len() < limit {
                // Of the tokens still wanted, those up to `run_ahead` beyond the next are worked on already.
                let wanted = (limit - tokens.len()).min(1 + ahead);
                while in_flight < wanted {
                    self.submit(&decode)?;
                    in_flight += 1;
                }
                next = self.collect(&decode, true)?;
                in_flight -= 1;
            }
        }
        self.drain(&decode)?;
        Ok(Generation { tokens, log_probs, finish, prefill, decode: start.elapsed().saturating_sub(prefill) })
    }

    /// The logits of every token of `tokens`, from an empty context: `[tokens][vocabulary]`. The engine must have been
    /// started with [`super::Options::all_logits`].
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn logits(&mut self, tokens: &[u32]) -> Result<Vec<Vec<f32>>, EngineError> {
        self.room(tokens)?;
        self.reset()?;
        let mut logits = Vec::with_capacity(tokens.len());
        for chunk in tokens.chunks(self.options.chunk as usize) {
            self.run_chunk(chunk)?;
            for row in 0..chunk.len() {
                logits.push(self.read_logits(row)?);
            }
        }
        Ok(logits)
    }

    /// Tokens that can follow `prompt`.
    fn room(&self, prompt: &[u32]) -> Result<usize, EngineError> {
        let context = self.options.max_context;
        if prompt.is_empty() {
            return Err(EngineError::EmptyPrompt);
        }
        if prompt.len() > context as usize {
            return Err(EngineError::ContextExceeded { prompt: prompt.len(), context });
        }
        // The last token made need not be run itself, so it needs no place in the caches.
        Ok(context as usize - prompt.len() + 1)
    }

    /// Runs the prompt in chunks; gives the token chosen after it.
    fn prefill_prompt(&mut self, prompt: &[u32]) -> Result<u32, EngineError> {
        let mut next = 0;
        for chunk in prompt.chunks(self.options.chunk as usize) {
            next = self.run_chunk(chunk)?;
        }
        Ok(next)
    }

    fn run_chunk(&mut self, chunk: &[u32]) -> Result<u32, EngineError> {
        let graph = Arc::clone(&self.prefill);
        self.write_run(chunk)?;
        let token = self.run(&graph, true)?;
        self.drain(&graph)?;
        Ok(token)
    }

    /// Has the runs from the next request on choose tokens that way.
    ///
    /// # Errors
    /// A parameter is out of range.
    pub fn set_sampling(&mut self, params: SamplingParams) -> Result<(), EngineError> {
        params.check()?;
        let (scale, top_p) = (params.scale(), params.top_p_fraction());
        self.step.sampling = kernels::Sampling { scale, top_k: params.top_k, top_p, seed: params.seed };
        Ok(())
    }

    /// Log probabilities of `token`, which the last run chose, and of the `count` most likely ones.
    fn log_probs(&mut self, token: u32, count: usize) -> Result<LogProbs, EngineError> {
        self.drain(&Arc::clone(&self.decode))?;
        Ok(log_probs(&self.read_logits(0)?, token, count))
    }

    /// Row `row` of the logits of all ranks, in the order of the vocabulary.
    fn read_logits(&mut self, row: usize) -> Result<Vec<f32>, EngineError> {
        let rows = self.config.vocab_size / self.ranks.len();
        let row_pitch = u64::from(pitch(rows, 4));
        let mut logits = vec![0f32; self.config.vocab_size];
        for (rank, part) in self.ranks.iter_mut().zip(logits.chunks_mut(rows)) {
            let at = GpuVa::new(rank.memory.logits().0 + row as u64 * row_pitch);
            rank.transfers.read(at, bytemuck::cast_slice_mut(part))?;
        }
        Ok(logits)
    }
}
