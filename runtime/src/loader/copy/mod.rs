//! From a staging slot to the arenas.

mod rows;
mod sdma;

use model::layout::WeightCopy;

use super::LoadError;
pub(crate) use rows::Rows;
pub(crate) use sdma::SdmaCopier;

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
