use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::report::{Report, ReportKind};

/// Reports kept; further ones are only counted.
const KEPT: usize = 256;

/// All reports of a machine, one for each kind and instruction, in the order they were first seen.
#[derive(Default)]
pub(super) struct Reports {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: Vec<Report>,
    by_site: HashMap<(ReportKind, u64), usize>,
}

impl Reports {
    /// Adds a report of `kind` at `pc`, made by `make` if it is the first there.
    pub(super) fn add(&self, kind: ReportKind, pc: u64, make: impl FnOnce() -> Report) {
        let mut state = self.state();
        if let Some(&at) = state.by_site.get(&(kind, pc)) {
            state.all[at].count += 1;
        } else if state.all.len() < KEPT {
            let report = make();
            tracing::debug!("{report}");
            let at = state.all.len();
            state.by_site.insert((kind, pc), at);
            state.all.push(report);
        }
    }

    /// A copy of them.
    pub(super) fn all(&self) -> Vec<Report> {
        self.state().all.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
