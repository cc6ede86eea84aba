//! Addresses and sizes that must not be mixed up: a GPU virtual address, a host address, a byte count and a dword
//! count are four types.

use std::fmt;
use std::ptr::NonNull;

/// A virtual address as the GPU's page tables see it.
///
/// KFD memory has the same number on the host and on every GPU it is mapped to, but a `GpuVa` is never dereferenced by
/// the host: that takes a [`HostVa`].
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct GpuVa(u64);

impl GpuVa {
    /// The null address.
    pub const NULL: Self = Self(0);

    /// The address `raw`.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The address as a number, for packets and ioctl arguments.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The address `offset` bytes further on, or `None` past the end of the address space.
    pub fn checked_add(self, offset: Bytes) -> Option<Self> {
        self.0.checked_add(offset.0).map(Self)
    }

    /// Whether the address is a multiple of `alignment`, which must be a power of two.
    pub const fn is_aligned(self, alignment: Bytes) -> bool {
        self.0 & (alignment.0 - 1) == 0
    }

    /// Bits 0..=31, the form packets carry addresses in.
    pub const fn low(self) -> u32 {
        self.0 as u32
    }

    /// Bits 32..=63.
    pub const fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A virtual address of this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct HostVa(usize);

impl HostVa {
    /// The address `raw`.
    pub const fn new(raw: usize) -> Self {
        Self(raw)
    }

    /// The address as a number.
    pub const fn get(self) -> usize {
        self.0
    }

    /// The address as a pointer, `None` for null. Using the pointer is subject to the usual rules; making it is not.
    pub fn pointer(self) -> Option<NonNull<u8>> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(self.0))
    }
}

impl From<NonNull<u8>> for HostVa {
    fn from(pointer: NonNull<u8>) -> Self {
        Self(pointer.as_ptr().expose_provenance())
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Bytes(u64);

impl Bytes {
    /// The page of the host and the smallest one of the GPU.
    pub const PAGE: Self = Self(4096);
    /// The large page: memory aligned and sized to it takes one GPU page-table entry per 2 MiB.
    pub const HUGE_PAGE: Self = Self(2 << 20);

    /// `raw` bytes.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The count as a number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The count as the host's index type, `None` where the host's is smaller.
    pub fn as_usize(self) -> Option<usize> {
        usize::try_from(self.0).ok()
    }

    /// The sum, `None` on overflow.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The next multiple of `unit` (a power of two), `None` on overflow.
    pub fn align_up(self, unit: Self) -> Option<Self> {
        Some(Self(self.0.checked_add(unit.0 - 1)? & !(unit.0 - 1)))
    }

    /// Whether the count is a multiple of `unit`, a power of two.
    pub const fn is_multiple_of(self, unit: Self) -> bool {
        self.0 & (unit.0 - 1) == 0
    }
}

/// A number of 32-bit words: the unit of packets, rings and indirect buffers.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Dwords(u64);

impl Dwords {
    /// `raw` dwords.
    pub const fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The count as a number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The same length in bytes, `None` on overflow.
    pub fn bytes(self) -> Option<Bytes> {
        self.0.checked_mul(4).map(Bytes)
    }
}

impl From<usize> for Dwords {
    fn from(count: usize) -> Self {
        Self(count as u64)
    }
}

macro_rules! shown_as {
    ($($name:ident => $format:literal),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "(", $format, ")"), self.0)
            }
        }
    )*};
}

shown_as!(GpuVa => "{:#x}", HostVa => "{:#x}", Bytes => "{:#x} bytes", Dwords => "{} dwords");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligning_up_reaches_the_next_multiple_and_reports_overflow() {
        assert_eq!(Bytes::new(1).align_up(Bytes::PAGE), Some(Bytes::PAGE));
        assert_eq!(Bytes::PAGE.align_up(Bytes::PAGE), Some(Bytes::PAGE));
        assert_eq!(Bytes::new(u64::MAX).align_up(Bytes::PAGE), None);
    }

    #[test]
    fn a_gpu_address_splits_into_the_two_dwords_a_packet_carries() {
        let va = GpuVa::new(0x7f72_4f63_dff0);
        assert_eq!((va.low(), va.high()), (0x4f63_dff0, 0x7f72));
        assert_eq!(GpuVa::new(u64::MAX).checked_add(Bytes::new(1)), None);
    }
}
