//! Greedy choice and the end of a run.

use kernels::collective::Mailbox;
use kernels::head::{Advance, Argmax};
use kernels::{ErrorWord, Failure, GpuVa, RingEntry, Step};

use crate::support::{Gpus, Job, Random};

const PATIENT: u64 = 6_000_000_000;

/// The token that each rank chose, or its failure. `logits` are those of all ranks in a row, for one token.
fn choose(ranks: usize, logits: &[f32]) -> Vec<Result<u32, Failure>> {
    let gpus = Gpus::new(ranks);
    let rows = logits.len() / ranks;
    let mailboxes: Vec<_> =
        (0..ranks).map(|rank| gpus.shared(rank, Mailbox::bytes(ranks as u32, 2) as usize)).collect();
    let mut keep = Vec::new();
    let mut results = Vec::new();
    let mut jobs: Vec<Vec<Job>> = Vec::new();
    for rank in 0..ranks {
        let step = gpus.upload(rank, &[Step { count: 1, epoch: 1, ..Step::default() }]);
        let own = gpus.upload(rank, &logits[rank * rows..][..rows]);
        let error = gpus.shared(rank, 8);
        let launch = Argmax {
            step: step.va(),
            logits: own.va(),
            mailboxes: std::array::from_fn(|rank| mailboxes.get(rank).map_or(GpuVa::NULL, |mailbox| mailbox.va())),
            error: error.va(),
            words: 2,
            timeout: PATIENT,
            row_pitch: (rows * 4) as u32,
            rows: rows as u32,
            last_row: 0,
            rank: rank as u32,
            ranks: ranks as u32,
            collective: 0,
            tokens: 1,
            reserved: 0,
        };
        jobs.push(vec![Job::of(&launch)]);
        results.push((step, error));
        keep.push(own);
    }
    gpus.run_all(&jobs);
    results
        .iter()
        .map(|(step, error)| match ErrorWord(gpus.read::<u64>(error)[0]).failure() {
            Some(failure) => Err(failure),
            None => Ok(gpus.read::<Step>(step)[0].token),
        })
        .collect()
}

#[test]
pub(crate) fn the_largest_logit_over_all_ranks_wins() {
    for ranks in [1, 2, 4, 8] {
        let mut logits = Random::new(ranks as u64).normals(1536, 1.0);
        for best in [0, 191, 192, 1535] {
            logits[best] = 10.0 + best as f32;
            assert_eq!(choose(ranks, &logits), vec![Ok(best as u32); ranks]);
        }
    }
}

#[test]
fn equal_logits_give_the_lowest_token() {
    let mut logits = vec![-1.0; 1536];
    for token in [1500, 700, 701, 1100] {
        logits[token] = 3.0;
    }
    assert_eq!(choose(4, &logits), vec![Ok(700); 4]);
    assert_eq!(choose(8, &[0.0; 1536]), vec![Ok(0); 8]);
}

#[test]
pub(crate) fn a_nan_among_the_logits_is_a_failure_that_names_its_rank() {
    let mut logits = vec![0.0; 1536];
    logits[800] = f32::NAN;
    let blame = |rank| Err(Failure::NanLogits { rank, peer: 2, epoch: 1 });
    assert_eq!(choose(4, &logits), [blame(0), blame(1), blame(2), blame(3)]);
}

#[test]
fn the_last_valid_token_decides_where_every_token_has_logits() {
    let gpus = Gpus::new(1);
    let logits: Vec<f32> = (0..3).flat_map(|row| (0..64).map(move |i| if i == row * 7 { 1.0 } else { 0.0 })).collect();
    let step = gpus.upload(0, &[Step { count: 3, epoch: 1, ..Step::default() }]);
    let (logits, error) = (gpus.upload(0, &logits), gpus.shared(0, 8));
    let launch = Argmax {
        step: step.va(),
        logits: logits.va(),
        mailboxes: [GpuVa::NULL; 8],
        error: error.va(),
        words: 0,
        timeout: 0,
        row_pitch: 256,
        rows: 64,
        last_row: 1,
        rank: 0,
        ranks: 1,
        collective: 0,
        tokens: 128,
        reserved: 0,
    };
    gpus.run(0, &[Job::of(&launch)]);
    assert_eq!(gpus.read::<Step>(&step)[0].token, 14);
}

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

const STEP: Step = Step { position: 40, count: 3, epoch: 100, sequence: 6, token: 77, reserved: [0; 3] };

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
pub(crate) fn exercise_argmax() {
    let mut logits = Random::new(2).normals(1536, 1.0);
    logits[192] = 10.0;
    assert_eq!(choose(2, &logits), vec![Ok(192); 2]);
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_advance() {
    a_run_moves_the_step_on_and_its_token_starts_the_next();
}
