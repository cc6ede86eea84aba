//! Standard output and standard error, which may be a file on a full disk or a pipe that nobody reads any more.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a line of text for people to standard output, as `println!` does, and returns early with a [`Failure`] where that
/// panics.
macro_rules! say {
    ($($text:tt)*) => { $crate::cli::output::write_line(format_args!($($text)*))? };
}
pub(super) use say;

/// Writes a line for people to standard error, as `eprintln!` does, and goes on where that panics: what cannot be told there
/// can be told nowhere.
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::output::write_note(format_args!("{}\n", format_args!($($text)*))) };
}
pub(super) use note;

/// Prints one object on a line of its own.
pub(super) fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    write_line(format_args!("{}", serde_json::to_string(object).map_err(Failure::run)?))
}

/// Writes a line of text.
pub(super) fn write_line(text: fmt::Arguments<'_>) -> Result<(), Failure> {
    write_text(format_args!("{text}\n"))
}

/// Writes text as it is, at once.
pub(super) fn write_text(text: fmt::Arguments<'_>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(|error| refused(&error))
}

/// Writes text as it is to standard error, if that takes it.
pub(super) fn write_note(text: fmt::Arguments<'_>) {
    _ = io::stderr().lock().write_fmt(text);
}

/// What to end with when standard output takes no more.
pub(super) fn refused(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Run(format!("cannot write to standard output: {error}")),
    }
}
