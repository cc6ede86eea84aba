//! Device memory: allocations, and per GPU the map from GPU virtual addresses to host memory.
//!
//! The mock gives a client real memory at the addresses it asked for. A GPU sees only what was mapped to it, so each GPU
//! has a [`PageMap`] of its own; waves, command processors and SDMA engines reach memory through a [`View`] of it alone.

mod access;
pub(crate) mod host;
mod page_map;

pub(crate) use access::AccessKind;
pub(crate) use access::View;
pub use access::{MemoryFault, MemoryFaultReason};
pub(crate) use page_map::{Mapping, PageMap};
