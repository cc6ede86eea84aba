//! Runs of a graph: submitted, possibly several ahead, and collected in order.

use std::sync::Arc;
use std::time::Instant;

use driver::packets::Compare;
use driver::queue::Report;
use driver::signal::Patience;
use kernels::{ErrorWord, RingEntry};

use super::rank::TIMELINE_START;
use super::{Engine, EngineError, Timings, profile};
use crate::graph::Graph;
use crate::plan::RING_ENTRIES;

/// How far the runs are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runs {
    /// Runs submitted since the start.
    submitted: u64,
    /// Runs whose result has been read. What has been submitted beyond is in flight.
    collected: u64,
}

impl Engine {
    /// Submits a run of `graph`; it starts when the runs before have ended.
    pub(super) fn submit(&mut self, graph: &Graph) -> Result<(), EngineError> {
        for (slots, rank) in graph.packets().zip(&self.ranks) {
            rank.queue.wait_for_room(slots.len() as u64, self.options.patience)?;
        }
        let start = Instant::now();
        for (slots, rank) in graph.packets().zip(&mut self.ranks) {
            rank.queue.submit_slots(slots)?;
        }
        self.runs.submitted += 1;
        self.timings.host += start.elapsed();
        Ok(())
    }

    /// Waits for the oldest run in flight and gives the token it chose.
    pub(super) fn collect(&mut self, graph: &Graph, has_token: bool) -> Result<u32, EngineError> {
        self.wait_rank(graph, 0, self.runs.collected + 1)?;
        let start = Instant::now();
        let entry = self.ring_entry(0)?;
        if entry.error != 0 || (has_token && entry.token == RingEntry::NO_TOKEN) {
            self.failed = true;
            return Err(match ErrorWord(entry.error).failure() {
                Some(failure) => EngineError::kernel(failure, graph, &self.ranks),
                None => EngineError::NoToken,
            });
        }
        self.spans.extend(profile::spans(graph, &self.ranks[0].timeline, self.step.count, self.step.position));
        self.runs.collected += 1;
        self.step.position += self.step.count;
        self.step.count = 1;
        self.step.epoch += graph.collectives().len() as u32;
        self.step.sequence += 1;
        self.timings.runs += 1;
        self.timings.host += start.elapsed();
        Ok(entry.token)
    }

    /// Runs the decode graph `count` times from an empty context, whatever it gives, and has `after_run` look at the
    /// timings after each.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn replay(&mut self, count: usize, after_run: &mut dyn FnMut(&Timings)) -> Result<(), EngineError> {
        let graph = Arc::clone(&self.decode);
        self.reset()?;
        self.write_run(&[0])?;
        for _ in 0..count {
            self.run(&graph, true)?;
            after_run(&self.timings);
        }
        self.drain(&graph)
    }

    /// Runs `graph` on `tokens`, at most as many as it was built for, at position `position`, behind whatever caches and states
    /// hold.
    ///
    /// # Errors
    /// See [`EngineError`].
    pub fn run_at(&mut self, graph: &Graph, position: u32, tokens: &[u32]) -> Result<(), EngineError> {
        self.step.position = position;
        self.write_run(tokens)?;
        self.run(graph, true)?;
        self.drain(graph)
    }

    /// Runs `graph` once and gives the token it chose.
    pub(super) fn run(&mut self, graph: &Graph, has_token: bool) -> Result<u32, EngineError> {
        self.submit(graph)?;
        self.collect(graph, has_token)
    }

    /// Lets what is in flight end, tokens unread, and waits until every rank is idle: before the host touches memory that
    /// kernels use.
    pub(super) fn drain(&mut self, graph: &Graph) -> Result<(), EngineError> {
        while self.runs.collected < self.runs.submitted {
            self.collect(graph, false)?;
        }
        self.wait_all(graph)
    }

    /// Lets what is in flight end after a failure, whatever it gives.
    pub(super) fn abandon(&mut self, graph: &Graph) -> Result<(), EngineError> {
        self.wait_all(graph)?;
        // Failed runs are still counted by the last kernel of each.
        self.step.sequence += (self.runs.submitted - self.runs.collected) as u32;
        self.runs.collected = self.runs.submitted;
        Ok(())
    }

    /// Submits `graph`, a part of a run, and waits for it.
    pub(super) fn run_part(&mut self, graph: &Graph) -> Result<(), EngineError> {
        self.submit(graph)?;
        self.wait_all(graph)?;
        self.runs.collected = self.runs.submitted;
        Ok(())
    }

    /// Waits until every rank is idle.
    fn wait_all(&self, graph: &Graph) -> Result<(), EngineError> {
        (0..self.ranks.len()).try_for_each(|rank| self.wait_rank(graph, rank, self.runs.submitted))
    }

    /// Waits until rank `rank` has finished run number `run`, counted from 1.
    fn wait_rank(&self, graph: &Graph, rank: usize, run: u64) -> Result<(), EngineError> {
        let patience = Patience { limit: self.options.patience, ..Patience::default() };
        let queues: Vec<&dyn Report> = self.ranks.iter().map(|rank| &rank.queue as &dyn Report).collect();
        let timeline = &self.ranks[rank].timeline;
        let waited = timeline.wait(Compare::LessOrEqual, TIMELINE_START - run, patience, &queues);
        waited.map_err(|error| EngineError::from_wait(error, graph))
    }

    fn ring_entry(&self, rank: usize) -> Result<RingEntry, EngineError> {
        let at = u64::from(self.step.sequence & (RING_ENTRIES - 1)) * size_of::<RingEntry>() as u64;
        let mut entry = RingEntry::default();
        self.ranks[rank].ring.host()?.read(at, bytemuck::bytes_of_mut(&mut entry))?;
        let expected = self.step.sequence + 1;
        if entry.sequence != expected {
            return Err(EngineError::Ring { rank, expected, found: entry.sequence });
        }
        Ok(entry)
    }
}
