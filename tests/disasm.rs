//! `kimi-hcq mock disasm` from the outside, held against LLVM's text: that of its assembler tests, and LLVM itself where
//! it is installed.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[allow(dead_code)]
#[path = "../mock/isa/tests/oracle/llvm.rs"]
mod llvm;

/// A test of LLVM that gives two dwords and leaves out the literal its second operand asks for; its text shows what
/// followed. Alone it is no instruction.
const WITHOUT_LITERAL: &str = "0540a3d301ff091c";

fn disasm(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kimi-hcq"))
        .args(["mock", "disasm"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    // A command that refuses its arguments does not read its input.
    let _ = writer.join().unwrap();
    output
}

fn stdout(output: &Output) -> &str {
    assert!(output.status.success(), "{output:?}");
    std::str::from_utf8(&output.stdout).unwrap()
}

fn objects(output: &Output) -> Vec<serde_json::Value> {
    stdout(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn code_objects() -> Vec<PathBuf> {
    let mut folders = vec![root().join("kernels/code-objects")];
    folders.extend(std::fs::read_dir(root().join("tests/fixtures/cases")).unwrap().map(|entry| entry.unwrap().path()));
    let files = folders.iter().filter(|folder| folder.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hsaco"))
        .collect();
    files.sort();
    assert!(files.len() > 20, "{files:?}");
    files
}

fn words(hex: &str) -> Vec<u32> {
    let digits = hex.as_bytes().as_chunks::<8>().0;
    let word = |digits: &[u8; 8]| u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap().swap_bytes();
    digits.iter().map(word).collect()
}

#[test]
fn every_line_of_llvms_tests_has_llvms_text_and_size() {
    let vectors = std::fs::read_to_string(root().join("mock/isa/tests/data/gfx950-disasm.tsv")).unwrap();
    let (hex, texts): (Vec<&str>, Vec<&str>) = vectors.lines().map(|line| line.split_once('\t').unwrap()).unzip();
    let input = hex.join("\n");
    let plain = disasm(&["--lines", "-"], &input);
    let json = disasm(&["--lines", "-", "--json"], &input);
    let printed: Vec<&str> = stdout(&plain).lines().collect();
    let answers = objects(&json);
    assert_eq!((printed.len(), answers.len()), (hex.len(), hex.len()));
    for (i, &hex) in hex.iter().enumerate() {
        let (text, size) = if hex == WITHOUT_LITERAL { ("invalid", 0) } else { (texts[i], hex.len() / 2) };
        assert_eq!(printed[i], text, "{hex}");
        assert_eq!(answers[i], serde_json::json!({ "bytes": hex, "size": size, "text": text }));
    }
}

#[test]
fn a_line_that_holds_no_instruction_is_invalid_and_the_rest_goes_on() {
    let output = disasm(&["--lines", "-"], "ffffffff\n\nxyz\n0000\n000081bf\n000081bf0000 81bf\n");
    let texts: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(texts, ["invalid", "invalid", "invalid", "invalid", "s_endpgm", "s_endpgm"]);
}

#[test]
fn hex_on_the_command_line_is_disassembled_to_its_end() {
    let hex = "6a2082be 160088bf ffffffff 000081bf";
    let output = disasm(&["--hex", hex], "");
    assert_eq!(stdout(&output), "s_and_saveexec_b64 s[2:3], vcc\ns_cbranch_execz 22\ninvalid\ns_endpgm\n");
    let objects = objects(&disasm(&["--json", "--hex", hex], ""));
    assert_eq!(
        objects[1],
        serde_json::json!({ "address": 4, "bytes": "160088bf", "size": 4, "text": "s_cbranch_execz 22" })
    );
}

#[test]
fn a_code_object_is_laid_out_by_symbol_and_address() {
    let output = disasm(&[root().join("tests/fixtures/cases/vadd/kernel.hsaco").to_str().unwrap()], "");
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(lines[0], "0000000000001600 <vadd>:");
    let branch = lines.iter().find(|line| line.contains("s_cbranch_execz")).unwrap();
    assert!(branch.ends_with("// 00000000161C: BF880016 <vadd+0x78>"), "{branch}");
}

#[test]
fn every_instruction_of_our_code_objects_is_as_llvm_prints_it() {
    let llvm = llvm::Llvm::open();
    for file in code_objects() {
        let instructions = objects(&disasm(&["--json", file.to_str().unwrap()], ""));
        assert!(!instructions.is_empty(), "{}", file.display());
        let mut next = None;
        for instruction in &instructions {
            let (address, size) = (instruction["address"].as_u64().unwrap(), instruction["size"].as_u64().unwrap());
            assert_eq!(*next.get_or_insert(address), address, "{}: instructions are not in a row", file.display());
            next = Some(address + size);
            let text = instruction["text"].as_str().unwrap();
            assert_ne!(text, "invalid", "{} at {address:#x}", file.display());
            let Ok(llvm) = &llvm else { continue };
            let mut bytes = [0; 5];
            let given = words(instruction["bytes"].as_str().unwrap());
            bytes[..given.len()].copy_from_slice(&given);
            let theirs = llvm.disassemble(bytes).unwrap();
            assert_eq!((text, size), (&*theirs.text, theirs.length as u64), "{} at {address:#x}", file.display());
        }
    }
}

#[test]
fn what_is_no_code_object_is_refused_with_exit_code_2() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"\x7fELF and nothing more").unwrap();
    let path = file.path().to_str().unwrap();
    for arguments in
        [&[path][..], &["/nowhere/at.all"], &["--hex", "12"], &["--hex", "zz"], &[], &["--hex", "00", path]]
    {
        let output = disasm(arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
}
