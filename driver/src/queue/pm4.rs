//! Queues of PM4 commands. KFD gives such a queue one target XCC: the others never see it.

use std::sync::Arc;
use std::time::Duration;

use super::hardware::HardwareQueue;
use super::ring::Position;
use super::{Error, QueueOptions, QueueReport, Report};
use crate::address::GpuVa;
use crate::gpu::Gpu;
use crate::kfd::queue::QueueType;
use crate::memory::{self, HostView};
use crate::packets::pm4::{self, IndirectBuffer};

/// A queue of PM4 commands on one XCC.
pub struct Pm4Queue {
    hardware: HardwareQueue,
    position: Position,
    last: Vec<u32>,
}

impl Pm4Queue {
    /// Creates a queue on XCC number `xcc` of the GPU.
    pub fn create(gpu: &Arc<Gpu>, xcc: u8, options: QueueOptions) -> Result<Self, Error> {
        if u32::from(xcc) >= gpu.node().xcc_count {
            let limit = "the GPU has fewer XCCs";
            return Err(Error::Option { what: "target XCC", value: xcc.into(), limit });
        }
        let hardware = HardwareQueue::create(gpu, QueueType::Compute, options, xcc, 0, |_, _| Ok(()))?;
        Ok(Self { hardware, position: Position::new(options.ring.get() / 4), last: Vec::new() })
    }

    /// The kernel's number of the queue.
    pub fn id(&self) -> u32 {
        self.hardware.id()
    }

    /// The GPU it is on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        self.hardware.gpu()
    }

    /// Dwords that can be submitted now.
    pub fn free(&self) -> u64 {
        self.position.free(self.hardware.read())
    }

    /// Waits until `dwords` can be submitted.
    pub fn wait_for_room(&self, dwords: u64, limit: Duration) -> Result<(), Error> {
        self.fits(dwords)?;
        let ready = self.hardware.wait_until(limit, |_| self.free() >= dwords)?;
        if ready { Ok(()) } else { Err(self.full(dwords)) }
    }

    /// Submits whole packets with one doorbell. Packets that only work in indirect buffers (`PRED_EXEC`) do not here.
    pub fn submit(&mut self, dwords: &[u32]) -> Result<(), Error> {
        if dwords.is_empty() {
            return Ok(());
        }
        let count = dwords.len() as u64;
        self.fits(count)?;
        if self.free() < count {
            return Err(self.full(count));
        }
        store(&self.hardware.ring()?, &self.position, dwords)?;
        self.position.advance(count);
        self.last.clear();
        self.last.extend_from_slice(dwords);
        self.hardware.publish(self.position.written(), self.position.written())
    }

    /// Submits an indirect buffer: commands that lie elsewhere.
    pub fn submit_indirect(&mut self, address: GpuVa, dwords: u32) -> Result<(), Error> {
        let mut packet = Vec::new();
        IndirectBuffer { address, dwords, valid: true, ..Default::default() }.encode(&mut packet)?;
        self.submit(&packet)
    }

    /// Changes the share of time; at zero the queue stands still.
    pub fn set_percentage(&mut self, percentage: u8) -> Result<(), Error> {
        self.hardware.set_percentage(percentage)
    }

    fn fits(&self, needed: u64) -> Result<(), Error> {
        let (capacity, unit) = (self.position.most(), "dwords");
        if needed > capacity { Err(Error::TooLong { needed, capacity, unit }) } else { Ok(()) }
    }

    fn full(&self, needed: u64) -> Error {
        Error::Full { needed, unit: "dwords", report: self.report() }
    }
}

impl Report for Pm4Queue {
    fn report(&self) -> QueueReport {
        QueueReport {
            queue: self.hardware.name(),
            written: self.position.written(),
            read: self.hardware.read(),
            last_packet: pm4::packets(&self.last).last().map(|packet| match packet {
                Ok(located) => located.packet.to_string(),
                Err(error) => error.to_string(),
            }),
        }
    }
}

/// Writes dwords from the next one on, round the end of the ring: the processor fetches dwords, not packets.
fn store(ring: &HostView<'_>, position: &Position, dwords: &[u32]) -> Result<(), memory::Error> {
    let before_end = (position.until_end() as usize).min(dwords.len());
    let (head, tail) = dwords.split_at(before_end);
    ring.write_dwords(position.place(position.written()) * 4, head)?;
    ring.write_dwords(0, tail)
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::*;

    #[test]
    fn commands_go_round_the_end_of_the_ring() {
        let mut memory = [0_u64; 4];
        // SAFETY: the array outlives the view and is not used meanwhile.
        let ring = unsafe { HostView::new(NonNull::from(&mut memory).cast(), 32) };
        let mut position = Position::new(8);
        position.advance(8 * 1000 + 6);
        store(&ring, &position, &[1, 2, 3]).unwrap();
        assert_eq!(ring.snapshot(0, 8).unwrap(), [3, 0, 0, 0, 0, 0, 1, 2]);
    }
}
