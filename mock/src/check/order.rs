use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::machine::launch::{Launch, Stream};

/// Which launches come before which, by what packets say, however the machine happened to run them.
///
/// A stream is a queue, or one XCC that runs an indirect buffer. Its launches have numbers in the order they started. What
/// a stream knows is a number for each stream: the launches up to it are complete.
#[derive(Default)]
pub(super) struct Order {
    streams: HashMap<Stream, usize>,
    states: Vec<State>,
    launches: HashMap<u32, Started>,
    /// What whoever saw a signal or counter in memory knows, by its address.
    places: HashMap<u64, Frontier>,
}

/// For each stream how many of its launches are known to be complete.
type Frontier = Arc<Vec<u32>>;

#[derive(Default)]
struct State {
    started: u32,
    known: Frontier,
    /// Launches up to this one have ended, as the host may see.
    ended: u32,
    ended_early: BTreeSet<u32>,
}

struct Started {
    stream: usize,
    number: u32,
    after: Frontier,
    entry: u64,
}

impl Order {
    pub(super) fn started(&mut self, launch: &Launch) {
        let stream = self.stream(launch.stream);
        let state = &mut self.states[stream];
        state.started += 1;
        let (number, after) = (state.started, Arc::clone(&state.known));
        self.launches.insert(launch.number, Started { stream, number, after, entry: launch.shape.entry.get() });
    }

    pub(super) fn ended(&mut self, launch: &Launch) {
        let Some(started) = self.launches.get(&launch.number) else { return };
        let state = &mut self.states[started.stream];
        state.ended_early.insert(started.number);
        while state.ended_early.remove(&(state.ended + 1)) {
            state.ended += 1;
        }
    }

    /// All that `stream` has started is complete, and what follows waits for that.
    pub(super) fn waited(&mut self, stream: Stream) {
        let stream = self.stream(stream);
        let started = self.states[stream].started;
        learn(&mut self.states[stream].known, |known| raise(known, stream, started));
    }

    /// What follows in `stream` comes after all that `other` knows.
    pub(super) fn follows(&mut self, stream: Stream, other: Stream) {
        let (stream, other) = (self.stream(stream), self.stream(other));
        let news = Arc::clone(&self.states[other].known);
        learn(&mut self.states[stream].known, |known| join(known, &news));
    }

    /// The host has submitted work to `stream`, and may know of everything that has ended.
    pub(super) fn submitted(&mut self, stream: Stream) {
        let stream = self.stream(stream);
        let ended: Vec<u32> = self.states.iter().map(|state| state.ended).collect();
        learn(&mut self.states[stream].known, |known| join(known, &ended));
    }

    /// `stream` tells what it knows, and that `launch` has ended, by a value in memory.
    pub(super) fn told(&mut self, stream: Stream, address: u64, launch: Option<u32>) {
        let stream = self.stream(stream);
        let mut known = Vec::clone(&self.states[stream].known);
        if let Some(launch) = launch.and_then(|number| self.launches.get(&number)) {
            join(&mut known, &launch.after);
            raise(&mut known, launch.stream, launch.number);
        }
        learn(self.places.entry(address).or_default(), |place| join(place, &known));
    }

    /// `stream` has seen the value at `address`.
    pub(super) fn heard(&mut self, stream: Stream, address: u64) {
        let stream = self.stream(stream);
        if let Some(news) = self.places.get(&address) {
            learn(&mut self.states[stream].known, |known| join(known, news));
        }
    }

    /// Whether all of launch `first` comes before all of launch `then`.
    pub(super) fn is_before(&self, first: u32, then: u32) -> bool {
        let (Some(first), Some(then)) = (self.launches.get(&first), self.launches.get(&then)) else { return false };
        then.after.get(first.stream).is_some_and(|complete| *complete >= first.number)
    }

    /// The entry point of a launch's kernel.
    pub(super) fn entry(&self, launch: u32) -> Option<u64> {
        Some(self.launches.get(&launch)?.entry)
    }

    fn stream(&mut self, stream: Stream) -> usize {
        *self.streams.entry(stream).or_insert_with(|| {
            self.states.push(State::default());
            self.states.len() - 1
        })
    }
}

fn learn(known: &mut Frontier, change: impl FnOnce(&mut Vec<u32>)) {
    change(Arc::make_mut(known));
}

fn raise(known: &mut Vec<u32>, stream: usize, to: u32) {
    if known.len() <= stream {
        known.resize(stream + 1, 0);
    }
    known[stream] = known[stream].max(to);
}

fn join(known: &mut Vec<u32>, news: &[u32]) {
    for (stream, &to) in news.iter().enumerate() {
        raise(known, stream, to);
    }
}
