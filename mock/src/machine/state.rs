use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::xcc::Xcc;
use super::{Counters, QueueId, Shared};
use crate::config::Config;
use crate::cp::{Bus, Processor};
use crate::memory::{MemoryFault, PageMap};
use crate::observe::Event;
use crate::random::Random;
use crate::workgroup::{FaultReport, Turn, Workgroup};

/// What stopped a GPU's queue.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum GpuFault {
    /// A wave did what it may not.
    #[error("{0}")]
    Wave(Box<FaultReport>),
    /// A command processor or SDMA engine accessed memory it may not.
    #[error("{engine}: {fault}")]
    Memory {
        /// Which engine.
        engine: String,
        /// The access.
        fault: MemoryFault,
    },
    /// A command processor or SDMA engine met a packet it can't execute.
    #[error("{engine}: {problem}")]
    Packet {
        /// Which engine.
        engine: String,
        /// The packet and what is wrong with it.
        problem: String,
    },
}

/// Workgroups looked at for the next turn: enough for seeds to matter, few enough to keep registers in the host's cache.
const WINDOW: u32 = 16;

struct Queue {
    id: QueueId,
    processor: Box<dyn Processor>,
    faulted: bool,
}

/// What the scheduler decides on, behind one lock.
pub(crate) struct State {
    gpus: Vec<Vec<Xcc>>,
    queues: Vec<Queue>,
    ready: VecDeque<Workgroup>,
    /// Queues of the workgroups that are having a turn on some host thread.
    running: Vec<QueueId>,
    random: Random,
    shuffled: bool,
    faults: Vec<(QueueId, GpuFault)>,
}

impl State {
    pub(super) fn new(config: &Config) -> Self {
        let xccs = || (0..config.xccs).map(|index| Xcc::new(index as u32, config.compute_units)).collect();
        Self {
            gpus: (0..config.gpus).map(|_| xccs()).collect(),
            queues: Vec::new(),
            ready: VecDeque::new(),
            running: Vec::new(),
            random: Random::new(config.seed),
            shuffled: config.seed != 0,
            faults: Vec::new(),
        }
    }

    pub(super) fn add_queue(&mut self, id: QueueId, processor: Box<dyn Processor>) {
        self.queues.push(Queue { id, processor, faulted: false });
    }

    pub(super) fn remove_queue(&mut self, id: QueueId) {
        self.queues.retain(|queue| queue.id != id);
        self.drop_work(id);
    }

    pub(super) fn is_running(&self, id: QueueId) -> bool {
        self.running.contains(&id)
    }

    fn drop_work(&mut self, id: QueueId) {
        for xcc in &mut self.gpus[id.gpu] {
            xcc.drop_queue(id);
        }
        let (dropped, kept): (VecDeque<_>, _) =
            std::mem::take(&mut self.ready).into_iter().partition(|wg| wg.launch.queue == id);
        self.ready = kept;
        for workgroup in dropped {
            self.gpus[id.gpu][workgroup.placement.xcc as usize].release(&workgroup);
        }
    }

    /// Lets every command processor advance, and admits workgroups. Says whether anything moved.
    pub(super) fn step(&mut self, shared: &Shared, maps: &[PageMap]) -> bool {
        let mut moved = false;
        let mut faults = Vec::new();
        let first = if self.shuffled { self.random.below(self.queues.len().max(1) as u32) as usize } else { 0 };
        for i in 0..self.queues.len() {
            let at = (first + i) % self.queues.len();
            let queue = &mut self.queues[at];
            if queue.faulted {
                continue;
            }
            let gpu = queue.id.gpu;
            let mut bus = Bus::new(shared, queue.id, &maps[gpu], &mut self.gpus[gpu]);
            match queue.processor.step(&mut bus) {
                Ok(advanced) => moved |= advanced,
                Err(fault) => faults.push((queue.id, fault)),
            }
        }
        for (id, fault) in faults {
            self.fail(shared, id, fault);
        }
        for (gpu, xccs) in self.gpus.iter_mut().enumerate() {
            for xcc in xccs.iter_mut().filter(|xcc| xcc.has_backlog()) {
                xcc.admit(gpu, |workgroup| {
                    self.ready.push_back(workgroup);
                    moved = true;
                });
            }
        }
        moved
    }

    /// Takes the workgroup that has the next turn.
    pub(super) fn pick(&mut self) -> Option<(Workgroup, u32)> {
        if self.shuffled && self.ready.len() > 1 {
            let other = self.random.below((self.ready.len() as u32).min(WINDOW)) as usize;
            self.ready.swap(0, other);
        }
        let workgroup = self.ready.pop_front()?;
        self.running.push(workgroup.launch.queue);
        let first = if self.shuffled { self.random.next() } else { 0 };
        Some((workgroup, first))
    }

    /// Takes back a workgroup after its turn.
    pub(super) fn put_back(&mut self, shared: &Shared, workgroup: Workgroup, turn: Turn) {
        let id = workgroup.launch.queue;
        if let Some(at) = self.running.iter().position(|running| *running == id) {
            self.running.swap_remove(at);
        }
        let alive = self.queues.iter().any(|queue| queue.id == id && !queue.faulted);
        match turn {
            Turn::Again if alive => self.ready.push_back(workgroup),
            Turn::Again => self.gpus[workgroup.gpu][workgroup.placement.xcc as usize].release(&workgroup),
            Turn::Done => {
                self.gpus[workgroup.gpu][workgroup.placement.xcc as usize].release(&workgroup);
                shared.counters.wave_instructions.fetch_add(workgroup.executed(), Ordering::Relaxed);
                let (launch, executed) = (Arc::clone(&workgroup.launch), workgroup.executed());
                drop(workgroup);
                if launch.workgroups_left() == 1 {
                    shared.observers.event(&Event::LaunchEnded(&launch));
                }
                launch.workgroup_done(executed);
            }
            Turn::Fault(report) => {
                self.gpus[workgroup.gpu][workgroup.placement.xcc as usize].release(&workgroup);
                // Observers hear of its end before anybody hears of the fault.
                drop(workgroup);
                if alive {
                    self.fail(shared, id, GpuFault::Wave(report));
                }
            }
        }
    }

    /// Stops a queue for good, as the hardware scheduler does after a fault, and tells KFD's event holders.
    pub(super) fn fail(&mut self, shared: &Shared, id: QueueId, fault: GpuFault) {
        tracing::error!(gpu = id.gpu, queue = id.number, "{fault}");
        if let Some(queue) = self.queues.iter_mut().find(|queue| queue.id == id) {
            queue.faulted = true;
        }
        self.drop_work(id);
        shared.events.gpu_fault(id.gpu, &fault);
        self.faults.push((id, fault));
    }

    /// Faults so far, oldest first.
    pub(crate) fn faults(&self) -> &[(QueueId, GpuFault)] {
        &self.faults
    }

    /// What each queue waits for, one line a queue, for a report of a hang.
    pub(crate) fn describe(&self) -> Vec<String> {
        let ready = |id| self.ready.iter().filter(|wg| wg.launch.queue == id).count();
        self.queues
            .iter()
            .map(|queue| {
                let QueueId { gpu, number } = queue.id;
                let waits = queue.processor.describe();
                format!("GPU {gpu} queue {number}: {waits}; {} workgroups resident", ready(queue.id))
            })
            .collect()
    }
}

impl Counters {
    pub(crate) fn add(counter: &std::sync::atomic::AtomicU64, amount: u64) {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}
