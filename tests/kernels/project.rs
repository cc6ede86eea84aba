//! Projections of one token, with what comes before and after them in one launch.

use kernels::collective::Mailbox;
use kernels::gemm::{Input, Matrix, Output, Precision, Segment, SituBetas};
use kernels::project::{MixProject, MixedInput, ProjectSum};
use kernels::{Failure, GpuVa, Step};

use crate::support::{
    Bf16, Buffer, Exchange, Gpus, Job, PATIENT, Random, Rows, assert_rows_close, mix, rms_norm, situ, widened,
};

const EPS: f64 = 1e-5;
const BETAS: SituBetas = SituBetas { gate: 4.0, linear: 25.0 };
/// Roundings of the mix, the norm and the output to BF16; SiTU makes more of the first two.
const TOLERANCE: f64 = 8e-3;

fn matrix(buffer: &Buffer, rows: usize, depth: usize) -> Matrix {
    Matrix { address: buffer.va(), rows: rows as u32, pitch: (depth * 2) as u32 }
}

/// What all ranks have alike.
struct Source {
    width: usize,
    h: Vec<Bf16>,
    blocks: Vec<Vec<Bf16>>,
    norm: Vec<Bf16>,
    proj: Vec<Bf16>,
    weight: Vec<Bf16>,
}

impl Source {
    fn random(random: &mut Random, width: usize, blocks: usize) -> Self {
        Self {
            width,
            h: random.bf16s(width, 1.5),
            blocks: (0..blocks).map(|_| random.bf16s(width, 0.7)).collect(),
            norm: random.bf16s(width, 0.5),
            proj: random.bf16s(width, 0.1),
            weight: random.bf16s(width, 1.0),
        }
    }

    fn normed(&self) -> Rows {
        let mut sources: Vec<_> = self.blocks.iter().map(|block| widened(block)).collect();
        sources.push(widened(&self.h));
        let sources: Vec<_> = sources.iter().map(Vec::as_slice).collect();
        let mixed = mix(&sources, &widened(&self.norm), &widened(&self.proj), EPS);
        Rows::new(self.width, rms_norm(&mixed, &widened(&self.weight), EPS))
    }
}

/// Outputs of a start of a block: rows of plain BF16, plain FP32, gated and gathered.
struct Outputs {
    bf16: usize,
    f32: usize,
    gated: usize,
    gathered: usize,
}

/// A start of a block on all ranks, each with weights of its own.
fn check_start(ranks: usize, width: usize, blocks: usize, rows: &Outputs) {
    let gpus = Gpus::new(ranks);
    let mut random = Random::new((width + blocks + ranks) as u64);
    let source = Source::random(&mut random, width, blocks);
    let x = source.normed();
    let exchange = Exchange::new(&gpus, ranks, rows.gathered as u64, PATIENT);
    let mut keep = Vec::new();
    let (mut jobs, mut checks, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    for rank in 0..ranks {
        let step = gpus.upload(rank, &[Step { count: 1, epoch: 3, ..Step::default() }]);
        let arena: Vec<Bf16> = source.blocks.concat();
        let arena = gpus.upload(rank, if blocks == 0 { &[0][..] } else { &arena });
        let [h, norm, proj, weight] =
            [&source.h, &source.norm, &source.proj, &source.weight].map(|values| gpus.upload(rank, values));
        let save = gpus.fresh(rank, width * 2);
        let sets: Vec<_> = [rows.bf16, rows.f32, rows.gated, rows.gated, rows.gathered]
            .map(|rows| random.bf16s(rows * width, 0.06))
            .into_iter()
            .map(|values| (gpus.upload(rank, &values), Rows::of_bf16(width, &values)))
            .collect();
        let [plain, wide, gate, up, part] = std::array::from_fn(|i| x.times(&sets[i].1).values);
        let gated = gate.iter().zip(&up).map(|(&gate, &up)| situ(gate, up)).collect::<Vec<_>>();
        let buffers = [rows.bf16 * 2, rows.f32 * 4, rows.gated * 2, ranks * rows.gathered * 2]
            .map(|bytes| gpus.fresh(rank, bytes));
        let [y, y_f32, y_gated, z] = [0, 1, 2, 3].map(|i: usize| buffers[i].va());
        let output = |address, precision| Output { address, pitch: 0, precision };
        let input = Input { address: GpuVa::NULL, pitch: 0, depth: width as u32 };
        let w = |i: usize, rows| matrix(&sets[i].0, rows, width);
        let segments = [
            Segment::plain(w(0, rows.bf16), output(y, Precision::Bf16)),
            Segment::gated(input, w(2, rows.gated), w(3, rows.gated), output(y_gated, Precision::Bf16)),
            Segment::plain(w(1, rows.f32), output(y_f32, Precision::F32)),
            Segment::gathered(w(4, rows.gathered), z),
        ];
        let mixed = MixedInput {
            h: h.va(),
            blocks: arena.va(),
            save: save.va(),
            norm: norm.va(),
            proj: proj.va(),
            weight: weight.va(),
            block_stride: (width * 2) as u64,
            block_count: blocks as u32,
            width: width as u32,
            eps: EPS as f32,
        };
        let launch = MixProject::new(step.va(), mixed, &segments, BETAS, exchange.mailbox(rank), 2);
        jobs.push(vec![Job::of(&launch)]);
        parts.extend(part);
        checks.push((buffers, save, plain, wide, gated));
        keep.push((step, arena, [h, norm, proj, weight], sets));
    }
    gpus.run_all(&jobs);
    assert_eq!(exchange.failures(&gpus), vec![None; ranks]);
    let what = format!("{ranks} ranks, width {width}, {blocks} blocks");
    for ([y, y_f32, y_gated, z], save, plain, wide, gated) in checks {
        let close = |what: &str, found: Vec<f64>, expected: Vec<f64>| {
            assert_rows_close(what, &Rows::new(found.len(), found), &Rows::new(expected.len(), expected), TOLERANCE);
        };
        close(&format!("plain, {what}"), widened(&gpus.read::<Bf16>(&y)), plain);
        close(&format!("FP32, {what}"), gpus.read::<f32>(&y_f32).into_iter().map(f64::from).collect(), wide);
        close(&format!("gated, {what}"), widened(&gpus.read::<Bf16>(&y_gated)), gated);
        close(&format!("gathered, {what}"), widened(&gpus.read::<Bf16>(&z)), parts.clone());
        assert_eq!(gpus.read::<Bf16>(&save), source.h, "the saved block, {what}");
    }
}

#[test]
fn a_block_starts_right_at_every_tensor_parallel_degree_of_k3_nano() {
    for ranks in [1, 2, 4, 8] {
        let rows = Outputs { bf16: 1024 / ranks, f32: 16, gated: 512 / ranks, gathered: 128 / ranks };
        check_start(ranks, 256, 2, &rows);
    }
}

#[test]
pub(crate) fn any_number_of_blocks_is_mixed_before_the_projections() {
    for blocks in 0..=8 {
        check_start(1, 264, blocks, &Outputs { bf16: 20, f32: 35, gated: 75, gathered: 37 });
    }
}

#[test]
pub(crate) fn a_row_longer_than_a_workgroup_s_waves_take_alone_is_shared_between_them() {
    for width in [504, 512, 520, 1536] {
        check_start(2, width, 3, &Outputs { bf16: 40, f32: 12, gated: 44, gathered: 16 });
    }
}

#[test]
fn a_block_of_official_width_with_all_eight_saved_ones_starts_right() {
    check_start(2, 7168, 8, &Outputs { bf16: 64, f32: 12, gated: 32, gathered: 32 });
}

/// More tiles of rows than compute units: workgroups take several.
#[test]
pub(crate) fn workgroups_take_the_tiles_beyond_the_compute_units_in_turn() {
    check_start(1, 520, 1, &Outputs { bf16: 16 * 250, f32: 16 * 30, gated: 8 * 9, gathered: 16 });
}

/// An end of a block: this rank's `depth` values of a row of all ranks, and `depth2` of its own.
struct End {
    ranks: usize,
    depth: usize,
    depth2: usize,
    rows: usize,
    normed: bool,
    residual: bool,
}

impl End {
    /// Gives what every rank has in the end.
    fn check(&self) -> Vec<Bf16> {
        let Self { ranks, depth, depth2, rows, normed, residual } = *self;
        let gpus = Gpus::new(ranks);
        let mut random = Random::new((depth * ranks + rows) as u64);
        let width = depth * ranks;
        let whole = random.bf16s(width, 1.0);
        let weight = random.bf16s(width, 1.0);
        let before = random.bf16s(rows, 1.0);
        let input = if normed { rms_norm(&widened(&whole), &widened(&weight), EPS) } else { widened(&whole) };
        let exchange = Exchange::new(&gpus, ranks, rows as u64, PATIENT);
        let mut expected = if residual { widened(&before) } else { vec![0.0; rows] };
        let (mut keep, mut jobs, mut outs) = (Vec::new(), Vec::new(), Vec::new());
        for rank in 0..ranks {
            let step = gpus.upload(rank, &[Step { count: 1, epoch: 8, ..Step::default() }]);
            let (w, w2) = (random.bf16s(rows * depth, 0.1), random.bf16s(rows * depth2, 0.1));
            let x2 = random.bf16s(depth2, 1.0);
            let part = Rows::new(depth, input[rank * depth..][..depth].to_vec()).times(&Rows::of_bf16(depth, &w));
            expected.iter_mut().zip(part.values).for_each(|(sum, part)| *sum += part);
            if depth2 != 0 {
                let part = Rows::of_bf16(depth2, &x2).times(&Rows::of_bf16(depth2, &w2));
                expected.iter_mut().zip(part.values).for_each(|(sum, part)| *sum += part);
            }
            let buffers = [&whole, &weight, &w, &x2, &w2].map(|values| gpus.upload(rank, values));
            let [x, weight, w, x2, w2] = [0, 1, 2, 3, 4].map(|i: usize| buffers[i].va());
            let h = gpus.upload(rank, &before);
            jobs.push(vec![Job::of(&ProjectSum {
                step: step.va(),
                x,
                weight: if normed { weight } else { GpuVa::NULL },
                w,
                x2,
                w2,
                residual: if residual { h.va() } else { GpuVa::NULL },
                out: h.va(),
                mailbox: exchange.mailbox(rank),
                norm_width: width as u32,
                first: (rank * depth) as u32,
                depth: depth as u32,
                depth2: depth2 as u32,
                w_pitch: (depth * 2) as u32,
                w2_pitch: (depth2 * 2) as u32,
                rows: rows as u32,
                eps: EPS as f32,
                collective: 1,
                reserved: 0,
            })]);
            keep.push((step, buffers));
            outs.push(h);
        }
        gpus.run_all(&jobs);
        assert_eq!(exchange.failures(&gpus), vec![None; ranks]);
        let found = gpus.read::<Bf16>(&outs[0]);
        let what = format!("{ranks} ranks, depths {depth} and {depth2}");
        assert_rows_close(&what, &Rows::of_bf16(rows, &found), &Rows::new(rows, expected), TOLERANCE);
        for out in &outs {
            assert_eq!(gpus.read::<Bf16>(out), found, "the same bits on every rank: {what}");
        }
        found
    }
}

#[test]
fn a_block_ends_right_at_every_tensor_parallel_degree_of_k3_nano() {
    for ranks in [1, 2, 4, 8] {
        End { ranks, depth: 1024 / ranks, depth2: 0, rows: 256, normed: false, residual: true }.check();
        End { ranks, depth: 128 / ranks, depth2: 512 / ranks, rows: 256, normed: true, residual: true }.check();
    }
}

#[test]
fn blocks_of_official_width_end_right() {
    End { ranks: 2, depth: 1536, depth2: 0, rows: 64, normed: false, residual: false }.check();
    End { ranks: 8, depth: 448, depth2: 768, rows: 64, normed: true, residual: true }.check();
    End { ranks: 1, depth: 4224, depth2: 0, rows: 40, normed: false, residual: true }.check();
}

#[test]
fn two_runs_end_with_the_same_bits() {
    let end = End { ranks: 4, depth: 448, depth2: 768, rows: 100, normed: true, residual: true };
    assert_eq!(end.check(), end.check());
}

/// An end of a block of which only `present` of two ranks take part; rank 1's input is `value`.
fn failing_end(present: usize, timeout: u64, value: f32) -> Vec<Option<Failure>> {
    let gpus = Gpus::new(2);
    let exchange = Exchange::new(&gpus, 2, 32, timeout);
    let mut keep = Vec::new();
    let mut jobs = Vec::new();
    for rank in 0..present {
        let step = gpus.upload(rank, &[Step { count: 1, epoch: 9, ..Step::default() }]);
        let x = vec![half::bf16::from_f32(if rank == 1 { value } else { 1.0 }).to_bits(); 64];
        let buffers = [gpus.upload(rank, &x), gpus.upload(rank, &vec![half::bf16::ONE.to_bits(); 32 * 64])];
        let out = gpus.fresh(rank, 64);
        let input = Input { address: buffers[0].va(), pitch: 128, depth: 64 };
        let w = matrix(&buffers[1], 32, 64);
        let mailbox: Mailbox = exchange.mailbox(rank);
        jobs.push(vec![Job::of(&ProjectSum::plain(step.va(), input, w, GpuVa::NULL, out.va(), mailbox, 2))]);
        keep.push((step, buffers, out));
    }
    gpus.run_all(&jobs);
    exchange.failures(&gpus)
}

#[test]
fn a_peer_that_never_sends_ends_the_wait_with_its_name() {
    let failures = failing_end(1, 1000, 1.0);
    assert_eq!(failures[0], Some(Failure::PeerTimeout { rank: 0, peer: 1, collective: 2, epoch: 11 }));
}

#[test]
pub(crate) fn a_share_that_is_not_finite_is_blamed_on_its_rank_by_both() {
    for bad in [f32::NAN, f32::INFINITY] {
        let expected = |rank| Some(Failure::NotFinite { rank, peer: 1, collective: 2, token: 0 });
        assert_eq!(failing_end(2, PATIENT, bad), [expected(0), expected(1)]);
    }
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_start() {
    check_start(2, 256, 2, &Outputs { bf16: 64, f32: 16, gated: 32, gathered: 64 });
    check_start(1, 2056, 8, &Outputs { bf16: 20, f32: 16, gated: 16, gathered: 16 });
    check_start(1, 520, 0, &Outputs { bf16: 20, f32: 35, gated: 75, gathered: 37 });
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise_end() {
    End { ranks: 2, depth: 64, depth2: 256, rows: 64, normed: true, residual: true }.check();
}
