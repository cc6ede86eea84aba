//! What lies where: so that a faulting address can be given a name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use crate::address::{Bytes, GpuVa};

/// One allocation.
#[derive(Clone, Debug)]
struct Entry {
    bytes: Bytes,
    label: String,
}

/// All allocations of the process, by address.
#[derive(Debug, Default)]
pub(crate) struct AddressMap {
    entries: Mutex<BTreeMap<GpuVa, Entry>>,
}

/// Where an address lies in relation to the allocation before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In an allocation.
    Inside {
        /// Its label.
        label: String,
        /// Bytes from its start.
        offset: u64,
        /// Its length.
        bytes: Bytes,
    },
    /// Behind an allocation, in none.
    Behind {
        /// Its label.
        label: String,
        /// Bytes from its end.
        distance: u64,
    },
    /// Before the first allocation.
    Nowhere,
}

impl AddressMap {
    pub(crate) fn insert(&self, va: GpuVa, bytes: Bytes, label: &str) {
        self.lock().insert(va, Entry { bytes, label: label.to_owned() });
    }

    pub(crate) fn remove(&self, va: GpuVa) {
        self.lock().remove(&va);
    }

    pub(crate) fn place_of(&self, va: GpuVa) -> Place {
        let entries = self.lock();
        let Some((start, entry)) = entries.range(..=va).next_back() else { return Place::Nowhere };
        let offset = va.get() - start.get();
        let label = entry.label.clone();
        match offset.checked_sub(entry.bytes.get()) {
            None => Place::Inside { label, offset, bytes: entry.bytes },
            Some(distance) => Place::Behind { label, distance },
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<GpuVa, Entry>> {
        // A panic elsewhere leaves the map whole: every change is one insert or remove.
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inside { label, offset, bytes } => write!(f, "{offset:#x} bytes into \"{label}\" ({bytes})"),
            Self::Behind { label, distance } => write!(f, "in no allocation, {distance:#x} bytes behind \"{label}\""),
            Self::Nowhere => f.write_str("in no allocation"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_placed_in_or_behind_the_allocation_before_it() {
        let map = AddressMap::default();
        map.insert(GpuVa::new(0x2000), Bytes::new(0x1000), "weights");
        map.insert(GpuVa::new(0x8000), Bytes::new(0x1000), "kv");
        let place = |va| map.place_of(GpuVa::new(va)).to_string();
        assert_eq!(place(0x2010), "0x10 bytes into \"weights\" (0x1000 bytes)");
        assert_eq!(place(0x3000), "in no allocation, 0x0 bytes behind \"weights\"");
        assert_eq!(place(0x1fff), "in no allocation");
        map.remove(GpuVa::new(0x2000));
        assert_eq!(place(0x2010), "in no allocation");
    }
}
