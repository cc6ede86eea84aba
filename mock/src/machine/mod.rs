//! The machine: GPUs of several XCCs, their queues and engines, and the host threads that advance them.
//!
//! Everything that can wait for something else (command processors, SDMA engines, workgroups) advances a bounded amount
//! at a time and is then put aside, so that what waits for each other across workgroups and GPUs gets done.

pub(crate) mod compute_unit;
pub(crate) mod launch;
mod scheduler;
mod state;
mod xcc;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::code::CodeCache;
use crate::config::Config;
use crate::cp::Processor;
use crate::exec::{HostLevel, MfmaOrder, Outside};
use crate::kfd::Events;
use crate::memory::PageMap;
use crate::null::StandIns;
use crate::observe::Observers;
use crate::sdma::Sdma;

pub(crate) use state::{GpuFault, State};
pub(crate) use xcc::Xcc;

/// Names a queue for as long as the mock lives; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct QueueId {
    /// GPU the queue belongs to, by its index in the machine.
    pub gpu: usize,
    /// Number, unique in the machine; also KFD's queue id.
    pub number: u32,
}

/// What the mock counts for its users.
#[derive(Debug, Default)]
pub struct Counters {
    /// Changes of doorbells seen.
    pub doorbells: AtomicU64,
    /// AQL packets found valid in rings: each was written by the host (or by a kernel) since the last time round.
    pub ring_packets: AtomicU64,
    /// Dispatches started, once per packet.
    pub dispatches: AtomicU64,
    /// Instructions executed by waves.
    pub wave_instructions: AtomicU64,
    /// Bytes moved by SDMA engines.
    pub sdma_bytes: AtomicU64,
}

/// What the machine's threads share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) level: HostLevel,
    /// Each GPU's address space. Threads read-lock it for a step or a turn; whoever changes mappings waits for them.
    /// Taken before `state` and before an engine's lock.
    maps: RwLock<Vec<PageMap>>,
    state: Mutex<State>,
    engines: Mutex<Vec<(QueueId, Arc<Mutex<Sdma>>)>>,
    /// Told when there may be something to do.
    work: Condvar,
    pub(crate) codes: CodeCache,
    pub(crate) events: Arc<Events>,
    pub(crate) counters: Counters,
    pub(crate) observers: Observers,
    pub(crate) stand_ins: StandIns,
    stopping: AtomicBool,
    started: Instant,
}

impl Shared {
    pub(crate) fn maps(&self) -> RwLockReadGuard<'_, Vec<PageMap>> {
        self.maps.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn maps_mut(&self) -> RwLockWriteGuard<'_, Vec<PageMap>> {
        self.maps.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn engines(&self) -> MutexGuard<'_, Vec<(QueueId, Arc<Mutex<Sdma>>)>> {
        self.engines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ticks of the GPUs' constant 100 MHz counter.
    pub(crate) fn clock(&self) -> u64 {
        // Starts at one, as zero reads as "no time stamp" to clients.
        1 + (self.started.elapsed().as_nanos() / 10) as u64
    }
}

impl Outside for Shared {
    fn clock(&self) -> u64 {
        Self::clock(self)
    }

    fn interrupt(&self, event: u32) {
        self.events.signal(event);
    }

    fn mfma_order(&self) -> MfmaOrder {
        self.config.mfma
    }
}

/// The emulated machine. Dropping it stops its threads.
pub(crate) struct Machine {
    pub(crate) shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Machine {
    /// A machine as `config` describes, watched by `observers`.
    pub(crate) fn start(config: Config, observers: Observers) -> Self {
        let shared = Arc::new(Shared {
            level: HostLevel::detect(),
            maps: RwLock::new(vec![PageMap::default(); config.gpus]),
            state: Mutex::new(State::new(&config)),
            engines: Mutex::default(),
            work: Condvar::new(),
            codes: CodeCache::default(),
            events: Arc::default(),
            counters: Counters::default(),
            observers,
            stand_ins: StandIns::default(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            config,
        });
        let threads = (0..shared.config.threads)
            .map(|n| {
                let shared = Arc::clone(&shared);
                std::thread::Builder::new()
                    .name(format!("mock-{n}"))
                    .spawn(move || scheduler::work(&shared))
                    .expect("the operating system gives the process a few threads")
            })
            .collect();
        Self { shared, threads }
    }

    /// Attaches a command processor to a queue.
    pub(crate) fn add_queue(&self, id: QueueId, processor: Box<dyn Processor>) {
        self.shared.state().add_queue(id, processor);
        self.shared.work.notify_all();
    }

    /// Attaches an SDMA engine to a queue.
    pub(crate) fn add_engine(&self, id: QueueId, engine: Sdma) {
        self.shared.engines().push((id, Arc::new(Mutex::new(engine))));
        self.shared.work.notify_all();
    }

    /// Detaches a queue; returns when nothing of it runs any more.
    pub(crate) fn remove_queue(&self, id: QueueId) {
        let engine = {
            let mut engines = self.shared.engines();
            engines.iter().position(|(other, _)| *other == id).map(|at| engines.remove(at).1)
        };
        if let Some(engine) = engine {
            // Whoever steps it holds this lock; afterwards nobody finds it any more.
            drop(engine.lock().unwrap_or_else(PoisonError::into_inner));
            return;
        }
        let mut state = self.shared.state();
        state.remove_queue(id);
        while state.is_running(id) {
            state = self.shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has printed why; there is nothing left to do for it.
            let _ = thread.join();
        }
    }
}
