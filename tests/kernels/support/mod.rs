//! What the tests share: the machine they run on, random data and FP64 arithmetic.

mod arithmetic;
mod exchange;
mod gpu;
mod random;
mod removal;

pub(crate) use arithmetic::{Bf16, Rows, assert_rows_close, bf16s, mix, rms_norm, sigmoid, silu, situ, widen, widened};
pub(crate) use exchange::{Exchange, PATIENT};
pub(crate) use gpu::{Buffer, Gpus, Job};
pub(crate) use random::Random;
pub(crate) use removal::{REPORTED, Removal};
