//! What the sanitizer of an emulated machine (`MOCKKFD=check`) found while a command ran.

use std::process::ExitCode;

#[cfg(feature = "mock")]
use super::output::note;
use crate::failure::Failure;
use crate::platform::Platform;

/// What was found so far, if the machine looks.
#[cfg(feature = "mock")]
pub(super) fn reports(platform: &Platform) -> Option<Vec<mock::Report>> {
    let mock = platform.mock.as_ref()?;
    mock.config().check.then(|| mock.reports())
}

/// Shows reports to a person.
#[cfg(feature = "mock")]
pub(super) fn print_reports(reports: &[mock::Report]) {
    for report in reports {
        note!("{report}");
    }
}

/// Ends a command: shows what was found, unless its output has it (`is_shown`), and fails if that is anything.
#[cfg(feature = "mock")]
pub(super) fn end(platform: &Platform, is_shown: bool, result: Result<ExitCode, Failure>) -> Result<ExitCode, Failure> {
    let reports = reports(platform).unwrap_or_default();
    if !is_shown || result.is_err() {
        print_reports(&reports);
    }
    match result {
        Ok(ExitCode::SUCCESS) if !reports.is_empty() => Ok(ExitCode::FAILURE),
        result => result,
    }
}

/// A machine of hardware finds nothing.
#[cfg(not(feature = "mock"))]
pub(super) fn end(_: &Platform, _: bool, result: Result<ExitCode, Failure>) -> Result<ExitCode, Failure> {
    result
}
