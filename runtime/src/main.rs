//! The `kimi-hcq` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    kimi_hcq::cli::main()
}
