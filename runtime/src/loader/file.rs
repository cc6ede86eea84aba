//! A shard, open for reading.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, PosixFadviseAdvice, fcntl, posix_fadvise};

use super::LoadError;
use super::plan::PlannedFile;

/// Alignment of O_DIRECT where the kernel does not say: enough for every disk sold.
const USUAL_ALIGNMENT: u64 = 4096;

/// A shard. Never created, never written to; symbolic links are followed, as the Hugging Face cache is made of them.
pub(crate) struct ShardFile {
    path: PathBuf,
    file: File,
    opened: Metadata,
    direct: bool,
    alignment: u64,
}

impl ShardFile {
    /// Opens a file: past the page cache if it can be. It must be as it was when its header was checked.
    pub(crate) fn open(plan: &PlannedFile) -> Result<Self, LoadError> {
        let path = &plan.path;
        let fail = |source| LoadError::OpenShard { path: path.clone(), source };
        let (file, direct) = open(path).map_err(fail)?;
        let opened = file.metadata().map_err(fail)?;
        if !opened.is_file() {
            return Err(fail(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let alignment = direct_alignment(&file).map_err(fail)?;
        let mut shard = Self { path: path.clone(), file, opened, direct, alignment: USUAL_ALIGNMENT };
        match alignment {
            Some(0) => shard.make_buffered()?,
            Some(alignment) => shard.alignment = alignment,
            None => {}
        }
        shard.check_length(&shard.opened, plan.len)?;
        if plan.modified.is_some() && shard.opened.modified().ok() != plan.modified {
            return Err(shard.changed("it was written to after its header was checked".into()));
        }
        Ok(shard)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// What offsets and lengths of reads must be multiples of.
    pub(crate) fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Whether reads go past the page cache.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// Which disk it is on: reads of different ones do not slow each other down.
    pub(crate) fn device(&self) -> u64 {
        self.opened.dev()
    }

    /// Reads through the page cache from now on, with the same descriptor: some file systems accept O_DIRECT when a file
    /// is opened and refuse the first read (overlay over squashfs does).
    pub(crate) fn make_buffered(&mut self) -> Result<(), LoadError> {
        let fail = |error: nix::Error| LoadError::OpenShard { path: self.path.clone(), source: error.into() };
        let flags = OFlag::from_bits_retain(fcntl(&self.file, FcntlArg::F_GETFL).map_err(fail)?);
        fcntl(&self.file, FcntlArg::F_SETFL(flags & !OFlag::O_DIRECT)).map_err(fail)?;
        self.direct = false;
        Ok(())
    }

    /// Gives the page cache of a part back, which was only needed on the way. It is advice: failing changes nothing.
    pub(crate) fn forget(&self, offset: u64, bytes: u64) {
        let (Ok(offset), Ok(bytes)) = (offset.try_into(), bytes.try_into()) else { return };
        _ = posix_fadvise(&self.file, offset, bytes, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }

    /// That the file is what it was when it was opened.
    pub(crate) fn check_unchanged(&self) -> Result<(), LoadError> {
        let fail = |source| LoadError::OpenShard { path: self.path.clone(), source };
        let now = self.file.metadata().map_err(fail)?;
        self.check_length(&now, self.opened.len())?;
        let times = |meta: &Metadata| (meta.mtime(), meta.mtime_nsec());
        if times(&now) != times(&self.opened) {
            return Err(self.changed("it was written to".into()));
        }
        Ok(())
    }

    fn check_length(&self, now: &Metadata, len: u64) -> Result<(), LoadError> {
        if now.len() == len {
            return Ok(());
        }
        Err(self.changed(format!("it has {} bytes, and had {len}", now.len())))
    }

    fn changed(&self, what: String) -> LoadError {
        LoadError::ShardChanged { path: self.path.clone(), what }
    }
}

/// With O_DIRECT, or without where the file system has none.
fn open(path: &Path) -> io::Result<(File, bool)> {
    // O_NONBLOCK so that a FIFO is opened, and then refused, rather than waited for.
    let open = |flags| OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path);
    match open(libc::O_DIRECT) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok((open(0)?, false)),
        other => Ok((other?, true)),
    }
}

/// What the kernel says O_DIRECT must be aligned to (Linux 6.1, `STATX_DIOALIGN`): zero if the file takes none, `None` if
/// the kernel does not say.
fn direct_alignment(file: &File) -> io::Result<Option<u64>> {
    let mut answer = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the descriptor is open, the path an empty C string, and `answer` a statx structure to be filled.
    let result = unsafe {
        libc::statx(file.as_raw_fd(), c"".as_ptr(), libc::AT_EMPTY_PATH, libc::STATX_DIOALIGN, answer.as_mut_ptr())
    };
    if result != 0 {
        return match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(None),
            error => Err(error),
        };
    }
    // SAFETY: all bytes of it are initialised, by `zeroed` or by the kernel, and any value is one of its integers.
    let answer = unsafe { answer.assume_init() };
    let says = answer.stx_mask & libc::STATX_DIOALIGN != 0;
    Ok(says.then_some(u64::from(answer.stx_dio_offset_align.max(answer.stx_dio_mem_align))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn shard(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard.safetensors");
        std::fs::write(&path, content).unwrap();
        (folder, path)
    }

    fn open(path: &Path, len: u64) -> Result<ShardFile, LoadError> {
        ShardFile::open(&PlannedFile::new(path.to_owned(), len, Vec::new()))
    }

    #[test]
    fn a_file_written_to_between_its_header_and_the_load_has_changed() {
        let (_folder, path) = shard(b"12345");
        let file = PlannedFile::new(path.clone(), 5, Vec::new());
        let now = path.metadata().unwrap().modified().unwrap();
        let opened = |modified| ShardFile::open(&PlannedFile { modified: Some(modified), ..file.clone() });
        opened(now).unwrap();
        let error = opened(now - std::time::Duration::from_secs(1)).err().unwrap().to_string();
        assert!(error.contains("after its header was checked"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_there_is_not_created() {
        let (_folder, path) = shard(b"");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(open(&path, 0), Err(LoadError::OpenShard { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn a_file_of_another_length_than_its_header_was_checked_with_has_changed() {
        let (_folder, path) = shard(b"12345");
        let error = open(&path, 6).err().unwrap().to_string();
        assert!(error.contains("it has 5 bytes, and had 6"), "{error}");
    }

    #[test]
    fn a_file_that_is_cut_or_written_to_after_it_was_opened_has_changed() {
        let (_folder, path) = shard(b"12345");
        let shard = open(&path, 5).unwrap();
        shard.check_unchanged().unwrap();
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        let before = writer.metadata().unwrap().modified().unwrap();
        writer.write_all_at(b"x", 0).unwrap();
        writer.set_modified(before + std::time::Duration::from_secs(1)).unwrap();
        assert!(matches!(shard.check_unchanged(), Err(LoadError::ShardChanged { .. })));
        writer.set_len(4).unwrap();
        let error = shard.check_unchanged().unwrap_err().to_string();
        assert!(error.contains("it has 4 bytes, and had 5"), "{error}");
    }

    #[test]
    fn a_fifo_is_refused_without_waiting_for_a_writer() {
        let (folder, _) = shard(b"");
        let path = folder.path().join("fifo.safetensors");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(matches!(open(&path, 0), Err(LoadError::OpenShard { .. })));
    }

    #[test]
    fn a_file_reads_on_through_the_page_cache_when_o_direct_turns_out_not_to_work() {
        let (_folder, path) = shard(b"12345");
        let mut shard = open(&path, 5).unwrap();
        shard.make_buffered().unwrap();
        let mut bytes = [0; 3];
        assert_eq!(shard.file.read_at(&mut bytes, 1).unwrap(), 3);
        assert_eq!(&bytes, b"234");
        assert!(!shard.is_direct());
    }
}
