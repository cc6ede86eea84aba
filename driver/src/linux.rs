//! Linux as a [`System`]: each call is the system call of its name.

use std::ffi::{OsString, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;

use crate::system::{Backing, Fd, MapRequest, Protection, System};

/// Tries of an ioctl that answers `EAGAIN`: some milliseconds of yielding, then the caller hears of it.
const AGAIN_TRIES: u32 = 1000;

/// The running Linux kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;

impl System for Linux {
    fn open(&self, path: &Path) -> io::Result<Fd> {
        // std adds O_CLOEXEC by itself.
        OpenOptions::new().read(true).write(true).open(path).map(|file| Fd::from_raw(File::into_raw_fd(file)))
    }

    fn close(&self, fd: Fd) {
        // SAFETY: `open` gave the number away, and the caller gives up its only use.
        unsafe { libc::close(fd.as_raw()) };
    }

    unsafe fn ioctl(&self, fd: Fd, request: u32, arg: *mut c_void) -> io::Result<i32> {
        let mut again = 0;
        loop {
            // SAFETY: the caller vouches for `arg`, as `System::ioctl` asks.
            let result = unsafe { libc::ioctl(fd.as_raw(), libc::Ioctl::from(request), arg) };
            if result >= 0 {
                return Ok(result);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) if again < AGAIN_TRIES => {
                    again += 1;
                    std::thread::yield_now();
                }
                _ => return Err(error),
            }
        }
    }

    unsafe fn mmap(&self, request: MapRequest) -> io::Result<NonNull<u8>> {
        let mut protection = libc::PROT_NONE;
        if request.protection.contains(Protection::READ) {
            protection |= libc::PROT_READ;
        }
        if request.protection.contains(Protection::WRITE) {
            protection |= libc::PROT_WRITE;
        }
        let (mut flags, fd, offset) = match request.backing {
            Backing::Anonymous { reserve_only: false } => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
            Backing::Anonymous { reserve_only: true } => {
                (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0)
            }
            Backing::File { fd, offset } => (libc::MAP_SHARED, fd.as_raw(), offset.cast_signed()),
        };
        let at = match request.fixed {
            Some(at) => {
                flags |= libc::MAP_FIXED;
                std::ptr::with_exposed_provenance_mut(at.get())
            }
            None => std::ptr::null_mut(),
        };
        // SAFETY: without MAP_FIXED the kernel chooses free addresses; with it the caller owns the range, as
        // `System::mmap` asks.
        let mapped = unsafe { libc::mmap(at, request.bytes, protection, flags, fd, offset) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        if request.backing == (Backing::Anonymous { reserve_only: false }) {
            // Memory a GPU reads while this process forks must not become copy-on-write. Both are hints: kernels
            // without huge pages refuse the first, which costs speed only.
            for advice in [libc::MADV_HUGEPAGE, libc::MADV_DONTFORK] {
                // SAFETY: the range was just mapped.
                unsafe { libc::madvise(mapped, request.bytes, advice) };
            }
        }
        NonNull::new(mapped.cast()).ok_or_else(|| io::Error::other("the kernel mapped page zero"))
    }

    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the caller vouches that nothing refers to the range, as `System::munmap` asks.
        if unsafe { libc::munmap(at.as_ptr().cast(), bytes) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        use std::io::Read;
        // Reading only: sysfs files of other users may not be opened for writing.
        let mut content = Vec::new();
        OpenOptions::new().read(true).custom_flags(libc::O_CLOEXEC).open(path)?.read_to_end(&mut content)?;
        Ok(content)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::HostVa;

    #[test]
    fn a_reservation_can_be_mapped_over_at_the_same_address() {
        let reserve = MapRequest {
            fixed: None,
            bytes: 8192,
            protection: Protection::empty(),
            backing: Backing::Anonymous { reserve_only: true },
        };
        // SAFETY: no fixed address.
        let at = unsafe { Linux.mmap(reserve) }.unwrap();
        let over = MapRequest {
            fixed: Some(HostVa::from(at)),
            bytes: 4096,
            protection: Protection::READ | Protection::WRITE,
            backing: Backing::Anonymous { reserve_only: false },
        };
        // SAFETY: the range was just reserved and is not used.
        assert_eq!(unsafe { Linux.mmap(over) }.unwrap(), at);
        // SAFETY: the first page was just mapped for reading and writing.
        unsafe {
            at.write(7);
            assert_eq!(at.read(), 7);
        }
        // SAFETY: nothing refers to the range any more.
        unsafe { Linux.munmap(at, 8192) }.unwrap();
    }

    #[test]
    fn errors_keep_their_errno() {
        let missing = Path::new("/nonexistent/kfd");
        assert_eq!(Linux.open(missing).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(Linux.list_dir(missing).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(Linux.read_file(missing).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        let null = Linux.open(Path::new("/dev/null")).unwrap();
        let mut arg = 0_u64;
        // SAFETY: `arg` is live; /dev/null knows no ioctl and does not touch it.
        let error = unsafe { Linux.ioctl(null, 0x8008_4b01, (&raw mut arg).cast()) }.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY));
        Linux.close(null);
    }

    #[test]
    fn a_folder_is_listed_without_its_own_entries() {
        let names = Linux.list_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(names.contains(&OsString::from("Cargo.toml")));
        assert!(!names.contains(&OsString::from(".")));
    }
}
