//! The sanitizer on the project's own work: our kernels and graphs are silent, and what they lack when something is taken away
//! is reported, by the library and by the commands.

#![allow(clippy::unwrap_used, reason = "a test panics")]

#[path = "../support/cli.rs"]
mod cli;
mod graph;
#[path = "../support/orders.rs"]
mod orders;
mod reports;
mod silence;
