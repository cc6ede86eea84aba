//! A [`System`] with prepared answers, for unit tests. It has no kernel side: that is the emulated machine's.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsString, c_void};
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use crate::linux::Linux;
use crate::system::{Fd, MapRequest, System};

/// Files, folders and failures by path. Memory is real; ioctls answer `ENOTTY`.
#[derive(Default)]
pub(crate) struct Canned {
    files: BTreeMap<PathBuf, Result<String, i32>>,
    devices: BTreeMap<PathBuf, Result<(), i32>>,
}

impl Canned {
    pub(crate) fn with_file(mut self, path: impl Into<PathBuf>, content: impl Into<String>) -> Self {
        self.files.insert(path.into(), Ok(content.into()));
        self
    }

    pub(crate) fn with_file_error(mut self, path: impl Into<PathBuf>, errno: i32) -> Self {
        self.files.insert(path.into(), Err(errno));
        self
    }

    pub(crate) fn with_device(mut self, path: &str) -> Self {
        self.devices.insert(path.into(), Ok(()));
        self
    }

    pub(crate) fn with_open_error(mut self, path: &str, errno: i32) -> Self {
        self.devices.insert(path.into(), Err(errno));
        self
    }
}

fn missing() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}

impl System for Canned {
    fn open(&self, path: &Path) -> io::Result<Fd> {
        let errno = *self.devices.get(path).ok_or_else(missing)?;
        errno.map(|()| Fd::from_raw(1000)).map_err(io::Error::from_raw_os_error)
    }

    fn close(&self, _: Fd) {}

    unsafe fn ioctl(&self, _: Fd, _: u32, _: *mut c_void) -> io::Result<i32> {
        Err(io::Error::from_raw_os_error(libc::ENOTTY))
    }

    unsafe fn mmap(&self, request: MapRequest) -> io::Result<NonNull<u8>> {
        // SAFETY: the same contract.
        unsafe { Linux.mmap(request) }
    }

    unsafe fn munmap(&self, at: NonNull<u8>, bytes: usize) -> io::Result<()> {
        // SAFETY: the same contract.
        unsafe { Linux.munmap(at, bytes) }
    }

    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self.files.get(path).ok_or_else(missing)? {
            Ok(content) => Ok(content.clone().into_bytes()),
            Err(errno) => Err(io::Error::from_raw_os_error(*errno)),
        }
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let children = self.files.keys().filter_map(|file| file.strip_prefix(path).ok()?.components().next());
        let names: BTreeSet<OsString> = children.map(|child| child.as_os_str().to_owned()).collect();
        if names.is_empty() { Err(missing()) } else { Ok(names.into_iter().collect()) }
    }
}
