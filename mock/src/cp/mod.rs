//! Command processors: what reads a queue and makes the machine do it.

mod aql;
mod bus;
mod descriptor;
mod pm4;
mod registers;

pub(crate) use aql::AqlQueue;
pub(crate) use bus::Bus;
pub(crate) use pm4::Pm4Queue;

use crate::machine::GpuFault;

/// What processes a queue's packets, a bounded amount at a time.
pub(crate) trait Processor: Send {
    /// Goes as far as it can without waiting; says whether it got anywhere.
    ///
    /// # Errors
    /// The packet or access that stops the queue for good.
    fn step(&mut self, bus: &mut Bus<'_>) -> Result<bool, GpuFault>;

    /// What it is doing or waiting for, in a few words.
    fn describe(&self) -> String;
}
