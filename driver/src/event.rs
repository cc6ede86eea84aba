//! Events: how the kernel tells this process that a packet interrupted, or that a GPU faulted.
//!
//! Signal events have a mailbox each, 8 bytes of the event page. A packet writes the event id there and interrupts with
//! it; the kernel finds the event by either. Two events without mailbox stand for every memory fault and every hardware
//! exception of the process.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use crate::address::{Bytes, GpuVa};
use crate::gpu::Gpu;
use crate::kfd::event::{EventData, EventType, HwException, MemoryException, SIGNAL_EVENT_LIMIT, WaitResult};
use crate::kfd::{IoctlError, Kfd};
use crate::memory::{self, Allocation, Place, RawMemory};
use crate::process::Process;

/// What went wrong with events.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The event page cannot be allocated.
    #[error("cannot set up the event page: {0}")]
    Page(#[from] memory::Error),
    /// The event page cannot be mapped to another GPU.
    #[error("cannot map the event page to GPU {gpu_id:#x}: {source}")]
    MapPage {
        /// Which GPU.
        gpu_id: u32,
        /// What the kernel said.
        source: IoctlError,
    },
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] IoctlError),
    /// An event vanished while it was waited for.
    #[error("an event was destroyed while it was waited for")]
    Destroyed,
    /// A GPU faulted.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A fault of a GPU. It stops the whole process: eight GPUs are one machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A GPU touched memory it may not.
    #[error("GPU {gpu_id:#x} accessed {}{address}, {place}: {}", if *.imprecise { "around " } else { "" }, reasons(.exception))]
    Memory {
        /// Which GPU.
        gpu_id: u32,
        /// Where, to the page.
        address: GpuVa,
        /// Whether the address may be off.
        imprecise: bool,
        /// What lies there.
        place: Place,
        /// What the kernel said.
        exception: MemoryException,
    },
    /// A GPU hung, was reset or met an uncorrectable error.
    #[error("GPU {gpu_id:#x} {}", hardware(.exception))]
    Hardware {
        /// Which GPU.
        gpu_id: u32,
        /// What the kernel said.
        exception: HwException,
    },
}

fn reasons(exception: &MemoryException) -> String {
    let mut reasons = Vec::new();
    if exception.not_present != 0 {
        reasons.push("the page is not mapped to it");
    }
    if exception.read_only != 0 {
        reasons.push("it may not write there");
    }
    if exception.no_execute != 0 {
        reasons.push("there is no code it may run");
    }
    match exception.error_type {
        0 => {}
        1 => reasons.push("uncorrectable SRAM ECC error"),
        2 => reasons.push("poisoned memory was consumed"),
        3 => reasons.push("the GPU hangs"),
        _ => reasons.push("an error of a kind newer than this program"),
    }
    if reasons.is_empty() { "the kernel gives no reason; see dmesg".into() } else { reasons.join(", ") }
}

fn hardware(exception: &HwException) -> String {
    let cause = match exception.reset_cause {
        0 => "hangs",
        1 => "met an uncorrectable memory error",
        _ => "met an error of a kind newer than this program",
    };
    let reset = if exception.reset_type == 0 { "the whole GPU is reset" } else { "one engine is reset" };
    let lost = if exception.memory_lost != 0 { ", its memory is lost" } else { "" };
    format!("{cause}; {reset}{lost}; see dmesg")
}

/// The events of a process.
#[derive(Default)]
pub(crate) struct Events {
    page: OnceLock<Page>,
    fault: OnceLock<Fault>,
}

struct Page {
    memory: RawMemory,
    memory_exception: u32,
    hw_exception: u32,
    mapped_to: Mutex<Vec<u32>>,
}

impl Events {
    /// Sets events up for a GPU: the first brings the page, the others map it. The caller holds `Process::opening`.
    pub(crate) fn add_gpu(&self, kfd: &Kfd, gpu: &Gpu) -> Result<(), Error> {
        let page = match self.page.get() {
            Some(page) => page,
            None => {
                let page = Page::create(kfd, gpu)?;
                self.page.get_or_init(|| page)
            }
        };
        // A panic elsewhere leaves the list whole: it is changed after the kernel answered.
        let mut mapped = page.mapped_to.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !mapped.contains(&gpu.id()) {
            let result = kfd.map_memory(page.memory.handle, &[gpu.id()]);
            result.map_err(|(_, source)| Error::MapPage { gpu_id: gpu.id(), source })?;
            mapped.push(gpu.id());
        }
        Ok(())
    }

    pub(crate) fn fault(&self) -> Option<&Fault> {
        self.fault.get()
    }

    /// Fails if a fault is known; does not ask the kernel.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }

    /// Asks the kernel for faults without waiting.
    pub(crate) fn poll(&self, process: &Process) -> Result<(), Error> {
        self.wait(process, None, 0).map(|_| ())
    }

    /// Waits until `event` or a fault comes, at most `milliseconds`. Returns whether something came.
    pub(crate) fn wait(&self, process: &Process, event: Option<u32>, milliseconds: u32) -> Result<bool, Error> {
        self.check()?;
        let Some(page) = self.page.get() else { return Ok(false) };
        let mut data = vec![EventData::new(page.memory_exception), EventData::new(page.hw_exception)];
        data.extend(event.map(EventData::new));
        let result = process.kfd().wait_events(&mut data, milliseconds)?;
        if let Some(fault) = fault_of(process, &data[0], &data[1]) {
            // The first fault is the cause; those of other GPUs follow from it.
            tracing::error!(%fault, "a GPU faulted");
            return Err(self.fault.get_or_init(|| fault).clone().into());
        }
        match result {
            WaitResult::Complete => Ok(true),
            WaitResult::Timeout => Ok(false),
            WaitResult::Fail => Err(Error::Destroyed),
        }
    }

    fn mailbox(&self, slot: u32) -> Option<GpuVa> {
        if slot >= SIGNAL_EVENT_LIMIT {
            return None;
        }
        self.page.get()?.memory.va.checked_add(Bytes::new(u64::from(slot) * 8))
    }
}

fn fault_of(process: &Process, memory: &EventData, hardware: &EventData) -> Option<Fault> {
    // The kernel fills the data of an event that came, and every real GPU has an id.
    let exception = memory.memory_exception();
    if exception.gpu_id != 0 {
        let address = GpuVa::new(exception.va);
        let place = process.addresses().place_of(address);
        let (gpu_id, imprecise) = (exception.gpu_id, exception.imprecise != 0);
        return Some(Fault::Memory { gpu_id, address, imprecise, place, exception });
    }
    let exception = hardware.hw_exception();
    (exception.gpu_id != 0).then_some(Fault::Hardware { gpu_id: exception.gpu_id, exception })
}

impl Page {
    /// The page must exist before any event: the first event of the process names it.
    fn create(kfd: &Kfd, gpu: &Gpu) -> Result<Self, Error> {
        let bytes = Bytes::new(u64::from(SIGNAL_EVENT_LIMIT) * 8);
        let what = Allocation::shared(bytes, "event page");
        let memory = RawMemory::allocate(kfd, gpu.render(), gpu.id(), &gpu.to_string(), &what)?;
        let map = kfd.map_memory(memory.handle, &[gpu.id()]);
        map.map_err(|(_, source)| Error::MapPage { gpu_id: gpu.id(), source })?;
        let memory_exception = kfd.create_event(EventType::Memory, false, Some(memory.handle))?.event_id;
        let hw_exception = kfd.create_event(EventType::HwException, false, None)?.event_id;
        Ok(Self { memory, memory_exception, hw_exception, mapped_to: Mutex::new(vec![gpu.id()]) })
    }
}

/// What a packet writes and interrupts with to wake a waiting host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Where to write the event id.
    pub mailbox: GpuVa,
    /// The event id, also the context id of the interrupt.
    pub event_id: u32,
}

/// A signal event: resets itself when a wait has seen it. Destroyed when dropped.
pub struct Event {
    process: Arc<Process>,
    interrupt: Interrupt,
}

impl Event {
    /// Creates one. A GPU must be open: the first one brings the event page.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Self, Error> {
        let process = gpu.process().clone();
        let created = process.kfd().create_event(EventType::Signal, true, None)?;
        let mailbox = process.events().mailbox(created.event_slot_index).ok_or(Error::Destroyed)?;
        Ok(Self { interrupt: Interrupt { mailbox, event_id: created.event_id }, process })
    }

    /// What a packet does to raise it.
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let id = self.interrupt.event_id;
        if let Err(error) = self.process.kfd().destroy_event(id) {
            tracing::error!(event = id, %error, "cannot destroy an event");
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.interrupt.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_fault_names_gpu_address_place_and_reason() {
        let exception = MemoryException { not_present: 1, read_only: 1, gpu_id: 0xc822, ..Default::default() };
        let place = Place::Behind { label: "kv latents".into(), distance: 0x40 };
        let address = GpuVa::new(0x7f00_0000_1000);
        let fault = Fault::Memory { gpu_id: 0xc822, address, imprecise: false, place, exception };
        assert_eq!(
            fault.to_string(),
            "GPU 0xc822 accessed 0x7f0000001000, in no allocation, 0x40 bytes behind \"kv latents\": the page is not \
             mapped to it, it may not write there"
        );
    }

    #[test]
    fn a_hardware_exception_names_gpu_cause_and_loss() {
        let exception = HwException { reset_type: 0, reset_cause: 1, memory_lost: 1, gpu_id: 5 };
        let fault = Fault::Hardware { gpu_id: 5, exception };
        assert_eq!(
            fault.to_string(),
            "GPU 0x5 met an uncorrectable memory error; the whole GPU is reset, its memory is lost; see dmesg"
        );
    }
}
