//! The host's view of memory that a GPU shares.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::Error;
use crate::address::Bytes;

/// Memory the host may read and write while a GPU may do the same.
///
/// Copies are plain. What orders them against the GPU is what orders everything: a signal waited for before, a doorbell
/// rung after. Words that both sides poll are reached through [`word`](Self::word) and [`dword`](Self::dword).
#[derive(Clone, Copy, Debug)]
pub struct HostView<'a> {
    start: NonNull<u8>,
    bytes: usize,
    memory: std::marker::PhantomData<&'a AtomicU64>,
}

// SAFETY: the view refers to memory that others change anyway; its methods are atomic or plain copies of bytes whose
// order the caller owes to a signal.
unsafe impl Send for HostView<'_> {}
// SAFETY: as above.
unsafe impl Sync for HostView<'_> {}

impl<'a> HostView<'a> {
    /// # Safety
    /// `bytes` bytes from `start` are mapped for reading and writing for all of `'a`, and no reference to them exists
    /// that is not atomic.
    pub(crate) unsafe fn new(start: NonNull<u8>, bytes: usize) -> Self {
        Self { start, bytes, memory: std::marker::PhantomData }
    }

    /// Length.
    pub fn len(&self) -> Bytes {
        Bytes::new(self.bytes as u64)
    }

    /// Never: memory of no bytes cannot be allocated.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The first byte, for system calls that take memory (`io_uring`) and for the emulated GPU. Uses of it are the
    /// caller's to order against the GPU.
    pub fn pointer(&self) -> NonNull<u8> {
        self.start
    }

    /// A part of the view.
    pub fn part(&self, offset: u64, bytes: u64) -> Result<Self, Error> {
        let start = self.at(offset, bytes, 1)?;
        Ok(Self { start, bytes: bytes as usize, memory: self.memory })
    }

    /// Copies `from` to `offset`.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), Error> {
        let to = self.at(offset, from.len() as u64, 1)?;
        // SAFETY: `at` checked the range, which is mapped for writing (`new`); a slice of this process and GPU memory do
        // not overlap, as no reference to GPU memory exists.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len()) };
        Ok(())
    }

    /// Copies from `offset` into `to`.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        let from = self.at(offset, to.len() as u64, 1)?;
        // SAFETY: as in `write`, the other way.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    /// Copies dwords to `offset`, a multiple of 4.
    pub fn write_dwords(&self, offset: u64, from: &[u32]) -> Result<(), Error> {
        let to = self.at(offset, size_of_val(from) as u64, 4)?.cast::<u32>();
        // SAFETY: as in `write`; `at` checked the alignment.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len()) };
        Ok(())
    }

    /// Fills the whole view with `value`.
    pub fn fill(&self, value: u8) {
        // SAFETY: the range is the view's own, mapped for writing (`new`).
        unsafe { self.start.write_bytes(value, self.bytes) };
    }

    /// The 64-bit word at `offset`, a multiple of 8.
    pub fn word(&self, offset: u64) -> Result<&'a AtomicU64, Error> {
        let at = self.at(offset, 8, 8)?;
        // SAFETY: `at` checked range and alignment; the memory lives for 'a (`new`) and is referred to atomically only.
        Ok(unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) })
    }

    /// The 32-bit word at `offset`, a multiple of 4.
    pub fn dword(&self, offset: u64) -> Result<&'a AtomicU32, Error> {
        let at = self.at(offset, 4, 4)?;
        // SAFETY: as in `word`.
        Ok(unsafe { AtomicU32::from_ptr(at.as_ptr().cast()) })
    }

    /// Reads dwords from `offset`, a multiple of 4, one by one: for looking at what a GPU may be changing.
    pub fn snapshot(&self, offset: u64, dwords: usize) -> Result<Vec<u32>, Error> {
        (0..dwords as u64).map(|index| Ok(self.dword(offset + index * 4)?.load(Ordering::Relaxed))).collect()
    }

    fn at(&self, offset: u64, bytes: u64, alignment: u64) -> Result<NonNull<u8>, Error> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes as u64);
        if !inside || !offset.is_multiple_of(alignment) {
            return Err(Error::OutsideView { offset, bytes, alignment, view: self.len() });
        }
        // SAFETY: the offset lies in the mapped range.
        Ok(unsafe { self.start.add(offset as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_view(test: impl FnOnce(HostView<'_>)) {
        let mut memory = [0_u64; 4];
        // SAFETY: the array lives through the call and is not used meanwhile.
        test(unsafe { HostView::new(NonNull::from(&mut memory).cast(), 32) });
    }

    #[test]
    fn words_and_bytes_are_the_same_memory() {
        with_view(|view| {
            view.write(8, &[1, 2, 3, 4, 0, 0, 0, 0]).unwrap();
            assert_eq!(view.word(8).unwrap().load(Ordering::Relaxed), 0x0403_0201);
            view.dword(12).unwrap().store(5, Ordering::Relaxed);
            view.write_dwords(16, &[7, 8]).unwrap();
            assert_eq!(view.snapshot(8, 4).unwrap(), [0x0403_0201, 5, 7, 8]);
            let mut tail = [0; 4];
            view.part(20, 12).unwrap().read(0, &mut tail).unwrap();
            assert_eq!(tail, [8, 0, 0, 0]);
        });
    }

    #[test]
    fn nothing_outside_the_view_or_misaligned_is_reached() {
        with_view(|view| {
            assert!(view.write(25, &[0; 8]).is_err());
            assert!(view.read(u64::MAX, &mut [0; 8]).is_err());
            assert!(view.word(32).is_err());
            assert!(view.word(4).is_err());
            assert!(view.dword(2).is_err());
            assert!(view.part(0, 33).is_err());
            assert!(view.part(8, 8).unwrap().word(8).is_err());
        });
    }
}
