//! How much memory this process has taken.

use std::fs;
use std::io;

/// Most memory the process has had resident at once, in bytes (`VmHWM`).
///
/// # Errors
/// The system does not say.
pub fn peak_rss_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.map(|kib: u64| kib << 10).ok_or_else(|| io::Error::other("/proc/self/status has no VmHWM"))
}

/// Starts [`peak_rss_bytes`] anew from what is resident now.
///
/// # Errors
/// The system does not let it.
pub fn reset_peak_rss() -> io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}
