//! `docs/isa.md` is up to date: every instruction with its state and the test that judges it.
//!
//! To rewrite it:
//!
//! ```sh
//! rm -f /tmp/record && ISA_RECORD=/tmp/record cargo test --release -p mock --lib
//! UPDATE=/tmp/record cargo test --release -p mock --test isa_table
//! ```

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use isa::{Class, Op};
use mock::{Fidelity, fidelity};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The test that judges each operation, by the operation's name.
type Judges = BTreeMap<String, String>;

/// Of the tests that executed an operation, the one that executes most: those that go through tables of instructions and
/// compare the result of each, rather than those that need the instruction for something else.
fn judges_of(record: &str) -> Judges {
    // These compare runs with each other, or look at something else than results.
    let is_no_judge =
        |test: &str| ["exec::robustness", "observe::", "testbench::"].iter().any(|other| test.starts_with(other));
    let mut by_test: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for (op, test) in record.lines().filter_map(|line| line.split_once(' ')).filter(|(_, test)| !is_no_judge(test)) {
        by_test.entry(test).or_default().insert(op);
    }
    let mut tests: Vec<_> = by_test.into_iter().collect();
    tests.sort_by_key(|(test, ops)| (ops.len(), *test));
    let mut judges = Judges::new();
    for (test, ops) in tests {
        judges.extend(ops.into_iter().map(|op| (op.to_owned(), test.to_owned())));
    }
    judges
}

/// The judges that the table on disk names.
fn judges_in(table: &str) -> Judges {
    let names: HashMap<&str, Op> = Op::ALL.iter().map(|&op| (op.name(), op)).collect();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let op = names.get(cells.next()?.trim_end_matches('`'))?;
        let judge = cells.nth(2)?.strip_prefix('`')?.split('`').next()?;
        Some((format!("{op:?}"), judge.to_owned()))
    };
    table.lines().filter_map(row).collect()
}

fn group(class: Class) -> &'static str {
    match class {
        Class::Salu => "Scalar ALU",
        Class::Branch | Class::Control | Class::Message | Class::Debug => "Program control",
        Class::Valu => "Vector ALU",
        Class::Transcendental => "Transcendental functions",
        Class::Mfma(_) => "Matrix multiply-add",
        Class::Smfmac(_) => "Sparse matrix multiply-add",
        Class::Smem => "Scalar memory",
        Class::Lds => "LDS",
        Class::Gws => "Global wave sync",
        Class::Flat => "Flat memory",
        Class::Global => "Global memory",
        Class::Scratch => "Scratch memory",
        Class::Mubuf => "Buffers",
        Class::Mtbuf => "Typed buffers",
    }
}

const HEAD: &str = "\
# The instruction set, and how sure each result is

Made by `mock/tests/isa_table.rs` from the tables of `mock/isa`, the classification in `mock/src/exec/fidelity.rs` and a record of
what the unit tests execute; a test fails when it is out of date.

- *exact*: the result is the bits that the CDNA4 ISA defines, edge cases included.
- *within bound*: the ISA gives an error bound, which the result keeps; the hardware's bits may differ.
- *modelled*: the ISA leaves something open; the note says what the emulator does.
- *left out*: a wave that executes it ends with a fault that names it.

The judge is the unit test of `mock` that compares the instruction's results with a statement of them made another way. Encodings
are judged by LLVM's disassembler, over all of them (`mock/isa/tests`).

Not in the table, because gfx950 does not have them: image (MIMG), export (EXP) and interpolation (VINTRP) instructions, which are
for graphics, and GDS. Trap handlers and debuggers are not emulated: `s_trap` stops the queue as it does when no handler is
installed, and the instructions that only a handler uses are left out.
";

fn table(judges: &Judges) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups: Vec<(&str, Vec<Op>)> = Vec::new();
    for &op in Op::ALL {
        *counts.entry(fidelity(op).name()).or_default() += 1;
        let name = group(op.info().class);
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, ops)) => ops.push(op),
            None => groups.push((name, vec![op])),
        }
    }
    let summary: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    let mut text = format!("{HEAD}\n{} instructions: {}.\n", Op::ALL.len(), summary.join(", "));
    for (group, ops) in groups {
        write!(
            text,
            "\n## {group}\n\n| instruction | encodings | state | judge | note |\n| --- | --- | --- | --- | --- |\n"
        )
        .unwrap();
        for op in ops {
            let encodings: Vec<String> =
                op.info().encodings().map(|(encoding, opcode)| format!("{encoding:?} {opcode:#x}")).collect();
            let judge = judges.get(&format!("{op:?}")).map_or_else(|| "none".into(), |test| format!("`{test}`"));
            let (state, note) = (fidelity(op).name(), fidelity(op).note());
            writeln!(text, "| `{}` | {} | {state} | {judge} | {note} |", op.name(), encodings.join(", ")).unwrap();
        }
    }
    text
}

#[test]
fn the_table_in_the_docs_is_up_to_date() {
    let path = root().join("docs/isa.md");
    if let Some(record) = std::env::var_os("UPDATE") {
        let judges = judges_of(&std::fs::read_to_string(record).unwrap());
        std::fs::write(&path, table(&judges)).unwrap();
    }
    let on_disk = std::fs::read_to_string(&path).unwrap();
    assert!(
        on_disk == table(&judges_in(&on_disk)),
        "docs/isa.md is out of date; the head of this file says how to rewrite it"
    );
}

#[test]
fn every_instruction_that_is_executed_has_a_judge_that_exists() {
    let judges = judges_in(&std::fs::read_to_string(root().join("docs/isa.md")).unwrap());
    for &op in Op::ALL {
        let judge = judges.get(&format!("{op:?}"));
        let left_out = matches!(fidelity(op), Fidelity::Unsupported(_));
        assert!(judge.is_some() || left_out, "{} has no test", op.name());
    }
    let tests: BTreeSet<&String> = judges.values().collect();
    for test in tests {
        assert!(exists(test), "there is no test {test}");
    }
}

/// Whether the source has the unit test `exec::vector::tests::bits::shifts`: some file on that path has the function.
fn exists(test: &str) -> bool {
    let parts: Vec<&str> = test.split("::").collect();
    let Some((function, modules)) = parts.split_last() else { return false };
    let signature = format!("fn {function}()");
    let source = root().join("mock/src");
    let files = (1..=modules.len()).flat_map(|n| {
        let path = source.join(modules[..n].join("/"));
        [path.with_extension("rs"), path.join("mod.rs")]
    });
    files.into_iter().any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains(&signature)))
}
