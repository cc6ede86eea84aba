use std::sync::Arc;

use driver::kfd::memory::AllocFlags;

use crate::check::Scope;
use crate::machine::launch::{Launch, Stream};

/// Something that happens outside of waves.
pub(crate) enum Event<'a> {
    /// A dispatch has started: its workgroups are about to be admitted.
    LaunchStarted(&'a Arc<Launch>),
    /// All of a dispatch's workgroups have ended.
    LaunchEnded(&'a Arc<Launch>),
    /// Packets say how work is ordered.
    Order(Stream, OrderEvent),
    /// L2s have been written back or invalidated by packets.
    Cache {
        /// GPU they belong to.
        gpu: usize,
        /// One XCC, or all of the GPU's.
        xcc: Option<u8>,
        /// What was done.
        action: CacheAction,
        /// For whom.
        scope: Scope,
    },
    /// A client has allocated memory.
    Allocated(Allocated),
    /// The allocation that starts at the address is gone.
    Freed(u64),
    /// A client says what memory is for.
    Named {
        /// First address.
        at: u64,
        /// Length.
        bytes: u64,
        /// What it is for.
        label: &'a str,
    },
}

/// How packets order what a stream starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OrderEvent {
    /// The host has submitted packets.
    Submitted,
    /// It has waited for all it had started.
    Waited,
    /// It goes on after all that another stream has waited for.
    Follows(Stream),
    /// It has changed a value in memory that others wait for, after a launch has ended if one is named.
    Told {
        /// The value.
        address: u64,
        /// The launch's number.
        launch: Option<u32>,
    },
    /// It has seen the value in memory that it waited for.
    Heard(u64),
}

/// What is done to a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheAction {
    /// Its changed lines go to memory.
    WriteBack,
    /// Its lines are dropped.
    Invalidate,
}

/// A new allocation.
pub(crate) struct Allocated {
    /// GPU it belongs to.
    pub(crate) gpu: usize,
    /// First address.
    pub(crate) va: u64,
    /// Length in whole pages.
    pub(crate) bytes: u64,
    /// As the client asked.
    pub(crate) flags: AllocFlags,
    /// Whether it has been filled with the sanitizer's pattern.
    pub(crate) poisoned: bool,
}
