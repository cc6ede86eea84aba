//! Threads that call pread: for hosts without io_uring.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Completion, Read, Reader, ReaderKind};

/// More threads than this gain nothing on any disk: pread on 2 MiB pages saturates it with a few.
const MOST_THREADS: usize = 32;

/// A read on its way to a thread.
struct Task(Read);

// SAFETY: the memory that a read points to is the reader's until its completion, whichever thread fills it.
unsafe impl Send for Task {}

/// A few threads, each with one read at a time.
pub(crate) struct Threads {
    tasks: Sender<Task>,
    done: Receiver<Completion>,
}

impl Threads {
    /// `in_flight` of them, within reason. They end with the reader, or when the read they are in ends.
    pub(crate) fn new(in_flight: usize) -> io::Result<Self> {
        let (tasks, queue) = channel::<Task>();
        let (report, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..in_flight.clamp(1, MOST_THREADS) {
            let (queue, report) = (queue.clone(), report.clone());
            thread::Builder::new().name(format!("pread-{number}")).spawn(move || {
                loop {
                    // A panic elsewhere leaves the receiver whole.
                    let task = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Task(read)) = task else { return };
                    if report.send(Completion { token: read.token, result: pread(&read) }).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok(Self { tasks, done })
    }
}

fn pread(read: &Read) -> io::Result<u32> {
    let offset = libc::off64_t::try_from(read.offset).map_err(io::Error::other)?;
    // SAFETY: the memory is mapped and the reader's own until the completion (`Reader::submit`).
    let result = unsafe { libc::pread64(read.fd, read.to.as_ptr().cast(), read.bytes as usize, offset) };
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

// SAFETY: `pread` writes to the memory of the read only, and its completion is sent after it.
unsafe impl Reader for Threads {
    fn kind(&self) -> ReaderKind {
        ReaderKind::Pread
    }

    unsafe fn submit(&mut self, read: Read) -> io::Result<()> {
        self.tasks.send(Task(read)).map_err(|_| io::Error::other("every reading thread has ended"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, limit: Duration, done: &mut Vec<Completion>) -> io::Result<()> {
        match self.done.recv_timeout(limit) {
            Ok(first) => done.push(first),
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("every reading thread has ended")),
        }
        done.extend(self.done.try_iter());
        Ok(())
    }
}
