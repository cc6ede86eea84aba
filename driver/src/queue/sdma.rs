//! Queues of the copy engines. Positions are bytes.

use std::sync::Arc;
use std::time::Duration;

use super::hardware::HardwareQueue;
use super::ring::Position;
use super::{Error, QueueOptions, QueueReport, Report};
use crate::address::GpuVa;
use crate::gpu::Gpu;
use crate::kfd::queue::QueueType;
use crate::memory::{self, HostView};
use crate::packets::sdma::{self, Indirect};

/// Which engine runs a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SdmaEngine {
    /// One for host traffic, by the kernel's choice.
    Any,
    /// One for traffic to other GPUs, by the kernel's choice.
    Xgmi,
    /// This one, counted over host and XGMI engines.
    Number(u32),
}

/// KFD interface from which an engine can be named.
const BY_NUMBER_SINCE: (u32, u32) = (1, 17);
/// An indirect buffer packet must end on a multiple of this many dwords in the ring (`sdma_v4_4_2_ring_emit_ib`).
const INDIRECT_END: u64 = 8;
/// A NOP of one dword.
const NOP: u32 = 0;

/// A queue of a copy engine.
pub struct SdmaQueue {
    hardware: HardwareQueue,
    position: Position,
    last: Vec<u32>,
}

impl SdmaQueue {
    /// Creates a queue.
    pub fn create(gpu: &Arc<Gpu>, engine: SdmaEngine, options: QueueOptions) -> Result<Self, Error> {
        let (kind, number) = match engine {
            SdmaEngine::Any => (QueueType::Sdma, 0),
            SdmaEngine::Xgmi => (QueueType::SdmaXgmi, 0),
            SdmaEngine::Number(number) => (QueueType::SdmaByEngineId, number),
        };
        let node = gpu.node();
        let refuse = |limit| Err(Error::Option { what: "SDMA engine", value: number.into(), limit });
        if kind == QueueType::SdmaByEngineId && gpu.process().kfd().version() < BY_NUMBER_SINCE {
            return refuse("naming an engine takes KFD 1.17 or later; ask for any");
        }
        if number >= node.sdma_engines.saturating_add(node.sdma_xgmi_engines) {
            return refuse("the GPU has fewer engines");
        }
        let hardware = HardwareQueue::create(gpu, kind, options, 0, number, |_, _| Ok(()))?;
        Ok(Self { hardware, position: Position::new(options.ring.get()), last: Vec::new() })
    }

    /// The kernel's number of the queue.
    pub fn id(&self) -> u32 {
        self.hardware.id()
    }

    /// The GPU it is on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        self.hardware.gpu()
    }

    /// Bytes free in the ring now. A submission that would cross its end takes what is left before the end as well.
    pub fn free(&self) -> u64 {
        self.position.free(self.hardware.read())
    }

    /// Waits until a submission of `dwords` has room.
    pub fn wait_for_room(&self, dwords: usize, limit: Duration) -> Result<(), Error> {
        let plan = self.plan(dwords)?;
        let ready = self.hardware.wait_until(limit, |_| self.free() >= plan.bytes())?;
        if ready { Ok(()) } else { Err(self.full(plan.bytes())) }
    }

    /// Submits whole packets with one doorbell.
    pub fn submit(&mut self, dwords: &[u32]) -> Result<(), Error> {
        if dwords.is_empty() {
            return Ok(());
        }
        self.commit(self.plan(dwords.len())?, dwords)
    }

    /// Submits an indirect buffer: packets that lie elsewhere, at a multiple of 32 bytes.
    pub fn submit_indirect(&mut self, ib_base: GpuVa, ib_dwords: u32) -> Result<(), Error> {
        let mut packet = Vec::new();
        Indirect { ib_base, ib_dwords, ..Default::default() }.encode(&mut packet)?;
        let (plan, dwords) = indirect(&self.position, &packet);
        self.commit(plan, &dwords)
    }

    /// Changes the share of time; at zero the queue stands still.
    pub fn set_percentage(&mut self, percentage: u8) -> Result<(), Error> {
        self.hardware.set_percentage(percentage)
    }

    fn commit(&mut self, plan: Plan, dwords: &[u32]) -> Result<(), Error> {
        if self.free() < plan.bytes() {
            return Err(self.full(plan.bytes()));
        }
        store(&self.hardware.ring()?, &self.position, plan, dwords)?;
        self.position.advance(plan.bytes());
        self.last.clear();
        self.last.extend_from_slice(dwords);
        self.hardware.publish(self.position.written(), self.position.written())
    }

    fn plan(&self, dwords: usize) -> Result<Plan, Error> {
        let plan = Plan::new(&self.position, dwords as u64 * 4);
        // What may have to be skipped before the end counts against the ring too; half of it always fits.
        let (needed, capacity, unit) = (plan.content, self.position.most().div_ceil(2), "bytes");
        if needed > capacity { Err(Error::TooLong { needed, capacity, unit }) } else { Ok(plan) }
    }

    fn full(&self, needed: u64) -> Error {
        Error::Full { needed, unit: "bytes", report: self.report() }
    }
}

/// How a submission is laid into the ring: the engine does not read a packet round the end, so what would cross it
/// starts over at the beginning, and NOPs fill what is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    /// Bytes of NOPs before the end.
    filler: u64,
    /// Bytes of packets.
    content: u64,
}

impl Plan {
    fn new(position: &Position, content: u64) -> Self {
        let to_end = position.until_end();
        Self { filler: if content > to_end { to_end } else { 0 }, content }
    }

    fn bytes(self) -> u64 {
        self.filler + self.content
    }
}

/// Puts NOPs before an indirect-buffer packet so that it ends where it must.
fn indirect(position: &Position, packet: &[u32]) -> (Plan, Vec<u32>) {
    let padded = |start: u64| {
        let end = start + packet.len() as u64;
        let mut dwords = vec![NOP; (end.next_multiple_of(INDIRECT_END) - end) as usize];
        dwords.extend_from_slice(packet);
        dwords
    };
    let dwords = padded(position.place(position.written()) / 4);
    let plan = Plan::new(position, dwords.len() as u64 * 4);
    if plan.filler == 0 {
        return (plan, dwords);
    }
    let dwords = padded(0);
    (Plan { content: dwords.len() as u64 * 4, ..plan }, dwords)
}

fn store(ring: &HostView<'_>, position: &Position, plan: Plan, dwords: &[u32]) -> Result<(), memory::Error> {
    let at = position.place(position.written());
    if plan.filler == 0 {
        return ring.write_dwords(at, dwords);
    }
    ring.write_dwords(at, &vec![NOP; plan.filler as usize / 4])?;
    ring.write_dwords(0, dwords)
}

impl Report for SdmaQueue {
    fn report(&self) -> QueueReport {
        QueueReport {
            queue: self.hardware.name(),
            written: self.position.written(),
            read: self.hardware.read(),
            last_packet: sdma::packets(&self.last).last().map(|packet| match packet {
                Ok(located) => located.packet.to_string(),
                Err(error) => error.to_string(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_submission_that_would_cross_the_end_starts_over_behind_nops() {
        let mut memory = [u64::MAX; 4];
        // SAFETY: the array outlives the view and is not used meanwhile.
        let ring = unsafe { HostView::new(NonNull::from(&mut memory).cast(), 32) };
        let mut position = Position::new(32);
        position.advance(24);
        let plan = Plan::new(&position, 12);
        assert_eq!((plan.filler, plan.bytes()), (8, 20));
        store(&ring, &position, plan, &[1, 2, 3]).unwrap();
        assert_eq!(ring.snapshot(0, 8).unwrap(), [1, 2, 3, u32::MAX, u32::MAX, u32::MAX, NOP, NOP]);
    }

    #[test]
    fn a_submission_that_ends_with_the_ring_needs_no_filler() {
        let mut position = Position::new(32);
        position.advance(24);
        assert_eq!(Plan::new(&position, 8), Plan { filler: 0, content: 8 });
    }

    #[test]
    fn an_indirect_buffer_packet_ends_on_a_multiple_of_eight_dwords_wherever_it_starts() {
        let packet = [4, 0, 0, 0, 0, 0];
        for start in 0..128 {
            let mut position = Position::new(256);
            position.advance(start * 4);
            let (plan, dwords) = indirect(&position, &packet);
            assert_eq!(plan.content, dwords.len() as u64 * 4);
            let end = position.place(start * 4 + plan.filler) + plan.content;
            assert!(end <= 256 && end.is_multiple_of(32), "from dword {start} to byte {end}");
            assert!(dwords.ends_with(&packet) && dwords[..dwords.len() - 6].iter().all(|&dword| dword == NOP));
        }
    }

    proptest! {
        #[test]
        fn no_submission_ever_crosses_the_end(lengths in prop::collection::vec(1_u64..16, 1..200)) {
            let mut position = Position::new(128);
            for dwords in lengths {
                let plan = Plan::new(&position, dwords * 4);
                let start = position.place(position.written() + plan.filler);
                prop_assert!(start + plan.content <= 128);
                position.advance(plan.bytes());
                prop_assert_eq!(position.written() % 4, 0);
            }
        }
    }
}
