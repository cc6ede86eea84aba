//! How a command fails, and the exit code that says so.

use std::error::Error;
use std::fmt;

/// Why a command did not do what it was asked to.
#[derive(Debug)]
pub enum Failure {
    /// The command line or an input file is refused; nothing was started. Exit code 2.
    Input(String),
    /// Something failed on the way. Exit code 1.
    Run(String),
    /// A GPU faulted or hangs. Exit code 3.
    Gpu(String),
    /// The user interrupted it. Exit code 130.
    Interrupted,
    /// Whoever read the output has closed it, and knows. Exit code 1.
    OutputClosed,
}

impl Failure {
    /// A refused input, with the error's whole chain of causes.
    pub fn input(error: impl Error) -> Self {
        Self::Input(chain(&error))
    }

    /// A failure at run time, with the error's whole chain of causes.
    pub fn run(error: impl Error) -> Self {
        Self::Run(chain(&error))
    }

    /// A GPU's failure, with the error's whole chain of causes.
    pub fn gpu(error: impl Error) -> Self {
        Self::Gpu(chain(&error))
    }

    /// The process exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run(_) | Self::OutputClosed => 1,
            Self::Input(_) => 2,
            Self::Gpu(_) => 3,
            Self::Interrupted => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(text) | Self::Run(text) | Self::Gpu(text) => f.write_str(text),
            Self::Interrupted => f.write_str("interrupted"),
            Self::OutputClosed => f.write_str("standard output is closed"),
        }
    }
}

/// The error and what caused it, on one line; causes whose text the error already contains are left out.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
