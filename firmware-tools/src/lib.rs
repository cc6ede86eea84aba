//! What AMD GPUs are loaded with, parsed once for everybody: code objects today.
//!
//! Every input is hostile until it is proven otherwise: parsing never panics, allocates no more than a stated bound, and
//! ends in types whose values are checked against each other.

pub mod bundle;
pub mod code_object;

pub use code_object::CodeObject;
