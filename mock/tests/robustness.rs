//! Any bytes as code, packets or a code object: the machine never panics, and stops when told to. The fuzz targets in
//! `mock/fuzz` do the same for as long as one likes, guided by coverage.

#[path = "../fuzz/harness.rs"]
mod harness;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_can_be_executed(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        harness::code(&bytes);
    }

    #[test]
    fn any_bytes_can_be_packets(bytes in prop::collection::vec(any::<u8>(), 1..256)) {
        harness::packets(&bytes);
    }

    #[test]
    fn packets_that_point_into_memory_can_be_any(
        kind in 0_u8..3,
        words in prop::collection::vec(prop_oneof![any::<u32>(), (0_u32..0x1_0000).prop_map(|at| 0xaa00_0000 | at), 0_u32..64], 0..64),
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        harness::packets(&[&[kind][..], &bytes].concat());
    }

    #[test]
    fn any_bytes_can_be_a_code_object(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        harness::code_object(&bytes);
    }
}
