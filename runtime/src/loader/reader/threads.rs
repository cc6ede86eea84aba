//! Threads that call pread: for hosts without io_uring.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::{Completion, Read, Reader, ReaderKind};
use crate::loader::thread_cpu;

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
    /// Processor time of the threads in microseconds, up to each one's last read.
    cpu: Arc<AtomicU64>,
}

impl Threads {
    /// `in_flight` of them, within reason. They end with the reader, or when the read they are in ends.
    pub(crate) fn new(in_flight: usize) -> io::Result<Self> {
        let (tasks, queue) = channel::<Task>();
        let (report, done) = channel();
        let (queue, cpu) = (Arc::new(Mutex::new(queue)), Arc::new(AtomicU64::new(0)));
        for number in 0..in_flight.clamp(1, MOST_THREADS) {
            let (queue, report, cpu) = (queue.clone(), report.clone(), cpu.clone());
            thread::Builder::new().name(format!("pread-{number}")).spawn(move || {
                let mut counted = Duration::ZERO;
                loop {
                    // A panic elsewhere leaves the receiver whole.
                    let task = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Task(read)) = task else { return };
                    // SAFETY: the memory is the reader's own until the completion (`Reader::submit`).
                    let result = unsafe { pread_now(&read) };
                    let used = thread_cpu();
                    cpu.fetch_add(used.saturating_sub(counted).as_micros() as u64, Ordering::Relaxed);
                    counted = used;
                    if report.send(Completion { token: read.token, result }).is_err() {
                        return;
                    }
                }
            })?;
        }
        Ok(Self { tasks, done, cpu })
    }
}

/// Does one read, in the calling thread.
///
/// # Safety
/// The memory of the read is mapped, and nobody else uses it meanwhile.
pub(crate) unsafe fn pread_now(read: &Read) -> io::Result<u32> {
    let offset = libc::off64_t::try_from(read.offset).map_err(io::Error::other)?;
    // SAFETY: the caller's promise.
    let result = unsafe { libc::pread64(read.fd, read.to.as_ptr().cast(), read.bytes as usize, offset) };
    u32::try_from(result).map_err(|_| io::Error::last_os_error())
}

// SAFETY: `pread_now` writes to the memory of the read only, and its completion is sent after it.
unsafe impl Reader for Threads {
    fn kind(&self) -> ReaderKind {
        ReaderKind::Pread
    }

    unsafe fn submit(&mut self, read: Read) -> io::Result<()> {
        self.tasks.send(Task(read)).map_err(|_| io::Error::other("every reading thread has ended"))
    }

    fn worker_cpu(&self) -> Duration {
        Duration::from_micros(self.cpu.load(Ordering::Relaxed))
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
