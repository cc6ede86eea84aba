//! The disks that shards are on.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use model::Checkpoint;
use model::checkpoint::Shard;

use super::{Report, Topic};
use crate::loader;

/// Read for the estimate of a disk's speed.
const PROBE_BYTES: u64 = 256 << 20;
/// Extents shorter than this on average make the disk seek within a read.
const SHORT_EXTENT: u64 = 4 << 20;

/// One disk, and the shards on it.
#[derive(Clone, Debug, PartialEq)]
pub struct MountFacts {
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Its file system.
    pub file_system: String,
    /// What is mounted.
    pub source: String,
    /// Shards on it.
    pub shards: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Those of their bytes that take room on it; less if they have holes.
    pub allocated: u64,
    /// What O_DIRECT reads must be aligned to; `None` if it takes none.
    pub direct_alignment: Option<u64>,
    /// Pieces its shards lie in, if the file system says.
    pub extents: Option<u64>,
    /// Bytes a second of a short read.
    pub bytes_per_second: Option<f64>,
}

impl MountFacts {
    /// Most of the data is not there.
    fn is_sparse(&self) -> bool {
        self.allocated < self.bytes / 2
    }
}

pub(super) fn check(report: &mut Report, checkpoint: &Checkpoint) {
    let mut disks: BTreeMap<u64, Vec<(&Shard, Metadata)>> = BTreeMap::new();
    for shard in checkpoint.shards() {
        match shard.path.metadata() {
            Ok(metadata) => disks.entry(metadata.dev()).or_default().push((shard, metadata)),
            Err(error) => report.fail(Topic::Disk, format!("{}: {error}", shard.path.display())),
        }
    }
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut slowest: Option<f64> = Some(0.0);
    for (device, shards) in disks {
        let facts = examine(report, &table, device, &shards);
        let seconds = facts.bytes_per_second.map(|rate| facts.bytes as f64 / rate);
        slowest = slowest.zip(seconds).map(|(a, b)| a.max(b));
        report.mounts.push(facts);
    }
    report.load_seconds = slowest.filter(|seconds| *seconds > 0.0);
}

fn examine(report: &mut Report, table: &str, device: u64, shards: &[(&Shard, Metadata)]) -> MountFacts {
    let entry = mount_of(table, device, shards.first().map(|(shard, _)| &*shard.path));
    let (mount_point, file_system, source) = entry.unwrap_or(("?".into(), "?".into(), "?".into()));
    let mut facts = MountFacts {
        mount_point,
        file_system,
        source,
        shards: shards.len(),
        bytes: shards.iter().map(|(shard, _)| shard.file_len).sum(),
        allocated: shards.iter().map(|(_, metadata)| metadata.blocks() * 512).sum(),
        direct_alignment: None,
        extents: shards.iter().map(|(shard, _)| extents(&shard.path).ok()).sum(),
        bytes_per_second: None,
    };
    let place = format!("{} ({} on {})", facts.mount_point.display(), facts.file_system, facts.source);
    report.ok(Topic::Disk, format!("{place}: {} shards, {} bytes", facts.shards, facts.bytes));
    let Some((largest, _)) = shards.iter().max_by_key(|(shard, _)| shard.file_len) else { return facts };
    match loader::probe_disk(&largest.path, largest.file_len, PROBE_BYTES) {
        Ok(probe) => {
            facts.direct_alignment = probe.direct_alignment;
            facts.bytes_per_second = Some(probe.rate);
            match probe.direct_alignment {
                Some(alignment) => report.ok(Topic::Disk, format!("{place}: O_DIRECT, aligned to {alignment}")),
                None => report.warn(
                    Topic::Disk,
                    format!("{place}: O_DIRECT is refused"),
                    "a load reads through the page cache, which is slower: put the shards on ext4, xfs or NVMe",
                ),
            }
            let rate = format!("{:.2} GB/s in a short read with {}", probe.rate / 1e9, probe.setting);
            if facts.is_sparse() {
                let fix = "speed and estimate say nothing about real files";
                report.warn(Topic::Disk, format!("{place}: the shards are mostly holes, a stand-in; {rate}"), fix);
            } else {
                report.ok(Topic::Disk, format!("{place}: {rate}"));
            }
        }
        Err(error) => report.fail(Topic::Disk, format!("{place}: {error}")),
    }
    match facts.extents {
        Some(count) if count > 0 && !facts.is_sparse() && facts.bytes / count < SHORT_EXTENT.min(facts.bytes / 8) => {
            let fix = "reads are cut into pieces: copy the shards to a disk with more free space, or defragment it";
            let average = (facts.bytes / count) >> 10;
            report.warn(Topic::Disk, format!("{place}: {count} extents, {average} KiB each on average"), fix);
        }
        Some(count) => report.ok(Topic::Disk, format!("{place}: {count} extents")),
        None => report.ok(Topic::Disk, format!("{place}: the file system does not tell extents")),
    }
    facts
}

/// Mount point, file system and source of a device, or of the longest mount point above `path` if the device number is
/// not in the table, as with btrfs.
fn mount_of(table: &str, device: u64, path: Option<&Path>) -> Option<(PathBuf, String, String)> {
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let real = path.and_then(|path| path.canonicalize().ok());
    let mut best: Option<(bool, usize, (PathBuf, String, String))> = None;
    for line in table.lines() {
        // "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" (proc_pid_mountinfo(5))
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        let (Some(&found), Some(&point), [kind, source, ..]) = (left.get(2), left.get(4), &right[..]) else { continue };
        let point = unescape(point);
        let above = real.as_ref().is_none_or(|real| real.starts_with(&point));
        let same = found == number;
        if !above {
            continue;
        }
        let rank = (same, point.len());
        if best.as_ref().is_none_or(|(best_same, length, _)| rank >= (*best_same, *length)) {
            best = Some((rank.0, rank.1, (point.into(), kind.to_string(), unescape(source))));
        }
    }
    best.map(|(_, _, entry)| entry)
}

/// Spaces and the like are written as octal escapes.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// `struct fiemap` of `linux/fiemap.h`, without the extents behind it.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b;

/// How many extents a file lies in.
fn extents(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    let mut map = Fiemap { length: u64::MAX, ..Fiemap::default() };
    // SAFETY: the descriptor is open and `map` is the structure the request takes; with an extent count of zero the
    // kernel writes nothing behind it.
    if unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &mut map) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(map.mapped_extents.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
        30 24 259:1 / /mnt/fast\\040disk rw - xfs /dev/nvme0n1p1 rw\n\
        31 24 0:45 /sub / rw - btrfs /dev/sdb rw\n";

    #[test]
    fn a_device_is_found_in_the_kernels_table() {
        let found = mount_of(TABLE, libc::makedev(259, 1), None).unwrap();
        assert_eq!(found, ("/mnt/fast disk".into(), "xfs".into(), "/dev/nvme0n1p1".into()));
        assert_eq!(mount_of(TABLE, libc::makedev(254, 0), None).unwrap().1, "ext4");
        assert_eq!(mount_of("", 1, None), None);
    }

    #[test]
    fn a_device_that_is_not_listed_is_named_by_the_mount_above_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let found = mount_of(TABLE, libc::makedev(7, 7), Some(folder.path())).unwrap();
        assert_eq!(found.0, Path::new("/"));
    }

    #[test]
    fn a_structure_has_the_size_its_request_encodes() {
        assert_eq!(size_of::<Fiemap>() as u64, FS_IOC_FIEMAP >> 16 & 0x3fff);
    }
}
