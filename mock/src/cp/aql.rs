//! AQL queues: all XCCs of the GPU take each packet together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use driver::address::GpuVa;
use driver::packets::aql::{Aql, BYTES, DWORDS, FenceScope, INVALID_HEADER, KernelDispatch, PacketType, Slot};

use super::descriptor::KernelDescriptor;
use super::pm4::Pm4Context;
use super::registers::tmpring_area;
use super::{Bus, Processor, bus::Workgroups};
use crate::check::Scope;
use crate::doorbell::Doorbell;
use crate::kfd::QueueMemory;
use crate::machine::launch::{Launch, LaunchShape, ProgramResources, Scratch};
use crate::machine::{Counters, GpuFault};
use crate::memory::MemoryFault;
use crate::observe::{CacheAction, OrderEvent};

/// Offsets in `amd_queue_t` (`amd_hsa_queue.h`); KFD is given the address of its `read_dispatch_id`.
mod amd_queue {
    pub(super) const READ_DISPATCH_ID: u64 = 0x80;
    pub(super) const COMPUTE_TMPRING_SIZE: u64 = 0x8c;
    pub(super) const SCRATCH_BACKING_MEMORY_LOCATION: u64 = 0xa0;
}

/// A packet that has been started.
struct Started {
    signal: GpuVa,
    work: Work,
    start: u64,
    /// How far its release reaches.
    release: Scope,
}

enum Work {
    Launch(Arc<Launch>),
    /// A PM4 indirect buffer, run by each XCC on its own.
    Ib,
    Done,
}

/// The processor of one AQL queue.
pub(crate) struct AqlQueue {
    memory: QueueMemory,
    doorbell: Doorbell,
    /// Index of the next packet to start.
    next: u64,
    /// Packets started and not yet retired, oldest first.
    started: VecDeque<Started>,
    /// Each XCC's PM4 state; registers outlive an indirect buffer, as they do in the queue's MQD.
    contexts: Vec<Pm4Context>,
    waits_for: String,
}

impl AqlQueue {
    pub(crate) fn new(memory: QueueMemory, doorbell: Doorbell, xccs: usize) -> Self {
        let contexts = (0..xccs).map(|xcc| Pm4Context::new(xcc, Workgroups::ShareOf(xcc))).collect();
        Self { memory, doorbell, next: 0, started: VecDeque::new(), contexts, waits_for: "its doorbell".into() }
    }

    /// Completes what has ended, and retires packets from the front.
    fn retire(&mut self, bus: &mut Bus<'_>) -> Result<bool, GpuFault> {
        let mut moved = false;
        for started in &mut self.started {
            let ended = match &started.work {
                Work::Launch(launch) => launch.is_done(),
                Work::Ib => self.contexts.iter().all(Pm4Context::is_idle),
                Work::Done => continue,
            };
            if ended {
                let launch = match std::mem::replace(&mut started.work, Work::Done) {
                    Work::Launch(launch) => Some(launch.number),
                    Work::Ib | Work::Done => None,
                };
                if started.release >= Scope::Agent {
                    bus.cache(None, CacheAction::WriteBack, started.release);
                }
                bus.order(None, OrderEvent::Told { address: started.signal.get(), launch });
                bus.complete_signal(started.signal, started.start, bus.shared.clock())?;
                moved = true;
            }
        }
        while let Some(Started { work: Work::Done, .. }) = self.started.front() {
            self.started.pop_front();
        }
        if moved {
            let retired = self.next - self.started.len() as u64;
            bus.view.write_u64(self.memory.read_pointer, retired).map_err(|fault| bus.memory_fault(fault))?;
        }
        Ok(moved)
    }

    /// Starts the next packet, if there is one and it need not wait.
    fn start_next(&mut self, bus: &mut Bus<'_>) -> Result<bool, GpuFault> {
        let at = self.memory.ring + self.next * BYTES % self.memory.ring_bytes;
        // Acquire: the client stores the header last, with release, so the rest of the packet is complete.
        let header = bus.view.read_u32(at).map_err(|fault| bus.memory_fault(fault))?;
        if header as u16 & 0xff == PacketType::Invalid as u16 {
            self.waits_for = format!("packet {}, whose header is still invalid", self.next);
            return Ok(false);
        }
        let mut slot: Slot = [0; DWORDS];
        for (i, dword) in slot.iter_mut().enumerate() {
            *dword = bus.view.read_u32(at + 4 * i as u64).map_err(|fault| bus.memory_fault(fault))?;
        }
        let packet =
            Aql::decode(&slot).map_err(|error| bus.packet_fault(format!("AQL packet {}: {error}", self.next)))?;
        if packet.barrier() && !self.started.is_empty() {
            self.waits_for = format!("the packets before {packet}, which has the barrier bit");
            return Ok(false);
        }
        let start = bus.shared.clock();
        let (acquire, release) = packet.scopes();
        let (acquire, release) = (scope(acquire), scope(release));
        if packet.barrier() {
            bus.order(None, OrderEvent::Waited);
            for xcc in 0..self.contexts.len() {
                bus.order(Some(xcc), OrderEvent::Waited);
                bus.order(None, OrderEvent::Follows(bus.stream(Some(xcc))));
            }
        }
        let work = match &packet {
            Aql::KernelDispatch(dispatch) => {
                let shape = self.shape(bus, dispatch, GpuVa::new(at))?;
                self.acquire(bus, acquire);
                Work::Launch(bus.launch(shape, Workgroups::AllXccs)?)
            }
            Aql::Pm4Ib(ib) => {
                self.acquire(bus, acquire);
                for (xcc, context) in self.contexts.iter_mut().enumerate() {
                    bus.order(Some(xcc), OrderEvent::Follows(bus.stream(None)));
                    context.run(ib.ib_address, ib.ib_dwords);
                }
                Work::Ib
            }
            Aql::BarrierAnd(barrier) => {
                let signals: Vec<GpuVa> =
                    barrier.dep_signals().into_iter().filter(|signal| *signal != GpuVa::NULL).collect();
                match signals.iter().try_fold(true, |met, &s| is_zero(bus, s).map(|zero| met && zero)) {
                    Ok(true) => {
                        signals.iter().for_each(|signal| bus.order(None, OrderEvent::Heard(signal.get())));
                        self.acquire(bus, acquire);
                        Work::Done
                    }
                    Ok(false) => {
                        self.waits_for = format!("the signals of {packet}");
                        return Ok(false);
                    }
                    Err(fault) => return Err(bus.memory_fault(fault)),
                }
            }
            Aql::BarrierOr(barrier) => {
                let signals: Vec<GpuVa> =
                    barrier.dep_signals().into_iter().filter(|signal| *signal != GpuVa::NULL).collect();
                match signals.iter().try_fold(signals.is_empty(), |met, &s| is_zero(bus, s).map(|zero| met || zero)) {
                    Ok(true) => {
                        for &signal in &signals {
                            if is_zero(bus, signal).is_ok_and(|zero| zero) {
                                bus.order(None, OrderEvent::Heard(signal.get()));
                            }
                        }
                        self.acquire(bus, acquire);
                        Work::Done
                    }
                    Ok(false) => {
                        self.waits_for = format!("one of the signals of {packet}");
                        return Ok(false);
                    }
                    Err(fault) => return Err(bus.memory_fault(fault)),
                }
            }
        };
        // The slot is the client's again once the read pointer passes it; its header says so to the next round.
        let invalid = slot[0] & 0xffff_0000 | u32::from(INVALID_HEADER);
        bus.view.write_u32(at, invalid).map_err(|fault| bus.memory_fault(fault))?;
        Counters::add(&bus.shared.counters.ring_packets, 1);
        if let Work::Done = work {
            if release >= Scope::Agent {
                bus.cache(None, CacheAction::WriteBack, release);
            }
            bus.order(None, OrderEvent::Told { address: packet.completion_signal().get(), launch: None });
            bus.complete_signal(packet.completion_signal(), start, bus.shared.clock())?;
        }
        self.started.push_back(Started { signal: packet.completion_signal(), work, start, release });
        self.next += 1;
        Ok(true)
    }

    fn acquire(&self, bus: &Bus<'_>, acquire: Scope) {
        if acquire >= Scope::Agent {
            bus.cache(None, CacheAction::Invalidate, acquire);
        }
    }

    /// What the dispatch packet and the kernel descriptor say is run (AMDGPUUsage, "Kernel Dispatch").
    fn shape(&self, bus: &mut Bus<'_>, packet: &KernelDispatch, at: GpuVa) -> Result<LaunchShape, GpuFault> {
        let object = packet.kernel_object.get();
        let mut bytes = [0; KernelDescriptor::BYTES];
        bus.view.read_bytes(object, &mut bytes).map_err(|fault| bus.memory_fault(fault))?;
        let descriptor = KernelDescriptor::parse(&bytes)
            .map_err(|problem| bus.packet_fault(format!("kernel descriptor at {object:#x}: {problem}")))?;
        let xccs = bus.xcc_count();
        let mut rsrc2 = descriptor.rsrc2;
        let mut scratch = vec![Scratch::default(); xccs];
        if packet.private_segment_size > 0 {
            rsrc2 |= 1;
            let read = |bus: &mut Bus<'_>| {
                let queue = self.memory.read_pointer - amd_queue::READ_DISPATCH_ID;
                let tmpring = bus.view.read_u32(queue + amd_queue::COMPUTE_TMPRING_SIZE)?;
                let base = bus.view.read_u64(queue + amd_queue::SCRATCH_BACKING_MEMORY_LOCATION)?;
                Ok((tmpring, base))
            };
            let (tmpring, base) = read(bus).map_err(|fault: MemoryFault| bus.memory_fault(fault))?;
            let area = tmpring_area(tmpring, base);
            if area.bytes_per_wave < packet.private_segment_size * 64 {
                return Err(bus.packet_fault(format!(
                    "the kernel needs {} scratch bytes a work-item; the queue's scratch has {}",
                    packet.private_segment_size,
                    area.bytes_per_wave / 64
                )));
            }
            // XCCs have equal parts of the backing memory, one after the other.
            for (xcc, part) in scratch.iter_mut().enumerate() {
                let stride = u64::from(area.waves) * u64::from(area.bytes_per_wave);
                *part = Scratch { base: base + xcc as u64 * stride, ..area };
            }
        }
        let user_data = self.user_data(bus, packet, &descriptor, at)?;
        let mut entry = object.wrapping_add_signed(descriptor.entry_offset);
        if descriptor.kernarg_preload_dwords > 0 {
            // Firmware that preloads skips the code that loads the same arguments for firmware that doesn't.
            entry += 256;
        }
        let one = |n: u32| n.max(1);
        Ok(LaunchShape {
            entry: GpuVa::new(entry),
            resources: ProgramResources { rsrc1: descriptor.rsrc1, rsrc2, rsrc3: descriptor.rsrc3 },
            workgroup: [packet.workgroup_size_x, packet.workgroup_size_y, packet.workgroup_size_z]
                .map(|n| one(n.into())),
            grid: [packet.grid_size_x, packet.grid_size_y, packet.grid_size_z].map(one),
            start: [0; 3],
            user_data,
            lds_bytes: packet.group_segment_size,
            scratch,
        })
    }

    /// User SGPRs in the order of AMDGPUUsage's "SGPR Register Set Up Order".
    fn user_data(
        &self,
        bus: &mut Bus<'_>,
        packet: &KernelDispatch,
        descriptor: &KernelDescriptor,
        at: GpuVa,
    ) -> Result<Vec<u32>, GpuFault> {
        let properties = descriptor.properties;
        if properties.private_segment_buffer || properties.flat_scratch_init {
            return Err(bus.packet_fault(
                "the kernel asks for a private segment buffer or flat scratch init, which gfx950 does not have".into(),
            ));
        }
        let mut data = Vec::with_capacity(16);
        let mut push = |value: u64| data.extend([value as u32, (value >> 32) as u32]);
        if properties.dispatch_ptr {
            push(at.get());
        }
        if properties.queue_ptr {
            push(self.memory.read_pointer - amd_queue::READ_DISPATCH_ID);
        }
        if properties.kernarg_segment_ptr {
            push(packet.kernarg_address.get());
        }
        if properties.dispatch_id {
            push(self.next);
        }
        if properties.private_segment_size {
            data.push(packet.private_segment_size);
        }
        let first = packet.kernarg_address.get() + 4 * u64::from(descriptor.kernarg_preload_offset);
        for i in 0..u64::from(descriptor.kernarg_preload_dwords) {
            data.push(bus.view.read_u32(first + 4 * i).map_err(|fault| bus.memory_fault(fault))?);
        }
        // The register count of RSRC2 decides; hardware has sixteen.
        let count = (descriptor.rsrc2 >> 1 & 0x1f).min(16) as usize;
        data.resize(count, 0);
        Ok(data)
    }
}

impl Processor for AqlQueue {
    fn step(&mut self, bus: &mut Bus<'_>) -> Result<bool, GpuFault> {
        let (rung, changed) = self.doorbell.read();
        if changed && rung.is_some() {
            Counters::add(&bus.shared.counters.doorbells, 1);
            bus.order(None, OrderEvent::Submitted);
        }
        let mut moved = changed;
        for context in &mut self.contexts {
            moved |= context.step(bus)?;
        }
        loop {
            moved |= self.retire(bus)?;
            match rung {
                // The doorbell holds the index of the last packet written.
                Some(last) if self.next <= last => {}
                _ => {
                    self.waits_for = format!("its doorbell ({} packets started)", self.next);
                    return Ok(moved);
                }
            }
            if let Some(Started { work: Work::Ib, .. }) = self.started.back() {
                self.waits_for = self.contexts.iter().map(Pm4Context::describe).collect::<Vec<_>>().join(", ");
                return Ok(moved);
            }
            if !self.start_next(bus)? {
                return Ok(moved);
            }
            moved = true;
        }
    }

    fn describe(&self) -> String {
        format!("AQL, waits for {}", self.waits_for)
    }
}

fn is_zero(bus: &mut Bus<'_>, signal: GpuVa) -> Result<bool, MemoryFault> {
    Ok(bus.view.atomic_u64(signal.get() + 8)?.load(Ordering::Acquire) == 0)
}

fn scope(fence: FenceScope) -> Scope {
    match fence {
        FenceScope::None => Scope::Wave,
        FenceScope::Agent => Scope::Agent,
        FenceScope::System => Scope::System,
    }
}
