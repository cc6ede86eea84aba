use std::sync::{Arc, Mutex, PoisonError};

use isa::Op;
use serde::Serialize;

use crate::exec::{Fidelity, fidelity};
use crate::observe::{Observer, Step, WorkgroupObserver, WorkgroupStart};

/// Executed instructions by how sure their results are; within each list the most frequent first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FidelityReport {
    /// Results are the bits that the ISA defines.
    pub exact: Vec<Judged>,
    /// Results are within a bound of the hardware's.
    pub within_bound: Vec<Judged>,
    /// Results follow a model of what is not documented.
    pub modelled: Vec<Judged>,
    /// Not executed: the wave ended there.
    pub unsupported: Vec<Judged>,
}

/// How often an instruction was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// Its mnemonic.
    pub instruction: &'static str,
    /// Waves that executed it, each time counted.
    pub count: u64,
    /// The bound, the model, or why it is left out; empty if exact.
    pub note: &'static str,
}

impl FidelityReport {
    fn new(counts: &[u64]) -> Self {
        let mut report = Self::default();
        for (&op, &count) in Op::ALL.iter().zip(counts) {
            if count > 0 {
                let verdict = fidelity(op);
                let judged = Judged { instruction: op.name(), count, note: verdict.note() };
                report.list(verdict).push(judged);
            }
        }
        for list in [&mut report.exact, &mut report.within_bound, &mut report.modelled, &mut report.unsupported] {
            list.sort_by_key(|entry| std::cmp::Reverse(entry.count));
        }
        report
    }

    fn list(&mut self, verdict: Fidelity) -> &mut Vec<Judged> {
        match verdict {
            Fidelity::Exact => &mut self.exact,
            Fidelity::WithinBound(_) => &mut self.within_bound,
            Fidelity::Modelled(_) => &mut self.modelled,
            Fidelity::Unsupported(_) => &mut self.unsupported,
        }
    }
}

type Counts = Arc<Mutex<Vec<u64>>>;

/// Counts each operation of all waves.
#[derive(Default)]
pub(super) struct Recorder(Counts);

impl Recorder {
    pub(super) fn report(&self) -> FidelityReport {
        FidelityReport::new(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Recorder {
    fn workgroup(&self, _: &WorkgroupStart<'_>) -> Option<Box<dyn WorkgroupObserver>> {
        Some(Box::new(Counter { counts: vec![0; Op::ALL.len()], total: Arc::clone(&self.0) }))
    }
}

/// Counts for one workgroup.
struct Counter {
    counts: Vec<u64>,
    total: Counts,
}

impl WorkgroupObserver for Counter {
    fn after(&mut self, step: &mut Step<'_, '_>) {
        self.counts[step.inst.op as usize] += 1;
    }

    fn end(&mut self) {
        let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        total.resize(self.counts.len(), 0);
        for (total, count) in total.iter_mut().zip(&self.counts) {
            *total += count;
        }
    }
}
