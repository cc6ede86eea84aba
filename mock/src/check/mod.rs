//! The sanitizer: finds what hardware does in silence. `MOCKKFD=check`, documented in `docs/sanitizer.md`.
//!
//! A [`Checker`] looks into every workgroup. It keeps a shadow beside the machine's state (which registers were written,
//! which results are on their way, who accessed LDS last and with what knowledge) and reports what does not fit, once for
//! each kind and instruction. It changes nothing that a correct program can see.

mod caches;
mod clocks;
mod faults;
mod foreign;
mod global;
mod hazards;
mod late;
mod lds;
mod memory_map;
mod on_lds;
mod on_memory;
mod on_registers;
mod order;
mod passes;
pub(crate) mod poison;
mod registers;
mod report;
mod reports;
mod shadow;
#[cfg(test)]
mod tests;
mod waits;
mod workgroup;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

pub(crate) use caches::Scope;
pub use report::{Report, ReportKind};

use crate::observe::{CacheAction, Event, Observer, OrderEvent, WorkgroupObserver, WorkgroupStart};
use caches::{Caches, Place};
use memory_map::MemoryMap;
use order::Order;
use reports::Reports;
use shadow::Shadow;
use workgroup::Workgroup;

/// Looks for mistakes in everything a machine does.
#[derive(Default)]
pub(crate) struct Checker {
    shared: Arc<Shared>,
}

/// What the checkers of all workgroups share.
#[derive(Default)]
struct Shared {
    reports: Reports,
    memory: RwLock<MemoryMap>,
    order: RwLock<Order>,
    caches: Caches,
    shadow: Shadow,
}

impl Shared {
    fn memory(&self) -> RwLockReadGuard<'_, MemoryMap> {
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self) -> RwLockReadGuard<'_, Order> {
        self.order.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Checker {
    /// What was found so far.
    pub(crate) fn reports(&self) -> Vec<Report> {
        self.shared.reports.all()
    }
}

impl Observer for Checker {
    fn workgroup(&self, start: &WorkgroupStart<'_>) -> Option<Box<dyn WorkgroupObserver>> {
        Some(Box::new(Workgroup::new(&self.shared, start)))
    }

    fn event(&self, event: &Event<'_>) {
        let memory = || self.shared.memory.write().unwrap_or_else(PoisonError::into_inner);
        let order = || self.shared.order.write().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Allocated(new) => memory().allocated(new),
            Event::Freed(va) => {
                if let Some((start, end)) = memory().freed(*va) {
                    self.shared.shadow.forget(start, end);
                }
            }
            Event::Named { at, bytes, label } => memory().named(*at, *bytes, label),
            Event::LaunchStarted(launch) => order().started(launch),
            Event::LaunchEnded(launch) => order().ended(launch),
            Event::Order(stream, event) => match *event {
                OrderEvent::Submitted => order().submitted(*stream),
                OrderEvent::Waited => order().waited(*stream),
                OrderEvent::Follows(other) => order().follows(*stream, other),
                OrderEvent::Told { address, launch } => order().told(*stream, address, launch),
                OrderEvent::Heard(address) => order().heard(*stream, address),
            },
            Event::Cache { gpu, xcc, action, scope } => {
                for xcc in xcc.map_or(0..8, |xcc| xcc..xcc + 1) {
                    let place = Place { gpu: *gpu as u8, xcc };
                    match action {
                        CacheAction::WriteBack => self.shared.caches.written_back(place, *scope),
                        CacheAction::Invalidate => self.shared.caches.invalidated(place, *scope),
                    }
                }
            }
        }
    }
}
