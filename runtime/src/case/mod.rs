//! Kernel cases: one launch of one code object, with inputs and expected outputs.
//!
//! A case is a folder with `case.json`, a code object and binary files; `docs/case-format.md` describes it.

mod compare;
mod file;
mod run;

pub use compare::{Comparison, Difference, ElementType};
pub use file::{Case, CaseError, Expectation, KernelArgument, Tolerance, Value};
pub use run::{CaseOutcome, run};
