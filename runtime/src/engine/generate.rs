//! Requests: a prompt in, tokens out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::address::GpuVa;
use model::sampling::{Sampler, SamplingParams};

use super::{Engine, EngineError};
use crate::plan::pitch;

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// The most likely one, on the GPU; nothing but the token is read back.
    Greedy,
    /// Drawn by the host from logits read back.
    Drawn(SamplingParams),
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
        let mut sampler = match sampling {
            Sampling::Greedy => None,
            Sampling::Drawn(params) => Some(Sampler::new(params)?),
        };
        let limit = max_tokens.min(room);
        let start = Instant::now();
        self.reset()?;
        let mut tokens = Vec::new();
        let mut next = self.prefill_prompt(prompt)?;
        let mut prefill = start.elapsed();
        let mut finish = Finish::Length;
        let decode = Arc::clone(&self.decode);
        // What the host draws, it has to see before the next run, and time stamps before they are written again.
        let ahead = if sampler.is_none() && !self.options.timed { self.options.run_ahead } else { 0 };
        let mut in_flight = 0;
        while tokens.len() < limit {
            if let Some(sampler) = &mut sampler {
                next = self.draw(sampler, tokens.len() as u64)?;
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
        Ok(Generation { tokens, finish, prefill, decode: start.elapsed().saturating_sub(prefill) })
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

    /// Runs the prompt in chunks; gives the most likely token after it.
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

    /// Draws the token after the last run from its logits, and makes it the next run's.
    fn draw(&mut self, sampler: &mut Sampler, draw: u64) -> Result<u32, EngineError> {
        self.drain(&Arc::clone(&self.decode))?;
        let logits = self.read_logits(0)?;
        let token = sampler.sample(&logits, draw)?;
        for rank in &mut self.ranks {
            let ids = rank.address(rank.memory.ids());
            rank.transfers.write(ids, &token.to_le_bytes())?;
        }
        Ok(token)
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
