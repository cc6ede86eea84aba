//! The page cache, as a measurement must know it.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

const PAGE: usize = 4096;

/// Drops what the page cache has of a file. Dirty pages stay, so write the file back first.
pub(super) fn drop_cached(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    Ok(posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

/// Bytes of a file that the page cache has.
pub(super) fn cached_bytes(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    // SAFETY: the mapping is only looked at by mincore, which reads none of it.
    let map = unsafe { Mmap::map(&file) }?;
    let mut pages = vec![0_u8; map.len().div_ceil(PAGE)];
    // SAFETY: the range is the mapping, and `pages` has a byte for each of its pages.
    if unsafe { libc::mincore(map.as_ptr().cast_mut().cast(), map.len(), pages.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(pages.iter().filter(|page| **page & 1 != 0).count() as u64 * PAGE as u64)
}
