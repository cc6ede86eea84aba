//! What holds for any dwords at all.

use isa::{DecodeError, Operand, decode, disassemble};
use proptest::prelude::*;

/// Random dwords, the first often of a kind that goes on.
fn words() -> impl Strategy<Value = Vec<u32>> {
    let first =
        prop_oneof![any::<u32>(), any::<u32>().prop_map(|word| word & !0x1ff | 0xf9), (0xd000_0000u32..0xf000_0000)];
    (first, prop::collection::vec(any::<u32>(), 0..6)).prop_map(|(first, rest)| [vec![first], rest].concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoding_and_printing_never_panic(words in words()) {
        if let Ok(inst) = decode(&words) {
            prop_assert!((1..=5).contains(&inst.dwords) && usize::from(inst.dwords) <= words.len());
            prop_assert!(inst.to_string().starts_with(inst.op.name()));
            inst.reads().chain(inst.writes()).for_each(drop);
        }
    }

    #[test]
    fn an_instruction_is_decoded_from_its_own_dwords_only(words in words(), next in any::<u32>()) {
        if let Ok(inst) = decode(&words) {
            let length = usize::from(inst.dwords);
            // But for instructions that are whole and can also be the first part of a longer one.
            if length == words.len() && !matches!(inst.op, isa::Op::VMfmaLdScaleB32 | isa::Op::VNop) {
                let longer = [&words[..], &[next]].concat();
                prop_assert_eq!(decode(&longer), Ok(inst));
            }
        }
    }

    #[test]
    fn a_legal_instruction_names_only_registers_that_exist(words in words()) {
        let Ok(inst) = decode(&words) else { return Ok(()) };
        if inst.is_legal() {
            prop_assert!(!inst.to_string().contains("/*Invalid"));
            for operand in [inst.dst, inst.sdst].into_iter().chain(inst.src) {
                let (first, count, end) = match operand {
                    Operand::Sgpr { first, count } => (first, count, 102),
                    Operand::Ttmp { first, count } => (first, count, 16),
                    Operand::Vgpr { first, count } | Operand::Acc { first, count } => (first, count, 256),
                    _ => continue,
                };
                prop_assert!(u16::from(first) + u16::from(count) <= end, "{}", inst);
            }
        }
    }

    #[test]
    fn five_dwords_are_always_enough(words in words()) {
        if words.len() >= 5 {
            let truncated = matches!(decode(&words), Err(DecodeError::Truncated { .. }));
            prop_assert!(!truncated);
        }
    }

    #[test]
    fn a_section_is_covered_without_gaps(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut at = 0;
        for (offset, inst) in disassemble(&bytes) {
            prop_assert_eq!(offset, at);
            at += 4 * inst.map_or(1, |inst| usize::from(inst.dwords));
        }
        prop_assert_eq!(at, bytes.len() / 4 * 4);
    }
}
