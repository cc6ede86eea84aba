//! The encodings of LLVM's own assembler tests, with the text LLVM 22 gives them (`data/README.md`).

#![allow(clippy::unwrap_used)]

use isa::{DecodeError, decode};

const VECTORS: &str = include_str!("data/gfx950-disasm.tsv");

/// A test of LLVM that gives two dwords and leaves out the literal its second operand asks for. The text shows what followed it.
const WITHOUT_LITERAL: &str = "0540a3d301ff091c";

fn vectors() -> impl Iterator<Item = (&'static str, Vec<u32>, &'static str)> {
    VECTORS.lines().map(|line| {
        let (hex, text) = line.split_once('\t').unwrap();
        let dwords = hex.as_bytes().as_chunks::<8>().0;
        let dword = |digits: &[u8; 8]| u32::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap().swap_bytes();
        (hex, dwords.iter().map(dword).collect(), text)
    })
}

#[test]
fn every_encoding_of_llvms_tests_has_llvms_text_and_length() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (hex, words, text) in vectors().filter(|&(hex, ..)| hex != WITHOUT_LITERAL) {
        count += 1;
        match decode(&words) {
            Ok(inst) if usize::from(inst.dwords) == words.len() && inst.to_string() == text => {}
            other => wrong.push(format!("{hex}: {text}, not {:?}", other.map(|inst| inst.to_string()))),
        }
    }
    assert_eq!(count, 39_228);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
}

#[test]
fn what_llvms_assembler_accepts_is_legal() {
    for (hex, words, text) in vectors().filter(|&(hex, ..)| hex != WITHOUT_LITERAL) {
        assert!(decode(&words).unwrap().is_legal(), "{hex}: {text}");
    }
}

#[test]
fn an_instruction_cut_short_is_reported_as_truncated() {
    for (hex, words, _) in vectors().filter(|(_, words, _)| words.len() > 1) {
        let short = &words[..words.len() - 1];
        match decode(short) {
            Err(DecodeError::Truncated { word, available }) => assert_eq!((word, available), (words[0], short.len())),
            // The first half of a scaled matrix instruction is one too, and a v_nop that announces SDWA or DPP can do without.
            Ok(inst) => assert!(matches!(inst.op, isa::Op::VMfmaLdScaleB32 | isa::Op::VNop), "{hex}"),
            other => panic!("{hex}: {other:?}"),
        }
    }
}

#[test]
fn bytes_after_an_instruction_do_not_change_it() {
    for (hex, mut words, _) in vectors().filter(|&(hex, ..)| hex != WITHOUT_LITERAL) {
        let alone = decode(&words);
        words.extend([0xbf80_0000; 4]);
        assert_eq!(decode(&words), alone, "{hex}");
    }
}
