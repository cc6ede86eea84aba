//! Matrix instructions against products computed element by element: each element is looked up where AMD's matrix
//! calculator says it is, and sums are exact integers.

mod dense;
mod model;
mod scaled;
mod sparse;

use crate::random::Random;
use crate::testbench::Bench;
use crate::wave::LANES;

/// Registers that the tests put operands in.
const A: usize = 4;
const B: usize = 16;
const C: usize = 64;
const D: usize = 128;
const INDEX: usize = 30;

/// The shape in an instruction's name.
#[derive(Clone, Copy)]
struct Dims {
    m: usize,
    k: usize,
    blocks: usize,
}

impl Dims {
    fn of(name: &str) -> Self {
        let shape = name.split('_').find(|part| part.matches('x').count() == 2).unwrap();
        let numbers: Vec<usize> = shape.split('x').map(|number| number.parse().unwrap()).collect();
        let blocks = name.split('_').find_map(|part| part.strip_suffix('b')?.parse().ok()).unwrap_or(1);
        assert_eq!(numbers[0], numbers[1]);
        Self { m: numbers[0], k: numbers[2], blocks }
    }

    /// Lane and number within the lane of the element with row `i` (of B: column), `k` and block `b`.
    fn element(self, i: usize, k: usize, b: usize, bits: usize) -> (usize, usize) {
        let lanes_apart = LANES / (self.m * self.blocks);
        let run = self.k / lanes_apart;
        if run * bits == 256 {
            let half = run / 2;
            let (high, k) = (k / (self.k / 2), k % (self.k / 2));
            return (i + self.m * (b + self.blocks * (k / half)), high * half + k % half);
        }
        (i + self.m * (b + self.blocks * (k / run)), k % run)
    }

    /// Register and lane of a 32-bit result.
    fn result(self, i: usize, j: usize, b: usize) -> (usize, usize) {
        let rows = LANES / self.m;
        match (self.m, self.blocks) {
            (4, 16) => (i, j + 4 * b),
            _ => (b * self.m * self.m / LANES + i / (4 * rows) * 4 + i % 4, j + self.m * (i / 4 % rows)),
        }
    }
}

/// The code of an element, `bits` wide.
fn code(bench: &mut Bench, first: usize, (lane, item): (usize, usize), bits: usize) -> u32 {
    (0..bits).fold(0, |code, i| {
        let bit = item * bits + i;
        code | (bench.v(first + bit / 32)[lane] >> (bit % 32) & 1) << i
    })
}

fn fill(bench: &mut Bench, registers: std::ops::Range<usize>, mut value: impl FnMut() -> u32) {
    for register in registers {
        *bench.v(register) = std::array::from_fn(|_| value());
    }
}

/// `v[first:last]`, or `v7` for one register.
fn range(kind: char, first: usize, count: usize) -> String {
    if count == 1 { format!("{kind}{first}") } else { format!("{kind}[{first}:{}]", first + count - 1) }
}

/// A random number whose exponent keeps exact sums within 127 bits.
fn moderate(random: &mut Random) -> f32 {
    let exponent = 127 - 7 + random.below(15);
    f32::from_bits(random.next() & 0x807f_ffff | exponent << 23)
}

/// Finite numbers in units of 2^-60, for exact sums.
fn units(value: f64) -> i128 {
    let scaled = value * 2f64.powi(60);
    assert_eq!(scaled, scaled.trunc(), "{value} has bits below 2^-60");
    scaled as i128
}

/// The single nearest to `sum` units.
fn nearest(sum: i128) -> f32 {
    // Conversion from integers rounds once, to nearest even; a power of two changes no bit.
    sum as f32 * 2f32.powi(-60)
}
