//! The end of a run.

use kernels::head::Advance;
use kernels::{RingEntry, Sampling, Step};

use crate::support::{Gpus, Job};

/// A run's end: the step, the tokens of the next run and the ring afterwards.
fn advance(step: Step, error: u64, has_token: bool) -> (Step, Vec<u32>, Vec<RingEntry>) {
    let gpus = Gpus::new(1);
    let (step, ids, error) = (gpus.upload(0, &[step]), gpus.upload(0, &[5_u32, 6]), gpus.upload(0, &[error]));
    let ring = gpus.shared(0, 4 * size_of::<RingEntry>());
    let launch = Advance {
        step: step.va(),
        ids: ids.va(),
        ring: ring.va(),
        error: error.va(),
        ring_mask: 3,
        collectives: 11,
        has_token: u32::from(has_token),
        tokens: 128,
    };
    gpus.run(0, &[Job::of(&launch)]);
    (gpus.read(&step)[0], gpus.read(&ids), gpus.read(&ring))
}

const STEP: Step = Step {
    position: 40,
    count: 3,
    epoch: 100,
    sequence: 6,
    token: 77,
    reserved: 0,
    sampling: Sampling { scale: 1.5, top_k: 7, top_p: 1 << 63, seed: 3 },
};

#[test]
fn a_run_moves_the_step_on_and_its_token_starts_the_next() {
    let (step, ids, ring) = advance(STEP, 0, true);
    assert_eq!(step, Step { position: 43, count: 1, epoch: 111, sequence: 7, ..STEP });
    assert_eq!(ids, [77, 6]);
    assert_eq!(ring[2], RingEntry { error: 0, token: 77, sequence: 7 });
    assert_eq!(ring[3], RingEntry::default());
}

#[test]
pub(crate) fn a_run_without_a_head_leaves_the_tokens_to_the_host() {
    let (step, ids, ring) = advance(STEP, 0, false);
    assert_eq!(step.position, 43);
    assert_eq!(ids, [5, 6]);
    assert_eq!(ring[2], RingEntry { error: 0, token: RingEntry::NO_TOKEN, sequence: 7 });
}

#[test]
pub(crate) fn a_failed_run_is_reported_and_moves_nothing() {
    let (step, ids, ring) = advance(STEP, 0x0300_0000_0000_0001, true);
    assert_eq!(step, Step { sequence: 7, ..STEP });
    assert_eq!(ids, [5, 6]);
    assert_eq!(ring[2], RingEntry { error: 0x0300_0000_0000_0001, token: RingEntry::NO_TOKEN, sequence: 7 });
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_advance() {
    a_run_moves_the_step_on_and_its_token_starts_the_next();
}
