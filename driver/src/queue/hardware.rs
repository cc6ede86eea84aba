//! What every queue is made of: a ring, two pointers, a doorbell, and for compute the memory waves are saved to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::descriptor::{READ_DISPATCH_ID_OFFSET, WRITE_DISPATCH_ID_OFFSET};
use super::save_area::{EOP, SaveArea};
use super::{Error, QueueOptions};
use crate::address::Bytes;
use crate::doorbell::Doorbell;
use crate::gpu::Gpu;
use crate::kfd::queue::{CreateQueue, MAX_PERCENTAGE, MAX_PRIORITY, QueueType, UpdateQueue};
use crate::memory::{Access, Allocation, Buffer, HostView};

/// Longest ring: its length is 32 bits in the ioctl.
const MAX_RING_BYTES: u64 = 1 << 31;

/// A queue the hardware knows. Destroyed before its memory is given back.
pub(super) struct HardwareQueue {
    gpu: Arc<Gpu>,
    id: u32,
    kind: QueueType,
    options: QueueOptions,
    xcc: u8,
    doorbell: Doorbell,
    memory: Option<QueueMemory>,
}

/// Declared in the order it is given back in, which does not matter once the queue is destroyed.
struct QueueMemory {
    ring: Buffer,
    pointers: Buffer,
    end_of_pipe: Option<Buffer>,
    save_area: Option<Buffer>,
}

impl HardwareQueue {
    /// Creates a queue. `xcc` is the target of a PM4 queue, `engine` of an SDMA queue by engine.
    pub(super) fn create(
        gpu: &Arc<Gpu>,
        kind: QueueType,
        options: QueueOptions,
        xcc: u8,
        engine: u32,
        prepare: impl FnOnce(&Buffer, &Buffer) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        check(&options)?;
        // Both known clients, tinygrad and ROCr, make rings executable; so does this one.
        let ring = gpu.allocate(&Allocation::shared(options.ring, "queue ring").with(Access::EXECUTE))?;
        let pointers = gpu.allocate(&Allocation::shared(Bytes::PAGE, "queue pointers"))?;
        prepare(&ring, &pointers)?;
        let mut args = CreateQueue {
            ring_base_address: ring.va().get(),
            write_pointer_address: pointers.va().get() + WRITE_DISPATCH_ID_OFFSET,
            read_pointer_address: pointers.va().get() + READ_DISPATCH_ID_OFFSET,
            ring_size: options.ring.get() as u32,
            gpu_id: gpu.id(),
            queue_type: kind as u32,
            queue_percentage: share(options.percentage, xcc),
            queue_priority: options.priority.into(),
            sdma_engine_id: engine,
            ..Default::default()
        };
        let mut memory = QueueMemory { ring, pointers, end_of_pipe: None, save_area: None };
        if !kind.is_sdma() {
            memory.add_compute(gpu, &mut args)?;
        }
        // SAFETY: ring, pointers, EOP buffer and save area were just allocated on this GPU with the sizes the kernel
        // computes, and `memory` keeps them until the queue is destroyed (`Drop`).
        unsafe { gpu.process().kfd().create_queue(&mut args) }.map_err(|source| Error::Create { source })?;

        let name = || name(kind, args.queue_id, gpu);
        // Without a doorbell the queue is of no use: take it back before its memory goes.
        let doorbell = gpu
            .doorbells(args.doorbell_offset)
            .map_err(|source| Error::MapDoorbells { queue: name(), source })
            .and_then(|slice| {
                let offset = args.doorbell_offset;
                Doorbell::new(slice, offset).ok_or_else(|| Error::DoorbellOffset { queue: name(), offset })
            });
        match doorbell {
            Ok(doorbell) => {
                Ok(Self { gpu: gpu.clone(), id: args.queue_id, kind, options, xcc, doorbell, memory: Some(memory) })
            }
            Err(error) => {
                destroy(gpu, args.queue_id, memory);
                Err(error)
            }
        }
    }

    pub(super) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn name(&self) -> String {
        name(self.kind, self.id, &self.gpu)
    }

    pub(super) fn ring(&self) -> Result<HostView<'_>, Error> {
        Ok(self.memory().ring.host()?)
    }

    pub(super) fn pointers(&self) -> Result<HostView<'_>, Error> {
        Ok(self.memory().pointers.host()?)
    }

    /// How far the engine has read. Acquire: what is free was read before it was called so.
    pub(super) fn read(&self) -> u64 {
        self.pointer(READ_DISPATCH_ID_OFFSET).map_or(0, |pointer| pointer.load(Ordering::Acquire))
    }

    /// Makes everything up to `written` visible to the engine and tells it.
    ///
    /// The write pointer in memory comes before the doorbell: an engine that takes the queue up again after preemption
    /// reads the pointer, not the doorbell.
    pub(super) fn publish(&self, written: u64, doorbell: u64) -> Result<(), Error> {
        self.pointer(WRITE_DISPATCH_ID_OFFSET)?.store(written, Ordering::Release);
        self.doorbell.ring(doorbell);
        Ok(())
    }

    /// Waits until `ready` says so, looking for faults meanwhile. Returns whether it did.
    pub(super) fn wait_until(&self, limit: Duration, mut ready: impl FnMut(&Self) -> bool) -> Result<bool, Error> {
        let start = Instant::now();
        loop {
            if ready(self) {
                return Ok(true);
            }
            self.gpu.process().poll_faults()?;
            if start.elapsed() >= limit {
                return Ok(false);
            }
            std::thread::yield_now();
        }
    }

    /// Changes the share of time; at zero the queue stands still.
    pub(super) fn set_percentage(&mut self, percentage: u8) -> Result<(), Error> {
        check(&QueueOptions { percentage, ..self.options })?;
        self.gpu.process().kfd().update_queue(UpdateQueue {
            ring_base_address: self.memory().ring.va().get(),
            queue_id: self.id,
            ring_size: self.options.ring.get() as u32,
            queue_percentage: share(percentage, self.xcc),
            queue_priority: self.options.priority.into(),
        })?;
        self.options.percentage = percentage;
        Ok(())
    }

    fn pointer(&self, offset: u64) -> Result<&AtomicU64, Error> {
        Ok(self.pointers()?.word(offset)?)
    }

    fn memory(&self) -> &QueueMemory {
        self.memory.as_ref().expect("taken only when dropped")
    }
}

impl QueueMemory {
    /// Adds what compute queues need besides.
    fn add_compute(&mut self, gpu: &Arc<Gpu>, args: &mut CreateQueue) -> Result<(), Error> {
        let area = SaveArea::of(gpu.node()).ok_or(Error::Option {
            what: "a save area for LDS of KiB",
            value: gpu.node().lds_kib.into(),
            limit: "the topology of the GPU makes no sense",
        })?;
        let end_of_pipe = gpu.allocate(&Allocation::vram(EOP, "queue end-of-pipe events").with(Access::EXECUTE))?;
        let save_area = gpu.allocate(&Allocation::vram(area.total, "queue save area").with(Access::EXECUTE))?;
        args.eop_buffer_address = end_of_pipe.va().get();
        args.eop_buffer_size = EOP.get();
        args.ctx_save_restore_address = save_area.va().get();
        args.ctx_save_restore_size = area.context;
        args.ctl_stack_size = area.control_stack;
        self.end_of_pipe = Some(end_of_pipe);
        self.save_area = Some(save_area);
        Ok(())
    }
}

impl Drop for HardwareQueue {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            destroy(&self.gpu, self.id, memory);
        }
    }
}

/// The share of time and, in the same word, the target XCC: every call that sets one sets the other
/// (`set_queue_properties_from_user`, `kfd_ioctl_update_queue`).
fn share(percentage: u8, xcc: u8) -> u32 {
    u32::from(percentage) | u32::from(xcc) << 8
}

fn destroy(gpu: &Gpu, id: u32, memory: QueueMemory) {
    if let Err(error) = gpu.process().kfd().destroy_queue(id) {
        // The hardware may go on reading and writing: its memory must stay what it is.
        tracing::error!(queue = id, %gpu, %error, "cannot destroy a queue; its memory stays until the process ends");
        let QueueMemory { ring, pointers, end_of_pipe, save_area } = memory;
        [Some(ring), Some(pointers), end_of_pipe, save_area].into_iter().flatten().for_each(Buffer::leak);
    }
}

fn name(kind: QueueType, id: u32, gpu: &Gpu) -> String {
    let kind = match kind {
        QueueType::Compute => "PM4",
        QueueType::ComputeAql => "AQL",
        QueueType::Sdma | QueueType::SdmaXgmi | QueueType::SdmaByEngineId => "SDMA",
    };
    format!("{kind} queue {id} of {gpu}")
}

/// What the kernel would refuse (`set_queue_properties_from_user`), or take and then do something else.
fn check(options: &QueueOptions) -> Result<(), Error> {
    let refuse = |what, value, limit| Err(Error::Option { what, value, limit });
    let ring = options.ring.get();
    if !ring.is_power_of_two() || ring < Bytes::PAGE.get() || ring > MAX_RING_BYTES {
        return refuse("a ring of bytes", ring, "a power of two from 4096 to 2^31");
    }
    if u32::from(options.priority) > MAX_PRIORITY {
        return refuse("priority", options.priority.into(), "0 to 15");
    }
    if u32::from(options.percentage) > MAX_PERCENTAGE {
        return refuse("a percentage of", options.percentage.into(), "0 to 100");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_the_kernel_would_refuse_or_bend_are_refused_first() {
        let good = QueueOptions::default();
        assert!(check(&good).is_ok());
        for ring in [0, 1000, 1024, 12288, 1 << 32] {
            assert!(check(&QueueOptions { ring: Bytes::new(ring), ..good }).is_err(), "{ring}");
        }
        assert!(check(&QueueOptions { priority: 16, ..good }).is_err());
        assert!(check(&QueueOptions { percentage: 101, ..good }).is_err());
    }
}
