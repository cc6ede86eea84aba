//! Collectives between emulated GPUs.

use kernels::collective::{AllGather, AllReduce, Mailbox};
use kernels::signal::{SignalGather, SignalSend, SignalSum};
use kernels::{Failure, GpuVa, Step};

use crate::support::{Bf16, Buffer, Exchange, Gpus, Job, PATIENT, Random, widen};

struct Sum {
    partial: Vec<f32>,
    partial_buffer: Buffer,
    residual: Option<(Vec<Bf16>, Buffer)>,
    out: Buffer,
}

fn reduce(mailbox: Mailbox, step: &Buffer, sum: &Sum, width: usize, capacity: usize, collective: u32) -> AllReduce {
    let Mailbox { mailboxes, error, words, timeout, rank, ranks } = mailbox;
    AllReduce {
        step: step.va(),
        partial: sum.partial_buffer.va(),
        weights: GpuVa::NULL,
        residual: sum.residual.as_ref().map_or(GpuVa::NULL, |(_, buffer)| buffer.va()),
        out: sum.out.va(),
        mailboxes,
        error,
        words,
        timeout,
        partial_pitch: (width * 4) as u32,
        terms: 1,
        width: width as u32,
        rank,
        ranks,
        collective,
        tokens: capacity as u32,
        reserved: 0,
    }
}

/// The same in two launches.
fn send_and_sum(reduce: &AllReduce, mailbox: Mailbox) -> [Job; 2] {
    let AllReduce { step, partial, weights, residual, out, partial_pitch, terms, width, collective, tokens, .. } =
        *reduce;
    let send =
        SignalSend { step, partial, weights, mailbox, partial_pitch, terms, width, collective, tokens, reserved: 0 };
    let sum = SignalSum { step, residual, out, mailbox, width, collective, tokens, reserved: 0 };
    [Job::of(&send), Job::of(&sum)]
}

/// Sums in one launch each, then in two.
fn check_sums(ranks: usize, width: usize, tokens: usize, capacity: usize, sums: usize) {
    check_sums_by(false, ranks, width, tokens, capacity, sums);
    check_sums_by(true, ranks, width, tokens, capacity, sums);
}

/// Several sums one after the other in one graph, so that halves of the mailboxes are used again.
fn check_sums_by(signals: bool, ranks: usize, width: usize, tokens: usize, capacity: usize, sums: usize) {
    let gpus = Gpus::new(ranks);
    let mut random = Random::new((ranks * width) as u64);
    let exchange = Exchange::new(&gpus, ranks, (capacity * width + 1) as u64, PATIENT);
    let steps: Vec<_> = (0..ranks)
        .map(|rank| gpus.upload(rank, &[Step { count: tokens as u32, epoch: 1, ..Step::default() }]))
        .collect();
    let all: Vec<Vec<Sum>> = (0..sums)
        .map(|index| {
            let residual = (index % 2 == 0).then(|| random.bf16s(tokens * width, 1.0));
            (0..ranks)
                .map(|rank| {
                    let partial = random.normals(tokens * width, 1.0);
                    Sum {
                        partial_buffer: gpus.upload(rank, &partial),
                        partial,
                        residual: residual.as_ref().map(|values| (values.clone(), gpus.upload(rank, values))),
                        out: gpus.fresh(rank, tokens * width * 2),
                    }
                })
                .collect()
        })
        .collect();
    let jobs: Vec<Vec<Job>> = (0..ranks)
        .map(|rank| {
            let launch = |index: usize| {
                let sum = &all[index][rank];
                let one = reduce(exchange.mailbox(rank), &steps[rank], sum, width, capacity, index as u32);
                if signals { send_and_sum(&one, exchange.mailbox(rank)).into() } else { vec![Job::of(&one)] }
            };
            (0..sums).flat_map(launch).collect()
        })
        .collect();
    gpus.run_all(&jobs);
    assert_eq!(exchange.failures(&gpus), vec![None; ranks]);
    for (index, sum) in all.iter().enumerate() {
        let mut expected = Vec::new();
        for i in 0..tokens * width {
            // FP32, in rank order.
            let total = sum[1..].iter().fold(sum[0].partial[i], |total, rank| total + rank.partial[i]);
            let residual = sum[0].residual.as_ref().map_or(0.0, |(values, _)| widen(values[i]) as f32);
            expected.push(half::bf16::from_f32(total + residual).to_bits());
        }
        for (rank, sum) in sum.iter().enumerate() {
            assert_eq!(gpus.read::<Bf16>(&sum.out), expected, "sum {index} on rank {rank} of {ranks}");
        }
    }
}

#[test]
pub(crate) fn every_rank_gets_the_same_sum_bit_for_bit() {
    for ranks in [1, 2, 4, 8] {
        check_sums(ranks, 256, 1, 1, 5);
    }
}

#[test]
fn a_chunk_is_summed_like_a_token() {
    check_sums(8, 300, 5, 16, 2);
}

#[test]
fn a_residual_row_of_official_width_is_summed() {
    check_sums(8, 7168, 1, 1, 3);
}

#[test]
pub(crate) fn columns_of_all_ranks_are_joined_in_rank_order() {
    for (ranks, width, tokens) in [(1, 128, 2), (2, 64, 3), (4, 32, 1), (8, 16, 5), (8, 448, 1)] {
        check_gather(false, ranks, width, tokens);
        check_gather(true, ranks, width, tokens);
    }
}

fn check_gather(signals: bool, ranks: usize, width: usize, tokens: usize) {
    let gpus = Gpus::new(ranks);
    let mut random = Random::new(width as u64);
    let exchange = Exchange::new(&gpus, ranks, (16 * width + 1) as u64, PATIENT);
    let parts: Vec<_> = (0..ranks).map(|_| random.normals(tokens * width, 1.0)).collect();
    let mut keep = Vec::new();
    let (outs, jobs): (Vec<_>, Vec<_>) = (0..ranks)
        .map(|rank| {
            let step = gpus.upload(rank, &[Step { count: tokens as u32, epoch: 7, ..Step::default() }]);
            let (part, out) = (gpus.upload(rank, &parts[rank]), gpus.fresh(rank, tokens * ranks * width * 2));
            let mailbox = exchange.mailbox(rank);
            let Mailbox { mailboxes, error, words, timeout, rank, ranks } = mailbox;
            let (step_va, part_va, pitch, width, tokens) = (step.va(), part.va(), (width * 4) as u32, width as u32, 16);
            let jobs = if signals {
                let send = SignalSend {
                    step: step_va,
                    partial: part_va,
                    weights: GpuVa::NULL,
                    mailbox,
                    partial_pitch: pitch,
                    terms: 1,
                    width,
                    collective: 3,
                    tokens,
                    reserved: 0,
                };
                let out = out.va();
                let gather = SignalGather { step: step_va, out, mailbox, width, collective: 3, tokens, reserved: 0 };
                vec![Job::of(&send), Job::of(&gather)]
            } else {
                vec![Job::of(&AllGather {
                    step: step_va,
                    part: part_va,
                    out: out.va(),
                    mailboxes,
                    error,
                    words,
                    timeout,
                    part_pitch: pitch,
                    width,
                    rank,
                    ranks,
                    collective: 3,
                    tokens,
                })]
            };
            keep.extend([step, part]);
            (out, jobs)
        })
        .unzip();
    gpus.run_all(&jobs);
    assert_eq!(exchange.failures(&gpus), vec![None; ranks]);
    let expected: Vec<Bf16> = (0..tokens)
        .flat_map(|token| parts.iter().flat_map(move |part| part[token * width..][..width].to_vec()))
        .map(|value| half::bf16::from_f32(value).to_bits())
        .collect();
    for out in &outs {
        assert_eq!(gpus.read::<Bf16>(out), expected, "{ranks} ranks of {width} columns");
    }
}

/// One sum of which only `present` ranks take part.
fn failing_sum(present: usize, timeout: u64, values: impl Fn(usize) -> f32) -> Vec<Option<Failure>> {
    let gpus = Gpus::new(2);
    let exchange = Exchange::new(&gpus, 2, 64, timeout);
    let mut keep = Vec::new();
    let mut jobs: Vec<Vec<Job>> = Vec::new();
    for rank in 0..present {
        let step = gpus.upload(rank, &[Step { count: 1, epoch: 9, ..Step::default() }]);
        let partial = vec![values(rank); 64];
        let sum =
            Sum { partial_buffer: gpus.upload(rank, &partial), partial, residual: None, out: gpus.fresh(rank, 128) };
        jobs.push(vec![Job::of(&reduce(exchange.mailbox(rank), &step, &sum, 64, 1, 2))]);
        keep.push((step, sum));
    }
    gpus.run_all(&jobs);
    exchange.failures(&gpus)
}

#[test]
fn a_peer_that_never_sends_ends_the_wait_with_its_name() {
    let failures = failing_sum(1, 1000, |_| 1.0);
    assert_eq!(failures[0], Some(Failure::PeerTimeout { rank: 0, peer: 1, collective: 2, epoch: 11 }));
}

#[test]
pub(crate) fn a_contribution_that_is_not_finite_is_blamed_on_its_rank_by_both() {
    for bad in [f32::NAN, f32::INFINITY] {
        let failures = failing_sum(2, PATIENT, |rank| if rank == 1 { bad } else { 1.0 });
        let expected = |rank| Some(Failure::NotFinite { rank, peer: 1, collective: 2, token: 0 });
        assert_eq!(failures, [expected(0), expected(1)]);
    }
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_sum() {
    check_sums_by(false, 2, 64, 2, 4, 2);
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_gather() {
    check_gather(false, 2, 64, 3);
}

/// Small launches that run through the whole of the kernels.
pub(crate) fn exercise_signals() {
    check_sums_by(true, 2, 64, 2, 4, 2);
    check_gather(true, 2, 64, 3);
}
