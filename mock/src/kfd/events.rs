//! KFD events: what packets, faults and clients signal, and what clients wait for (`kfd_events.c`).

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use driver::kfd::event::{EventData, EventType, HwException, MemoryException, SIGNAL_EVENT_LIMIT, WaitResult};
use zerocopy::{FromBytes, IntoBytes};

use super::errno;
use super::identity::gpu_id;
use crate::exec::WaveFault;
use crate::machine::GpuFault;
use crate::memory::{MemoryFault, MemoryFaultReason};
use crate::workgroup::FaultReport;

struct Event {
    kind: EventType,
    auto_reset: bool,
    signalled: bool,
    /// Counts signals, so that a waiter can tell a new one from one it has seen (KFD 1.13 and later).
    age: u64,
    payload: [u64; 4],
}

#[derive(Default)]
struct Table {
    events: BTreeMap<u32, Event>,
    next: u32,
}

/// The events of the client process.
#[derive(Default)]
pub(crate) struct Events {
    table: Mutex<Table>,
    signalled: Condvar,
}

impl Events {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates an event and gives its id.
    pub(super) fn create(&self, kind: EventType, auto_reset: bool) -> io::Result<u32> {
        let mut table = self.table();
        if table.events.len() >= SIGNAL_EVENT_LIMIT as usize {
            return Err(errno(libc::ENOSPC));
        }
        // Signal events come from the page's slots; the others have ids past them, as in the kernel.
        let signal = matches!(kind, EventType::Signal | EventType::Debug);
        let first = if signal { 1 } else { SIGNAL_EVENT_LIMIT };
        table.next += 1;
        let id = (first..).find(|id| !table.events.contains_key(id)).unwrap_or(first);
        table.events.insert(id, Event { kind, auto_reset, signalled: false, age: 1, payload: [0; 4] });
        Ok(id)
    }

    pub(super) fn destroy(&self, id: u32) -> io::Result<()> {
        let gone = self.table().events.remove(&id);
        self.signalled.notify_all();
        gone.map(drop).ok_or_else(|| errno(libc::EINVAL))
    }

    /// `SET_EVENT` of a client.
    pub(super) fn set(&self, id: u32) -> io::Result<()> {
        match self.table().events.get(&id).map(|event| event.kind) {
            Some(EventType::Signal) => {}
            _ => return Err(errno(libc::EINVAL)),
        }
        self.signal(id);
        Ok(())
    }

    pub(super) fn reset(&self, id: u32) -> io::Result<()> {
        let mut table = self.table();
        let event = table.events.get_mut(&id).ok_or_else(|| errno(libc::EINVAL))?;
        event.signalled = false;
        Ok(())
    }

    /// An interrupt that carries `id`. Ids nobody holds are ignored, as the kernel does.
    pub(crate) fn signal(&self, id: u32) {
        if let Some(event) = self.table().events.get_mut(&id) {
            event.signalled = true;
            event.age += 1;
        }
        self.signalled.notify_all();
    }

    /// Signals the memory-fault or hardware-exception events with the facts of `fault`.
    pub(crate) fn gpu_fault(&self, gpu: usize, fault: &GpuFault) {
        let memory = match fault {
            GpuFault::Memory { fault, .. } => Some(fault),
            GpuFault::Wave(report) => match &**report {
                FaultReport { fault: WaveFault::Memory(fault), .. } => Some(fault),
                _ => None,
            },
            GpuFault::Packet { .. } => None,
        };
        let (kind, payload) = match memory {
            Some(fault) => (EventType::Memory, memory_payload(gpu, fault)),
            None => (EventType::HwException, hardware_payload(gpu)),
        };
        for event in self.table().events.values_mut().filter(|event| event.kind == kind) {
            event.signalled = true;
            event.age += 1;
            event.payload = payload;
        }
        self.signalled.notify_all();
    }

    /// `WAIT_EVENTS`: waits until one or all of `wanted` are signalled, or `timeout` milliseconds have gone by.
    pub(super) fn wait(&self, wanted: &mut [EventData], all: bool, timeout: u32) -> WaitResult {
        let deadline = (timeout != u32::MAX).then(|| Instant::now() + Duration::from_millis(timeout.into()));
        let mut table = self.table();
        loop {
            let mut met = 0;
            for data in wanted.iter() {
                match table.events.get(&data.event_id) {
                    None => return WaitResult::Fail,
                    Some(event) => met += usize::from(event.is_new_to(data)),
                }
            }
            if met == wanted.len() || (met > 0 && !all) {
                for data in wanted.iter_mut() {
                    if let Some(event) = table.events.get_mut(&data.event_id)
                        && event.is_new_to(data)
                    {
                        event.report(data);
                    }
                }
                return WaitResult::Complete;
            }
            table = match deadline {
                None => self.signalled.wait(table).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
                    else {
                        return WaitResult::Timeout;
                    };
                    self.signalled.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Event {
    fn is_new_to(&self, waiter: &EventData) -> bool {
        let seen = if self.kind == EventType::Signal { waiter.last_event_age() } else { 0 };
        self.signalled || (seen != 0 && seen != self.age)
    }

    fn report(&mut self, waiter: &mut EventData) {
        if self.kind == EventType::Signal {
            if waiter.payload[0] != 0 {
                waiter.payload[0] = self.age;
            }
        } else {
            waiter.payload = self.payload;
        }
        if self.auto_reset {
            self.signalled = false;
        }
    }
}

fn memory_payload(gpu: usize, fault: &MemoryFault) -> [u64; 4] {
    let is = |reason| u32::from(fault.reason == reason);
    let read_only = is(MemoryFaultReason::ReadOnly);
    let no_execute = is(MemoryFaultReason::NotExecutable);
    let exception = MemoryException {
        not_present: u32::from(read_only + no_execute == 0),
        read_only,
        no_execute,
        imprecise: 0,
        // The hardware reports the page.
        va: fault.address.get() & !0xfff,
        gpu_id: gpu_id(gpu),
        error_type: 0,
    };
    let mut payload = [0; 4];
    payload.as_mut_bytes()[..size_of::<MemoryException>()].copy_from_slice(exception.as_bytes());
    payload
}

fn hardware_payload(gpu: usize) -> [u64; 4] {
    let exception = HwException { reset_type: 1, reset_cause: 0, memory_lost: 0, gpu_id: gpu_id(gpu) };
    let [low, high] = <[u64; 2]>::read_from_bytes(exception.as_bytes()).unwrap_or_default();
    [low, high, 0, 0]
}
