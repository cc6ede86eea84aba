//! Measurements that a user can repeat.

mod ballast;
pub mod block;
mod cache;
pub mod cost;
pub mod host;
pub mod load;
pub mod occupancy;
pub mod pass;
pub mod profile;
pub mod published;
mod scaled;
pub mod speed;
pub mod work;
