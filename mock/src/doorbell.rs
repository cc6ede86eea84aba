//! Doorbells: plain memory that a client stores to and a processor looks at.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::host::SharedPage;

/// What a doorbell holds until it is rung for the first time. No ring gets so far that a client could store this.
const NOT_RUNG: u64 = u64::MAX;

/// One queue's doorbell.
#[derive(Debug)]
pub(crate) struct Doorbell {
    at: *const AtomicU64,
    last: u64,
}

// SAFETY: the pointer is to a doorbell page, which lives as long as the mock and is only accessed atomically.
unsafe impl Send for Doorbell {}

impl Doorbell {
    /// Doorbell `index` of a slice, reset so that what was stored for an earlier queue is not seen.
    pub(crate) fn new(slice: &SharedPage, index: u32) -> Self {
        assert!((index as usize + 1) * 8 <= slice.bytes(), "doorbell indices come from the allocator of the slice");
        let at = slice.at().cast::<AtomicU64>().wrapping_add(index as usize).cast_const();
        let doorbell = Self { at, last: NOT_RUNG };
        doorbell.memory().store(NOT_RUNG, Ordering::Relaxed);
        doorbell
    }

    fn memory(&self) -> &AtomicU64 {
        // SAFETY: `new` checked that the index is inside the slice, which outlives every queue.
        unsafe { &*self.at }
    }

    /// The value last stored, `None` if it was never rung, and whether it is another than at the last call.
    pub(crate) fn read(&mut self) -> (Option<u64>, bool) {
        // Acquire: pairs with the client's release store, so that what it wrote to the ring before is visible.
        let value = self.memory().load(Ordering::Acquire);
        let changed = value != self.last;
        self.last = value;
        ((value != NOT_RUNG).then_some(value), changed)
    }
}
