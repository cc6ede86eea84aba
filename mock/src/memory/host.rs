//! Host memory behind allocations: anonymous mappings that can be moved to where a client wants them.

use std::io;
use std::ptr::{self, NonNull};

/// The size of a transparent huge page; backing of at least this size is aligned to it.
const HUGE_PAGE: usize = 2 << 20;
pub(crate) const PAGE: u64 = 4096;

/// An anonymous mapping owned by the mock, released when dropped.
#[derive(Debug)]
pub(crate) struct HostMemory {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: owning a mapping is not tied to a thread; access to its content is the business of `View`.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// `bytes` bytes of zeroes, which take no host memory until touched.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { PAGE as usize };
        let reserve = bytes + align;
        let all = map_anonymous(ptr::null_mut(), reserve, 0)?;
        let start = all.as_ptr() as usize;
        let aligned = start.next_multiple_of(align);
        // SAFETY: both parts lie in the fresh mapping, outside the part that is kept.
        unsafe {
            unmap(start, aligned - start);
            unmap(aligned + bytes, start + reserve - aligned - bytes);
        }
        let memory = Self { at: all.map_addr(|a| a.saturating_add(aligned - start)), bytes };
        memory.advise();
        Ok(memory)
    }

    /// The first byte.
    pub(crate) fn at(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    /// Moves the memory, content and all, to `to`, replacing whatever is mapped there.
    ///
    /// # Safety
    /// The caller owns the `self.bytes` bytes of address space at `to`, and nothing else uses what is mapped there; no
    /// pointer into the old place is used any more.
    pub(crate) unsafe fn move_to(&mut self, to: NonNull<u8>) -> io::Result<()> {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: `self` owns the old range whole; the caller vouches for the new one.
        let moved = unsafe { libc::mremap(self.at.as_ptr().cast(), self.bytes, self.bytes, flags, to.as_ptr()) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.at = to;
        self.advise();
        Ok(())
    }

    /// Moves the memory to a place of the mock's own choice.
    ///
    /// # Safety
    /// No pointer into the old place is used any more.
    pub(crate) unsafe fn move_away(&mut self) -> io::Result<()> {
        let place = Self::new(self.bytes)?;
        let to = place.at;
        std::mem::forget(place);
        // SAFETY: `place` was a fresh mapping of the same size that nobody else knows.
        unsafe { self.move_to(to) }
    }

    /// Fills the memory, which nobody uses yet, with a dword for each offset.
    pub(crate) fn fill(&self, word: impl Fn(u64) -> u32) {
        for offset in (0..self.bytes).step_by(4) {
            // SAFETY: the offset is inside this mapping, which is page-aligned and whole pages long.
            unsafe { self.at.as_ptr().add(offset).cast::<u32>().write(word(offset as u64)) };
        }
    }

    /// How many of the bytes take host memory: those that have been touched, rounded out to whole (huge) pages.
    pub(crate) fn touched(&self) -> io::Result<u64> {
        const STEP: usize = 1 << 30;
        let mut pages = vec![0_u8; STEP / PAGE as usize];
        let mut touched = 0;
        for from in (0..self.bytes).step_by(STEP) {
            let bytes = STEP.min(self.bytes - from);
            let answer = &mut pages[..bytes.div_ceil(PAGE as usize)];
            // SAFETY: the range is part of this mapping, and `answer` has a byte for each of its pages.
            if unsafe { libc::mincore(self.at.as_ptr().add(from).cast(), bytes, answer.as_mut_ptr()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            touched += answer.iter().filter(|page| **page & 1 != 0).count() as u64 * PAGE;
        }
        Ok(touched)
    }

    fn advise(&self) {
        prefer_huge_pages(self.at, self.bytes);
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: `self` owns the mapping, and page maps that pointed into it were changed before it was given up.
        unsafe { unmap(self.at.as_ptr() as usize, self.bytes) };
    }
}

/// Private zeroed memory at `at` or, if null, anywhere.
pub(crate) fn map_anonymous(at: *mut u8, bytes: usize, more_flags: i32) -> io::Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | more_flags;
    // SAFETY: without MAP_FIXED this touches no existing mapping; with it the caller owns the range (`System::mmap`).
    let mapped = unsafe { libc::mmap(at.cast(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(mapped.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

/// Asks for huge pages. Best effort: without them the memory is only slower.
pub(crate) fn prefer_huge_pages(at: NonNull<u8>, bytes: usize) {
    // SAFETY: the advice changes no content, and a range that is not mapped is refused.
    unsafe { libc::madvise(at.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// # Safety
/// Nothing uses the range any more.
unsafe fn unmap(at: usize, bytes: usize) {
    if bytes > 0 {
        // SAFETY: passed on from the caller. Unmapping page-aligned, mapped ranges does not fail.
        unsafe { libc::munmap(at as *mut libc::c_void, bytes) };
    }
}

/// Memory that may be mapped at several places at once: doorbell pages.
#[derive(Debug)]
pub(crate) struct SharedPage {
    file: std::os::fd::OwnedFd,
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: as for `HostMemory`.
unsafe impl Send for SharedPage {}
// SAFETY: shared access only hands out the address; users go through atomics.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        use std::os::fd::FromRawFd;
        // SAFETY: the name is a C string; the result is checked.
        let raw = unsafe { libc::memfd_create(c"mockkfd-doorbells".as_ptr(), libc::MFD_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        let file = unsafe { std::os::fd::OwnedFd::from_raw_fd(raw) };
        // SAFETY: `raw` is open.
        if unsafe { libc::ftruncate(raw, bytes as libc::off_t) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let at = Self::map_file(raw, ptr::null_mut(), bytes, 0, 0)?;
        Ok(Self { file, at, bytes })
    }

    pub(crate) fn at(&self) -> *mut u8 {
        self.at.as_ptr()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Maps the page once more for a client, at `fixed` if given.
    ///
    /// # Safety
    /// The caller owns the address range at `fixed`.
    pub(crate) unsafe fn map_again(&self, fixed: Option<NonNull<u8>>, bytes: usize) -> io::Result<NonNull<u8>> {
        use std::os::fd::AsRawFd;
        let (at, flags) = fixed.map_or((ptr::null_mut(), 0), |at| (at.as_ptr(), libc::MAP_FIXED));
        Self::map_file(self.file.as_raw_fd(), at, bytes, flags, 0)
    }

    fn map_file(fd: i32, at: *mut u8, bytes: usize, flags: i32, offset: i64) -> io::Result<NonNull<u8>> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: as in `map_anonymous`.
        let mapped = unsafe { libc::mmap(at.cast(), bytes, prot, libc::MAP_SHARED | flags, fd, offset) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(mapped.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: `self` owns this mapping; clients have their own.
        unsafe { unmap(self.at.as_ptr() as usize, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_its_content_when_it_moves() {
        let mut memory = HostMemory::new(1 << 20).unwrap();
        // SAFETY: the mapping is fresh and at least eight bytes long; the reservation below is this test's own.
        unsafe {
            memory.at().cast::<u64>().write(42);
            let place = map_anonymous(ptr::null_mut(), 1 << 20, 0).unwrap();
            memory.move_to(place).unwrap();
            assert_eq!(memory.at(), place.as_ptr());
            assert_eq!(memory.at().cast::<u64>().read(), 42);
            memory.move_away().unwrap();
            assert_ne!(memory.at(), place.as_ptr());
            assert_eq!(memory.at().cast::<u64>().read(), 42);
        }
    }

    #[test]
    fn large_memory_starts_at_a_huge_page() {
        let memory = HostMemory::new(5 << 20).unwrap();
        assert_eq!(memory.at() as usize % HUGE_PAGE, 0);
    }

    #[test]
    fn memory_counts_as_touched_only_where_it_was() {
        let memory = HostMemory::new(64 << 20).unwrap();
        assert_eq!(memory.touched().unwrap(), 0);
        // SAFETY: the mapping is fresh and longer than the offset.
        unsafe { memory.at().add(32 << 20).write(1) };
        assert!((PAGE..=HUGE_PAGE as u64).contains(&memory.touched().unwrap()));
    }

    #[test]
    fn a_shared_page_is_the_same_wherever_it_is_mapped() {
        let page = SharedPage::new(8192).unwrap();
        // SAFETY: the mapping is eight kilobytes long, and unmapped once.
        unsafe {
            let again = page.map_again(None, 8192).unwrap();
            again.as_ptr().cast::<u64>().write(7);
            assert_eq!(page.at().cast::<u64>().read(), 7);
            unmap(again.as_ptr() as usize, 8192);
        }
    }
}
