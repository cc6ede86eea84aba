//! Short trials of what a load would use.

use std::path::Path;
use std::sync::Mutex;

use driver::address::Bytes;

use super::depth;
use super::file::ShardFile;
use super::plan::PlannedFile;
use super::raw::{RawMethod, RawSetting, read_files};
use super::reader::{RingError, Uring};
use super::staging::Staging;
use super::{LoadError, Options, Progress};

/// What io_uring gives here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingProbe {
    /// What it goes on without, and why.
    pub without: Vec<String>,
}

/// Tries to set up a ring as a load would: with these files and so much registered memory.
///
/// # Errors
/// There is no ring to be had.
pub fn probe_ring(paths: &[&Path], staging: Bytes) -> Result<RingProbe, RingError> {
    struct Notices(Mutex<Vec<String>>);
    impl Progress for Notices {
        fn notice(&self, text: &str) {
            // Only this thread speaks.
            if let Ok(mut notices) = self.0.lock() {
                notices.push(text.to_owned());
            }
        }
    }
    let notices = Notices(Mutex::default());
    // Files that cannot be opened are somebody else's to report.
    let open = |path: &&Path| {
        let len = path.metadata().ok()?.len();
        ShardFile::open(&PlannedFile::new(path.to_path_buf(), len, Vec::new())).ok()
    };
    let files: Vec<_> = paths.iter().filter_map(open).collect();
    match Staging::host(staging) {
        Ok(memory) => drop(Uring::new(&files, &memory, depth::FIRST, &notices)?),
        Err(error) => notices.notice(&error.to_string()),
    }
    Ok(RingProbe { without: notices.0.into_inner().unwrap_or_default() })
}

/// What a disk gives in a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskProbe {
    /// What O_DIRECT reads are aligned to; `None` if the file takes none.
    pub direct_alignment: Option<u64>,
    /// Bytes a second.
    pub rate: f64,
    /// How it was read.
    pub setting: RawSetting,
}

/// Reads the first `bytes` bytes of a shard of `len` bytes.
///
/// # Errors
/// It cannot be read.
pub fn probe_disk(path: &Path, len: u64, bytes: u64) -> Result<DiskProbe, LoadError> {
    let part = PlannedFile::new(path.to_owned(), len, std::iter::once(0..len.min(bytes)).collect());
    let open = || ShardFile::open(&part);
    let file = open()?;
    let ring = RawSetting { method: RawMethod::IoUring { depth: depth::FIRST }, block: Options::default().block.get() };
    let read = |setting| read_files(std::slice::from_ref(&part), &[open()?], vec![0], setting, u64::MAX);
    let mut setting = ring;
    let mut pass = read(setting);
    if matches!(pass, Err(LoadError::SetUpRing(_))) {
        setting.method = RawMethod::Pread;
        pass = read(setting);
    }
    let direct = file.is_direct().then(|| file.alignment());
    Ok(DiskProbe { direct_alignment: direct, rate: pass?.rate(), setting })
}
