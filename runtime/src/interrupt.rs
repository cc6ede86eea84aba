//! Ctrl-C, as a wish that long work looks at.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn request(_: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// From now on the first SIGINT or SIGTERM is a wish ([`requested`]); the next one ends the process at once.
///
/// # Errors
/// The system refuses the handler.
pub fn watch() -> io::Result<()> {
    // System calls in progress end early, so that whoever waits looks soon.
    let action = SigAction::new(SigHandler::Handler(request), SaFlags::SA_RESETHAND, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: the handler stores to an atomic and does nothing else, which is safe in a signal handler.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// Whether somebody wishes to stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
