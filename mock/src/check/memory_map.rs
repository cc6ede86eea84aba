use std::collections::BTreeMap;
use std::sync::Arc;

use driver::kfd::memory::AllocFlags;

use crate::observe::Allocated;

/// An allocation as the sanitizer knows it.
#[derive(Debug)]
pub(super) struct Region {
    /// First address.
    pub(super) start: u64,
    /// One past the last byte the client asked for; the rest of the page is nobody's.
    pub(super) end: u64,
    /// One past the last byte of the last page.
    pub(super) pages_end: u64,
    /// GPU whose memory it is.
    pub(super) gpu: usize,
    /// How it was allocated.
    pub(super) flags: AllocFlags,
    /// Whether it was filled with [`super::poison`].
    pub(super) poisoned: bool,
}

impl Region {
    /// Whether L2s may hold it without knowing of each other. On gfx950 VRAM is cached unless it was allocated uncached, or
    /// coherent beyond the GPU; host memory unless it was allocated coherent (`gmc_v9_0_get_coherence_flags`).
    pub(super) fn is_cached(&self) -> bool {
        let mut past_caches = AllocFlags::UNCACHED | AllocFlags::EXT_COHERENT;
        if !self.flags.contains(AllocFlags::VRAM) {
            past_caches |= AllocFlags::COHERENT;
        }
        !self.flags.intersects(past_caches)
    }
}

/// What memory there is, what there was, and what clients call it.
#[derive(Default)]
pub(super) struct MemoryMap {
    regions: BTreeMap<u64, Arc<Region>>,
    /// End and label of ranges that are free now.
    freed: BTreeMap<u64, (u64, String)>,
    /// End and label of named ranges; those within others start later or at the same address.
    names: BTreeMap<(u64, std::cmp::Reverse<u64>), String>,
}

impl MemoryMap {
    pub(super) fn allocated(&mut self, new: &Allocated) {
        let pages_end = new.va + new.bytes;
        self.freed.retain(|&start, (end, _)| *end <= new.va || start >= pages_end);
        let (gpu, flags, poisoned) = (new.gpu, new.flags, new.poisoned);
        let region = Region { start: new.va, end: pages_end, pages_end, gpu, flags, poisoned };
        self.regions.insert(new.va, Arc::new(region));
    }

    /// Forgets an allocation; gives the addresses it had.
    pub(super) fn freed(&mut self, va: u64) -> Option<(u64, u64)> {
        let label = self.label(va).unwrap_or("unnamed").to_owned();
        let region = self.regions.remove(&va)?;
        self.freed.insert(va, (region.pages_end, label));
        self.names.retain(|&(start, _), _| start < va || start >= region.pages_end);
        Some((va, region.pages_end))
    }

    pub(super) fn named(&mut self, at: u64, bytes: u64, label: &str) {
        // A name for a whole allocation also says how much of its last page was asked for.
        if let Some(region) = self.regions.get_mut(&at)
            && at + bytes <= region.pages_end
            && region.pages_end - (at + bytes) < crate::memory::host::PAGE
        {
            let Region { start, pages_end, gpu, flags, poisoned, .. } = **region;
            *region = Arc::new(Region { start, end: at + bytes, pages_end, gpu, flags, poisoned });
        }
        self.names.insert((at, std::cmp::Reverse(at + bytes)), label.to_owned());
    }

    /// The allocation that holds `address`.
    pub(super) fn region(&self, address: u64) -> Option<&Arc<Region>> {
        let (_, region) = self.regions.range(..=address).next_back()?;
        (address < region.pages_end).then_some(region)
    }

    /// The label of freed memory that held `address`.
    pub(super) fn freed_label(&self, address: u64) -> Option<&str> {
        let (_, (end, label)) = self.freed.range(..=address).next_back()?;
        (address < *end).then_some(label)
    }

    /// The label of the innermost named range that holds `address`.
    pub(super) fn label(&self, address: u64) -> Option<&str> {
        self.name(address).map(|(_, label)| label)
    }

    /// The owner of `address` and the offset in it, for a report.
    pub(super) fn owner(&self, address: u64) -> Option<String> {
        if let Some(label) = self.freed_label(address) {
            return Some(format!("\"{label}\", freed"));
        }
        let region = self.region(address)?;
        let allocation = self.names.range((region.start, std::cmp::Reverse(u64::MAX))..).next();
        let whole = allocation.filter(|((start, _), _)| *start == region.start).map(|(_, label)| label.as_str());
        Some(match (self.name(address), whole) {
            (Some((start, label)), _) => format!("\"{label}\" + {:#x}", address - start),
            (None, Some(label)) => format!("\"{label}\" + {:#x}", address - region.start),
            (None, None) => format!("unnamed memory of GPU {} at {:#x}", region.gpu, region.start),
        })
    }

    fn name(&self, address: u64) -> Option<(u64, &str)> {
        let floor = self.region(address)?.start;
        let up_to = (address, std::cmp::Reverse(0));
        self.names
            .range((floor, std::cmp::Reverse(u64::MAX))..=up_to)
            .rev()
            .find(|((_, std::cmp::Reverse(end)), _)| address < *end)
            .map(|((start, _), label)| (*start, label.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> MemoryMap {
        let mut map = MemoryMap::default();
        map.allocated(&Allocated { gpu: 0, va: 0x1000, bytes: 0x2000, flags: AllocFlags::VRAM, poisoned: true });
        map.named(0x1000, 0x1800, "arena");
        map.named(0x1100, 0x100, "inner");
        map
    }

    #[test]
    fn an_address_belongs_to_the_innermost_name() {
        let map = map();
        assert_eq!(map.owner(0x1104).unwrap(), "\"inner\" + 0x4");
        assert_eq!(map.owner(0x1200).unwrap(), "\"arena\" + 0x200");
        assert_eq!(map.owner(0x2900).unwrap(), "\"arena\" + 0x1900", "the rest of the page");
        assert_eq!(map.owner(0x3000), None);
    }

    #[test]
    fn a_name_tells_how_much_of_the_last_page_was_asked_for() {
        let map = map();
        let region = map.region(0x2fff).unwrap();
        assert_eq!((region.end, region.pages_end), (0x2800, 0x3000));
    }

    #[test]
    fn freed_memory_keeps_its_label_until_the_addresses_are_used_again() {
        let mut map = map();
        map.freed(0x1000);
        assert_eq!(map.owner(0x1104).unwrap(), "\"arena\", freed");
        map.allocated(&Allocated { gpu: 0, va: 0x1000, bytes: 0x1000, flags: AllocFlags::VRAM, poisoned: true });
        assert_eq!(map.freed_label(0x1104), None);
    }
}
