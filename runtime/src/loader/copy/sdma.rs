//! One copy queue a GPU.

use std::sync::Arc;
use std::time::{Duration, Instant};

use driver::Gpu;
use driver::address::GpuVa;
use driver::memory::Buffer;
use driver::packets::Compare;
use driver::packets::sdma::Fence;
use driver::queue::{self, QueueOptions, SdmaEngine, SdmaQueue};
use driver::signal::{Patience, Signal, SignalPool};
use model::layout::WeightCopy;

use super::{Copier, Rows, Ticket};
use crate::loader::{LoadError, Progress};

/// Packets are handed to the ring when this many dwords are there: much less than a ring, much more than a packet.
const BATCH_DWORDS: usize = 4096;
/// How long a ring may stay full before its engine counts as stuck ...
const RING_LIMIT: Duration = Duration::from_secs(30);
/// ... and how often, in that time, somebody asks whether to go on.
const RING_LOOK: Duration = Duration::from_millis(100);

/// Copies by the GPUs' own engines, all at once.
pub(crate) struct SdmaCopier<'a> {
    ranks: Vec<Rank>,
    progress: &'a dyn Progress,
    staging: GpuVa,
    arenas: &'a [&'a Buffer],
}

struct Rank {
    queue: SdmaQueue,
    /// Counts the tickets that are done.
    landed: Signal,
    started: u64,
    packets: Vec<u32>,
}

impl Rank {
    fn new(gpu: &Arc<Gpu>) -> Result<Self, LoadError> {
        let queue = SdmaQueue::create(gpu, SdmaEngine::Any, QueueOptions::default())?;
        let landed = SignalPool::new(gpu, 1)?.take(0)?;
        Ok(Self { queue, landed, started: 0, packets: Vec::with_capacity(2 * BATCH_DWORDS) })
    }

    fn add(&mut self, rows: &Rows, progress: &dyn Progress) -> Result<(), LoadError> {
        rows.packets(|packet| {
            self.packets.extend_from_slice(packet);
            if self.packets.len() < BATCH_DWORDS { Ok(()) } else { self.submit(progress) }
        })
    }

    /// Ends what was added with a fence; gives back what its signal will then reach.
    fn finish(&mut self, progress: &dyn Progress) -> Result<u64, LoadError> {
        self.started += 1;
        // The fence writes 32 bits: enough for 4 billion blocks, thousands of the largest checkpoint there is.
        Fence { address: self.landed.value_va(), data: self.started as u32 }
            .encode(&mut self.packets)
            .map_err(queue::Error::from)?;
        self.submit(progress)?;
        Ok(self.started)
    }

    fn submit(&mut self, progress: &dyn Progress) -> Result<(), LoadError> {
        let start = Instant::now();
        loop {
            match self.queue.wait_for_room(self.packets.len(), RING_LOOK) {
                Err(queue::Error::Full { .. }) if progress.is_cancelled() => return Err(LoadError::Interrupted),
                Err(queue::Error::Full { .. }) if start.elapsed() < RING_LIMIT => {}
                other => break other?,
            }
        }
        self.queue.submit(&self.packets)?;
        self.packets.clear();
        Ok(())
    }
}

impl<'a> SdmaCopier<'a> {
    /// Copies from `staging` to `arenas`, those of rank r by `gpus[r]`.
    pub(crate) fn new(
        gpus: &[Arc<Gpu>],
        arenas: &'a [&'a Buffer],
        staging: GpuVa,
        progress: &'a dyn Progress,
    ) -> Result<Self, LoadError> {
        let ranks = gpus.iter().map(Rank::new).collect::<Result<_, _>>()?;
        Ok(Self { ranks, progress, staging, arenas })
    }
}

impl SdmaCopier<'_> {
    /// Brings back to the staging memory what [`Copier::start`] has brought to the arenas: each rank's bytes to
    /// `slot(rank)` bytes into it, at the distances they have in the file.
    pub(crate) fn fetch(
        &mut self,
        slot: impl Fn(usize) -> u64,
        base: u64,
        copies: &[WeightCopy],
    ) -> Result<Ticket, LoadError> {
        self.begin(copies, |copy, staging, arena| Rows {
            src: arena + copy.destination,
            src_pitch: copy.destination_pitch,
            dst: staging + slot(copy.rank) + (copy.source - base),
            dst_pitch: copy.source_pitch,
            rows: copy.rows,
            row_bytes: copy.row_bytes,
        })
    }

    fn begin(
        &mut self,
        copies: &[WeightCopy],
        rows: impl Fn(&WeightCopy, u64, u64) -> Rows,
    ) -> Result<Ticket, LoadError> {
        let mut reached = vec![0; self.ranks.len()];
        for copy in copies {
            let rows = rows(copy, self.staging.get(), self.arenas[copy.rank].va().get());
            self.ranks[copy.rank].add(&rows, self.progress)?;
            reached[copy.rank] = u64::MAX;
        }
        for (rank, reached) in self.ranks.iter_mut().zip(&mut reached).filter(|(_, reached)| **reached != 0) {
            *reached = rank.finish(self.progress)?;
        }
        Ok(Ticket(reached))
    }
}

impl Copier for SdmaCopier<'_> {
    fn start(&mut self, slot: u64, base: u64, copies: &[WeightCopy]) -> Result<Ticket, LoadError> {
        self.begin(copies, |copy, staging, arena| Rows {
            src: staging + slot + (copy.source - base),
            src_pitch: copy.source_pitch,
            dst: arena + copy.destination,
            dst_pitch: copy.destination_pitch,
            rows: copy.rows,
            row_bytes: copy.row_bytes,
        })
    }

    fn is_done(&self, ticket: &Ticket) -> bool {
        self.ranks.iter().zip(&ticket.0).all(|(rank, &reached)| rank.landed.load() >= reached)
    }

    fn check(&self) -> Result<(), LoadError> {
        match self.ranks.first() {
            Some(rank) => Ok(rank.queue.gpu().process().poll_faults()?),
            None => Ok(()),
        }
    }

    fn demand(&self, ticket: &Ticket) -> Result<(), LoadError> {
        let patience = Patience { spin: Duration::ZERO, limit: Duration::ZERO };
        for (rank, &reached) in self.ranks.iter().zip(&ticket.0) {
            rank.landed.wait(Compare::GreaterOrEqual, reached, patience, &[&rank.queue])?;
        }
        Ok(())
    }
}
