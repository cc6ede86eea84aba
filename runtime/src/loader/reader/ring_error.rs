//! Why there is no ring, and what to do about it.

use std::io;

/// Where the kernel says who may use io_uring: 0 everyone, 1 privileged processes and a group, 2 nobody.
const DISABLED_FILE: &str = "/proc/sys/kernel/io_uring_disabled";

/// The kernel's version.
const RELEASE_FILE: &str = "/proc/sys/kernel/osrelease";

/// Why there is no ring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The kernel refused to make one.
    #[error("io_uring_setup: {source}; {}", setup_advice(source, disabled().as_deref()))]
    Setup {
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel has rings, but lacks what a load needs of them.
    #[error("this kernel's io_uring lacks {what}; Linux 5.11 or later has it")]
    Feature {
        /// What is missing.
        what: &'static str,
    },
    /// The ring cannot be limited to reading the shards.
    #[error("io_uring_register(RESTRICTIONS): {source}; Linux 5.10 or later has them")]
    Restrict {
        /// What the kernel said.
        source: io::Error,
    },
    /// The ring cannot be started.
    #[error("io_uring_register(ENABLE_RINGS): {source}")]
    Enable {
        /// What the kernel said.
        source: io::Error,
    },
}

/// The sysctl's value, if the kernel has it.
fn disabled() -> Option<String> {
    std::fs::read_to_string(DISABLED_FILE).ok().map(|text| text.trim().to_owned())
}

/// What to do about a refused `io_uring_setup`, knowing the sysctl.
fn setup_advice(error: &io::Error, disabled: Option<&str>) -> String {
    match (error.raw_os_error(), disabled) {
        (Some(libc::EPERM), Some("2")) => {
            "kernel.io_uring_disabled is 2, which forbids it to everybody: sysctl -w kernel.io_uring_disabled=0".into()
        }
        (Some(libc::EPERM), Some("1")) => {
            "kernel.io_uring_disabled is 1, which forbids it to processes without CAP_SYS_ADMIN outside the group \
             kernel.io_uring_group: join that group, or sysctl -w kernel.io_uring_disabled=0"
                .into()
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "the kernel would allow it, so a sandbox forbids it: allow the io_uring system calls in the container's \
             seccomp profile"
                .into()
        }
        (Some(libc::ENOSYS), _) => format!(
            "kernel {} has no io_uring (CONFIG_IO_URING), or a sandbox hides it",
            std::fs::read_to_string(RELEASE_FILE).unwrap_or_default().trim()
        ),
        (Some(libc::ENOMEM), _) => "no memory for the ring: raise the limit on locked memory (ulimit -l)".into(),
        (Some(libc::EMFILE | libc::ENFILE), _) => "too many open files: raise the limit (ulimit -n)".into(),
        _ => "see io_uring_setup(2)".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_that_a_ring_is_refused_has_its_own_cause_and_fix() {
        let cases = [
            (libc::EPERM, Some("2")),
            (libc::EPERM, Some("1")),
            (libc::EPERM, Some("0")),
            (libc::ENOSYS, None),
            (libc::ENOMEM, Some("0")),
            (libc::EMFILE, Some("0")),
        ];
        let advice = cases.map(|(errno, sysctl)| setup_advice(&io::Error::from_raw_os_error(errno), sysctl));
        for (index, text) in advice.iter().enumerate() {
            assert!(!advice[..index].contains(text), "{text}");
        }
        assert!(advice[0].contains("sysctl -w kernel.io_uring_disabled=0"));
        assert!(advice[2].contains("seccomp"));
    }
}
