//! Which test executes which instruction, for the table in `docs/isa.md`.

use std::collections::HashSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use isa::Op;

use crate::code::Code;

/// Names a file to add to: a line for each instruction and test.
const VARIABLE: &str = "ISA_RECORD";

/// Takes down that the running test executes `code`, if somebody asks for it.
pub(super) fn executed(code: &Code) {
    static SEEN: Mutex<Option<HashSet<(Op, String)>>> = Mutex::new(None);
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    // The test harness gives each test a thread of its own that bears its name.
    let thread = std::thread::current();
    let Some(test) = thread.name() else { return };
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = seen.get_or_insert_default();
    let mut lines = String::new();
    for inst in (0..code.micros().len() as u32).filter_map(|index| code.inst(index)) {
        if seen.insert((inst.op, test.to_owned())) {
            lines += &format!("{:?} {test}\n", inst.op);
        }
    }
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(lines.as_bytes())).expect("the file that ISA_RECORD names can be written");
}
