//! `kimi-hcq fixture`

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use serde::Serialize;

use super::output::{print_json, say};
use crate::failure::Failure;
use crate::fixture::{self, Written};
use crate::interrupt;

/// What to make.
#[derive(clap::Subcommand)]
pub(super) enum Fixture {
    /// A stand-in for the released 1.56 TB checkpoint: true config, index and headers, no data.
    Official {
        /// Leave the data out, as a hole in each shard: 140 MB of disk.
        #[arg(long, required = true)]
        sparse: bool,
        /// Folder to make or fill.
        folder: PathBuf,
    },
    /// A checkpoint with random weights, in the layout of the released one.
    Random {
        /// The `config.json` to make it for; sizes are free.
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
        /// Seed of the weights: the same gives the same bytes.
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Folder to make or fill.
        folder: PathBuf,
    },
}

#[derive(Serialize)]
struct Report<'a> {
    folder: &'a str,
    files: usize,
    apparent_bytes: u64,
    disk_bytes: u64,
    seconds: f64,
}

pub(super) fn run(fixture: &Fixture, json: bool) -> Result<ExitCode, Failure> {
    interrupt::watch().map_err(Failure::run)?;
    let start = Instant::now();
    let (folder, written) = match fixture {
        Fixture::Official { folder, .. } => (folder, fixture::write_official(folder, &interrupt::requested)?),
        Fixture::Random { config, seed, folder } => {
            let json = std::fs::read(config)
                .map_err(|error| Failure::Input(format!("cannot read {}: {error}", config.display())))?;
            (folder, fixture::write_random(folder, &json, *seed, &interrupt::requested)?)
        }
    };
    let Written { files, apparent_bytes, disk_bytes } = written;
    let (folder, seconds) = (&*folder.to_string_lossy(), start.elapsed().as_secs_f64());
    if json {
        print_json(&Report { folder, files, apparent_bytes, disk_bytes, seconds })?;
    } else {
        say!("{folder}: {files} files of {apparent_bytes} bytes, {disk_bytes} on the disk, in {seconds:.1} s");
    }
    Ok(ExitCode::SUCCESS)
}
