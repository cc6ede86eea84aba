use driver::address::{Bytes, GpuVa};

use super::{AccessKind, MemoryFault, MemoryFaultReason};

/// One contiguous range of GPU virtual addresses and the host memory behind it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    /// First GPU virtual address.
    pub start: u64,
    /// One past the last GPU virtual address.
    pub end: u64,
    /// Host address of `start`.
    pub host: *mut u8,
    /// KFD's `ALLOC_MEM_FLAGS_WRITABLE`.
    pub writable: bool,
    /// KFD's `ALLOC_MEM_FLAGS_EXECUTABLE`.
    pub executable: bool,
}

// SAFETY: a `Mapping` only names host memory. Whoever dereferences `host` goes through `View`, which holds the page maps
// read-locked so that the memory can't be released meanwhile; concurrent access to it is what device memory is.
unsafe impl Send for Mapping {}
// SAFETY: as above; `Mapping` has no interior mutability of its own.
unsafe impl Sync for Mapping {}

/// Why a range could not be mapped.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum MappingError {
    /// Part of the range is mapped already.
    #[error("map {start:#x}..{end:#x}: overlaps the mapping at {other:#x}")]
    Overlap {
        /// First address asked for.
        start: u64,
        /// One past the last address asked for.
        end: u64,
        /// Start of the mapping in the way.
        other: u64,
    },
    /// Nothing is mapped at the address.
    #[error("unmap {start:#x}: nothing is mapped there")]
    NotMapped {
        /// The address asked for.
        start: u64,
    },
}

/// The mappings of one GPU, sorted and disjoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageMap {
    mappings: Vec<Mapping>,
}

impl PageMap {
    /// Adds a mapping.
    ///
    /// # Errors
    /// [`MappingError::Overlap`] if any byte of the range is mapped already.
    pub(crate) fn map(&mut self, mapping: Mapping) -> Result<(), MappingError> {
        let at = self.mappings.partition_point(|m| m.end <= mapping.start);
        if let Some(next) = self.mappings.get(at)
            && next.start < mapping.end
        {
            return Err(MappingError::Overlap { start: mapping.start, end: mapping.end, other: next.start });
        }
        self.mappings.insert(at, mapping);
        Ok(())
    }

    /// Removes the mapping that starts at `start`.
    ///
    /// # Errors
    /// [`MappingError::NotMapped`] if no mapping starts there.
    pub(crate) fn unmap(&mut self, start: GpuVa) -> Result<Mapping, MappingError> {
        match self.mappings.binary_search_by_key(&start.get(), |m| m.start) {
            Ok(at) => Ok(self.mappings.remove(at)),
            Err(_) => Err(MappingError::NotMapped { start: start.get() }),
        }
    }

    /// Points the mapping at `start` to other host memory (the client mapped it for the host somewhere).
    pub(crate) fn rehost(&mut self, start: GpuVa, host: *mut u8) {
        if let Ok(at) = self.mappings.binary_search_by_key(&start.get(), |m| m.start) {
            self.mappings[at].host = host;
        }
    }

    /// Index of the mapping that holds all of `bytes` bytes at `va`.
    ///
    /// # Errors
    /// A fault that says whether the range is unmapped or runs past its mapping's end.
    pub(super) fn find(&self, va: u64, bytes: u64, kind: AccessKind) -> Result<usize, MemoryFault> {
        let at = self.mappings.partition_point(|m| m.end <= va);
        let fault =
            |address, reason| MemoryFault { address: GpuVa::new(address), bytes: Bytes::new(bytes), kind, reason };
        match self.mappings.get(at) {
            Some(m) if m.start <= va => match va.checked_add(bytes) {
                Some(end) if end <= m.end => Ok(at),
                _ => {
                    Err(fault(m.end, MemoryFaultReason::PastEnd { start: GpuVa::new(m.start), end: GpuVa::new(m.end) }))
                }
            },
            _ => Err(fault(va, MemoryFaultReason::Unmapped)),
        }
    }

    /// All mappings in address order.
    #[must_use]
    pub(crate) fn mappings(&self) -> &[Mapping] {
        &self.mappings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64) -> Mapping {
        Mapping { start, end, host: std::ptr::null_mut(), writable: true, executable: false }
    }

    #[test]
    fn overlapping_mappings_are_refused() {
        let mut map = PageMap::default();
        map.map(mapping(0x1000, 0x3000)).unwrap();
        map.map(mapping(0x4000, 0x5000)).unwrap();
        map.map(mapping(0x3000, 0x4000)).unwrap();
        for (start, end) in [(0, 0x1001), (0x2fff, 0x3001), (0x4800, 0x4801), (0, 0x10000)] {
            assert!(matches!(map.map(mapping(start, end)), Err(MappingError::Overlap { .. })), "{start:#x}..{end:#x}");
        }
    }

    #[test]
    fn a_range_is_found_only_inside_one_mapping() {
        let mut map = PageMap::default();
        map.map(mapping(0x1000, 0x2000)).unwrap();
        assert!(map.find(0x1ffc, 4, AccessKind::Read).is_ok());
        let past = map.find(0x1ffd, 4, AccessKind::Read).unwrap_err();
        assert!(matches!(past.reason, MemoryFaultReason::PastEnd { .. }));
        assert_eq!(past.address, GpuVa::new(0x2000));
        assert!(matches!(map.find(0xfff, 1, AccessKind::Read).unwrap_err().reason, MemoryFaultReason::Unmapped));
        assert!(map.find(u64::MAX, 2, AccessKind::Read).is_err());
    }

    #[test]
    fn unmapping_needs_the_start_of_a_mapping() {
        let mut map = PageMap::default();
        map.map(mapping(0x1000, 0x2000)).unwrap();
        assert_eq!(map.unmap(GpuVa::new(0x1800)).unwrap_err(), MappingError::NotMapped { start: 0x1800 });
        map.unmap(GpuVa::new(0x1000)).unwrap();
        assert!(map.mappings().is_empty());
    }
}
