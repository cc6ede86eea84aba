//! Whatever the code: a wave ends, faults or is stopped by its budget, and every host level does the same.

use proptest::prelude::*;

use super::{HostLevel, Stop};
use crate::random::Random;
use crate::testbench::{BUFFER, Bench};
use crate::wave::{Mode, sreg};

/// A bench whose registers hold addresses in the buffer, small numbers and random bits, so that memory instructions of random
/// code often get somewhere.
fn bench(seed: u64) -> Bench {
    let mut bench = Bench::new();
    let mut random = Random::new(seed);
    let mut value = |odd: bool| match random.below(4) {
        // The upper half of an address.
        0 | 1 if odd => 0,
        0 | 1 => BUFFER as u32 + random.below(1 << 16),
        2 => random.below(1 << 12),
        _ => random.next(),
    };
    for n in 0..sreg::M0 {
        *bench.s(n) = value(n % 2 == 1);
    }
    *bench.s(sreg::M0) = value(true);
    for (n, register) in bench.wave.vgprs.iter_mut().enumerate() {
        register.0 = std::array::from_fn(|_| value(n % 2 == 1));
    }
    bench.buffer.iter_mut().for_each(|word| *word = value(true));
    bench.set_s64(sreg::EXEC_LO, u64::from(value(true)) << 32 | u64::from(value(false)));
    bench.wave.mode = Mode(value(true) & 0x3ff | (0x3f0 * (value(true) & 1)));
    bench.wave.scratch_base = BUFFER + 0x4000;
    bench
}

/// Dwords that are often instructions, the first of each pair within `first`.
fn code(first: std::ops::Range<u32>) -> impl Strategy<Value = Vec<u32>> {
    // SDWA and DPP are chosen by the first operand.
    let extended = first.clone().prop_map(|word| word & !0x1ff | 0xf9 | word >> 7 & 1);
    let pair = (prop_oneof![3 => first, 1 => extended], any::<u32>());
    prop::collection::vec(pair, 1..8).prop_map(|pairs| pairs.into_iter().flat_map(|(a, b)| [a, b]).collect())
}

/// How the code stopped, and what it left.
fn outcome(code: &[u32], level: HostLevel, seed: u64) -> (Stop, crate::testbench::State) {
    let mut bench = bench(seed);
    let stop = bench.run_bounded(code, level, &mut [], 200);
    (stop, bench.snapshot())
}

/// Runs `code` on every host level from the same start.
fn check(mut code: Vec<u32>, seed: u64) -> Result<(), TestCaseError> {
    code.push(0xbf81_0000);
    let (stop, state) = outcome(&code, HostLevel::Baseline, seed);
    for level in HostLevel::available().into_iter().skip(1) {
        let (other, other_state) = outcome(&code, level, seed);
        prop_assert_eq!(&stop, &other, "{:?}", level);
        prop_assert!(state == other_state, "{:?} leaves other values", level);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_words_end_or_fault_in_the_same_way_on_every_host_level(code in code(0..u32::MAX), seed in any::<u64>()) {
        check(code, seed)?;
    }

    #[test]
    fn so_does_random_vector_code(code in code(0..0x8000_0000), seed in any::<u64>()) {
        check(code, seed)?;
    }

    #[test]
    fn so_does_random_scalar_code(code in code(0x8000_0000..0xd000_0000), seed in any::<u64>()) {
        check(code, seed)?;
    }

    #[test]
    fn so_does_random_vector_code_of_64_bits(code in code(0xd000_0000..0xd400_0000), seed in any::<u64>()) {
        check(code, seed)?;
    }

    #[test]
    fn so_does_random_lds_and_flat_code(code in code(0xd800_0000..0xe000_0000), seed in any::<u64>()) {
        check(code, seed)?;
    }

    #[test]
    fn so_does_random_buffer_code(code in code(0xe000_0000..0xec00_0000), seed in any::<u64>()) {
        check(code, seed)?;
    }
}
