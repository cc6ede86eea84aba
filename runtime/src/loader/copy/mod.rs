//! From a staging slot to the arenas.

mod rows;
mod sdma;

use std::time::{Duration, Instant};

use model::layout::WeightCopy;

use super::{LoadError, Progress};
pub(crate) use rows::Rows;
pub(crate) use sdma::SdmaCopier;

/// Pause between looks at copies that are waited for: a block takes longer than this on any disk.
pub(crate) const POLL: Duration = Duration::from_micros(100);
/// Longest time without a look at whether to stop, and for faults.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// Copies of which none has ended for this long are stuck.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Copies that were started together: for each rank, how far its queue must get. Zero is no work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticket(Vec<u64>);

/// Puts bytes that were read in their places.
pub(crate) trait Copier {
    /// Starts `copies`, whose sources are offsets in a file; byte `base` of that file lies `slot` bytes into the staging
    /// memory. The bytes must not change until the ticket is done.
    fn start(&mut self, slot: u64, base: u64, copies: &[WeightCopy]) -> Result<Ticket, LoadError>;

    /// Whether all copies of the ticket have arrived.
    fn is_done(&self, ticket: &Ticket) -> bool;

    /// Looks for faults. Called now and then while copies are waited for.
    fn check(&self) -> Result<(), LoadError>;

    /// Waits until the ticket is done.
    fn wait(&self, ticket: &Ticket, progress: &dyn Progress) -> Result<(), LoadError> {
        let start = Instant::now();
        let mut looked = start;
        while !self.is_done(ticket) {
            std::thread::sleep(POLL);
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            self.check()?;
            if progress.is_cancelled() {
                return Err(LoadError::Interrupted);
            }
            if start.elapsed() > LIMIT {
                return self.demand(ticket);
            }
        }
        Ok(())
    }

    /// Fails unless the ticket is done, with all that is known about why.
    fn demand(&self, ticket: &Ticket) -> Result<(), LoadError>;
}

/// Copies nothing.
pub(crate) struct Discard;

impl Copier for Discard {
    fn start(&mut self, _: u64, _: u64, _: &[WeightCopy]) -> Result<Ticket, LoadError> {
        Ok(Ticket::default())
    }

    fn is_done(&self, _: &Ticket) -> bool {
        true
    }

    fn check(&self) -> Result<(), LoadError> {
        Ok(())
    }

    fn demand(&self, _: &Ticket) -> Result<(), LoadError> {
        Ok(())
    }
}
