//! io_uring: reads are queued in memory shared with the kernel, one system call for many.
//!
//! The ring is made disabled, given the files and the staging memory, limited to the one read operation on these files,
//! and only then enabled: whatever happens to this process later, the ring reads shards and does nothing else.

use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use io_uring::register::Restriction;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};

use super::{Completion, Read, Reader, ReaderKind, RingError};
use crate::loader::file::ShardFile;
use crate::loader::progress::Progress;
use crate::loader::staging::Staging;

/// A ring for the files and the staging memory it was made with.
pub(crate) struct Uring<'a> {
    ring: IoUring,
    /// The staging memory is registered, as buffer 0.
    fixed_buffer: bool,
    /// The files are registered, by their numbers.
    fixed_files: bool,
    memory: PhantomData<&'a Staging>,
}

impl<'a> Uring<'a> {
    /// A ring that holds `in_flight` reads. Registrations that fail are done without, and reported.
    pub(crate) fn new(
        files: &[ShardFile],
        staging: &'a Staging,
        in_flight: usize,
        progress: &dyn Progress,
    ) -> Result<Self, RingError> {
        let entries = u32::try_from(in_flight.max(1)).unwrap_or(u32::MAX).next_power_of_two();
        let ring = build(entries).map_err(|source| RingError::Setup { source })?;
        if !ring.params().is_feature_ext_arg() {
            return Err(RingError::Feature { what: "waiting with a time limit (IORING_FEAT_EXT_ARG)" });
        }
        let submitter = ring.submitter();
        let fds: Vec<_> = files.iter().map(ShardFile::fd).collect();
        let fixed_files = report(progress, "shard files", submitter.register_files(&fds));
        let buffer = [libc::iovec { iov_base: staging.pointer().as_ptr().cast(), iov_len: staging.len() }];
        // SAFETY: the staging memory outlives the ring, whose lifetime borrows it.
        let registered = unsafe { submitter.register_buffers(&buffer) };
        let fixed_buffer = report(progress, "staging memory (is ulimit -l too low?)", registered);
        restrict(&ring, fixed_buffer, fixed_files).map_err(|source| RingError::Restrict { source })?;
        ring.submitter().register_enable_rings().map_err(|source| RingError::Enable { source })?;
        Ok(Self { ring, fixed_buffer, fixed_files, memory: PhantomData })
    }

    fn entry(&self, read: &Read) -> Entry {
        let (to, bytes, offset) = (read.to.as_ptr(), read.bytes, read.offset);
        let entry = match (self.fixed_buffer, self.fixed_files) {
            (true, true) => opcode::ReadFixed::new(Fixed(read.file), to, bytes, 0).offset(offset).build(),
            (true, false) => opcode::ReadFixed::new(Fd(read.fd), to, bytes, 0).offset(offset).build(),
            (false, true) => opcode::Read::new(Fixed(read.file), to, bytes).offset(offset).build(),
            (false, false) => opcode::Read::new(Fd(read.fd), to, bytes).offset(offset).build(),
        };
        entry.user_data(read.token)
    }
}

/// A disabled ring, with what newer kernels offer to a single thread that waits for its own completions (Linux 6.1), or
/// without.
fn build(entries: u32) -> io::Result<IoUring> {
    let mut modern = IoUring::builder();
    modern.setup_r_disabled().setup_clamp().setup_single_issuer().setup_defer_taskrun();
    match modern.build(entries) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            IoUring::builder().setup_r_disabled().setup_clamp().build(entries)
        }
        other => other,
    }
}

/// Whether something could be registered.
fn report(progress: &dyn Progress, what: &str, registered: io::Result<()>) -> bool {
    if let Err(error) = &registered {
        progress.notice(&format!("io_uring goes on without registered {what}: {error}"));
    }
    registered.is_ok()
}

/// Allows one operation, and no further registration.
fn restrict(ring: &IoUring, fixed_buffer: bool, fixed_files: bool) -> io::Result<()> {
    let code = if fixed_buffer { opcode::ReadFixed::CODE } else { opcode::Read::CODE };
    let mut restrictions = vec![Restriction::sqe_op(code)];
    if fixed_files {
        let flags = Flags::FIXED_FILE.bits();
        restrictions.extend([Restriction::sqe_flags_allowed(flags), Restriction::sqe_flags_required(flags)]);
    }
    ring.submitter().register_restrictions(&mut restrictions)
}

// SAFETY: the kernel writes to the memory of each read until its completion is in the ring, and to nothing else.
unsafe impl Reader for Uring<'_> {
    fn kind(&self) -> ReaderKind {
        if self.fixed_buffer { ReaderKind::UringFixed } else { ReaderKind::Uring }
    }

    unsafe fn submit(&mut self, read: Read) -> io::Result<()> {
        let entry = self.entry(&read);
        // SAFETY: the memory is mapped and the reader's own until the completion (the caller's promise); the files are
        // registered, or their descriptors open as long as the load lasts.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| io::Error::other("the submission queue is full"))
    }

    fn flush(&mut self) -> io::Result<()> {
        passing(self.ring.submit().map(|_| ()))
    }

    fn wait(&mut self, limit: Duration, done: &mut Vec<Completion>) -> io::Result<()> {
        let before = done.len();
        self.reap(done);
        if done.len() > before {
            return Ok(());
        }
        let limit = Timespec::from(limit);
        passing(self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit)).map(|_| ()))?;
        self.reap(done);
        Ok(())
    }
}

impl Uring<'_> {
    fn reap(&mut self, done: &mut Vec<Completion>) {
        done.extend(self.ring.completion().map(|entry| Completion {
            token: entry.user_data(),
            result: u32::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result())),
        }));
    }
}

/// A call that was cut short by a signal, by its time limit, or by a lack that completions will end, is no failure: what
/// was not submitted stays in the queue for the next call.
fn passing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY)) => {
            Ok(())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use driver::address::Bytes;

    use super::*;
    use crate::loader::Silent;
    use crate::loader::plan::PlannedFile;

    /// Rings are forbidden in many containers.
    fn ring<'a>(files: &[ShardFile], staging: &'a Staging) -> Option<Uring<'a>> {
        match Uring::new(files, staging, 4, &Silent) {
            Err(RingError::Setup { .. }) => None,
            other => Some(other.unwrap()),
        }
    }

    #[test]
    fn a_ring_does_nothing_but_read_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shard");
        std::fs::write(&path, [7; 4096]).unwrap();
        let files = [ShardFile::open(&PlannedFile::new(path, 4096, Vec::new())).unwrap()];
        let staging = Staging::host(Bytes::new(1 << 20)).unwrap();
        let Some(mut ring) = ring(&files, &staging) else { return };

        let read = Read { token: 1, file: 0, fd: files[0].fd(), offset: 0, to: staging.pointer(), bytes: 4096 };
        // SAFETY: the staging memory is longer than the read, and the test waits for its end.
        unsafe { ring.submit(read) }.unwrap();
        let by_descriptor = opcode::ReadFixed::new(Fd(read.fd), read.to.as_ptr(), 4096, 0).build().user_data(2);
        let write = opcode::WriteFixed::new(Fixed(0), read.to.as_ptr(), 4096, 0).build().user_data(3);
        for entry in [by_descriptor, write, opcode::Nop::new().build().user_data(4)] {
            // SAFETY: the memory outlives the operations, all of which the ring refuses.
            unsafe { ring.ring.submission().push(&entry) }.unwrap();
        }
        let mut done = Vec::new();
        while done.len() < 4 {
            ring.wait(Duration::from_secs(1), &mut done).unwrap();
        }
        done.sort_by_key(|completion| completion.token);
        let results: Vec<_> = done.into_iter().map(|c| c.result.map_err(|error| error.raw_os_error())).collect();
        let refused = Err(Some(libc::EACCES));
        assert_eq!(results, [Ok(4096), refused, refused, refused]);
        // SAFETY: the read has ended.
        assert_eq!(unsafe { staging.pointer().read() }, 7);

        let more = ring.ring.submitter().register_files_update(0, &[0]);
        assert_eq!(more.unwrap_err().raw_os_error(), Some(libc::EACCES));
    }
}
