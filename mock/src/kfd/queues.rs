//! `CREATE/UPDATE/DESTROY_QUEUE` (`kfd_chardev.c`, `kfd_queue.c`, `kfd_device_queue_manager.c`).

use std::io;

use driver::kfd::memory::{MmapOffset, MmapType};
use driver::kfd::queue::{CreateQueue, MAX_PERCENTAGE, MAX_PRIORITY, MIN_RING_BYTES, QueueType, UpdateQueue};

use super::errno;
use super::identity::{ContextSave, gpu_id, gpu_index};
use super::memory::Allocations;
use crate::cp::{AqlQueue, Pm4Queue};
use crate::doorbell::Doorbell;
use crate::machine::{Machine, QueueId};
use crate::memory::host::{PAGE, SharedPage};
use crate::sdma::Sdma;

/// Doorbells of a slice: compute queues take them from the front, SDMA queues have fixed ones from here on
/// (`allocate_doorbell`: one per engine and queue, mirrored half a slice up).
const FIRST_SDMA_DOORBELL: u32 = 256;
const DOORBELLS: u32 = 1024;
const COMPUTE_QUEUES: u32 = 24 * 8;
const SDMA_QUEUES: u32 = 16 * 8;

struct Entry {
    id: QueueId,
    kind: QueueType,
    doorbell: u32,
}

/// The queues of the client process.
#[derive(Default)]
pub(super) struct Queues {
    entries: Vec<Entry>,
    next: u32,
}

/// The rings and pointers of a queue, as its processor needs them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueMemory {
    /// GPU address of the ring.
    pub(crate) ring: u64,
    /// Bytes of the ring.
    pub(crate) ring_bytes: u64,
    /// GPU address of the read pointer.
    pub(crate) read_pointer: u64,
}

impl Queues {
    pub(super) fn create(
        &mut self,
        machine: &Machine,
        allocations: &Allocations,
        doorbells: &[SharedPage],
        args: &mut CreateQueue,
    ) -> io::Result<()> {
        let config = &machine.shared.config;
        let gpu = gpu_index(args.gpu_id, config.gpus).ok_or_else(|| errno(libc::EINVAL))?;
        let kind = QueueType::from_raw(args.queue_type).ok_or_else(|| errno(libc::EINVAL))?;
        // Bits 8 to 15 name the PM4 target XCC; the rest above the percentage is reserved.
        let target_xcc = args.queue_percentage >> 8 & 0xff;
        let invalid = args.queue_percentage & 0xff > MAX_PERCENTAGE
            || args.queue_percentage >> 16 != 0
            || args.queue_priority > MAX_PRIORITY
            || !args.ring_size.is_power_of_two()
            || args.ring_size < MIN_RING_BYTES
            || args.ring_base_address == 0
            || !args.ring_base_address.is_multiple_of(256)
            || !args.read_pointer_address.is_multiple_of(8)
            || !args.write_pointer_address.is_multiple_of(8);
        if invalid {
            return Err(errno(libc::EINVAL));
        }
        self.check_buffers(machine, allocations, gpu, kind, args)?;
        let taken = |doorbell| self.entries.iter().any(|e| e.id.gpu == gpu && e.doorbell == doorbell);
        let of_kind = self.entries.iter().filter(|e| e.id.gpu == gpu && e.kind.is_sdma() == kind.is_sdma()).count();
        if of_kind as u32 >= if kind.is_sdma() { SDMA_QUEUES } else { COMPUTE_QUEUES } {
            return Err(errno(libc::ENOMEM));
        }
        let first = if kind.is_sdma() { FIRST_SDMA_DOORBELL } else { 0 };
        let doorbell = (first..DOORBELLS / 2).find(|&d| !taken(d)).ok_or_else(|| errno(libc::ENOMEM))?;
        let id = QueueId { gpu, number: self.next };
        self.next += 1;
        let memory = QueueMemory {
            ring: args.ring_base_address,
            ring_bytes: args.ring_size.into(),
            read_pointer: args.read_pointer_address,
        };
        let bell = Doorbell::new(&doorbells[gpu], doorbell);
        match kind {
            QueueType::ComputeAql => machine.add_queue(id, Box::new(AqlQueue::new(memory, bell, config.xccs))),
            QueueType::Compute if (target_xcc as usize) < config.xccs => {
                machine.add_queue(id, Box::new(Pm4Queue::new(memory, bell, target_xcc as usize)));
            }
            QueueType::Compute => return Err(errno(libc::EINVAL)),
            QueueType::Sdma | QueueType::SdmaXgmi | QueueType::SdmaByEngineId => {
                machine.add_engine(id, Sdma::new(memory, bell));
            }
        }
        self.entries.push(Entry { id, kind, doorbell });
        args.queue_id = id.number;
        let offset = u64::from(doorbell) * 8;
        args.doorbell_offset = MmapOffset { kind: MmapType::Doorbell, gpu_id: gpu_id(gpu), offset }.to_raw();
        Ok(())
    }

    /// What `kfd_queue_acquire_buffers` asks of a queue's buffers.
    fn check_buffers(
        &self,
        machine: &Machine,
        allocations: &Allocations,
        gpu: usize,
        kind: QueueType,
        args: &CreateQueue,
    ) -> io::Result<()> {
        let config = &machine.shared.config;
        let exact = |va: u64, bytes: u64| allocations.is_exact_buffer(gpu, va, bytes);
        let page_of = |va: u64| va & !(PAGE - 1);
        let pointers = [args.read_pointer_address, args.write_pointer_address];
        let ring_bytes = u64::from(args.ring_size).next_multiple_of(PAGE);
        let mut good = pointers.iter().all(|&va| exact(page_of(va), PAGE)) && exact(args.ring_base_address, ring_bytes);
        if !kind.is_sdma() {
            let save = ContextSave::of(config.compute_units);
            let area = u64::from(args.ctx_save_restore_size + save.debug_bytes) * config.xccs as u64;
            good &= args.eop_buffer_size >= PAGE
                && exact(args.eop_buffer_address, args.eop_buffer_size.next_multiple_of(PAGE))
                && args.ctl_stack_size == save.control_stack_bytes
                && args.ctx_save_restore_size >= save.save_restore_bytes
                && exact(args.ctx_save_restore_address, area.next_multiple_of(PAGE));
        }
        if good { Ok(()) } else { Err(errno(libc::EINVAL)) }
    }

    /// Percentage and priority don't matter to the mock; their ranges do. A new ring is refused, as no client does that.
    pub(super) fn update(&self, args: &UpdateQueue) -> io::Result<()> {
        self.find(args.queue_id)?;
        if args.queue_percentage & 0xff > MAX_PERCENTAGE || args.queue_priority > MAX_PRIORITY {
            return Err(errno(libc::EINVAL));
        }
        Ok(())
    }

    pub(super) fn destroy(&mut self, machine: &Machine, number: u32) -> io::Result<()> {
        let at = self.find(number)?;
        let entry = self.entries.remove(at);
        machine.remove_queue(entry.id);
        Ok(())
    }

    fn find(&self, number: u32) -> io::Result<usize> {
        self.entries.iter().position(|e| e.id.number == number).ok_or_else(|| errno(libc::EINVAL))
    }
}
