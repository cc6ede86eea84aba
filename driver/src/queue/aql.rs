//! Queues of AQL packets.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use zerocopy::IntoBytes;

use super::descriptor::{AmdQueue, ENABLE_PROFILING, FEATURE_KERNEL_DISPATCH, IS_PTR64, READ_DISPATCH_ID_OFFSET};
use super::hardware::HardwareQueue;
use super::ring::Position;
use super::{Error, QueueOptions, QueueReport, Report, ScratchLayout};
use crate::address::GpuVa;
use crate::gpu::Gpu;
use crate::kfd::queue::QueueType;
use crate::memory::{self, Buffer, HostView};
use crate::packets::aql::{self, Aql, INVALID_HEADER, Slot};

/// A queue whose packets all XCCs of the GPU work on together.
pub struct AqlQueue {
    hardware: HardwareQueue,
    position: Position,
    last: Option<Slot>,
}

impl AqlQueue {
    /// Creates a queue.
    pub fn create(gpu: &Arc<Gpu>, options: QueueOptions) -> Result<Self, Error> {
        let hardware = HardwareQueue::create(gpu, QueueType::ComputeAql, options, 0, 0, |ring, pointers| {
            prepare(gpu, ring, pointers)
        })?;
        Ok(Self { hardware, position: Position::new(options.ring.get() / aql::BYTES), last: None })
    }

    /// The kernel's number of the queue.
    pub fn id(&self) -> u32 {
        self.hardware.id()
    }

    /// The GPU it is on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        self.hardware.gpu()
    }

    /// Packets that can be submitted now.
    pub fn free(&self) -> u64 {
        self.position.free(self.hardware.read())
    }

    /// Packets that can be submitted at once when the queue is empty.
    pub fn most(&self) -> u64 {
        self.position.most()
    }

    /// Index of the next packet.
    pub fn next_index(&self) -> u64 {
        self.position.written()
    }

    /// Waits until `packets` can be submitted.
    pub fn wait_for_room(&self, packets: u64, limit: Duration) -> Result<(), Error> {
        self.fits(packets)?;
        let ready = self.hardware.wait_until(limit, |_| self.free() >= packets)?;
        if ready { Ok(()) } else { Err(self.full(packets)) }
    }

    /// Submits packets with one doorbell. Nothing is submitted on an error.
    pub fn submit(&mut self, packets: &[Aql]) -> Result<(), Error> {
        let slots = packets.iter().map(Aql::encode).collect::<Result<Vec<_>, _>>()?;
        self.submit_slots(&slots)
    }

    /// Submits packets that are encoded already.
    pub fn submit_slots(&mut self, slots: &[Slot]) -> Result<(), Error> {
        let Some(last) = slots.last() else { return Ok(()) };
        let count = slots.len() as u64;
        self.fits(count)?;
        if self.free() < count {
            return Err(self.full(count));
        }
        let ring = self.hardware.ring()?;
        for (index, slot) in (self.position.written()..).zip(slots) {
            store(&ring, self.position.place(index), slot)?;
        }
        self.position.advance(count);
        self.last = Some(*last);
        // The doorbell of an AQL queue takes the index of the last packet, not of the next.
        self.hardware.publish(self.position.written(), self.position.written() - 1)
    }

    /// Gives dispatches with scratch their memory. No packet that uses scratch may be in the queue.
    ///
    /// `scratch` has the layout's total length and outlives the queue's dispatches.
    pub fn set_scratch(&mut self, layout: &ScratchLayout, scratch: GpuVa) -> Result<(), Error> {
        let pointers = self.hardware.pointers()?;
        let field = |offset: usize| pointers.dword(offset as u64);
        field(std::mem::offset_of!(AmdQueue, compute_tmpring_size))?.store(layout.tmpring_size(), Ordering::Relaxed);
        let resource = std::mem::offset_of!(AmdQueue, scratch_resource_descriptor);
        for (index, word) in layout.resource(scratch).into_iter().enumerate() {
            field(resource + index * 4)?.store(word, Ordering::Relaxed);
        }
        let location = std::mem::offset_of!(AmdQueue, scratch_backing_memory_location) as u64;
        pointers.word(location)?.store(scratch.get(), Ordering::Relaxed);
        // Read by the processor when it starts a packet, which the next doorbell's release ordering comes before.
        let lane = std::mem::offset_of!(AmdQueue, scratch_wave64_lane_byte_size);
        field(lane)?.store(layout.bytes_per_lane, Ordering::Relaxed);
        Ok(())
    }

    /// Changes the share of time; at zero the queue stands still.
    pub fn set_percentage(&mut self, percentage: u8) -> Result<(), Error> {
        self.hardware.set_percentage(percentage)
    }

    fn fits(&self, needed: u64) -> Result<(), Error> {
        let (capacity, unit) = (self.position.most(), "packets");
        if needed > capacity { Err(Error::TooLong { needed, capacity, unit }) } else { Ok(()) }
    }

    fn full(&self, needed: u64) -> Error {
        Error::Full { needed, unit: "packets", report: self.report() }
    }
}

impl Report for AqlQueue {
    fn report(&self) -> QueueReport {
        QueueReport {
            queue: self.hardware.name(),
            written: self.position.written(),
            read: self.hardware.read(),
            last_packet: self.last.map(|slot| match Aql::decode(&slot) {
                Ok(packet) => packet.to_string(),
                Err(error) => error.to_string(),
            }),
        }
    }
}

/// Puts a packet into its slot: the dword with the type last, with release ordering, so that the processor, which may be
/// looking at the slot, sees it empty or whole.
fn store(ring: &HostView<'_>, place: u64, slot: &Slot) -> Result<(), memory::Error> {
    let offset = place * aql::BYTES;
    ring.write_dwords(offset + 4, &slot[1..])?;
    ring.dword(offset)?.store(slot[0], Ordering::Release);
    Ok(())
}

/// Empties all slots and fills in what the processor reads about the queue.
fn prepare(gpu: &Arc<Gpu>, ring: &Buffer, pointers: &Buffer) -> Result<(), Error> {
    let slots = ring.len().get() / aql::BYTES;
    let view = ring.host()?;
    for slot in 0..slots {
        view.dword(slot * aql::BYTES)?.store(INVALID_HEADER.into(), Ordering::Relaxed);
    }
    let (node, apertures) = (gpu.node(), gpu.apertures());
    let descriptor = AmdQueue {
        queue_type: 1,
        features: FEATURE_KERNEL_DISPATCH,
        base_address: ring.va().get(),
        size: slots as u32,
        group_segment_aperture_base_hi: (apertures.lds_base >> 32) as u32,
        private_segment_aperture_base_hi: (apertures.scratch_base >> 32) as u32,
        max_cu_id: node.cu_count() - 1,
        max_wave_id: node.max_waves_per_simd.saturating_mul(node.simd_per_cu) - 1,
        read_dispatch_id_field_base_byte_offset: READ_DISPATCH_ID_OFFSET as u32,
        queue_properties: IS_PTR64 | ENABLE_PROFILING,
        ..Default::default()
    };
    pointers.host()?.write(0, descriptor.as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ptr::NonNull;

    use super::*;
    use crate::packets::aql::BarrierAnd;

    #[test]
    fn a_packet_lands_whole_in_its_slot_and_nowhere_else() {
        let mut memory = [u64::MAX; 24];
        // SAFETY: the array outlives the view and is not used meanwhile.
        let ring = unsafe { HostView::new(NonNull::from(&mut memory).cast(), 192) };
        let slot =
            BarrierAnd { barrier: true, dep_signal_0: GpuVa::new(0x1234), ..Default::default() }.encode().unwrap();
        store(&ring, 1, &slot).unwrap();
        assert_eq!(ring.snapshot(64, 16).unwrap(), slot);
        assert!(ring.snapshot(0, 16).unwrap().iter().chain(&ring.snapshot(128, 16).unwrap()).all(|&w| w == u32::MAX));
        assert!(store(&ring, 3, &slot).is_err(), "there is no fourth slot");
    }
}
