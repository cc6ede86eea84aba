//! Running a case on an emulated GPU: the same driver, queue and code-object loader as a model's.

use std::time::Duration;

use mock::launch::{Argument, Buffer, Device, Error, Launch, Outcome};

use super::compare::{Comparison, compare};
use super::file::{Case, Value};

/// What running a case gave.
#[derive(Debug)]
pub struct CaseOutcome {
    /// The comparison of each expectation, in the case's order.
    pub comparisons: Vec<Comparison>,
    /// What the launch gave.
    pub launch: Outcome,
}

impl CaseOutcome {
    /// Whether every expectation is met.
    #[must_use]
    pub fn is_match(&self) -> bool {
        self.comparisons.iter().all(|comparison| comparison.differing == 0)
    }

    /// The largest error of all expectations.
    #[must_use]
    pub fn max_error(&self) -> f64 {
        self.comparisons.iter().map(|comparison| comparison.max_error).fold(0.0, f64::max)
    }
}

/// Runs `case` on `device`, waiting at most `limit` for it.
///
/// # Errors
/// The launch is refused, faults or does not end in time. A mismatch is no error, but an outcome.
pub fn run(case: &Case, device: &mut Device, limit: Duration) -> Result<CaseOutcome, Error> {
    let program = device.load(&case.code_object)?;
    let mut launch = Launch::new(&program, &case.entry)?
        .workgroups(case.grid_workgroups)
        .workgroup(case.workgroup)
        .dynamic_lds(case.dynamic_lds_bytes)
        .limit(limit);
    let mut buffers = Vec::with_capacity(case.arguments.len());
    for argument in &case.arguments {
        let (value, buffer) = match &argument.value {
            Value::Buffer { bytes, content, .. } => {
                let buffer = device.zeroed(&argument.name, *bytes as usize)?;
                buffer.write(content)?;
                (Argument::from(&buffer), Some(buffer))
            }
            Value::Null => (Argument::null(), None),
            Value::Scalar(bytes) => (Argument::bytes(bytes), None),
        };
        launch = launch.argument_at(argument.offset, value);
        buffers.push(buffer);
    }
    let outcome = device.launch(&launch)?;
    let comparisons = case
        .expect
        .iter()
        .map(|expectation| {
            let element = match &case.arguments[expectation.argument].value {
                Value::Buffer { element, .. } => *element,
                Value::Null | Value::Scalar(_) => None,
            };
            let found = buffers[expectation.argument].as_ref().map_or(Ok(Vec::new()), Buffer::read::<u8>)?;
            Ok(compare(&found, element, &expectation.content, expectation.element, case.tolerance))
        })
        .collect::<Result<_, Error>>()?;
    Ok(CaseOutcome { comparisons, launch: outcome })
}
