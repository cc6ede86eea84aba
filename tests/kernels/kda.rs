//! Kimi Delta Attention.

use std::ops::Range;

use kernels::Step;
use kernels::kda::Kda;

use crate::support::{
    Bf16, Buffer, Gpus, Job, Random, Rows, assert_rows_close, rms_norm, sigmoid, silu, widen, widened,
};

const DIM: usize = 128;
const EPS: f64 = 1e-5;
/// Relative L2 of a row that is rounded to BF16: 2^-8 where one value dominates it.
const ROUNDED: f64 = 4e-3;

/// What the projections of one run give, `[tokens][heads][128]` each; b is `[tokens][heads]`.
struct Projections {
    q: Vec<Bf16>,
    k: Vec<Bf16>,
    v: Vec<Bf16>,
    gate: Vec<Bf16>,
    /// `[tokens][128]`.
    f_a: Vec<Bf16>,
    b: Vec<f32>,
}

impl Projections {
    fn random(random: &mut Random, tokens: usize, heads: usize) -> Self {
        let count = tokens * heads * DIM;
        Self {
            q: random.bf16s(count, 1.0),
            k: random.bf16s(count, 1.0),
            v: random.bf16s(count, 1.0),
            gate: random.bf16s(count, 1.0),
            f_a: random.bf16s(tokens * DIM, 1.0),
            b: random.normals(tokens * heads, 1.0),
        }
    }

    /// Those of some of the tokens.
    fn of(&self, tokens: Range<usize>) -> Self {
        fn rows<T: Copy>(values: &[T], width: usize, tokens: &Range<usize>) -> Vec<T> {
            values[tokens.start * width..tokens.end * width].to_vec()
        }
        let heads = self.b.len() * DIM / self.f_a.len();
        let row = |values: &[Bf16]| rows(values, heads * DIM, &tokens);
        Self {
            q: row(&self.q),
            k: row(&self.k),
            v: row(&self.v),
            gate: row(&self.gate),
            f_a: rows(&self.f_a, DIM, &tokens),
            b: rows(&self.b, heads, &tokens),
        }
    }
}

struct Weights {
    taps: [Vec<f32>; 3],
    /// `[heads][128][128]`.
    f_b: Vec<Bf16>,
    a_log: Vec<f32>,
    dt_bias: Vec<f32>,
    o_norm: Vec<f32>,
}

impl Weights {
    fn random(random: &mut Random, heads: usize) -> Self {
        Self {
            taps: [0; 3].map(|_| random.normals(heads * DIM * 4, 0.5)),
            f_b: random.bf16s(heads * DIM * DIM, 0.15),
            a_log: random.normals(heads, 0.4),
            dt_bias: random.normals(heads * DIM, 1.0),
            o_norm: random.normals(DIM, 1.0),
        }
    }
}

/// The recurrence in FP64, token by token.
struct Reference {
    heads: usize,
    /// All inputs of the convolutions so far, after three zeros a channel.
    inputs: [Vec<Vec<f64>>; 3],
    /// `[heads][key][value]`.
    state: Vec<f64>,
}

impl Reference {
    fn new(heads: usize) -> Self {
        let zeros = || vec![vec![0.0; heads * DIM]; 3];
        Self { heads, inputs: [zeros(), zeros(), zeros()], state: vec![0.0; heads * DIM * DIM] }
    }

    fn run(&mut self, w: &Weights, p: &Projections) -> Vec<f64> {
        let channels = self.heads * DIM;
        let mut out = Vec::new();
        for token in 0..p.b.len() / self.heads {
            let row = |values: &[Bf16]| widened(&values[token * channels..][..channels]);
            for (inputs, x) in self.inputs.iter_mut().zip([&p.q, &p.k, &p.v]) {
                inputs.push(row(x));
            }
            let [q, k, v]: [Vec<f64>; 3] = std::array::from_fn(|which| {
                let last = &self.inputs[which][self.inputs[which].len() - 4..];
                let tap = |c: usize, i: usize| f64::from(w.taps[which][c * 4 + i]);
                (0..channels).map(|c| silu((0..4).map(|i| last[i][c] * tap(c, i)).sum())).collect()
            });
            let gate = row(&p.gate);
            let f_a = Rows::of_bf16(DIM, &p.f_a[token * DIM..][..DIM]);
            let f = f_a.times(&Rows::of_bf16(DIM, &w.f_b)).values;
            for head in 0..self.heads {
                let part = |x: &[f64]| x[head * DIM..][..DIM].to_vec();
                let l2 = |x: Vec<f64>, scale: f64| {
                    let norm = (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
                    x.into_iter().map(|x| x / norm * scale).collect::<Vec<_>>()
                };
                let (q, k, v) = (l2(part(&q), (DIM as f64).powf(-0.5)), l2(part(&k), 1.0), part(&v));
                let rate = f64::from(w.a_log[head]).exp();
                let state = &mut self.state[head * DIM * DIM..][..DIM * DIM];
                for i in 0..DIM {
                    let channel = head * DIM + i;
                    let s = f[channel] + f64::from(w.dt_bias[channel]);
                    let decay = (-5.0 * sigmoid(rate * s)).exp();
                    state[i * DIM..][..DIM].iter_mut().for_each(|s| *s *= decay);
                }
                let beta = sigmoid(f64::from(p.b[token * self.heads + head]));
                let column =
                    |state: &[f64], x: &[f64], j: usize| (0..DIM).map(|i| x[i] * state[i * DIM + j]).sum::<f64>();
                for j in 0..DIM {
                    let error = beta * (v[j] - column(state, &k, j));
                    for i in 0..DIM {
                        state[i * DIM + j] += k[i] * error;
                    }
                }
                let o: Vec<f64> = (0..DIM).map(|j| column(state, &q, j)).collect();
                let weight: Vec<f64> = w.o_norm.iter().copied().map(f64::from).collect();
                let normed = rms_norm(&o, &weight, EPS);
                out.extend(normed.iter().zip(&gate[head * DIM..]).map(|(o, g)| o * sigmoid(*g)));
            }
        }
        out
    }
}

/// A layer on the GPU, with everything that stays from run to run.
struct Layer<'a> {
    gpus: &'a Gpus,
    heads: usize,
    f_b: Buffer,
    weights: [Buffer; 6],
    histories: [Buffer; 3],
    state: Buffer,
}

impl<'a> Layer<'a> {
    fn new(gpus: &'a Gpus, heads: usize, w: &Weights) -> Self {
        let [q, k, v] = &w.taps;
        Self {
            gpus,
            heads,
            f_b: gpus.upload(0, &w.f_b),
            weights: [q, k, v, &w.a_log, &w.dt_bias, &w.o_norm].map(|values| gpus.upload(0, values)),
            histories: [0; 3].map(|_| gpus.zeroed(0, Kda::history_bytes(heads as u32) as usize)),
            state: gpus.zeroed(0, Kda::state_bytes(heads as u32) as usize),
        }
    }

    fn run(&self, p: &Projections, capacity: usize) -> Vec<Bf16> {
        let (gpus, row) = (self.gpus, self.heads * DIM);
        let tokens = p.b.len() / self.heads;
        let [q, k, v, gate] = [&p.q, &p.k, &p.v, &p.gate].map(|values| gpus.upload(0, values));
        let (f_a, b) = (gpus.upload(0, &p.f_a), gpus.upload(0, &p.b));
        let out = gpus.fresh(0, tokens * row * 2);
        let step = gpus.upload(0, &[Step { count: tokens as u32, ..Step::default() }]);
        let [q_taps, k_taps, v_taps, a_log, dt_bias, o_norm] = [0, 1, 2, 3, 4, 5].map(|i: usize| self.weights[i].va());
        let [q_history, k_history, v_history] = [0, 1, 2].map(|i: usize| self.histories[i].va());
        let launch = Kda {
            step: step.va(),
            q: q.va(),
            k: k.va(),
            v: v.va(),
            gate: gate.va(),
            f_a: f_a.va(),
            b: b.va(),
            f_b: self.f_b.va(),
            q_taps,
            k_taps,
            v_taps,
            a_log,
            dt_bias,
            o_norm,
            q_history,
            k_history,
            v_history,
            state: self.state.va(),
            out: out.va(),
            heads: self.heads as u32,
            pitch: (row * 2) as u32,
            f_a_pitch: (DIM * 2) as u32,
            b_pitch: (self.heads * 4) as u32,
            out_pitch: (row * 2) as u32,
            gate_lower_bound: -5.0,
            eps: EPS as f32,
            tokens: capacity as u32,
        };
        gpus.run(0, &[Job::of(&launch)]);
        gpus.read(&out)
    }
}

/// Runs of these tokens each, one after the other, compared with the recurrence. `capacity` says for how many tokens the
/// launch of a run is sized.
fn check_runs(gpus: &Gpus, what: &str, w: &Weights, runs: &[Projections], capacity: impl Fn(usize) -> usize) {
    let heads = w.a_log.len();
    let (layer, mut reference) = (Layer::new(gpus, heads, w), Reference::new(heads));
    for (index, p) in runs.iter().enumerate() {
        let found = layer.run(p, capacity(p.b.len() / heads));
        let expected = Rows::new(DIM, reference.run(w, p));
        assert_rows_close(&format!("{what}, run {index}"), &Rows::of_bf16(DIM, &found), &expected, ROUNDED);
    }
    let state = Rows::of_f32(DIM * DIM, &gpus.read::<f32>(&layer.state));
    assert_rows_close(&format!("{what}, state"), &state, &Rows::new(DIM * DIM, reference.state.clone()), 1e-5);
    for (history, inputs) in layer.histories.iter().zip(&reference.inputs) {
        let found: Vec<f64> = gpus.read::<Bf16>(history).into_iter().map(widen).collect();
        assert_eq!(found, inputs[inputs.len() - 3..].concat(), "{what}, history");
    }
}

/// Runs of so many tokens each, one after the other.
fn check(gpus: &Gpus, heads: usize, runs: &[usize]) {
    let mut random = Random::new((heads * 100 + runs.len()) as u64);
    let w = Weights::random(&mut random, heads);
    let projections: Vec<_> = runs.iter().map(|&tokens| Projections::random(&mut random, tokens, heads)).collect();
    check_runs(gpus, &format!("KDA, {heads} heads, {runs:?} tokens"), &w, &projections, usize::next_power_of_two);
}

#[test]
fn all_head_counts_of_k3_nano_are_right() {
    let gpus = Gpus::new(1);
    for heads in [1, 2, 4, 8] {
        check(&gpus, heads, &[20, 1]);
    }
}

#[test]
pub(crate) fn state_and_history_carry_over_runs_of_any_length() {
    let gpus = Gpus::new(1);
    check(&gpus, 1, &[1, 1, 1, 1, 2, 3, 16, 17, 1]);
    check(&gpus, 1, &[2, 1, 5]);
}

#[test]
fn a_launch_for_128_tokens_takes_any_number_of_them() {
    let (gpus, mut random) = (Gpus::new(1), Random::new(7));
    let w = Weights::random(&mut random, 1);
    for tokens in [1, 2, 15, 16, 17, 63, 64, 65, 127, 128] {
        let p = Projections::random(&mut random, tokens, 1);
        check_runs(&gpus, &format!("KDA, {tokens} tokens of 128"), &w, &[p], |_| 128);
    }
}

#[test]
fn tokens_may_be_divided_into_runs_anyhow() {
    let (gpus, mut random) = (Gpus::new(1), Random::new(8));
    let w = Weights::random(&mut random, 1);
    let p = Projections::random(&mut random, 100, 1);
    for ends in [vec![100], vec![16, 32, 100], vec![1, 2, 3, 20, 99, 100], vec![15, 46, 62, 79, 100]] {
        let starts = [0].iter().chain(&ends);
        let runs: Vec<_> = starts.zip(&ends).map(|(&start, &end)| p.of(start..end)).collect();
        check_runs(&gpus, &format!("KDA, runs up to {ends:?}"), &w, &runs, usize::next_power_of_two);
    }
}

/// The least and the greatest decay a gate can give, for all channels and for every second.
#[test]
fn extreme_decays_over_hundreds_of_tokens_stay_accurate() {
    let (gpus, mut random) = (Gpus::new(1), Random::new(9));
    let p = [200, 100].map(|tokens| Projections::random(&mut random, tokens, 1));
    for bias in [[40.0, 40.0], [-40.0, -40.0], [40.0, -40.0], [0.0, -40.0]] {
        let mut w = Weights::random(&mut random, 1);
        w.dt_bias.iter_mut().enumerate().for_each(|(channel, value)| *value += bias[channel % 2]);
        check_runs(&gpus, &format!("KDA, bias {bias:?}"), &w, &p, usize::next_power_of_two);
    }
}

/// With equal keys, full beta and no decay the couplings are all 1: the worst for an inverse by powers, whose terms grow
/// to binomials.
#[test]
fn equal_keys_with_full_beta_stay_accurate() {
    let (gpus, mut random) = (Gpus::new(1), Random::new(10));
    let mut w = Weights::random(&mut random, 1);
    w.dt_bias.fill(-60.0);
    let mut p = Projections::random(&mut random, 150, 1);
    p.k = p.k[..DIM].repeat(150);
    p.b.fill(30.0);
    check_runs(&gpus, "KDA, equal keys", &w, &[p], usize::next_power_of_two);
}

#[test]
fn the_heads_of_a_gpu_in_the_official_model_are_right() {
    check(&Gpus::new(1), 12, &[5, 1]);
}

/// Small launches that run through the whole kernel.
pub(crate) fn exercise() {
    check(&Gpus::new(1), 1, &[20, 1]);
}
