//! Ctrl-C, as a wish that long work looks at.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

static REQUESTED: AtomicBool = AtomicBool::new(false);

extern "C" fn request(_: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

extern "C" fn end(_: libc::c_int) {
    const TEXT: &[u8] = b"kimi-hcq: interrupted\n";
    // SAFETY: write and _exit are async-signal-safe; the text is static. Whether it could be written changes nothing.
    unsafe {
        libc::write(libc::STDERR_FILENO, TEXT.as_ptr().cast(), TEXT.len());
        libc::_exit(130);
    }
}

/// From now on SIGINT or SIGTERM ends the process at once, with exit code 130. For the time before [`watch`], while
/// nothing has been started that must be ended in order: the kernel frees what the process has.
///
/// # Errors
/// The system refuses the handler.
pub fn exit_at_once() -> io::Result<()> {
    handle(end, SaFlags::empty())
}

/// From now on the first SIGINT or SIGTERM is a wish ([`requested`]); the next one ends the process at once.
///
/// # Errors
/// The system refuses the handler.
pub fn watch() -> io::Result<()> {
    // System calls in progress end early, so that whoever waits looks soon.
    handle(request, SaFlags::SA_RESETHAND)
}

fn handle(handler: extern "C" fn(libc::c_int), flags: SaFlags) -> io::Result<()> {
    let action = SigAction::new(SigHandler::Handler(handler), flags, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // SAFETY: both handlers do nothing but what is safe in a signal handler, as they say.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}

/// Whether somebody wishes to stop.
#[must_use]
pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
