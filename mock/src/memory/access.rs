use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use driver::address::{Bytes, GpuVa};

use super::{Mapping, PageMap};

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads data.
    Read,
    /// Writes data, or reads and writes it in one step.
    Write,
    /// Fetches instructions.
    Execute,
}

/// Why an access could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFaultReason {
    /// No mapping of this GPU holds the address.
    Unmapped,
    /// The access starts inside a mapping and runs past its end.
    PastEnd {
        /// First address of the mapping.
        start: GpuVa,
        /// One past its last address.
        end: GpuVa,
    },
    /// The mapping does not allow writing.
    ReadOnly,
    /// The mapping does not allow execution.
    NotExecutable,
    /// The address is not aligned as the hardware demands for this access.
    Misaligned,
    /// The address lies in an aperture that this kind of access can't use.
    Aperture,
}

/// An access that the GPU's memory system refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct MemoryFault {
    /// The first address that could not be accessed.
    pub address: GpuVa,
    /// Size of the access.
    pub bytes: Bytes,
    /// What the access was.
    pub kind: AccessKind,
    /// Why it was refused.
    pub reason: MemoryFaultReason,
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            AccessKind::Read => "read of",
            AccessKind::Write => "write of",
            AccessKind::Execute => "instruction fetch of",
        };
        write!(f, "{verb} {} bytes at {:#x}: ", self.bytes.get(), self.address.get())?;
        match self.reason {
            MemoryFaultReason::Unmapped => write!(f, "no memory is mapped there on this GPU"),
            MemoryFaultReason::PastEnd { start, end } => {
                write!(f, "past the end of the buffer at {:#x}..{:#x}", start.get(), end.get())
            }
            MemoryFaultReason::ReadOnly => write!(f, "the memory is mapped read-only"),
            MemoryFaultReason::NotExecutable => write!(f, "the memory is not mapped executable"),
            MemoryFaultReason::Misaligned => write!(f, "misaligned"),
            MemoryFaultReason::Aperture => write!(f, "this access can't use that aperture"),
        }
    }
}

/// One GPU's sight of memory: checked translation, with the last mapping remembered.
///
/// A `View` borrows the page map, so no mapping can go away while it lives.
pub(crate) struct View<'a> {
    map: &'a PageMap,
    last: Mapping,
}

const NOWHERE: Mapping = Mapping { start: 1, end: 0, host: std::ptr::null_mut(), writable: false, executable: false };

impl<'a> View<'a> {
    /// A view of `map`.
    pub(crate) fn new(map: &'a PageMap) -> Self {
        Self { map, last: NOWHERE }
    }

    /// Host address of the `bytes` bytes at `va`, all of which lie in one mapping that allows `kind`.
    ///
    /// # Errors
    /// The fault that the GPU's MMU would raise.
    #[inline]
    pub(crate) fn resolve(&mut self, va: u64, bytes: u64, kind: AccessKind) -> Result<*mut u8, MemoryFault> {
        let inside = va >= self.last.start && va < self.last.end && bytes <= self.last.end - va;
        if !inside {
            self.last = self.map.mappings()[self.map.find(va, bytes, kind)?];
        }
        let fault = |reason| Err(MemoryFault { address: GpuVa::new(va), bytes: Bytes::new(bytes), kind, reason });
        match kind {
            AccessKind::Write if !self.last.writable => return fault(MemoryFaultReason::ReadOnly),
            AccessKind::Execute if !self.last.executable => return fault(MemoryFaultReason::NotExecutable),
            _ => {}
        }
        Ok(self.last.host.wrapping_add((va - self.last.start) as usize))
    }

    /// Reads a naturally aligned dword.
    ///
    /// # Errors
    /// The fault that the access raises.
    #[inline]
    pub(crate) fn read_u32(&mut self, va: u64) -> Result<u32, MemoryFault> {
        let host = self.resolve_aligned(va, 4, AccessKind::Read)?;
        // SAFETY: `resolve` gave four mapped bytes, aligned to four; device memory is shared, hence the atomic access.
        Ok(unsafe { AtomicU32::from_ptr(host.cast()) }.load(Ordering::Acquire))
    }

    /// Writes a naturally aligned dword.
    ///
    /// # Errors
    /// The fault that the access raises.
    #[inline]
    pub(crate) fn write_u32(&mut self, va: u64, value: u32) -> Result<(), MemoryFault> {
        let host = self.resolve_aligned(va, 4, AccessKind::Write)?;
        // SAFETY: as in `read_u32`.
        unsafe { AtomicU32::from_ptr(host.cast()) }.store(value, Ordering::Release);
        Ok(())
    }

    /// Reads a naturally aligned quadword in one access.
    ///
    /// # Errors
    /// The fault that the access raises.
    #[inline]
    pub(crate) fn read_u64(&mut self, va: u64) -> Result<u64, MemoryFault> {
        let host = self.resolve_aligned(va, 8, AccessKind::Read)?;
        // SAFETY: as in `read_u32`, with eight bytes.
        Ok(unsafe { AtomicU64::from_ptr(host.cast()) }.load(Ordering::Acquire))
    }

    /// Writes a naturally aligned quadword in one access.
    ///
    /// # Errors
    /// The fault that the access raises.
    #[inline]
    pub(crate) fn write_u64(&mut self, va: u64, value: u64) -> Result<(), MemoryFault> {
        let host = self.resolve_aligned(va, 8, AccessKind::Write)?;
        // SAFETY: as in `read_u32`, with eight bytes.
        unsafe { AtomicU64::from_ptr(host.cast()) }.store(value, Ordering::Release);
        Ok(())
    }

    /// The dword at `va` as an atomic, for read-modify-write packets and instructions.
    ///
    /// # Errors
    /// The fault that the access raises.
    pub(crate) fn atomic_u32(&mut self, va: u64) -> Result<&'a AtomicU32, MemoryFault> {
        let host = self.resolve_aligned(va, 4, AccessKind::Write)?;
        // SAFETY: four mapped, aligned bytes that stay mapped while the page map is borrowed (`'a`).
        Ok(unsafe { AtomicU32::from_ptr(host.cast()) })
    }

    /// The quadword at `va` as an atomic.
    ///
    /// # Errors
    /// The fault that the access raises.
    pub(crate) fn atomic_u64(&mut self, va: u64) -> Result<&'a AtomicU64, MemoryFault> {
        let host = self.resolve_aligned(va, 8, AccessKind::Write)?;
        // SAFETY: as in `atomic_u32`, with eight bytes.
        Ok(unsafe { AtomicU64::from_ptr(host.cast()) })
    }

    /// Copies `into.len()` bytes from `va`; they may lie in several adjacent mappings.
    ///
    /// # Errors
    /// The fault that the access raises; what lies before it may have been copied.
    pub(crate) fn read_bytes(&mut self, va: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let whole = match self.resolve(va, into.len() as u64, AccessKind::Read) {
            Ok(host) => {
                // SAFETY: `resolve` gave `into.len()` mapped bytes; `into` is the caller's own memory, so they can't
                // overlap unless the caller maps its own slice to a GPU, which `copy` allows for.
                unsafe { std::ptr::copy(host, into.as_mut_ptr(), into.len()) };
                return Ok(());
            }
            Err(fault) => fault,
        };
        let first = self.length_before(va, into.len(), AccessKind::Read).ok_or(whole)?;
        let (head, tail) = into.split_at_mut(first);
        self.read_bytes(va, head)?;
        self.read_bytes(va + first as u64, tail).map_err(|_| whole)
    }

    /// Copies `from` to `va`; the bytes there may lie in several adjacent mappings.
    ///
    /// # Errors
    /// The fault that the access raises; what lies before it may have been written.
    pub(crate) fn write_bytes(&mut self, va: u64, from: &[u8]) -> Result<(), MemoryFault> {
        let whole = match self.resolve(va, from.len() as u64, AccessKind::Write) {
            Ok(host) => {
                // SAFETY: as in `read_bytes`.
                unsafe { std::ptr::copy(from.as_ptr(), host, from.len()) };
                return Ok(());
            }
            Err(fault) => fault,
        };
        let first = self.length_before(va, from.len(), AccessKind::Write).ok_or(whole)?;
        let (head, tail) = from.split_at(first);
        self.write_bytes(va, head)?;
        self.write_bytes(va + first as u64, tail).map_err(|_| whole)
    }

    /// How many of `bytes` bytes at `va` lie in the mapping of the first, if that are some but not all.
    fn length_before(&mut self, va: u64, bytes: usize, kind: AccessKind) -> Option<usize> {
        let first = self.run_length(va, kind).ok()?;
        (first < bytes as u64).then_some(first as usize)
    }

    /// Copies `bytes` bytes from `from` to `to`; both ranges may span several mappings, and may overlap.
    ///
    /// # Errors
    /// The first fault; what lies before it has been copied.
    pub(crate) fn copy(&mut self, mut from: u64, mut to: u64, mut bytes: u64) -> Result<(), MemoryFault> {
        while bytes > 0 {
            let step = bytes.min(self.run_length(from, AccessKind::Read)?).min(self.run_length(to, AccessKind::Write)?);
            let source = self.resolve(from, step, AccessKind::Read)?;
            let target = self.resolve(to, step, AccessKind::Write)?;
            // SAFETY: `resolve` gave `step` mapped bytes for each; `copy` allows the ranges to overlap.
            unsafe { std::ptr::copy(source, target, step as usize) };
            (from, to, bytes) = (from + step, to + step, bytes - step);
        }
        Ok(())
    }

    /// Fills `bytes` bytes (a multiple of four) at `at` with a dword.
    ///
    /// # Errors
    /// The first fault; what lies before it has been filled.
    pub(crate) fn fill_u32(&mut self, at: u64, bytes: u64, value: u32) -> Result<(), MemoryFault> {
        (at..at + bytes).step_by(4).try_for_each(|at| self.write_u32(at, value))
    }

    /// Bytes from `va` to the end of its mapping.
    fn run_length(&mut self, va: u64, kind: AccessKind) -> Result<u64, MemoryFault> {
        self.resolve(va, 1, kind)?;
        Ok(self.last.end - va)
    }

    fn resolve_aligned(&mut self, va: u64, bytes: u64, kind: AccessKind) -> Result<*mut u8, MemoryFault> {
        if va & (bytes - 1) != 0 {
            let reason = MemoryFaultReason::Misaligned;
            return Err(MemoryFault { address: GpuVa::new(va), bytes: Bytes::new(bytes), kind, reason });
        }
        self.resolve(va, bytes, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map_of(memory: &mut [u64], writable: bool) -> PageMap {
        let mut map = PageMap::default();
        map.map(Mapping {
            start: 0x1000,
            end: 0x1000 + 8 * memory.len() as u64,
            host: memory.as_mut_ptr().cast(),
            writable,
            executable: false,
        })
        .unwrap();
        map
    }

    #[test]
    fn a_dword_written_is_read_back() {
        let mut memory = [0u64; 4];
        let map = map_of(&mut memory, true);
        let mut view = View::new(&map);
        view.write_u32(0x1004, 7).unwrap();
        assert_eq!(view.read_u64(0x1000).unwrap(), 7 << 32);
    }

    #[test]
    fn read_only_memory_refuses_writes_and_all_memory_refuses_misaligned_packets() {
        let mut memory = [0u64; 4];
        let map = map_of(&mut memory, false);
        let mut view = View::new(&map);
        assert_eq!(view.write_u32(0x1000, 1).unwrap_err().reason, MemoryFaultReason::ReadOnly);
        assert_eq!(view.read_u32(0x1002).unwrap_err().reason, MemoryFaultReason::Misaligned);
        assert_eq!(view.resolve(0x1000, 4, AccessKind::Execute).unwrap_err().reason, MemoryFaultReason::NotExecutable);
    }
}
