//! One allocation, cut into named parts.

use driver::address::{Bytes, GpuVa};

/// Parts start at multiples of this: a cache line of the L2 (128 bytes) twice, as the weights do.
pub(super) const PART_ALIGN: u64 = 256;

/// A part of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it holds.
    pub name: String,
    /// Where it starts.
    pub offset: u64,
    /// Its length, alignment apart.
    pub bytes: Bytes,
}

/// A place in a section, before the section has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset(u64);

impl Offset {
    /// The place's address in a section that starts at `base`.
    #[must_use]
    pub fn at(self, base: GpuVa) -> kernels::GpuVa {
        kernels::GpuVa(base.get() + self.0)
    }

    /// Bytes from the section's start.
    #[must_use]
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A plan of one allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    parts: Vec<Part>,
    end: u64,
}

impl Section {
    /// Plans `bytes` more bytes.
    pub fn take(&mut self, name: impl Into<String>, bytes: u64) -> Offset {
        let offset = self.end;
        self.end = (offset + bytes).next_multiple_of(PART_ALIGN);
        self.parts.push(Part { name: name.into(), offset, bytes: Bytes::new(bytes) });
        Offset(offset)
    }

    /// The parts in address order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Length of the whole, alignment included; at least a byte, as nothing can't be allocated.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.end.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other_aligned_and_add_up() {
        let mut section = Section::default();
        let a = section.take("a", 1);
        let b = section.take("b", 256);
        let c = section.take("c", 0);
        assert_eq!([a.get(), b.get(), c.get()], [0, 256, 512]);
        assert_eq!(section.bytes(), Bytes::new(512));
        assert_eq!(b.at(GpuVa::new(4096)), kernels::GpuVa(4352));
    }
}
