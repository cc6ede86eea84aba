//! Projections.

use kernels::gemm::{Gemm, Input, Matrix, Output, Precision, Segment, SituBetas};
use kernels::{GpuVa, Step};

use crate::support::{Bf16, Buffer, Gpus, Job, Random, Rows, assert_rows_close, bf16s, situ, widen};

const BETAS: SituBetas = SituBetas { gate: 4.0, linear: 25.0 };
/// One rounding to BF16 is off by at most 2^-8, half of that in the mean.
const BF16: f64 = 3e-3;
const F32: f64 = 1e-6;

/// A matrix on the GPU and on the host.
struct Weights {
    buffer: Buffer,
    pitch: usize,
    values: Rows,
}

/// Rows of BF16 values, `pitch` bytes apart, with nothing behind the last value.
fn weights(gpus: &Gpus, random: &mut Random, rows: usize, depth: usize, pitch: usize) -> Weights {
    let values = random.bf16s(rows * depth, 0.1);
    let mut bytes: Vec<u8> = Vec::new();
    for row in values.chunks(depth) {
        bytes.extend_from_slice(bytemuck::cast_slice(row));
        bytes.resize(bytes.len().next_multiple_of(pitch), 0);
    }
    Weights { buffer: gpus.upload(0, &bytes), pitch, values: Rows::of_bf16(depth, &values) }
}

impl Weights {
    fn matrix(&self) -> Matrix {
        let rows = self.values.values.len() / self.values.width;
        Matrix { address: self.buffer.va(), rows: rows as u32, pitch: self.pitch as u32 }
    }

    fn input(&self) -> Input {
        Input { address: self.buffer.va(), pitch: self.pitch as u32, depth: self.values.width as u32 }
    }
}

/// An output buffer for `tokens` rows.
struct Results {
    buffer: Buffer,
    rows: usize,
    pitch: usize,
    precision: Precision,
}

fn results(gpus: &Gpus, tokens: usize, rows: usize, precision: Precision) -> Results {
    let size = if precision == Precision::F32 { 4 } else { 2 };
    let pitch = (rows * size).next_multiple_of(16);
    Results { buffer: gpus.fresh(0, tokens * pitch), rows, pitch, precision }
}

impl Results {
    fn output(&self) -> Output {
        Output { address: self.buffer.va(), pitch: self.pitch as u32, precision: self.precision }
    }

    /// The first `tokens` rows.
    fn read(&self, gpus: &Gpus, tokens: usize) -> Rows {
        let mut values = Vec::new();
        for token in 0..tokens {
            match self.precision {
                Precision::F32 => {
                    let row: Vec<f32> = gpus.read_at(&self.buffer, token * self.pitch, self.rows);
                    values.extend(row.into_iter().map(f64::from));
                }
                Precision::Bf16 => {
                    let row: Vec<Bf16> = gpus.read_at(&self.buffer, token * self.pitch, self.rows);
                    values.extend(row.into_iter().map(widen));
                }
            }
        }
        Rows::new(self.rows, values)
    }
}

fn step(gpus: &Gpus, count: usize) -> Buffer {
    gpus.upload(0, &[Step { count: count as u32, ..Step::default() }])
}

/// `y = x w'` for several matrices in one launch.
fn check_plain(gpus: &Gpus, what: &str, tokens: usize, capacity: usize, depth: usize, outputs: &[(usize, Precision)]) {
    let mut random = Random::new((tokens * depth) as u64);
    let x = weights(gpus, &mut random, tokens, depth, depth * 2);
    let sets: Vec<_> = outputs
        .iter()
        .map(|&(rows, precision)| {
            (weights(gpus, &mut random, rows, depth, depth * 2), results(gpus, tokens, rows, precision))
        })
        .collect();
    let segments: Vec<_> = sets.iter().map(|(w, y)| Segment::plain(w.matrix(), y.output())).collect();
    let step = step(gpus, tokens);
    gpus.run(0, &[Job::of(&Gemm::new(step.va(), x.input(), &segments, BETAS, capacity as u32))]);
    for (w, y) in &sets {
        let (found, expected) = (y.read(gpus, tokens), x.values.times(&w.values));
        match y.precision {
            Precision::Bf16 => assert_rows_close(what, &found, &expected, BF16),
            // All tokens as one row: a row of one value may happen to be next to nothing.
            Precision::F32 => assert_rows_close(what, &found.joined(), &expected.joined(), F32),
        }
    }
}

#[test]
fn kda_projections_share_one_launch_at_every_tensor_parallel_degree_of_k3_nano() {
    let gpus = Gpus::new(1);
    for ranks in [1, 2, 4, 8] {
        let heads = 8 / ranks;
        let qkvg = [(heads * 128, Precision::Bf16); 4];
        let outputs = [&qkvg[..], &[(128, Precision::Bf16), (heads, Precision::F32)]].concat();
        for (tokens, capacity) in [(1, 1), (37, 128)] {
            check_plain(
                &gpus,
                &format!("KDA projections, TP {ranks}, {tokens} tokens"),
                tokens,
                capacity,
                256,
                &outputs,
            );
        }
    }
}

#[test]
fn any_number_of_tokens_up_to_the_capacity_is_right() {
    let gpus = Gpus::new(1);
    for (tokens, capacity) in [(1, 16), (15, 16), (16, 16), (17, 128), (64, 128), (128, 128), (129, 512), (300, 512)] {
        check_plain(&gpus, &format!("{tokens} tokens of {capacity}"), tokens, capacity, 64, &[(48, Precision::Bf16)]);
    }
}

#[test]
fn an_inner_axis_that_does_not_fill_the_matrix_instruction_is_filled_with_zeros() {
    let gpus = Gpus::new(1);
    for depth in [8, 16, 32, 48, 64, 72, 128, 448] {
        for tokens in [1, 20] {
            check_plain(&gpus, &format!("depth {depth}"), tokens, tokens, depth, &[(32, Precision::F32)]);
        }
    }
}

#[test]
fn rows_that_start_at_multiples_of_four_bytes_only_are_read_right() {
    let gpus = Gpus::new(1);
    for depth in [5, 10, 18, 66, 130] {
        for tokens in [1, 19] {
            check_unaligned(&gpus, depth, tokens, tokens);
        }
    }
}

/// As few bytes a row as there can be.
fn check_unaligned(gpus: &Gpus, depth: usize, tokens: usize, capacity: usize) {
    let mut random = Random::new(depth as u64);
    let pitch = (depth * 2).next_multiple_of(4);
    let x = weights(gpus, &mut random, tokens, depth, pitch);
    let w = weights(gpus, &mut random, 24, depth, pitch);
    let y = results(gpus, tokens, 24, Precision::F32);
    let step = step(gpus, tokens);
    let outputs = [Segment::plain(w.matrix(), y.output())];
    gpus.run(0, &[Job::of(&Gemm::new(step.va(), x.input(), &outputs, BETAS, capacity as u32))]);
    assert_rows_close(&format!("pitch {pitch}"), &y.read(gpus, tokens), &x.values.times(&w.values), F32);
}

fn check_gated(gpus: &Gpus, depth: usize, rows: usize, tokens: usize, capacity: u32) {
    let mut random = Random::new((depth + rows + tokens) as u64);
    let x = weights(gpus, &mut random, tokens, depth, depth * 2);
    let [gate, up] = [0; 2].map(|_| weights(gpus, &mut random, rows, depth, depth * 2));
    let y = results(gpus, tokens, rows, Precision::Bf16);
    let step = step(gpus, tokens);
    let outputs = [Segment::gated(x.input(), gate.matrix(), up.matrix(), y.output())];
    gpus.run(0, &[Job::of(&Gemm::new(step.va(), x.input(), &outputs, BETAS, capacity))]);
    let (gate, up) = (x.values.times(&gate.values), x.values.times(&up.values));
    let expected = gate.values.iter().zip(&up.values).map(|(&gate, &up)| situ(gate, up)).collect();
    let what = format!("SiTU, depth {depth}, {tokens} tokens");
    assert_rows_close(&what, &y.read(gpus, tokens), &Rows::new(rows, expected), BF16);
}

#[test]
fn a_gated_output_is_situ_of_its_two_products() {
    let gpus = Gpus::new(1);
    for (tokens, capacity) in [(1, 1), (33, 128), (100, 128)] {
        for ranks in [1, 2, 4, 8] {
            check_gated(&gpus, 256, 512 / ranks, tokens, capacity);
        }
        check_gated(&gpus, 1024, 48, tokens, capacity);
    }
}

/// The sum of two products; the first input is columns of wider rows, as a rank's part of the normed latent is.
fn check_sum(gpus: &Gpus, depths: [usize; 2], first: usize, rows: usize, tokens: usize, capacity: u32) {
    let mut random = Random::new((depths[0] + depths[1] + tokens) as u64);
    let width = first + depths[0];
    let whole = weights(gpus, &mut random, tokens, width, width * 2);
    let address = GpuVa(whole.buffer.va().0 + first as u64 * 2);
    let x = Input { address, pitch: (width * 2) as u32, depth: depths[0] as u32 };
    let columns = whole.values.rows().flat_map(|row| row[first..].to_vec()).collect();
    let x2 = weights(gpus, &mut random, tokens, depths[1], depths[1] * 2);
    let [w, w2] = depths.map(|depth| weights(gpus, &mut random, rows, depth, depth * 2));
    let y = results(gpus, tokens, rows, Precision::F32);
    let step = step(gpus, tokens);
    let outputs = [Segment::sum(w.matrix(), x2.input(), w2.matrix(), y.output())];
    gpus.run(0, &[Job::of(&Gemm::new(step.va(), x, &outputs, BETAS, capacity))]);
    let (one, two) = (Rows::new(depths[0], columns).times(&w.values), x2.values.times(&w2.values));
    let expected = one.values.iter().zip(&two.values).map(|(one, two)| one + two).collect();
    let what = format!("sum of depths {depths:?}, {tokens} tokens");
    assert_rows_close(&what, &y.read(gpus, tokens), &Rows::new(rows, expected), F32);
}

#[test]
fn latent_up_and_shared_down_are_added_in_one_launch() {
    let gpus = Gpus::new(1);
    for (tokens, capacity) in [(1, 1), (33, 128), (128, 128)] {
        // K3-nano at every tensor-parallel degree, the last rank's part; then the official widths of a GPU.
        for ranks in [1, 2, 4, 8] {
            check_sum(&gpus, [128 / ranks, 512 / ranks], 128 - 128 / ranks, 256, tokens, capacity);
        }
        check_sum(&gpus, [448, 768], 3136, 32, tokens, capacity);
    }
}

#[test]
fn a_projection_of_official_width_is_right() {
    let gpus = Gpus::new(1);
    check_plain(&gpus, "q_proj of a GPU", 1, 1, 7168, &[(1536, Precision::Bf16), (12, Precision::F32)]);
    check_plain(&gpus, "o_proj of a GPU", 1, 1, 1536, &[(7168, Precision::F32)]);
    check_plain(&gpus, "f_a_proj, 20 tokens", 20, 128, 7168, &[(128, Precision::Bf16)]);
}

#[test]
fn a_token_beyond_the_count_is_neither_read_nor_written() {
    let gpus = Gpus::new(1);
    let mut random = Random::new(7);
    let x = weights(&gpus, &mut random, 3, 64, 128);
    let w = weights(&gpus, &mut random, 16, 64, 128);
    let before = bf16s(&random.normals(128 * 16, 1.0));
    let y = gpus.upload(0, &before);
    let step = step(&gpus, 3);
    let output = Output { address: y.va(), pitch: 32, precision: Precision::Bf16 };
    gpus.run(0, &[Job::of(&Gemm::new(step.va(), x.input(), &[Segment::plain(w.matrix(), output)], BETAS, 128))]);
    assert_eq!(gpus.read_at::<Bf16>(&y, 3 * 32, 125 * 16), before[3 * 16..]);
}

/// Small launches that run through the whole of both kernels.
pub(crate) fn exercise() {
    let gpus = Gpus::new(1);
    let outputs = [(48, Precision::Bf16), (18, Precision::F32), (19, Precision::Bf16)];
    for (tokens, capacity) in [(3, 16), (20, 128), (37, 128), (100, 128)] {
        // Sums of a wave and of a workgroup, with and without a rest.
        for depth in [256, 264, 1024, 1096] {
            check_plain(&gpus, "plain", tokens, capacity, depth, &outputs);
            check_gated(&gpus, depth, 83, tokens, capacity as u32);
            check_sum(&gpus, [64, depth], 64, 18, tokens, capacity as u32);
        }
        for depth in [67, 642] {
            check_unaligned(&gpus, depth, tokens, capacity);
        }
    }
}
