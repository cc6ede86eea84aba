//! Mailboxes between emulated GPUs.

use kernels::collective::Mailbox;
use kernels::{ErrorWord, Failure, GpuVa};

use super::{Buffer, Gpus};

/// Ticks of 10 ns: longer than any run of these tests takes.
pub(crate) const PATIENT: u64 = 6_000_000_000;

/// Mailboxes and error words of all ranks.
pub(crate) struct Exchange {
    mailboxes: Vec<Buffer>,
    errors: Vec<Buffer>,
    words: u64,
    timeout: u64,
}

impl Exchange {
    pub(crate) fn new(gpus: &Gpus, ranks: usize, words: u64, timeout: u64) -> Self {
        let bytes = Mailbox::bytes(ranks as u32, words) as usize;
        Self {
            mailboxes: (0..ranks).map(|rank| gpus.shared(rank, bytes)).collect(),
            errors: (0..ranks).map(|rank| gpus.shared(rank, 8)).collect(),
            words,
            timeout,
        }
    }

    pub(crate) fn mailbox(&self, rank: usize) -> Mailbox {
        Mailbox {
            mailboxes: std::array::from_fn(|rank| self.mailboxes.get(rank).map_or(GpuVa::NULL, |buffer| buffer.va())),
            error: self.errors[rank].va(),
            words: self.words,
            timeout: self.timeout,
            rank: rank as u32,
            ranks: self.mailboxes.len() as u32,
        }
    }

    pub(crate) fn failures(&self, gpus: &Gpus) -> Vec<Option<Failure>> {
        self.errors.iter().map(|error| ErrorWord(gpus.read::<u64>(error)[0]).failure()).collect()
    }
}
