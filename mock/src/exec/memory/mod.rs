//! Memory instructions.

pub(super) mod global;
pub(super) mod scalar;
