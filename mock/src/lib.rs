//! MOCKKFD: an emulated AMD machine.
