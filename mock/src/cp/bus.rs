use std::sync::Arc;

use driver::address::GpuVa;

use crate::check::Scope;
use crate::kfd::Events;
use crate::machine::launch::{Launch, LaunchShape, Stream};
use crate::machine::{Counters, GpuFault, QueueId, Shared, Xcc};
use crate::memory::{MemoryFault, PageMap, View};
use crate::observe::{CacheAction, Event, OrderEvent};

/// What a command processor reaches: its GPU's memory and XCCs, interrupts, the clock.
pub(crate) struct Bus<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) queue: QueueId,
    pub(crate) view: View<'a>,
    map: &'a PageMap,
    xccs: &'a mut [Xcc],
}

/// Which workgroups of a launch a processor starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workgroups {
    /// All, spread over the GPU's XCCs in turn.
    AllXccs,
    /// The share of one XCC, when each XCC runs the same dispatch for itself.
    ShareOf(usize),
    /// All, on one XCC.
    OnOne(usize),
}

impl<'a> Bus<'a> {
    pub(crate) fn new(shared: &'a Shared, queue: QueueId, map: &'a PageMap, xccs: &'a mut [Xcc]) -> Self {
        Self { shared, queue, view: View::new(map), map, xccs }
    }

    /// XCCs of the GPU.
    pub(crate) fn xcc_count(&self) -> usize {
        self.xccs.len()
    }

    /// Starts workgroups of `shape`.
    pub(crate) fn launch(&mut self, shape: LaunchShape, which: Workgroups) -> Result<Arc<Launch>, GpuFault> {
        self.check(&shape)?;
        let end = shape.workgroup_count();
        let stride = self.xccs.len() as u64;
        let count = match which {
            Workgroups::AllXccs | Workgroups::OnOne(_) => end,
            Workgroups::ShareOf(xcc) => (end + stride - 1).saturating_sub(xcc as u64) / stride,
        };
        if !matches!(which, Workgroups::ShareOf(xcc) if xcc != 0) {
            Counters::add(&self.shared.counters.dispatches, 1);
        }
        let count = if self.shared.config.null { 0 } else { count };
        let limits = shape.resources.limits();
        let entry = shape.entry;
        let stream = self.stream(match which {
            Workgroups::AllXccs => None,
            Workgroups::ShareOf(xcc) | Workgroups::OnOne(xcc) => Some(xcc),
        });
        let launch = Arc::new(Launch::new(shape, stream, count));
        self.shared.observers.event(&Event::LaunchStarted(&launch));
        if count == 0 {
            self.shared.observers.event(&Event::LaunchEnded(&launch));
        }
        if count > 0 {
            let code = self.shared.codes.get(self.queue.gpu, entry, limits, self.map, self.shared.level);
            match which {
                Workgroups::AllXccs => {
                    for (index, xcc) in self.xccs.iter_mut().enumerate() {
                        xcc.enqueue(&launch, &code, index as u64, stride);
                    }
                }
                Workgroups::ShareOf(xcc) => self.xccs[xcc].enqueue(&launch, &code, xcc as u64, stride),
                Workgroups::OnOne(xcc) => self.xccs[xcc].enqueue(&launch, &code, 0, 1),
            }
        }
        Ok(launch)
    }

    /// Refuses what could never be admitted to a compute unit, and would wait there for ever.
    fn check(&self, shape: &LaunchShape) -> Result<(), GpuFault> {
        let items: u64 = shape.workgroup.iter().map(|&n| u64::from(n)).product();
        if items == 0 || items > 1024 {
            return Err(self.packet_fault(format!("a workgroup of {items} work-items; the hardware runs 1 to 1024")));
        }
        if !shape.fits_a_compute_unit() {
            return Err(self.packet_fault(format!(
                "a workgroup of {} waves with {} registers each and {} bytes of LDS fits no compute unit",
                shape.waves_per_workgroup(),
                shape.resources.vgprs(),
                shape.lds_bytes
            )));
        }
        let slots = shape.waves_per_workgroup();
        if shape.resources.scratch_enabled() && shape.scratch.iter().any(|area| area.waves < slots) {
            return Err(self.packet_fault("the kernel uses scratch, the queue has none for a whole workgroup".into()));
        }
        Ok(())
    }

    /// The stream of this queue, or of one XCC that takes its packets by itself.
    pub(crate) fn stream(&self, xcc: Option<usize>) -> Stream {
        Stream { queue: self.queue, xcc: xcc.map(|xcc| xcc as u8) }
    }

    /// Tells how packets order work.
    pub(crate) fn order(&self, xcc: Option<usize>, event: OrderEvent) {
        self.shared.observers.event(&Event::Order(self.stream(xcc), event));
    }

    /// Tells what packets do to L2s.
    pub(crate) fn cache(&self, xcc: Option<usize>, action: CacheAction, scope: Scope) {
        let (gpu, xcc) = (self.queue.gpu, xcc.map(|xcc| xcc as u8));
        self.shared.observers.event(&Event::Cache { gpu, xcc, action, scope });
    }

    /// Raises the interrupt that KFD delivers as event `event`.
    pub(crate) fn interrupt(&self, event: u32) {
        let events: &Events = &self.shared.events;
        events.signal(event);
    }

    /// Completes a signal: time stamps if the signal has room for them (all of AMD's do), value less one, mailbox and
    /// interrupt (`amd_signal_t` of `amd_hsa_signal.h`).
    pub(crate) fn complete_signal(&mut self, signal: GpuVa, start: u64, end: u64) -> Result<(), GpuFault> {
        if signal == GpuVa::NULL {
            return Ok(());
        }
        let at = signal.get();
        let mut complete = || {
            if self.shared.config.null {
                self.shared.stand_ins.before_completion(signal, &mut self.view)?;
            }
            self.view.write_u64(at + 32, start)?;
            self.view.write_u64(at + 40, end)?;
            // Release: everything the packet's work wrote is visible to whoever sees the new value.
            self.view.atomic_u64(at + 8)?.fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
            let mailbox = self.view.read_u64(at + 16)?;
            if mailbox != 0 {
                let event = self.view.read_u32(at + 24)?;
                self.view.write_u64(mailbox, event.into())?;
                return Ok(Some(event));
            }
            Ok(None)
        };
        match complete() {
            Ok(Some(event)) => self.interrupt(event),
            Ok(None) => {}
            Err(fault) => return Err(self.memory_fault(fault)),
        }
        Ok(())
    }

    /// A refused access of this queue's processor.
    pub(crate) fn memory_fault(&self, fault: MemoryFault) -> GpuFault {
        GpuFault::Memory { engine: self.engine(), fault }
    }

    /// A packet this queue's processor can't execute.
    pub(crate) fn packet_fault(&self, problem: String) -> GpuFault {
        GpuFault::Packet { engine: self.engine(), problem }
    }

    fn engine(&self) -> String {
        format!("GPU {} queue {}", self.queue.gpu, self.queue.number)
    }
}
