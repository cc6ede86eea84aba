//! Measurements that a user can repeat.

mod cache;
pub mod load;
mod scaled;
