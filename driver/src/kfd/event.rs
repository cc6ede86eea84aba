//! Arguments that concern events: what a GPU's interrupt, fault or reset wakes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute};

/// `KFD_SIGNAL_EVENT_LIMIT`: events of a process, and 8-byte mailboxes of its event page.
pub const SIGNAL_EVENT_LIMIT: u32 = 4096;
/// A mailbox of the event page nothing was written to (`UNSIGNALED_EVENT_SLOT` of `kfd_events.c`).
pub const UNSIGNALED_EVENT_SLOT: u64 = u64::MAX;

/// `KFD_IOC_EVENT_*`: what an event stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventType {
    /// An interrupt of a packet.
    Signal = 0,
    /// A node came or went.
    NodeChange = 1,
    /// A device changed state.
    DeviceStateChange = 2,
    /// A GPU hangs, was reset or met an uncorrectable error.
    HwException = 3,
    /// System event.
    System = 4,
    /// Debugger event.
    Debug = 5,
    /// Profiler event.
    Profile = 6,
    /// Queue event.
    Queue = 7,
    /// A GPU accessed memory it may not.
    Memory = 8,
}

impl EventType {
    /// The type numbered `raw`.
    pub const fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            0 => Self::Signal,
            1 => Self::NodeChange,
            2 => Self::DeviceStateChange,
            3 => Self::HwException,
            4 => Self::System,
            5 => Self::Debug,
            6 => Self::Profile,
            7 => Self::Queue,
            8 => Self::Memory,
            _ => return None,
        })
    }
}

/// `CREATE_EVENT`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct CreateEvent {
    /// To KFD, first event of the process only: handle of the GTT memory to use as event page. From KFD: an mmap offset.
    pub event_page_offset: u64,
    /// From KFD: what a packet's interrupt must carry, the event id.
    pub event_trigger_data: u32,
    /// To KFD: an [`EventType`].
    pub event_type: u32,
    /// To KFD: non-zero if a satisfied wait clears the event.
    pub auto_reset: u32,
    /// To KFD: unused by the types above.
    pub node_id: u32,
    /// From KFD.
    pub event_id: u32,
    /// From KFD: index of the event's 8-byte mailbox in the event page; signal events only.
    pub event_slot_index: u32,
}

/// `DESTROY_EVENT`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct DestroyEvent {
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `SET_EVENT`: as if its interrupt had come.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct SetEvent {
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

/// `RESET_EVENT`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ResetEvent {
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

/// How a wait ended (`KFD_IOC_WAIT_RESULT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WaitResult {
    /// What was waited for came.
    Complete = 0,
    /// It did not come in time.
    Timeout = 1,
    /// An event was destroyed, or an id is unknown.
    Fail = 2,
}

impl WaitResult {
    /// The result numbered `raw`; the kernel has no others.
    pub const fn from_raw(raw: u32) -> Option<Self> {
        Some(match raw {
            0 => Self::Complete,
            1 => Self::Timeout,
            2 => Self::Fail,
            _ => return None,
        })
    }
}

/// `WAIT_EVENTS`.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct WaitEvents {
    /// To KFD: pointer to an array of [`EventData`].
    pub events_ptr: u64,
    /// To KFD: entries.
    pub num_events: u32,
    /// To KFD: zero to wait for any, else for all.
    pub wait_for_all: u32,
    /// To KFD: milliseconds; `0xffff_ffff` waits for ever, zero only asks.
    pub timeout: u32,
    /// From KFD: a [`WaitResult`].
    pub wait_result: u32,
}

/// One event waited for, and what the kernel says about it (`kfd_event_data`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct EventData {
    /// From KFD: a union, by the type of the event; see the accessors.
    pub payload: [u64; 4],
    /// Unused.
    pub extension_ptr: u64,
    /// To KFD.
    pub event_id: u32,
    /// Unused.
    pub pad: u32,
}

impl EventData {
    /// An entry that waits for `event_id`.
    pub const fn new(event_id: u32) -> Self {
        Self { payload: [0; 4], extension_ptr: 0, event_id, pad: 0 }
    }

    /// The payload of an [`EventType::Memory`].
    pub fn memory_exception(&self) -> MemoryException {
        transmute!(self.payload)
    }

    /// The payload of an [`EventType::HwException`].
    pub fn hw_exception(&self) -> HwException {
        let [low, high, _, _] = self.payload;
        transmute!([low, high])
    }

    /// The payload of an [`EventType::Signal`]: the age last seen, to and from KFD (1.13 and later).
    pub const fn last_event_age(&self) -> u64 {
        self.payload[0]
    }
}

/// A memory fault of a GPU (`kfd_hsa_memory_exception_data`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct MemoryException {
    /// Non-zero: the page is not present, or is the kernel's.
    pub not_present: u32,
    /// Non-zero: a write to a read-only page.
    pub read_only: u32,
    /// Non-zero: an instruction fetch from a page that is not executable.
    pub no_execute: u32,
    /// Non-zero: the address is not exact.
    pub imprecise: u32,
    /// The address, to the page.
    pub va: u64,
    /// Whose access it was.
    pub gpu_id: u32,
    /// 0 no RAS error, 1 SRAM ECC, 2 poison consumed, 3 GPU hang (`KFD_MEM_ERR_*`).
    pub error_type: u32,
}

/// A hardware exception of a GPU (`kfd_hsa_hw_exception_data`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct HwException {
    /// 0 the whole GPU, 1 one engine (`KFD_HW_EXCEPTION_*_RESET`).
    pub reset_type: u32,
    /// 0 hang, 1 uncorrectable ECC (`KFD_HW_EXCEPTION_GPU_HANG`, `_ECC`).
    pub reset_cause: u32,
    /// Non-zero: the content of VRAM is gone.
    pub memory_lost: u32,
    /// Which GPU.
    pub gpu_id: u32,
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_event_structures_are_laid_out_as_the_c_header_lays_them_out() {
        assert_eq!(offset_of!(CreateEvent, event_page_offset), 0);
        assert_eq!(offset_of!(CreateEvent, event_trigger_data), 8);
        assert_eq!(offset_of!(CreateEvent, event_type), 12);
        assert_eq!(offset_of!(CreateEvent, auto_reset), 16);
        assert_eq!(offset_of!(CreateEvent, node_id), 20);
        assert_eq!(offset_of!(CreateEvent, event_id), 24);
        assert_eq!(offset_of!(CreateEvent, event_slot_index), 28);
        assert_eq!(offset_of!(WaitEvents, num_events), 8);
        assert_eq!(offset_of!(WaitEvents, wait_for_all), 12);
        assert_eq!(offset_of!(WaitEvents, timeout), 16);
        assert_eq!(offset_of!(WaitEvents, wait_result), 20);
        assert_eq!(size_of::<EventData>(), 48);
        assert_eq!(offset_of!(EventData, event_id), 40);
        assert_eq!(offset_of!(MemoryException, va), 16);
        assert_eq!(size_of::<MemoryException>(), 32);
        assert_eq!(size_of::<HwException>(), 16);
    }

    #[test]
    fn the_payload_reads_as_the_exception_it_holds() {
        let fault = MemoryException { not_present: 1, va: 0x7f00_dead_b000, gpu_id: 0xc822, ..Default::default() };
        let data = EventData { payload: transmute!(fault), ..EventData::new(2) };
        assert_eq!(data.memory_exception(), fault);
    }
}
