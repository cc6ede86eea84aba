//! Measurements that a user can repeat.

mod cache;
pub mod cost;
pub mod host;
pub mod load;
pub mod pass;
pub mod published;
mod scaled;
pub mod work;
