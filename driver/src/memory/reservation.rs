//! Host address space taken before memory is put there.
//!
//! KFD memory has one number for host and GPUs, and the client chooses it. Taking the addresses from the host first
//! makes sure that nothing of this process is there. A page is left free behind each range, so that running over its end
//! is a fault and not a write to the next.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::address::{Bytes, GpuVa, HostVa};
use crate::system::{Backing, MapRequest, Protection, System};

/// GPU addresses are 48 bits, sign-extended; the lower half is all a process gets.
const GPU_ADDRESS_LIMIT: u64 = 1 << 47;

/// A range of addresses that belongs to this object, with or without memory in it.
pub(super) struct Reservation {
    system: Arc<dyn System>,
    /// Start of what was mapped, before alignment.
    mapped: NonNull<u8>,
    mapped_bytes: usize,
    /// Aligned start of the usable range.
    start: HostVa,
    /// The addresses stay taken when this object is dropped.
    kept: bool,
}

// SAFETY: the pointer is an address range this object owns; all uses of it go through `System`, which is thread-safe.
unsafe impl Send for Reservation {}
// SAFETY: no method gives access to the memory through `&self`.
unsafe impl Sync for Reservation {}

impl Reservation {
    /// Takes `bytes` (a multiple of the page) at a multiple of `alignment` (a power of two, a page or more).
    pub(super) fn new(system: &Arc<dyn System>, bytes: Bytes, alignment: Bytes) -> io::Result<Self> {
        let too_large = || io::Error::from_raw_os_error(libc::ENOMEM);
        // Slack of the alignment less a page finds an aligned start inside; the page more is the guard.
        let mapped_bytes = bytes.checked_add(alignment).and_then(Bytes::as_usize).ok_or_else(too_large)?;
        let request = MapRequest {
            fixed: None,
            bytes: mapped_bytes,
            protection: Protection::empty(),
            backing: Backing::Anonymous { reserve_only: true },
        };
        // SAFETY: no fixed address.
        let mapped = unsafe { system.mmap(request) }?;
        let first = HostVa::from(mapped).get();
        let start = HostVa::new(first.next_multiple_of(alignment.get() as usize));
        let reservation = Self { system: system.clone(), mapped, mapped_bytes, start, kept: false };
        if (first + mapped_bytes) as u64 > GPU_ADDRESS_LIMIT {
            return Err(io::Error::from_raw_os_error(libc::EADDRNOTAVAIL));
        }
        Ok(reservation)
    }

    /// From now on dropping this object leaves the addresses taken, as something outside of this process uses them.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// Gives the addresses back, kept or not.
    pub(super) fn give_back(mut self) {
        self.kept = false;
    }

    /// The address, as the GPU will see it.
    pub(super) fn va(&self) -> GpuVa {
        GpuVa::new(self.start.get() as u64)
    }

    /// Puts memory at the start of the range.
    pub(super) fn map(&self, bytes: usize, backing: Backing) -> io::Result<NonNull<u8>> {
        let request =
            MapRequest { fixed: Some(self.start), bytes, protection: Protection::READ | Protection::WRITE, backing };
        // SAFETY: this object owns the range, and hands it out only as what this call returns.
        unsafe { self.system.mmap(request) }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // SAFETY: the range was mapped by this object; its owner dropped all uses before, the GPU's included.
        if let Err(error) = unsafe { self.system.munmap(self.mapped, self.mapped_bytes) } {
            tracing::error!(address = %HostVa::from(self.mapped), %error, "cannot unmap a reservation");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::Linux;

    #[test]
    fn a_reservation_starts_at_its_alignment_and_takes_memory_there() {
        let system: Arc<dyn System> = Arc::new(Linux);
        let reservation = Reservation::new(&system, Bytes::PAGE, Bytes::HUGE_PAGE).unwrap();
        assert!(reservation.va().is_aligned(Bytes::HUGE_PAGE));
        let memory = reservation.map(4096, Backing::Anonymous { reserve_only: false }).unwrap();
        assert_eq!(HostVa::from(memory), HostVa::new(reservation.va().get() as usize));
        // SAFETY: the page was just mapped for reading and writing.
        unsafe { memory.write(1) };
    }
}
