//! The host: locked memory, io_uring, huge pages, free memory.

use std::fs;

use driver::address::Bytes;
use model::Checkpoint;
use nix::sys::resource::{Resource, getrlimit};

use super::{Report, Topic, size};
use crate::loader::{self, Options, RingProbe};

/// Memory that a load takes besides staging, with room to spare.
const OTHER_MEMORY: u64 = 256 << 20;
const HUGE_PAGES_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

pub(super) fn check(report: &mut Report, checkpoint: Option<&Checkpoint>) {
    let staging = Options::default().staging;
    check_ring(report, checkpoint, staging);
    match fs::read_to_string(HUGE_PAGES_FILE).as_deref().map(chosen) {
        Ok(Some(mode @ ("always" | "madvise"))) => {
            report.ok(Topic::Host, format!("transparent huge pages: {mode}, so that a read is one segment"));
        }
        Ok(mode) => report.warn(
            Topic::Host,
            format!("transparent huge pages: {}", mode.unwrap_or("?")),
            format!("reads take half as long with them: echo madvise > {HUGE_PAGES_FILE}"),
        ),
        Err(error) => report.warn(
            Topic::Host,
            format!("transparent huge pages: cannot read {HUGE_PAGES_FILE}: {error}"),
            "reads take half as long with them: use a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
        ),
    }
    let needed = Bytes::new(staging.get() + OTHER_MEMORY);
    match fs::read_to_string("/proc/meminfo").ok().and_then(|text| available(&text)) {
        Some(free) if free >= needed => report.ok(Topic::Host, format!("{} of host memory available", size(free))),
        Some(free) => report.warn(
            Topic::Host,
            format!("{} of host memory available, a load takes {}", size(free), size(needed)),
            "stop something, or the kernel may end the load",
        ),
        None => report.warn(Topic::Host, "/proc/meminfo does not say how much memory is available", "mount /proc"),
    }
}

fn check_ring(report: &mut Report, checkpoint: Option<&Checkpoint>, staging: Bytes) {
    let limit = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((soft, _)) if soft == nix::libc::RLIM_INFINITY => "no limit on locked memory".to_owned(),
        Ok((soft, _)) => format!("locked memory limited to {}", size(Bytes::new(soft))),
        Err(error) => format!("locked memory: {error}"),
    };
    let paths: Vec<_> = checkpoint.iter().flat_map(|c| c.shards()).map(|shard| &*shard.path).take(1).collect();
    match loader::probe_ring(&paths, staging) {
        Ok(RingProbe { without }) if without.is_empty() => {
            report.ok(Topic::Host, format!("io_uring: registers files and {} of buffers ({limit})", size(staging)));
        }
        Ok(RingProbe { without }) => report.warn(
            Topic::Host,
            format!("io_uring: {} ({limit})", without.join("; ")),
            format!("raise the limit to {} or more: ulimit -l, or LimitMEMLOCK= of the service", size(staging)),
        ),
        Err(error) => {
            let fix = "a load goes on with pread unless --io-uring is given";
            report.warn(Topic::Host, format!("io_uring: {error}"), fix);
        }
    }
}

/// The choice in brackets.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

fn available(meminfo: &str) -> Option<Bytes> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"))?;
    Some(Bytes::new(kib.parse::<u64>().ok()? << 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read_as_it_writes_them() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("never"), None);
        let meminfo = "MemTotal:       24731648 kB\nMemAvailable:   23633920 kB\n";
        assert_eq!(available(meminfo), Some(Bytes::new(23_633_920 << 10)));
        assert_eq!(available("MemTotal: 1 kB"), None);
    }
}
