//! The loop that keeps disks and copy engines busy.
//!
//! A slot of the staging memory goes round: free, being read into, read, being copied from, free. All of it is done by
//! one thread, which sleeps until a read ends, and looks at copies when it lacks their slots.

use std::time::{Duration, Instant};

use model::layout::WeightCopy;

use super::checksum::Checksums;
use super::copy::{Copier, LIMIT, LOOK, POLL, Ticket};
use super::depth::Depth;
use super::file::ShardFile;
use super::plan::{Block, Weights};
use super::progress::Progress;
use super::reader::{Completion, Read, Reader};
use super::staging::Staging;
use super::stream::{ReadBlock, Stream};
use super::{LoadError, StageTimes};

/// How often in a row one read may end with nothing gained: interrupted, refused for lack of memory, too short to count.
const MOST_TRIES: u32 = 1000;
/// Pause before a read is tried again that the kernel had no memory for.
const RETRY_PAUSE: Duration = Duration::from_millis(1);
/// How long reads in flight may take to end once the load has failed or was cancelled.
const STOP_LIMIT: Duration = Duration::from_millis(700);

// Whoever cancels waits a second at most.
const _: () = assert!(STOP_LIMIT.as_millis() + 2 * LOOK.as_millis() < 1000);

/// What a pipeline works with.
pub(crate) struct Parts<'a> {
    pub(crate) weights: &'a dyn Weights,
    pub(crate) files: &'a mut [ShardFile],
    pub(crate) streams: Vec<Stream>,
    pub(crate) staging: &'a Staging,
    pub(crate) reader: &'a mut dyn Reader,
    pub(crate) copier: &'a mut dyn Copier,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) ranks: usize,
    /// Bytes of a read and of a slot.
    pub(crate) block: u64,
    /// Reads in flight for each stream.
    pub(crate) depth: Depth,
    /// Takes in every block, if somebody wants checksums.
    pub(crate) checksums: Option<&'a mut Checksums>,
}

/// What a pipeline has counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) bytes_read: u64,
    pub(crate) weight_bytes: u64,
    pub(crate) bytes_per_rank: Vec<u64>,
    pub(crate) reads: u64,
    pub(crate) resubmitted: u64,
    /// Reads in flight for each stream at the end.
    pub(crate) depth: usize,
    pub(crate) stages: StageTimes,
}

/// A pipeline that did not get to its end.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) error: Box<LoadError>,
    /// Reads that did not end in time: the kernel may still write to the staging memory.
    pub(crate) reads_in_flight: usize,
}

enum Slot {
    Free,
    Reading(Reading),
    Read,
    Copying { ticket: Ticket, weights: u64, layer: Option<u16> },
}

/// A read on its way.
struct Reading {
    stream: usize,
    number: u64,
    block: Block,
    /// Where the part that was asked for begins, counted from the start of the read.
    asked: u64,
    tries: u32,
}

pub(crate) struct Pipeline<'a> {
    parts: Parts<'a>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// Slots that are copied from.
    copying: Vec<usize>,
    /// The file whose blocks each stream copies.
    current: Vec<Option<usize>>,
    counts: Counts,
    started: Instant,
    last_look: Instant,
    last_landed: Instant,
    /// Kept for their memory.
    copies: Vec<WeightCopy>,
    completions: Vec<Completion>,
}

impl<'a> Pipeline<'a> {
    pub(crate) fn new(parts: Parts<'a>) -> Self {
        let slots = parts.staging.len() / parts.block as usize;
        Self {
            slots: (0..slots).map(|_| Slot::Free).collect(),
            free: (0..slots).rev().collect(),
            copying: Vec::new(),
            current: vec![None; parts.streams.len()],
            counts: Counts { bytes_per_rank: vec![0; parts.ranks], ..Counts::default() },
            started: Instant::now(),
            last_look: Instant::now(),
            last_landed: Instant::now(),
            copies: Vec::new(),
            completions: Vec::new(),
            parts,
        }
    }

    /// Reads and copies everything.
    pub(crate) fn run(mut self) -> Result<Counts, Stopped> {
        match self.work() {
            Ok(()) => Ok(Counts { depth: self.parts.depth.now(), ..self.counts }),
            Err(error) => Err(Stopped { error: error.into(), reads_in_flight: self.let_reads_end() }),
        }
    }

    fn work(&mut self) -> Result<(), LoadError> {
        loop {
            self.look()?;
            self.reap_copies()?;
            // First the disks, which would idle; the copies of what has come are started while they work.
            self.start_reads()?;
            self.start_copies()?;
            if self.copying.is_empty() && self.parts.streams.iter().all(Stream::is_finished) {
                return self.current.iter().flatten().try_for_each(|&file| self.parts.files[file].check_unchanged());
            }
            self.wait()?;
        }
    }

    fn look(&mut self) -> Result<(), LoadError> {
        if self.last_look.elapsed() < LOOK {
            return Ok(());
        }
        self.last_look = Instant::now();
        if self.parts.progress.is_cancelled() {
            return Err(LoadError::Interrupted);
        }
        if self.copying.is_empty() { Ok(()) } else { self.parts.copier.check() }
    }

    fn reap_copies(&mut self) -> Result<(), LoadError> {
        let Self { parts, slots, free, copying, .. } = self;
        let before = copying.len();
        copying.retain(|&slot| {
            let Slot::Copying { ticket, weights, layer } = &slots[slot] else { return false };
            if !parts.copier.is_done(ticket) {
                return true;
            }
            parts.progress.advance(*weights, *layer);
            slots[slot] = Slot::Free;
            free.push(slot);
            false
        });
        if copying.len() < before || before == 0 {
            self.last_landed = Instant::now();
        } else if self.last_landed.elapsed() > LIMIT
            && let Some(&slot) = copying.first()
            && let Slot::Copying { ticket, .. } = &slots[slot]
        {
            parts.copier.demand(ticket)?;
        }
        Ok(())
    }

    /// The stream with the fewest reads in flight, if one wants more.
    fn hungriest(&self) -> Option<usize> {
        let depth = self.parts.depth.now();
        let streams = self.parts.streams.iter().enumerate();
        let hungry = streams.filter(|(_, stream)| stream.wants(depth));
        hungry.min_by_key(|(_, stream)| stream.in_flight()).map(|(number, _)| number)
    }

    fn start_reads(&mut self) -> Result<(), LoadError> {
        let before = self.counts.reads;
        while let Some(stream) = self.hungriest()
            && let Some(slot) = self.free.pop()
        {
            let Parts { streams, weights, files, block, .. } = &mut self.parts;
            let next = streams[stream].next(weights.files(), *block, |file| files[file].alignment());
            let Some((number, block)) = next else { break };
            self.submit(slot, Reading { stream, number, block, asked: 0, tries: 0 })?;
        }
        if self.counts.reads > before { self.parts.reader.flush().map_err(LoadError::WaitForReads) } else { Ok(()) }
    }

    fn submit(&mut self, slot: usize, reading: Reading) -> Result<(), LoadError> {
        let Block { file, read, .. } = &reading.block;
        let to = slot * self.parts.block as usize + reading.asked as usize;
        let read = Read {
            token: slot as u64,
            file: *file as u32,
            fd: self.parts.files[*file].fd(),
            offset: read.start + reading.asked,
            // SAFETY: a read, with its continuations, fits its slot, and slots lie in the staging memory.
            to: unsafe { self.parts.staging.pointer().add(to) },
            bytes: (read.end - read.start - reading.asked) as u32,
        };
        self.counts.reads += 1;
        // SAFETY: the slot was free, or its last read has ended; it is `Reading` now, and nothing else uses a slot that
        // is. `Stopped` tells whoever owns the staging memory if a read outlives this pipeline.
        let submitted = unsafe { self.parts.reader.submit(read) };
        if submitted.is_err() {
            self.parts.streams[reading.stream].give_up();
        } else {
            self.slots[slot] = Slot::Reading(reading);
        }
        submitted.map_err(LoadError::WaitForReads)
    }

    fn wait(&mut self) -> Result<(), LoadError> {
        let start = Instant::now();
        let starved = self.hungriest().is_some();
        let stages = &mut self.counts.stages;
        if self.parts.streams.iter().all(|stream| stream.in_flight() == 0) {
            std::thread::sleep(POLL);
            stages.sdma_wait += start.elapsed();
            return Ok(());
        }
        let limit = if starved { POLL } else { LOOK };
        let mut completions = std::mem::take(&mut self.completions);
        self.parts.reader.wait(limit, &mut completions).map_err(LoadError::WaitForReads)?;
        let waited = start.elapsed();
        *(if starved { &mut stages.sdma_wait } else { &mut stages.read_wait }) += waited;
        let mut outcome = Ok(());
        for completion in completions.drain(..) {
            // Every one of them is taken in, so that those still in flight are known.
            let result = self.complete(completion);
            outcome = outcome.and(result);
        }
        self.completions = completions;
        outcome
    }

    fn complete(&mut self, Completion { token, result }: Completion) -> Result<(), LoadError> {
        let slot = token as usize;
        let Slot::Reading(reading) = std::mem::replace(&mut self.slots[slot], Slot::Free) else {
            return Err(LoadError::WaitForReads(std::io::Error::other("a read ended twice")));
        };
        let stream = reading.stream;
        match self.judge(reading, result) {
            Ok(Verdict::Whole { number, block }) => {
                self.parts.depth.came(block.read.end - block.read.start, self.started.elapsed());
                self.slots[slot] = Slot::Read;
                self.parts.streams[stream].put(number, ReadBlock { slot, block });
                Ok(())
            }
            Ok(Verdict::Again(reading)) => {
                self.counts.resubmitted += 1;
                self.submit(slot, reading)
            }
            Err(error) => {
                self.parts.streams[stream].give_up();
                Err(error)
            }
        }
    }

    /// What the end of a read means.
    fn judge(&mut self, mut reading: Reading, result: std::io::Result<u32>) -> Result<Verdict, LoadError> {
        let Block { file, window, read } = &reading.block;
        let shard = &mut self.parts.files[*file];
        let offset = read.start + reading.asked;
        let fail = |source, shard: &ShardFile| LoadError::Read {
            path: shard.path().to_owned(),
            offset,
            bytes: read.end - offset,
            source,
        };
        match result {
            Ok(0) => {
                let path = shard.path().to_owned();
                return Err(LoadError::Truncated { path, offset, missing: window.end.saturating_sub(offset) });
            }
            Ok(bytes) => {
                self.counts.bytes_read += u64::from(bytes);
                let reached = offset + u64::from(bytes);
                if reached >= window.end {
                    return Ok(Verdict::Whole { number: reading.number, block: reading.block });
                }
                let again = reached / shard.alignment() * shard.alignment() - read.start;
                reading.tries = if again > reading.asked { 0 } else { reading.tries + 1 };
                reading.asked = again.max(reading.asked);
                if reading.tries > MOST_TRIES {
                    let source = std::io::Error::other("the kernel keeps returning less than a sector");
                    return Err(fail(source, shard));
                }
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINVAL) if shard.is_direct() => {
                    shard.make_buffered()?;
                    let path = shard.path().display();
                    self.parts.progress.notice(&format!("{path}: O_DIRECT is refused, reading through the page cache"));
                }
                Some(libc::EINTR | libc::EAGAIN) if reading.tries < MOST_TRIES => {
                    reading.tries += 1;
                    if error.raw_os_error() == Some(libc::EAGAIN) {
                        std::thread::sleep(RETRY_PAUSE);
                    }
                }
                _ => return Err(fail(error, shard)),
            },
        }
        Ok(Verdict::Again(reading))
    }

    fn start_copies(&mut self) -> Result<(), LoadError> {
        for stream in 0..self.parts.streams.len() {
            while let Some(ReadBlock { slot, block }) = self.parts.streams[stream].take() {
                self.enter_file(stream, block.file)?;
                self.start_copy(slot, &block)?;
                self.add_checksums(stream, slot, &block);
            }
        }
        Ok(())
    }

    /// A stream goes on to another file: the one before must not have changed while it was read.
    fn enter_file(&mut self, stream: usize, file: usize) -> Result<(), LoadError> {
        match self.current[stream].replace(file) {
            Some(before) if before != file => self.parts.files[before].check_unchanged(),
            _ => Ok(()),
        }
    }

    fn start_copy(&mut self, slot: usize, Block { file, window, read }: &Block) -> Result<(), LoadError> {
        let weights = self.parts.weights;
        let pieces = weights.files()[*file].pieces_in(window);
        let layer = pieces.clone().next_back().and_then(|piece| weights.layer(*file, piece));
        self.copies.clear();
        for piece in pieces {
            weights.copies(*file, piece, window, &mut self.copies);
        }
        for copy in &self.copies {
            self.counts.bytes_per_rank[copy.rank] += copy.bytes();
        }
        if !self.parts.files[*file].is_direct() {
            self.parts.files[*file].forget(read.start, read.end - read.start);
        }
        let at = slot as u64 * self.parts.block;
        let ticket = self.parts.copier.start(at, read.start, &self.copies)?;
        let weights = window.end - window.start;
        self.counts.weight_bytes += weights;
        self.slots[slot] = Slot::Copying { ticket, weights, layer };
        self.copying.push(slot);
        Ok(())
    }

    fn add_checksums(&mut self, stream: usize, slot: usize, block: &Block) {
        let Parts { checksums: Some(checksums), staging, weights, block: slot_bytes, .. } = &mut self.parts else {
            return;
        };
        let length = (block.window.end - block.read.start) as usize;
        // SAFETY: the slot has been read, and is not read into again before its copies are looked at, by this thread.
        let bytes =
            unsafe { std::slice::from_raw_parts(staging.pointer().add(slot * *slot_bytes as usize).as_ptr(), length) };
        checksums.add(*weights, stream, block, bytes);
    }

    /// Waits for reads in flight; gives back how many do not end in time.
    fn let_reads_end(&mut self) -> usize {
        let start = Instant::now();
        let mut in_flight = self.slots.iter().filter(|slot| matches!(slot, Slot::Reading(_))).count();
        while in_flight > 0 && start.elapsed() < STOP_LIMIT {
            self.completions.clear();
            if self.parts.reader.wait(LOOK, &mut self.completions).is_err() {
                break;
            }
            in_flight -= self.completions.len().min(in_flight);
        }
        in_flight
    }
}

enum Verdict {
    /// All that was needed has come.
    Whole { number: u64, block: Block },
    /// The rest must be asked for.
    Again(Reading),
}
